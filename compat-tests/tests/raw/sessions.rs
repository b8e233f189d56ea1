//! Fetch sessions as a state machine (D05, D06).

use compat_tests::each_broker::for_each_broker;
use compat_tests::raw::Connection;
use kafka_protocol::messages::fetch_request::{FetchTopic, ForgottenTopic};
use kafka_protocol::messages::{FetchRequest, FetchResponse};
use uuid::Uuid;

use crate::support::{
    FETCH, batch, code, connect, create_topic, delete_topic, fetch_partition, fetch_request,
    produce_ok, topic_name,
};

fn ask(connection: &mut Connection, id: i32, epoch: i32, request: FetchRequest) -> FetchResponse {
    let request = request.with_session_id(id).with_session_epoch(epoch);
    connection.call(FETCH, &request).expect("Fetch is answered")
}

fn none() -> FetchRequest {
    let mut request = fetch_request("", vec![]);
    request.topics.clear();
    request
}

fn partitions(reply: &FetchResponse) -> Vec<i32> {
    let all = reply.responses.iter().flat_map(|topic| &topic.partitions);
    let mut indexes: Vec<i32> = all.map(|partition| partition.partition_index).collect();
    indexes.sort_unstable();
    indexes
}

#[test]
fn session_returns_only_what_changed() {
    for_each_broker(|broker| {
        let topic = "session-incremental";
        create_topic(broker, topic, 3);
        let mut connection = connect(broker);
        let parts = (0..3).map(|p| fetch_partition(p, 0)).collect();
        let first = ask(&mut connection, 0, 0, fetch_request(topic, parts));
        assert_eq!(first.error_code, code::NONE);
        let id = first.session_id;
        assert_ne!(id, 0);
        assert_eq!(partitions(&first), [0, 1, 2]);

        let idle = ask(&mut connection, id, 1, none());
        assert_eq!((idle.error_code, idle.session_id), (code::NONE, id));
        assert!(partitions(&idle).is_empty());

        produce_ok(&mut connection, topic, 1, batch(2).encode());
        let changed = ask(&mut connection, id, 2, none());
        assert_eq!(partitions(&changed), [1]);
        // The offset did not move: the same data again.
        let again = ask(&mut connection, id, 3, none());
        assert_eq!(partitions(&again), [1]);
        let moved = fetch_request(topic, vec![fetch_partition(1, 2)]);
        assert!(partitions(&ask(&mut connection, id, 4, moved)).is_empty());

        // A forgotten partition says nothing more, an added one is asked.
        let mut request = none();
        request.forgotten_topics_data = vec![
            ForgottenTopic::default()
                .with_topic(topic_name(topic))
                .with_partitions(vec![1]),
        ];
        assert_eq!(ask(&mut connection, id, 5, request).error_code, code::NONE);
        for partition in [1, 2] {
            produce_ok(&mut connection, topic, partition, batch(1).encode());
        }
        assert_eq!(partitions(&ask(&mut connection, id, 6, none())), [2]);
    });
}

#[test]
fn errors_are_told_on_the_top_level_and_leave_the_session_as_it_was() {
    for_each_broker(|broker| {
        let topic = "session-errors";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        let open = || fetch_request(topic, vec![fetch_partition(0, 0)]);
        let id = ask(&mut connection, 0, 0, open()).session_id;
        let expect = |connection: &mut Connection, id: i32, epoch: i32, expected: i16| {
            let reply = ask(connection, id, epoch, none());
            assert_eq!(
                reply.error_code, expected,
                "session {id} epoch {epoch}: {reply:?}"
            );
            if expected != code::NONE {
                assert!(reply.responses.is_empty());
            }
        };
        expect(&mut connection, id, 2, code::INVALID_FETCH_SESSION_EPOCH);
        expect(&mut connection, id, 1, code::NONE);
        expect(&mut connection, id, 1, code::INVALID_FETCH_SESSION_EPOCH);
        expect(&mut connection, id, -7, code::INVALID_FETCH_SESSION_EPOCH);
        expect(&mut connection, id, 2, code::NONE);
        expect(
            &mut connection,
            id.wrapping_add(1),
            1,
            code::FETCH_SESSION_ID_NOT_FOUND,
        );
        expect(&mut connection, 0, 1, code::FETCH_SESSION_ID_NOT_FOUND);
        // A full fetch in the session's name replaces it.
        let reply = ask(&mut connection, id, 0, open());
        assert_eq!(reply.error_code, code::NONE);
        assert_ne!(reply.session_id, id);
        expect(&mut connection, id, 3, code::FETCH_SESSION_ID_NOT_FOUND);
    });
}

