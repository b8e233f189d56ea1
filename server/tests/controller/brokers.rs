//! The life of brokers: registered, unfenced, leading, fenced.

use super::*;

#[test]
fn a_broker_registers_follows_the_metadata_and_is_unfenced_when_it_has_caught_up() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let mut client = Client::to(node.controller);
    let mut observer = Observer::default();

    // Who knows no epoch learns who leads.
    let first = client.call(&observer.request(0), 17);
    let partition = observer.take(first.clone());
    assert_eq!(
        partition.error_code,
        ResponseError::FencedLeaderEpoch.code()
    );
    assert_eq!(partition.current_leader.leader_id, BrokerId(1));
    assert_eq!(first.node_endpoints[0].node_id, BrokerId(1));
    assert_eq!(
        first.node_endpoints[0].port,
        i32::from(node.controller.port())
    );

    let wrong_cluster = registration(&node, 7).with_cluster_id(StrBytes::from_static_str("other"));
    let refused = client.call(&wrong_cluster, 4);
    assert_eq!(
        refused.error_code,
        ResponseError::InconsistentClusterId.code()
    );
    assert_eq!(refused.broker_epoch, -1);
    let unaware = registration(&node, 7).with_features(features()[..1].to_vec());
    assert_eq!(
        client.call(&unaware, 4).error_code,
        ResponseError::UnsupportedVersion.code()
    );

    let registered = client.call(&registration(&node, 7), 4);
    assert_eq!(registered.error_code, 0);
    let epoch = registered.broker_epoch;
    let early = client.call(&heartbeat(epoch, &observer), 1);
    assert_eq!(
        (early.error_code, early.is_caught_up, early.is_fenced),
        (0, false, true)
    );
    observer.catch_up(&mut client);
    let own = observer
        .records
        .iter()
        .find(|(offset, _)| *offset == epoch)
        .unwrap();
    assert!(matches!(&own.1, MetadataRecord::RegisterBroker(record) if record.broker_id == ME));
    let beat = client.call(&heartbeat(epoch, &observer), 1);
    assert_eq!(
        (beat.error_code, beat.is_caught_up, beat.is_fenced),
        (0, true, false)
    );

    let stale = client.call(&heartbeat(epoch - 1, &observer), 1);
    assert_eq!(stale.error_code, ResponseError::StaleBrokerEpoch.code());
    let duplicate = client.call(&registration(&node, 8), 4);
    assert_eq!(
        duplicate.error_code,
        ResponseError::DuplicateBrokerRegistration.code()
    );
    // The same run again is no other process.
    let again = client.call(&registration(&node, 7), 4);
    assert_eq!((again.error_code, again.broker_epoch), (0, epoch));

    let block = AllocateProducerIdsRequest::default()
        .with_broker_id(BrokerId(ME))
        .with_broker_epoch(epoch);
    let first = client.call(&block, 0);
    let second = client.call(&block, 0);
    assert_eq!((first.error_code, first.producer_id_len), (0, 1000));
    assert_eq!(second.producer_id_start.0, first.producer_id_start.0 + 1000);
    let stale = client.call(&block.with_broker_epoch(epoch + 1), 0);
    assert_eq!(stale.error_code, ResponseError::StaleBrokerEpoch.code());

    // It leaves: nothing to move, so at once, and its id is free.
    let leave = heartbeat(epoch, &observer).with_want_shut_down(true);
    let beat = client.call(&leave, 1);
    assert_eq!((beat.is_fenced, beat.should_shut_down), (true, true));
    let next = client.call(&registration(&node, 9), 4);
    assert!(next.error_code == 0 && next.broker_epoch > epoch);
    node.stop();
}

