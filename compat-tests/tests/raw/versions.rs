//! Version negotiation, and a well-formed answer from each API and version that is told (A01-A06).

use compat_tests::broker::Broker;
use compat_tests::each_broker::for_each_broker;
use compat_tests::raw::Connection;
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, ApiVersionsResponse};

use crate::compare::subject;
use crate::requests::variants;
use crate::support::{code, connect, s};

/// What the issue of this broker names, with what kafka-protocol can decode of it.
pub(crate) const SERVED: &[(ApiKey, i16, i16)] = &[
    (ApiKey::Produce, 3, 13),
    (ApiKey::Fetch, 4, 18),
    (ApiKey::ListOffsets, 1, 10),
    (ApiKey::Metadata, 0, 13),
    (ApiKey::OffsetCommit, 2, 9),
    (ApiKey::OffsetFetch, 1, 9),
    (ApiKey::FindCoordinator, 0, 6),
    (ApiKey::JoinGroup, 0, 9),
    (ApiKey::Heartbeat, 0, 4),
    (ApiKey::LeaveGroup, 0, 5),
    (ApiKey::SyncGroup, 0, 5),
    (ApiKey::DescribeGroups, 0, 6),
    (ApiKey::ListGroups, 0, 5),
    (ApiKey::ApiVersions, 0, 4),
    (ApiKey::CreateTopics, 2, 7),
    (ApiKey::DeleteTopics, 1, 6),
    (ApiKey::DeleteRecords, 0, 2),
    (ApiKey::InitProducerId, 0, 5),
    (ApiKey::OffsetForLeaderEpoch, 2, 4),
    (ApiKey::DescribeConfigs, 1, 4),
    (ApiKey::AlterConfigs, 0, 2),
    (ApiKey::DescribeLogDirs, 1, 4),
    (ApiKey::CreatePartitions, 0, 3),
    (ApiKey::DeleteGroups, 0, 2),
    (ApiKey::IncrementalAlterConfigs, 0, 1),
    (ApiKey::OffsetDelete, 0, 0),
    (ApiKey::DescribeCluster, 0, 2),
    (ApiKey::DescribeProducers, 0, 0),
    (ApiKey::DescribeTopicPartitions, 0, 0),
    (ApiKey::ListConfigResources, 0, 1),
    (ApiKey::ElectLeaders, 0, 2),
    (ApiKey::AlterPartitionReassignments, 0, 1),
    (ApiKey::ListPartitionReassignments, 0, 0),
    (ApiKey::DescribeQuorum, 0, 2),
    (ApiKey::UpdateFeatures, 0, 2),
    (ApiKey::UnregisterBroker, 0, 0),
];

fn api_versions(connection: &mut Connection) -> ApiVersionsResponse {
    let request = ApiVersionsRequest::default()
        .with_client_software_name(s("raw"))
        .with_client_software_version(s("1"));
    connection
        .call(3, &request)
        .expect("ApiVersions is answered")
}

/// The versions of an API that both the broker tells and the codec knows.
pub(crate) fn told(versions: &ApiVersionsResponse, key: ApiKey) -> Option<(i16, i16)> {
    let (_, known_min, known_max) = SERVED.iter().find(|(k, ..)| *k == key)?;
    let range = versions
        .api_keys
        .iter()
        .find(|range| range.api_key == key as i16)?;
    Some((
        range.min_version.max(*known_min),
        range.max_version.min(*known_max),
    ))
}

#[test]
fn api_versions_lists_what_is_served() {
    for_each_broker(|broker| {
        let versions = api_versions(&mut connect(broker));
        assert_eq!(versions.error_code, code::NONE);
        for (key, min, max) in SERVED {
            let range = versions
                .api_keys
                .iter()
                .find(|range| range.api_key == *key as i16)
                .unwrap_or_else(|| panic!("{key:?} is not listed"));
            // librdkafka turns compression off when Produce does not start at 0 (A05).
            let first = if *key == ApiKey::Produce { 0 } else { *min };
            assert_eq!(range.min_version, first, "{key:?}");
            if broker.is_highwater() {
                // Version 10 of these two has a test with bytes made by hand in groups.rs.
                let by_id = [ApiKey::OffsetCommit, ApiKey::OffsetFetch].contains(key);
                let last = if by_id { 10 } else { *max };
                assert!(
                    (*min..=last).contains(&range.max_version),
                    "{key:?} {range:?}"
                );
            } else {
                assert!(range.max_version >= *max, "{key:?} {range:?}");
            }
        }
    });
}

