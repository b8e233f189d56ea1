use proptest::prelude::*;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
        .collect()
}

/// Values of records from the metadata log of Apache Kafka 4.4.0.
const WRITTEN_BY_KAFKA: &[&str] = &[
    "01170001001212426f6f747374726170207265636f726473",
    "010c00116d657461646174612e76657273696f6e002100",
    "0104000401146d696e2e696e73796e632e7265706c69636173023100",
    "01180000",
    "01140000",
    "011b000000000117243f9f575a406b84debbe4767c2f3600020b434f4e54524f4c4c45520a3132372e302e302e3152d10000000\
     80e67726f75702e76657273696f6e00000001000e6b726166742e76657273696f6e0000000100116d657461646174612e76657273\
     696f6e00070021000e73686172652e76657273696f6e00000002001073747265616d732e76657273696f6e0000000100147472616\
     e73616374696f6e2e76657273696f6e000000020021656c696769626c652e6c65616465722e7265706c696361732e76657273696f\
     6e000000010000",
    "01000400000001008a4eed0d988a4a14b48275b226203d010000000000000011020a504c41494e544558540a3132372e302e302e3\
     152d0000000080e67726f75702e76657273696f6e00000001001073747265616d732e76657273696f6e0000000100147472616e73\
     616374696f6e2e76657273696f6e000000020021656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e0\
     000000100116d657461646174612e76657273696f6e00070021000e73686172652e76657273696f6e00000002000e6b726166742e\
     76657273696f6e000000010000010001001102cf9e53d4af5874c26a8ff43c3735985c",
    "011100000000010000000000000011010001ff",
    "01110300000001000000000000001101030101",
    "010200037431af5a88027536409ca894f597eccaba3500",
    "01030200000001af5a88027536409ca894f597eccaba3502000000010200000001010100000001000000000000000002cf9e53d4a\
     f5874c26a8ff43c3735985c00",
];

#[test]
fn records_written_by_kafka_are_read_and_written_byte_for_byte() {
    for hex in WRITTEN_BY_KAFKA {
        let value = bytes(hex);
        let (record, version) = MetadataRecord::decode_with_version(&value).expect(hex);
        assert_eq!(record.encode_version(version), value, "{record:?}");
        assert_eq!(record.write_version(), version, "{record:?}");
    }
}

#[test]
fn fields_of_a_partition_record_written_by_kafka_have_their_values() {
    let record = MetadataRecord::decode(&bytes(WRITTEN_BY_KAFKA[10])).expect("a partition record");
    let MetadataRecord::Partition(partition) = record else {
        panic!("{record:?}")
    };
    assert_eq!(partition.partition_id, 1);
    assert_eq!(
        (partition.replicas, partition.isr, partition.leader),
        (vec![1], vec![1], 1)
    );
    assert_eq!((partition.leader_epoch, partition.partition_epoch), (0, 0));
    assert_eq!(partition.directories.len(), 1);
    assert_eq!(partition.eligible_leader_replicas, None);
}

#[test]
fn unknown_types_versions_and_frames_are_errors() {
    assert_eq!(
        MetadataRecord::decode(&bytes("01640000")),
        Err(RecordError::UnknownType(100))
    );
    let unknown_version = RecordError::UnknownVersion {
        api_key: 2,
        version: 1,
    };
    assert_eq!(
        MetadataRecord::decode(&bytes("01020100")),
        Err(unknown_version)
    );
    assert_eq!(
        MetadataRecord::decode(&bytes("02140000")),
        Err(RecordError::UnknownFrameVersion(2))
    );
    assert_eq!(
        MetadataRecord::decode(&bytes("0114000000")),
        Err(RecordError::TrailingBytes(1))
    );
    assert_eq!(MetadataRecord::decode(&[]), Err(RecordError::Truncated));
}

#[test]
fn an_unknown_tagged_field_is_skipped() {
    assert_eq!(
        MetadataRecord::decode(&bytes("0114000107020a0b")),
        Ok(NoOpRecord {}.into())
    );
}

#[test]
fn a_count_larger_than_the_record_is_an_error_before_anything_is_reserved() {
    // A config record whose name claims 2^32 - 2 bytes, and a partition record with as many replicas.
    let name = bytes("0104000401ffffffff0f");
    assert_eq!(MetadataRecord::decode(&name), Err(RecordError::Truncated));
    let mut replicas = bytes("01030200000000");
    replicas.extend([0; 16]);
    replicas.extend(bytes("ffffffff0f"));
    assert_eq!(
        MetadataRecord::decode(&replicas),
        Err(RecordError::Truncated)
    );
}

fn uuid() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

fn ids() -> impl Strategy<Value = Vec<i32>> {
    prop::collection::vec(any::<i32>(), 0..5)
}

fn maybe_ids() -> impl Strategy<Value = Option<Vec<i32>>> {
    prop::option::of(ids())
}

