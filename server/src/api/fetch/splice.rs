//! The fetch response on the wire, with the record bytes spliced in instead of copied.
//!
//! kafka-protocol encodes everything but the records; they go to the socket as the slices of the
//! log's map that the read returned. The result is byte for byte what kafka-protocol alone would
//! write (the tests say so).

use anyhow::{Context, Result};
use bytes::{BufMut, Bytes};
use kafka_protocol::messages::FetchResponse;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::protocol::Encodable;

use crate::api::reply::ResponseWriter;

/// First version with flexible encoding.
const FLEXIBLE_FROM: i16 = 12;

/// Encodes `response` into `writer`.
///
/// # Errors
/// When a field is set that the version does not have, or the message would be too large.
pub(super) fn encode_spliced(
    mut response: FetchResponse,
    version: i16,
    writer: &mut ResponseWriter,
) -> Result<()> {
    let mut splicer = Splicer { version, writer };
    let topics = std::mem::take(&mut response.responses);
    let mut frame = Vec::new();
    response.encode(&mut frame, version)?;
    // What follows the empty array of topics: the tagged fields, from v12 on.
    let array_bytes = if version >= FLEXIBLE_FROM { 1 } else { 4 };
    let array_position = fixed_prefix_bytes(version);
    splicer.put(&frame[..array_position]);
    splicer.count(topics.len())?;
    for topic in topics {
        splicer.topic(topic)?;
    }
    splicer.put(&frame[array_position + array_bytes..]);
    Ok(())
}

/// Bytes of throttle time, and from v7 on of the error code and the session id.
fn fixed_prefix_bytes(version: i16) -> usize {
    if version >= 7 { 4 + 2 + 4 } else { 4 }
}

struct Splicer<'a> {
    version: i16,
    writer: &'a mut ResponseWriter,
}

impl Splicer<'_> {
    fn flexible(&self) -> bool {
        self.version >= FLEXIBLE_FROM
    }

    fn put(&mut self, bytes: &[u8]) {
        self.writer.buffer().extend_from_slice(bytes);
    }

    fn topic(&mut self, mut topic: FetchableTopicResponse) -> Result<()> {
        let partitions = std::mem::take(&mut topic.partitions);
        let mut frame = Vec::new();
        topic.encode(&mut frame, self.version)?;
        // The frame ends with the empty array and, if flexible, the tagged fields of the topic.
        let (array, tail) = if self.flexible() {
            (1, tagged_bytes(&topic)?)
        } else {
            (4, 0)
        };
        let array_position = frame.len() - array - tail;
        self.put(&frame[..array_position]);
        self.count(partitions.len())?;
        for partition in partitions {
            self.partition(partition)?;
        }
        self.put(&frame[array_position + array..]);
        Ok(())
    }

    fn partition(&mut self, mut partition: PartitionData) -> Result<()> {
        let records = partition.records.take().unwrap_or_default();
        partition.records = Some(Bytes::new());
        if records.is_empty() {
            return partition.encode(self.writer.buffer(), self.version);
        }
        let mut frame = Vec::new();
        partition.encode(&mut frame, self.version)?;
        let (length, tail) = if self.flexible() {
            (1, partition_tagged_bytes(&partition, self.version)?)
        } else {
            (4, 0)
        };
        let length_position = frame.len() - length - tail;
        self.put(&frame[..length_position]);
        self.count(records.len())?;
        self.writer.splice(records);
        self.put(&frame[length_position + length..]);
        Ok(())
    }

    /// The length of an array or of the records: plus one as a varint if flexible.
    fn count(&mut self, count: usize) -> Result<()> {
        if self.flexible() {
            let mut value = u32::try_from(count + 1).context("fetch response too large")?;
            while value >= 0x80 {
                self.writer.buffer().put_u8(value.to_le_bytes()[0] | 0x80);
                value >>= 7;
            }
            self.writer.buffer().put_u8(value.to_le_bytes()[0]);
        } else {
            self.writer
                .buffer()
                .put_i32(i32::try_from(count).context("fetch response too large")?);
        }
        Ok(())
    }
}