#[test]
fn epoch_of_minus_1_closes_the_session_and_answers_in_full() {
    for_each_broker(|broker| {
        let topic = "session-closes";
        create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        produce_ok(&mut connection, topic, 0, batch(2).encode());
        let open = || fetch_request(topic, vec![fetch_partition(0, 0)]);
        let id = ask(&mut connection, 0, 0, open()).session_id;
        let last = ask(&mut connection, id, -1, open());
        assert_eq!((last.error_code, last.session_id), (code::NONE, 0));
        assert_eq!(partitions(&last), [0]);
        let gone = ask(&mut connection, id, 1, none());
        assert_eq!(gone.error_code, code::FETCH_SESSION_ID_NOT_FOUND);
        // Without any session the same data comes twice.
        let twice = [(); 2].map(|()| ask(&mut connection, 0, -1, open()));
        assert_eq!(twice[0].responses, twice[1].responses);
        assert_eq!(partitions(&twice[1]), [0]);
        assert_eq!(twice[1].session_id, 0);
    });
}

#[test]
fn session_lives_across_connections() {
    for_each_broker(|broker| {
        let topic = "session-connections";
        create_topic(broker, topic, 1);
        let open = fetch_request(topic, vec![fetch_partition(0, 0)]);
        let id = ask(&mut connect(broker), 0, 0, open).session_id;
        let reply = ask(&mut connect(broker), id, 1, none());
        assert_eq!((reply.error_code, reply.session_id), (code::NONE, id));
    });
}

fn by_id(id: Uuid) -> FetchRequest {
    let mut request = none();
    request.topics = vec![
        FetchTopic::default()
            .with_topic_id(id)
            .with_partitions(vec![fetch_partition(0, 0)]),
    ];
    request
}

#[test]
fn session_by_id_repeats_that_the_topic_was_replaced() {
    for_each_broker(|broker| {
        let topic = "session-replaced";
        let id = create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        let opened = connection
            .call(15, &by_id(id).with_session_id(0).with_session_epoch(0))
            .unwrap();
        assert_eq!(opened.error_code, code::NONE);
        delete_topic(broker, topic);
        let new_id = create_topic(broker, topic, 1);
        assert_ne!(id, new_id);
        for epoch in 1..4 {
            let request = none()
                .with_session_id(opened.session_id)
                .with_session_epoch(epoch);
            let reply = connection.call(15, &request).unwrap();
            assert_eq!(reply.error_code, code::NONE);
            let found = &reply.responses[0];
            assert_eq!(found.topic_id, id);
            let code = found.partitions[0].error_code;
            let expected = [code::INCONSISTENT_TOPIC_ID, code::UNKNOWN_TOPIC_ID];
            assert!(expected.contains(&code), "epoch {epoch}: {reply:?}");
        }
        // Without a session the old id is unknown.
        let reply = connection
            .call(15, &by_id(id).with_session_epoch(-1))
            .unwrap();
        assert_eq!(
            reply.responses[0].partitions[0].error_code,
            code::UNKNOWN_TOPIC_ID
        );
    });
}

#[test]
fn session_changes_between_names_and_ids_are_refused() {
    for_each_broker(|broker| {
        let topic = "session-mixed";
        let id = create_topic(broker, topic, 1);
        let mut connection = connect(broker);
        let open = fetch_request(topic, vec![fetch_partition(0, 0)]);
        let session = ask(&mut connection, 0, 0, open).session_id;
        let request = by_id(id).with_session_id(session).with_session_epoch(1);
        let reply = connection.call(15, &request).unwrap();
        assert_eq!(
            reply.error_code,
            code::FETCH_SESSION_TOPIC_ID_ERROR,
            "{reply:?}"
        );
    });
}