prop_compose! {
    fn endpoint()(name in ".*", host in ".*", port: u16, security_protocol: i16) -> Endpoint {
        Endpoint { name, host, port, security_protocol }
    }
}

prop_compose! {
    fn feature()(name in ".*", min_supported_version: i16, max_supported_version: i16) -> FeatureRange {
        FeatureRange { name, min_supported_version, max_supported_version }
    }
}

prop_compose! {
    fn register_broker()(
        broker_id: i32, is_migrating_zk_broker: bool, incarnation_id in uuid(), broker_epoch: i64,
        end_points in prop::collection::vec(endpoint(), 0..4), features in prop::collection::vec(feature(), 0..4),
        rack in prop::option::of(".*"), (fenced, in_controlled_shutdown) in any::<(bool, bool)>(),
        log_dirs in prop::collection::vec(uuid(), 0..4),
        cordoned_log_dirs in prop::option::of(prop::collection::vec(uuid(), 0..4)),
    ) -> RegisterBrokerRecord {
        RegisterBrokerRecord {
            broker_id, is_migrating_zk_broker, incarnation_id, broker_epoch, end_points, features, rack, fenced,
            in_controlled_shutdown, log_dirs, cordoned_log_dirs,
        }
    }
}

prop_compose! {
    fn partition()(
        (partition_id, leader, leader_epoch, partition_epoch) in any::<(i32, i32, i32, i32)>(), topic_id in uuid(),
        (replicas, isr, removing_replicas, adding_replicas) in (ids(), ids(), ids(), ids()),
        leader_recovery_state: i8, directories in prop::collection::vec(uuid(), 0..4),
        (eligible_leader_replicas, last_known_elr) in (maybe_ids(), maybe_ids()),
    ) -> PartitionRecord {
        PartitionRecord {
            partition_id, topic_id, replicas, isr, removing_replicas, adding_replicas, leader, leader_recovery_state,
            leader_epoch, partition_epoch, directories, eligible_leader_replicas, last_known_elr,
        }
    }
}

prop_compose! {
    fn partition_change()(
        (partition_id, leader) in any::<(i32, i32)>(), topic_id in uuid(), leader_recovery_state: i8,
        (isr, replicas, removing_replicas, adding_replicas) in (maybe_ids(), maybe_ids(), maybe_ids(), maybe_ids()),
        directories in prop::option::of(prop::collection::vec(uuid(), 0..4)),
        (eligible_leader_replicas, last_known_elr) in (maybe_ids(), maybe_ids()),
    ) -> PartitionChangeRecord {
        PartitionChangeRecord {
            partition_id, topic_id, isr, leader, replicas, removing_replicas, adding_replicas, leader_recovery_state,
            directories, eligible_leader_replicas, last_known_elr,
        }
    }
}

fn record() -> impl Strategy<Value = MetadataRecord> {
    prop_oneof![
        register_broker().prop_map(MetadataRecord::from),
        partition().prop_map(MetadataRecord::from),
        partition_change().prop_map(MetadataRecord::from),
        (any::<i8>(), ".*", ".*", prop::option::of(".*")).prop_map(
            |(resource_type, resource_name, name, value)| {
                ConfigRecord {
                    resource_type,
                    resource_name,
                    name,
                    value,
                }
                .into()
            }
        ),
        (".*", uuid()).prop_map(|(name, topic_id)| TopicRecord { name, topic_id }.into()),
        (
            any::<i32>(),
            any::<i64>(),
            any::<(i8, i8)>(),
            prop::collection::vec(uuid(), 0..4)
        )
            .prop_map(
                |(broker_id, broker_epoch, (fenced, in_controlled_shutdown), log_dirs)| {
                    let cordoned_log_dirs = Some(log_dirs.clone());
                    let change = BrokerRegistrationChangeRecord {
                        broker_id,
                        broker_epoch,
                        fenced,
                        in_controlled_shutdown,
                        log_dirs,
                        cordoned_log_dirs,
                    };
                    change.into()
                }
            ),
        (any::<i32>(), any::<i64>(), any::<i64>()).prop_map(
            |(broker_id, broker_epoch, next_producer_id)| {
                ProducerIdsRecord {
                    broker_id,
                    broker_epoch,
                    next_producer_id,
                }
                .into()
            }
        ),
        prop::option::of(".*").prop_map(|reason| AbortTransactionRecord { reason }.into()),
    ]
}

proptest! {
    #[test]
    fn every_record_is_read_back_as_it_was_written(record in record()) {
        let value = record.encode();
        prop_assert_eq!(MetadataRecord::decode(&value), Ok(record));
    }

    #[test]
    fn a_record_cut_anywhere_is_an_error(record in record(), cut: prop::sample::Index) {
        let value = record.encode();
        let cut = cut.index(value.len());
        prop_assert!(MetadataRecord::decode(&value[..cut]).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(api_key in 0u8..32, version in 0u8..6, body: Vec<u8>) {
        let mut value = vec![1, api_key, version];
        value.extend(body);
        let _ = MetadataRecord::decode(&value);
    }
}
