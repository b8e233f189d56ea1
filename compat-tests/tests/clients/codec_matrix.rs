//! What any client writes with any codec, small and large, every client reads (cases.md C06).

use compat_tests::clients::Client;
use compat_tests::each_broker::for_each_broker;

use crate::support::{Batch, consume, produce, unique};

/// Writes one small record and one of 2 MB per client and codec, then reads all of it with each client.
fn every_client_reads_what_every_client_writes(codecs: &[&str]) {
    for_each_broker(|broker| {
        let topic = unique("matrix");
        crate::support::create_topic(broker, &topic, 1, &[("max.message.bytes", "20000000")]);
        let mut next = 0;
        let mut sizes = Vec::new();
        for client in Client::ALL {
            for codec in codecs
                .iter()
                .filter(|codec| client.codecs().contains(codec))
            {
                for (count, size) in [(1, 10), (1, 2_000_000), (200, 1_000)] {
                    produce(
                        client,
                        broker,
                        Batch {
                            codec,
                            size,
                            ..Batch::new(&topic, next, count)
                        },
                    );
                    sizes.resize(next + count, size);
                    next += count;
                }
            }
        }
        for client in Client::ALL {
            if codecs.iter().all(|codec| client.codecs().contains(codec)) {
                let consumed = consume(client, broker, &topic, next);
                for (position, record) in consumed.iter().enumerate() {
                    let expected = (
                        i64::try_from(position).unwrap(),
                        i64::try_from(sizes[position]).unwrap(),
                    );
                    assert_eq!(
                        (record.offset, record.index, record.size),
                        (expected.0, expected.0, expected.1)
                    );
                }
            }
        }
    });
}

#[test]
fn every_client_reads_none_gzip_and_snappy_of_every_client() {
    every_client_reads_what_every_client_writes(&["none", "gzip", "snappy"]);
}

#[test]
fn every_client_reads_lz4_and_zstd_of_every_client() {
    every_client_reads_what_every_client_writes(&["lz4", "zstd"]);
}