#[test]
fn isrs_leaders_and_assignments_change_by_the_controllers_rules() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let mut client = Client::to(node.controller);
    let mut observer = Observer::default();
    let epoch = join(&node, &mut client, &mut observer);
    let topic_id = create(&mut client, "t", &[ME, 1]);
    let image = || node.broker.broker().image();
    let partition = || Arc::clone(image().partition("t", 0).unwrap());
    assert_eq!(partition().leader.map(|id| id.0), Some(ME));

    // The leader takes the other out of the ISR, and in again.
    let member = |id: i32, epoch: i64| {
        alter_partition_request::BrokerState::default()
            .with_broker_id(BrokerId(id))
            .with_broker_epoch(epoch)
    };
    let alter = |client: &mut Client, partition_epoch: i32, isr: Vec<_>| {
        let asked = alter_partition_request::PartitionData::default()
            .with_new_isr_with_epochs(isr)
            .with_partition_epoch(partition_epoch);
        let topic = alter_partition_request::TopicData::default()
            .with_topic_id(topic_id)
            .with_partitions(vec![asked]);
        let request = AlterPartitionRequest::default()
            .with_broker_id(BrokerId(ME))
            .with_broker_epoch(epoch)
            .with_topics(vec![topic]);
        let response = client.call(&request, 3);
        assert_eq!(response.error_code, 0);
        response.topics[0].partitions[0].clone()
    };
    let shrunk = alter(&mut client, 0, vec![member(ME, epoch)]);
    assert_eq!((shrunk.error_code, shrunk.partition_epoch), (0, 1));
    assert_eq!(
        (shrunk.leader_id, shrunk.isr),
        (BrokerId(ME), vec![BrokerId(ME)])
    );
    let late = alter(&mut client, 0, vec![member(ME, epoch)]);
    assert_eq!(late.error_code, ResponseError::InvalidUpdateVersion.code());
    let wrong_epoch = alter(&mut client, 1, vec![member(ME, epoch), member(1, 12345)]);
    assert_eq!(
        wrong_epoch.error_code,
        ResponseError::IneligibleReplica.code()
    );
    let expanded = alter(&mut client, 1, vec![member(ME, epoch), member(1, -1)]);
    assert_eq!((expanded.error_code, expanded.partition_epoch), (0, 2));

    // Broker 2 stops in order: its leadership moves first.
    observer.catch_up(&mut client);
    let elect = |client: &mut Client, election_type: i8| {
        let asked = elect_leaders_request::TopicPartitions::default()
            .with_topic(TopicName(StrBytes::from_static_str("t")))
            .with_partitions(vec![0]);
        let request = ElectLeadersRequest::default()
            .with_election_type(election_type)
            .with_timeout_ms(10_000)
            .with_topic_partitions(Some(vec![asked]));
        let response = client.call(&request, 2);
        response.replica_election_results[0].partition_result[0].error_code
    };
    assert_eq!(
        elect(&mut client, 0),
        ResponseError::ElectionNotNeeded.code()
    );

    // A move to broker 1 alone ends at once, as it is in sync.
    let reassign = |client: &mut Client, replicas: Option<Vec<i32>>| {
        let replicas = replicas.map(|ids| ids.into_iter().map(BrokerId).collect());
        let asked = alter_partition_reassignments_request::ReassignablePartition::default()
            .with_replicas(replicas);
        let topic = alter_partition_reassignments_request::ReassignableTopic::default()
            .with_name(TopicName(StrBytes::from_static_str("t")))
            .with_partitions(vec![asked]);
        let request = AlterPartitionReassignmentsRequest::default()
            .with_timeout_ms(10_000)
            .with_topics(vec![topic]);
        let response = client.call(&request, 1);
        assert_eq!(response.error_code, 0);
        response.responses[0].partitions[0].error_code
    };
    let none = ResponseError::NoReassignmentInProgress.code();
    assert_eq!(reassign(&mut client, None), none);
    assert_eq!(reassign(&mut client, Some(vec![1])), 0);
    assert_eq!(partition().leader.map(|id| id.0), Some(1));
    assert_eq!(partition().leader_epoch.0, 1);
    // Back to both: 2 has to catch up first.
    assert_eq!(reassign(&mut client, Some(vec![ME, 1])), 0);
    let list = ListPartitionReassignmentsRequest::default()
        .with_timeout_ms(10_000)
        .with_topics(None);
    let listed = client.call(&list, 0);
    assert_eq!(
        listed.topics[0].partitions[0].adding_replicas,
        [BrokerId(ME)]
    );
    assert_eq!(
        elect(&mut client, 0),
        ResponseError::PreferredLeaderNotAvailable.code()
    );
    assert_eq!(reassign(&mut client, None), 0);
    assert_eq!(client.call(&list, 0).topics, []);

    let unregister = UnregisterBrokerRequest::default().with_broker_id(BrokerId(ME));
    assert_eq!(client.call(&unregister, 0).error_code, 0);
    let gone = client.call(&unregister, 0);
    assert_eq!(gone.error_code, ResponseError::BrokerIdNotRegistered.code());
    assert!(image().broker(highwater_storage::BrokerId(ME)).is_none());
    node.stop();
}

#[test]
fn of_two_processes_with_one_id_that_register_at_once_one_is_registered() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let (mut one, mut other) = (Client::to(node.controller), Client::to(node.controller));
    let register = |id: i32, incarnation: u128| {
        registration(&node, incarnation)
            .with_broker_id(BrokerId(id))
            .with_log_dirs(vec![Uuid::from_u128(1_000_000 + id as u128)])
    };
    for id in 100..130 {
        one.send(&register(id, 1), 4);
        other.send(&register(id, 2), 4);
        let mut errors = [&mut one, &mut other].map(|client| {
            let answer = client.receive::<BrokerRegistrationRequest>(4);
            answer.error_code
        });
        errors.sort_unstable();
        let duplicate = ResponseError::DuplicateBrokerRegistration.code();
        assert_eq!(errors, [0, duplicate]);
    }
    node.stop();
}