/// How many bytes the tagged fields of a topic take.
fn tagged_bytes(topic: &FetchableTopicResponse) -> Result<usize> {
    anyhow::ensure!(
        topic.unknown_tagged_fields.is_empty(),
        "unknown tagged fields in a response"
    );
    Ok(1)
}

/// How many bytes the tagged fields of a partition take: those of it as it is, less those of it
/// without any.
fn partition_tagged_bytes(partition: &PartitionData, version: i16) -> Result<usize> {
    let mut plain = partition.clone();
    plain.diverging_epoch = Default::default();
    plain.current_leader = Default::default();
    plain.snapshot_id = Default::default();
    plain.unknown_tagged_fields.clear();
    Ok(1 + partition.compute_size(version)? - plain.compute_size(version)?)
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::fetch_response::{
        AbortedTransaction, EpochEndOffset, NodeEndpoint,
    };
    use kafka_protocol::messages::{BrokerId, ProducerId, TopicName};
    use kafka_protocol::protocol::StrBytes;
    use uuid::Uuid;

    use super::*;

    fn partition(index: i32, records: Option<usize>) -> PartitionData {
        PartitionData::default()
            .with_partition_index(index)
            .with_high_watermark(7)
            .with_last_stable_offset(6)
            .with_aborted_transactions(Some(vec![
                AbortedTransaction::default()
                    .with_producer_id(ProducerId(9))
                    .with_first_offset(3),
            ]))
            .with_records(Some(
                records.map_or_else(Bytes::new, |n| Bytes::from(vec![0xab; n])),
            ))
    }

    fn response(version: i16) -> FetchResponse {
        let mut diverging = partition(3, Some(5000));
        let mut leader_moved = partition(4, None);
        if version >= 12 {
            diverging.diverging_epoch = EpochEndOffset::default().with_epoch(4).with_end_offset(9);
            leader_moved.current_leader.leader_id = BrokerId(2);
        }
        if version >= 5 {
            leader_moved.log_start_offset = 2;
        }
        let topic = |name: &str, partitions| {
            let topic = FetchableTopicResponse::default().with_partitions(partitions);
            if version >= 13 {
                topic.with_topic_id(Uuid::from_u128(77))
            } else {
                topic.with_topic(TopicName(StrBytes::from_string(name.to_owned())))
            }
        };
        let mut response = FetchResponse::default()
            .with_throttle_time_ms(3)
            .with_responses(vec![
                topic(
                    "one",
                    vec![
                        partition(0, Some(10)),
                        partition(1, Some(200_000)),
                        diverging,
                    ],
                ),
                topic("none", vec![]),
                topic(
                    "two",
                    vec![
                        leader_moved,
                        partition(5, Some(1023)),
                        partition(6, Some(1024)),
                    ],
                ),
            ]);
        if version >= 7 {
            response.session_id = 11;
        }
        if version >= 16 {
            response.node_endpoints = vec![NodeEndpoint::default().with_port(9092)];
        }
        response
    }

    #[test]
    fn the_spliced_bytes_are_those_of_kafka_protocol_at_every_version() {
        for version in 4..=18 {
            let response = response(version);
            let mut expected = Vec::new();
            response.encode(&mut expected, version).unwrap();
            let mut writer = ResponseWriter::new(1, 0, 64);
            encode_spliced(response, version, &mut writer).unwrap();
            assert_eq!(writer.finish().to_vec()[8..], expected, "version {version}");
        }
    }

    #[test]
    fn large_records_are_not_copied() {
        let records = Bytes::from(vec![1; 100_000]);
        let response = FetchResponse::default().with_responses(vec![
            FetchableTopicResponse::default().with_partitions(vec![
                PartitionData::default().with_records(Some(records.clone())),
            ]),
        ]);
        let mut writer = ResponseWriter::new(1, 0, 64);
        encode_spliced(response, 12, &mut writer).unwrap();
        assert!(
            writer
                .finish()
                .into_pieces()
                .any(|piece| piece.as_ptr() == records.as_ptr())
        );
    }
}