#[test]
fn each_listed_api_and_version_gets_a_well_formed_answer() {
    for_each_broker(|broker| {
        let on = subject(broker, "versions");
        let mut connection = connect(broker);
        let versions = api_versions(&mut connection);
        if broker.is_highwater() {
            for range in &versions.api_keys {
                assert!(
                    SERVED.iter().any(|(key, ..)| *key as i16 == range.api_key),
                    "{range:?} is listed and has no test"
                );
            }
        }
        let mut asked = 0;
        for (key, ..) in SERVED {
            let (min, max) =
                told(&versions, *key).unwrap_or_else(|| panic!("{key:?} is not listed"));
            for version in min..=max {
                for (name, request) in variants(*key, version, &on) {
                    let what = format!("{key:?} v{version} {name}");
                    let id = connection.send_kind(*key, version, &request).expect(&what);
                    let frame = connection.read_frame().expect(&what).expect(&what);
                    assert_eq!(frame.correlation_id(), id, "{what}");
                    frame
                        .decode_kind(*key, version)
                        .unwrap_or_else(|e| panic!("{what}: {e:#}"));
                    asked += 1;
                }
            }
        }
        assert!(asked > 100, "only {asked} requests were sent");
    });
}

#[test]
fn unknown_api_versions_version_is_answered_as_version_0_and_the_connection_goes_on() {
    for_each_broker(|broker| {
        let mut connection = connect(broker);
        for version in [50_i16, 99, i16::MAX] {
            let id = connection
                .send_body(18, version, b"\xff\xfe garbage \x00")
                .unwrap();
            let frame = connection.read_frame().unwrap().expect("an answer");
            assert_eq!(frame.correlation_id(), id);
            let reply = frame.decode::<ApiVersionsRequest>(0).unwrap();
            assert_eq!(reply.error_code, code::UNSUPPORTED_VERSION);
            assert_eq!(reply.api_keys.len(), 1, "{reply:?}");
            assert_eq!(reply.api_keys[0].api_key, 18);
            assert_eq!(reply.api_keys[0].min_version, 0);
            assert!(reply.api_keys[0].max_version >= 4);
        }
        assert_eq!(api_versions(&mut connection).error_code, code::NONE);
    });
}

#[test]
fn api_versions_replies_have_no_tags_in_their_header() {
    for_each_broker(|broker| {
        let mut connection = connect(broker);
        for version in [3_i16, 4] {
            let request = ApiVersionsRequest::default()
                .with_client_software_name(s("raw"))
                .with_client_software_version(s("1"));
            connection.send(version, &request).unwrap();
            let frame = connection.read_frame().unwrap().expect("an answer");
            assert_eq!(
                frame.0[4..6],
                [0, 0],
                "the error code follows the correlation id"
            );
            assert!(frame.0[6] > 1, "then comes the compact array's length");
        }
    });
}

#[test]
fn illegal_client_software_name_is_refused_and_the_connection_goes_on() {
    for_each_broker(|broker| {
        let mut connection = connect(broker);
        for (name, version) in [
            ("", "1"),
            ("a b", "1"),
            ("raw", ""),
            ("-raw", "1"),
            ("raw", "1/"),
        ] {
            let request = ApiVersionsRequest::default()
                .with_client_software_name(s(name))
                .with_client_software_version(s(version));
            let reply = connection.call(3, &request).unwrap();
            assert_eq!(
                reply.error_code,
                code::INVALID_REQUEST,
                "{name:?} {version:?}"
            );
        }
        assert_eq!(api_versions(&mut connection).error_code, code::NONE);
    });
}

fn closes(broker: &Broker, key: i16, version: i16, body: &[u8]) {
    let mut connection = connect(broker);
    connection.send_body(key, version, body).unwrap();
    let answer = connection.read_frame().unwrap();
    assert!(
        answer.is_none(),
        "key {key} v{version} was answered: {answer:?}"
    );
}

#[test]
fn requests_that_nobody_serves_close_the_connection() {
    for_each_broker(|broker| {
        for version in 0..3 {
            // acks, timeout, no topics (A05: told, not served)
            closes(broker, 0, version, &[0, 1, 0, 0, 0, 10, 0, 0, 0, 0]);
        }
        for version in 0..4 {
            closes(broker, 1, version, &[0xff; 16]); // Fetch (D18)
        }
        closes(broker, 2, 0, &[0xff; 8]); // ListOffsets v0
        closes(broker, 3, 99, &[0; 8]); // Metadata of the future
        closes(broker, 3, -1, &[0; 8]);
        closes(broker, 4, 0, &[0; 8]); // LeaderAndIsr is gone
        closes(broker, 999, 0, &[0; 8]);
        closes(broker, -1, 0, &[0; 8]);
    });
}
