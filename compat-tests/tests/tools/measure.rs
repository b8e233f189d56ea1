//! kafka-producer-perf-test.sh and kafka-consumer-perf-test.sh.

use compat_tests::cluster::for_each_shared_cluster;

use super::frame::{both, both_plain, create_both, file_of, path, without_numbers};

#[test]
fn what_is_measured_is_printed_alike() {
    for_each_shared_cluster(|cluster| {
        create_both(cluster, "perf-@", &[&[1, 2, 3], &[2, 3, 1]]);
        let produce = |args: &[&str]| {
            let to = ["--topic", "perf-@", "--throughput", "-1"];
            both(cluster, "producer-perf-test", &[&to[..], args].concat())
        };
        // The first counts are of records, which both have sent.
        let counted = |text: &str| {
            let (count, rest) = text.split_once(' ').unwrap();
            format!("{count} {}", without_numbers(rest))
        };
        let size = &["--num-records", "2000", "--record-size", "100"][..];
        let printed = produce(size).same_after(counted);
        assert!(printed.starts_with("2000 records sent, "), "{printed}");
        produce(&["--num-records", "100", "--payload-monotonic"]).same_after(counted);
        let warm = [
            size,
            &["--warmup-records", "500", "--command-property", "acks=1"],
        ]
        .concat();
        produce(&warm).same_after(without_numbers);
        let unanswered = [size, &["--command-property", "acks=0"]].concat();
        produce(&unanswered).same_after(counted);
        let file = file_of("a\nbb\nccc\n");
        let lines = ["--num-records", "100", "--payload-file", path(&file)];
        let keys = ["--record-key-range", "5", "--key-distribution", "range"];
        produce(&[&lines[..], &keys].concat()).same_after(without_numbers);
        let bootstrap = format!("bootstrap.servers={}", cluster.bootstrap());
        let old = ["--producer-props", &bootstrap, "acks=1", "linger.ms=0"];
        let args = [
            "--topic",
            "perf-@",
            "--throughput",
            "1000",
            "--num-records",
            "200",
        ];
        let args = [&args[..], &["--record-size", "10"], &old].concat();
        both_plain("producer-perf-test", &args, b"").same_after(without_numbers);

        let consume = |args: &[&str]| {
            let from = ["--topic", "perf-@", "--group", "perf-@"];
            both(cluster, "consumer-perf-test", &[&from[..], args].concat())
        };
        consume(&["--num-records", "1000"]).same_after(without_numbers);
        // No more than there is: the rest is waited for.
        let rest = ["--messages", "100000", "--timeout", "1500", "--hide-header"];
        consume(&rest).same_after(without_numbers);
    });
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for_each_shared_cluster(|cluster| {
        let produce = |args: &[&str]| {
            let to = ["--topic", "t", "--throughput", "-1"];
            both(cluster, "producer-perf-test", &[&to[..], args].concat())
        };
        produce(&["--num-records", "0", "--record-size", "1"]).refused_with("num-records");
        produce(&["--num-records", "1", "--record-size", "0"]).refused_with("record-size");
        produce(&["--num-records", "1"]).refused_with("");
        produce(&[
            "--num-records",
            "1",
            "--record-size",
            "1",
            "--warmup-records",
            "1",
        ])
        .refused_with("warmup-records");
        produce(&[
            "--num-records",
            "1",
            "--record-size",
            "1",
            "--key-distribution",
            "range",
        ])
        .refused_with("record-key-range");
        both(cluster, "consumer-perf-test", &["--topic", "t"]).refused_with("num-records");
        both(cluster, "consumer-perf-test", &["--num-records", "1"]).refused_with("topic");
    });
}
