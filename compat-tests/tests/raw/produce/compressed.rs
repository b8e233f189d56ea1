//! Compressed batches: codecs, sizes, and payloads that do not inflate.

use super::*;

#[test]
fn zstd_needs_version_7() {
    for_each_broker(|broker| {
        let topic = "produce-zstd";
        let mut connection = one_record(broker, topic);
        let zstd = Batch {
            attributes: 4,
            body: Some(ZSTD_OF_TWO.to_vec()),
            ..batch(2)
        }
        .encode();
        for version in 3..7 {
            let reply = produce_at(&mut connection, version, topic, 0, zstd.clone());
            assert_eq!(
                reply.error_code,
                code::UNSUPPORTED_COMPRESSION_TYPE,
                "v{version}"
            );
        }
    });
}

/// Never decompressed: the version gate comes first.
const ZSTD_OF_TWO: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0, 0, 1, 0, 0];

#[test]
fn compressed_payloads_that_do_not_inflate_are_refused() {
    for_each_broker(|broker| {
        let topic = "produce-inflate";
        // Records must be looked at for the key check, so that even a lazy broker inflates.
        create_topic_with(broker, topic, 1, &[("cleanup.policy", "compact")]);
        let mut connection = connect(broker);
        produce_ok(&mut connection, topic, 0, batch(1).encode());
        for codec in 1..=7 {
            let garbage = Batch {
                attributes: codec,
                body: Some(vec![0x5a; 64]),
                ..batch(2)
            };
            let codes = [
                code::UNKNOWN_SERVER_ERROR,
                code::CORRUPT_MESSAGE,
                code::INVALID_RECORD,
                code::UNSUPPORTED_COMPRESSION_TYPE,
            ];
            let what = format!("codec {codec}");
            refuses(&mut connection, topic, &what, garbage.encode(), &codes);
        }
    });
}

#[test]
fn size_limit_is_on_the_stored_batch() {
    for_each_broker(|broker| {
        let topic = "produce-limit";
        create_topic_with(broker, topic, 2, &[("max.message.bytes", "2000")]);
        let mut connection = connect(broker);
        let request = produce_request(
            topic,
            vec![
                (0, Batch::of_size(2001).encode()),
                (1, Batch::of_size(2000).encode()),
            ],
        );
        let reply = connection.call(PRODUCE, &request).unwrap();
        let mut codes: Vec<_> = reply.responses[0]
            .partition_responses
            .iter()
            .map(|p| (p.index, p.error_code))
            .collect();
        codes.sort_unstable();
        assert_eq!(codes, [(0, code::MESSAGE_TOO_LARGE), (1, code::NONE)]);
        // 10 KB that become few bytes may pass.
        let large = Batch::of(vec![Record::new("k", &"x".repeat(10_000))]).at(*NOW_MS, &[]);
        let small = Batch {
            attributes: 1,
            body: Some(gzip(&large.encoded_records())),
            ..large
        };
        produce_ok(&mut connection, topic, 0, small.encode());
    });
}

#[test]
fn decompression_bomb_costs_no_memory() {
    // Apache Kafka streams records and has no cap (A14).
    on_highwater(&BrokerOptions::new(), |broker| {
        // Looking at the records is forced by compaction's key check.
        create_topic_with(broker, "bomb", 1, &[("cleanup.policy", "compact")]);
        let mut connection = connect(broker);
        produce_ok(&mut connection, "bomb", 0, batch(1).encode());
        let before = crate::process::resident_bytes(broker);
        // One record of 1 GiB of zeros, in about 1 MiB of gzip.
        let size: i64 = 1 << 30;
        let mut plain = Vec::new();
        put_varint(&mut plain, size + 20);
        plain.extend([0, 0, 0, 2, b'k']);
        put_varint(&mut plain, size);
        plain.resize(plain.len() + size as usize, 0);
        let body = gzip(&plain);
        drop(plain);
        assert!(body.len() < 2 << 20);
        let bomb = Batch {
            attributes: 1,
            body: Some(body),
            ..batch(1)
        };
        let reply = produce(&mut connection, "bomb", 0, bomb.encode());
        assert_ne!(reply.error_code, code::NONE);
        let grown = crate::process::peak_resident_bytes(broker).saturating_sub(before);
        assert!(
            grown < 300 << 20,
            "a bomb of 1 GiB took {} MiB",
            grown >> 20
        );
        produce_ok(&mut connection, "bomb", 0, batch(1).encode());
    });
}

fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut raw = ((value << 1) ^ (value >> 63)) as u64;
    while raw >= 0x80 {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}
