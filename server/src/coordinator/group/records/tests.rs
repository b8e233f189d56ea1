//! Against bytes that Apache Kafka 4.4.0 wrote.

use proptest::prelude::*;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// The record is read from these bytes, and written as them.
fn golden(key: &str, value: Option<&str>, expected: &GroupRecord) {
    let (key, value) = (bytes(key), value.map(bytes));
    let read = GroupRecord::decode(&key, value.as_deref())
        .unwrap()
        .unwrap();
    assert_eq!(read, *expected);
    assert_eq!(expected.key().unwrap(), key);
    assert_eq!(expected.value().unwrap().as_deref(), value.as_deref());
}

fn offset(value: Option<OffsetCommitValue>) -> GroupRecord {
    GroupRecord::OffsetCommit {
        group: "g2".to_owned(),
        topic: "golden".to_owned(),
        partition: 0,
        value,
    }
}

const OFFSET_KEY: &str = "0001 0002 6732 0006 676f6c64656e 00000000";

#[test]
fn a_committed_offset_is_that_of_kafka() {
    golden(
        OFFSET_KEY,
        Some(
            "0004 0000000000000004 00000000 01 000001a228e2a96b
             01 00 10 57cf4156c1bc4a269e757365b583c750",
        ),
        &offset(Some(OffsetCommitValue {
            offset: 4,
            leader_epoch: 0,
            metadata: String::new(),
            commit_timestamp_ms: 1_795_982_272_875,
            expire_timestamp_ms: None,
            topic_id: Uuid::from_u128(0x57cf4156_c1bc_4a26_9e75_7365b583c750),
        })),
    );
    golden(OFFSET_KEY, None, &offset(None));
}

#[test]
fn an_offset_with_metadata_is_that_of_kafka() {
    golden(
        OFFSET_KEY,
        Some(
            "0004 0000000000000003 ffffffff 08 68c3a46c6c6f 00 000001a228e2a8a9
             01 00 10 57cf4156c1bc4a269e757365b583c750",
        ),
        &offset(Some(OffsetCommitValue {
            offset: 3,
            leader_epoch: -1,
            metadata: "hällo\0".to_owned(),
            commit_timestamp_ms: 1_795_982_272_681,
            expire_timestamp_ms: None,
            topic_id: Uuid::from_u128(0x57cf4156_c1bc_4a26_9e75_7365b583c750),
        })),
    );
}

#[test]
fn an_offset_with_a_retention_of_its_own_is_that_of_kafka() {
    golden(
        OFFSET_KEY,
        Some("0001 0000000000000007 0000 000001a228e580f7 000001a2291c6f77"),
        &offset(Some(OffsetCommitValue {
            offset: 7,
            leader_epoch: -1,
            metadata: String::new(),
            commit_timestamp_ms: 0x01a2_28e5_80f7,
            expire_timestamp_ms: Some(0x01a2_291c_6f77),
            topic_id: Uuid::nil(),
        })),
    );
}

#[test]
fn older_offsets_are_read() {
    let legacy_key = bytes(&OFFSET_KEY.replacen("0001", "0000", 1));
    let value = |version: i16, leader_epoch| {
        let mut value = version.to_be_bytes().to_vec();
        value.put_i64(9);
        if version == 3 {
            value.put_i32(leader_epoch);
        }
        value.extend(bytes("0001 78"));
        value.put_i64(5);
        if version == 1 {
            value.put_i64(-1);
        }
        value
    };
    for version in 0..=3 {
        let expected = OffsetCommitValue {
            offset: 9,
            leader_epoch: if version == 3 { 2 } else { -1 },
            metadata: "x".to_owned(),
            commit_timestamp_ms: 5,
            expire_timestamp_ms: None,
            topic_id: Uuid::nil(),
        };
        let read = GroupRecord::decode(&legacy_key, Some(&value(version, 2)));
        assert_eq!(read, Ok(Some(offset(Some(expected)))), "version {version}");
    }
}

#[test]
fn an_empty_group_is_that_of_kafka() {
    let group = |value| GroupRecord::GroupMetadata {
        group: "g2".to_owned(),
        value,
    };
    let mut value = GroupMetadataValue {
        protocol_type: String::new(),
        generation: 0,
        protocol: None,
        leader: None,
        current_state_timestamp_ms: 1_795_982_272_742,
        members: Vec::new(),
    };
    golden(
        "0002 0002 6732",
        Some("0003 0000 00000000 ffff ffff 000001a228e2a8e6 00000000"),
        &group(Some(value.clone())),
    );
    value.protocol_type = "consumer".to_owned();
    value.generation = 2;
    value.current_state_timestamp_ms = 1_795_982_272_881;
    golden(
        "0002 0002 6732",
        Some("0003 0008 636f6e73756d6572 00000002 ffff ffff 000001a228e2a971 00000000"),
        &group(Some(value)),
    );
    golden("0002 0002 6732", None, &group(None));
}

