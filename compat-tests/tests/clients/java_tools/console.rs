//! kafka-console-producer.sh and kafka-console-consumer.sh.

use compat_tests::clients::Client;
use compat_tests::each_broker::{for_each_broker, for_each_broker_with};
use serde_json::Value;

use compat_tests::broker::BrokerOptions;

use crate::support::{
    Batch, Member, SESSION, create_topic, produce, tool, tool_with_input, try_tool, unique,
};

#[test]
fn console_producer_and_consumer_pass_keys_headers_and_nulls() {
    for_each_broker(|broker| {
        let topic = unique("console");
        create_topic(broker, &topic, 1, &[]);
        let lines = "a:1,b:2|key1|value1\nNIL|key2|\nNIL|key3|NIL\n";
        let args = [
            "--topic",
            &topic,
            "--compression-codec",
            "zstd",
            "--reader-property",
            "parse.key=true",
            "--reader-property",
            "parse.headers=true",
            "--reader-property",
            "headers.delimiter=|",
            "--reader-property",
            "key.separator=|",
            "--reader-property",
            "null.marker=NIL",
        ];
        tool_with_input(broker, "console-producer", &args, lines.as_bytes());
        let args = [
            "--topic",
            &topic,
            "--from-beginning",
            "--max-messages",
            "3",
            "--timeout-ms",
            "30000",
            "--formatter-property",
            "print.key=true",
            "--formatter-property",
            "print.headers=true",
            "--formatter-property",
            "print.offset=true",
            "--formatter-property",
            "print.partition=true",
        ];
        let consumed = tool(broker, "console-consumer", &args);
        assert_eq!(
            consumed,
            "Partition:0\tOffset:0\ta:1,b:2\tkey1\tvalue1\n\
             Partition:0\tOffset:1\tNO_HEADERS\tkey2\t\n\
             Partition:0\tOffset:2\tNO_HEADERS\tkey3\tnull\n"
        );
        let from_one = [
            "--topic",
            &topic,
            "--partition",
            "0",
            "--offset",
            "1",
            "--max-messages",
            "1",
        ];
        assert_eq!(tool(broker, "console-consumer", &from_one), "\n");
    });
}

#[test]
fn kafkas_offsets_formatters_read_consumer_offsets() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        create_topic(broker, "read", 2, &[]);
        produce(Client::Java, broker, Batch::new("read", 0, 5));
        let member = Member::join(Client::Java, broker, "read", "reader");
        compat_tests::process::eventually(crate::support::LIMIT, "5 records", || {
            (member.said().records.len() == 5).then_some(())
        });
        member.leave();
        let formatted = |formatter: &str| {
            let group = unique("formatter");
            let class = format!("org.apache.kafka.tools.consumer.{formatter}");
            let args = [
                "--topic",
                "__consumer_offsets",
                "--from-beginning",
                "--timeout-ms",
                "3000",
            ];
            let own = ["--group", &group, "--formatter", &class];
            // The tool ends with its time-out: there is no count of records to wait for.
            let out = try_tool(broker, "console-consumer", &[&args[..], &own].concat(), b"").out;
            serde_json::Deserializer::from_str(&out)
                .into_iter::<Value>()
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        };
        let offsets = formatted("OffsetsMessageFormatter");
        let of_reader: Vec<_> = offsets
            .iter()
            .filter(|record| record["key"]["data"]["group"] == "reader")
            .collect();
        let last = of_reader
            .iter()
            .rfind(|record| record["key"]["data"]["partition"] == 0)
            .expect("a commit");
        assert_eq!(last["key"]["type"], 1);
        assert_eq!(last["key"]["data"]["topic"], "read");
        assert_eq!(last["value"]["data"]["offset"], 5);
        assert_eq!(last["value"]["data"]["metadata"], "");
        assert_eq!(last["value"]["version"], 4);
        assert_eq!(last["value"]["data"]["leaderEpoch"], 0);
        assert!(
            last["value"]["data"]["topicId"]
                .as_str()
                .is_some_and(|id| id.len() == 22),
            "{last}"
        );

        let metadata = formatted("GroupMetadataMessageFormatter");
        let of_reader: Vec<_> = metadata
            .iter()
            .filter(|record| record["key"]["data"]["group"] == "reader")
            .collect();
        let stable = of_reader
            .iter()
            .find(|r| r["value"]["data"]["generation"] == 1)
            .expect("the first generation");
        let data = &stable["value"]["data"];
        assert_eq!(
            (&stable["key"]["type"], &stable["value"]["version"]),
            (&Value::from(2), &Value::from(3))
        );
        assert_eq!(
            (&data["protocolType"], &data["protocol"]),
            (&Value::from("consumer"), &Value::from("range"))
        );
        let member = &data["members"][0];
        assert_eq!(
            (&member["sessionTimeout"], &member["clientHost"]),
            (
                &Value::from(SESSION.as_millis() as u64),
                &Value::from("/127.0.0.1")
            )
        );
        assert_eq!(data["leader"], member["memberId"]);
        assert!(
            member["assignment"]
                .as_str()
                .is_some_and(|bytes| bytes.len() > 20),
            "{member}"
        );
    });
}