#[test]
fn a_stable_group_with_a_static_member_is_that_of_kafka() {
    let member_id = "inst-1-55c6e183-2477-46d9-b23f-6118e9ec846e";
    let subscription = "0003 00000001 0006 676f6c64656e 00000000 00000000 ffffffff 0000";
    let assignment = "0000 00000001 0006 676f6c64656e 00000002 00000000 00000001 00000000";
    let member_hex: String = member_id.bytes().map(|b| format!("{b:02x}")).collect();
    let value = format!(
        "0003 0008 636f6e73756d6572 00000001 0005 72616e6765 002b {member_hex} 000001a228e2a7a9 00000001
         002b {member_hex} 0006 696e73742d31 0003 636c69 000a 2f3132372e302e302e31 000493e0 0000afc8
         0000001c {subscription} 0000001e {assignment}"
    );
    golden(
        "0002 0002 6731",
        Some(&value),
        &GroupRecord::GroupMetadata {
            group: "g1".to_owned(),
            value: Some(GroupMetadataValue {
                protocol_type: "consumer".to_owned(),
                generation: 1,
                protocol: Some("range".to_owned()),
                leader: Some(member_id.to_owned()),
                current_state_timestamp_ms: 1_795_982_272_425,
                members: vec![MemberMetadata {
                    member_id: member_id.to_owned(),
                    group_instance_id: Some("inst-1".to_owned()),
                    client_id: "cli".to_owned(),
                    client_host: "/127.0.0.1".to_owned(),
                    rebalance_timeout_ms: 300_000,
                    session_timeout_ms: 45_000,
                    subscription: bytes(subscription).into(),
                    assignment: bytes(assignment).into(),
                }],
            }),
        },
    );
}

#[test]
fn a_group_in_the_flexible_version_is_read() {
    let value = bytes(
        "0004 02 63 00000007 02 70 00 0000000000000005 02
         02 6d 00 02 63 02 68 00000001 00000002 02 ff 01 00 00",
    );
    let read = GroupRecord::decode(&bytes("0002 0001 67"), Some(&value));
    let expected = GroupMetadataValue {
        protocol_type: "c".to_owned(),
        generation: 7,
        protocol: Some("p".to_owned()),
        leader: None,
        current_state_timestamp_ms: 5,
        members: vec![MemberMetadata {
            member_id: "m".to_owned(),
            group_instance_id: None,
            client_id: "c".to_owned(),
            client_host: "h".to_owned(),
            rebalance_timeout_ms: 1,
            session_timeout_ms: 2,
            subscription: Bytes::from_static(&[0xff]),
            assignment: Bytes::new(),
        }],
    };
    let group = "g".to_owned();
    let value = Some(expected);
    assert_eq!(read, Ok(Some(GroupRecord::GroupMetadata { group, value })));
}

#[test]
fn records_of_other_kinds_are_passed_over() {
    assert_eq!(GroupRecord::decode(&bytes("0003 0001 67"), None), Ok(None));
    let unknown = GroupRecord::decode(&bytes(OFFSET_KEY), Some(&[0, 5]));
    assert_eq!(unknown, Err(RecordError::UnknownVersion(5)));
}

#[test]
fn a_name_that_does_not_fit_is_refused() {
    let record = GroupRecord::GroupMetadata {
        group: "x".repeat(32_768),
        value: None,
    };
    assert_eq!(record.key(), Err(RecordError::TooLong));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        key in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            Just(bytes(OFFSET_KEY)),
            Just(bytes("0002 0001 67")),
        ],
        version in 0..6_i16,
        rest in prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(255), any::<u8>()], 0..120),
    ) {
        let mut value = version.to_be_bytes().to_vec();
        value.extend(rest);
        if let Ok(Some(record)) = GroupRecord::decode(&key, Some(&value)) {
            let again = GroupRecord::decode(&record.key().unwrap(), record.value().unwrap().as_deref());
            prop_assert!(matches!(again, Ok(Some(_))));
        }
    }
}
