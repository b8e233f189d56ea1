//! What each listener of a controller serves.

use super::*;

#[test]
fn each_kind_of_listener_serves_its_own_apis_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let told = |address| {
        let software = ApiVersionsRequest::default()
            .with_client_software_name(StrBytes::from_static_str("test"))
            .with_client_software_version(StrBytes::from_static_str("1"));
        let response = Client::to(address).call(&software, 4);
        assert!(!response.finalized_features.is_empty());
        let keys = response.api_keys.iter().map(|api| api.api_key);
        keys.collect::<Vec<_>>()
    };
    let (clients, controller) = (told(node.clients), told(node.controller));
    let only_controller = [56, 58, 59, 62, 63, 67, 70, 73];
    for key in only_controller {
        assert!(controller.contains(&key), "{key}");
        assert!(!clients.contains(&key), "{key}");
    }
    for key in [1, 18, 19, 43, 45, 46, 55, 57, 60, 64] {
        assert!(controller.contains(&key) && clients.contains(&key), "{key}");
    }
    for key in [0, 2, 3, 8, 9, 10, 22] {
        assert!(
            !controller.contains(&key) && clients.contains(&key),
            "{key}"
        );
    }
    let mut client = Client::to(node.clients);
    client.send(&registration(&node, 7), 4);
    assert!(client.is_closed());
    let mut client = Client::to(node.controller);
    client.send(&MetadataRequest::default(), 12);
    assert!(client.is_closed());
    node.stop();
}

#[test]
fn a_fetch_of_the_metadata_waits_for_what_comes_and_says_where_logs_differ() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let mut client = Client::to(node.controller);
    let mut observer = Observer::default();
    observer.catch_up(&mut client);

    let began = Instant::now();
    let mut empty = observer.take(client.call(&observer.request(300), 17));
    assert!(
        empty
            .records
            .take()
            .is_none_or(|records| records.is_empty())
    );
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(empty.high_watermark, observer.next_offset);

    client.send(&observer.request(20_000), 17);
    let end = observer.next_offset;
    create(&mut Client::to(node.controller), "t", &[1]);
    observer.take(client.receive::<FetchRequest>(17));
    assert!(observer.next_offset > end);
    observer.catch_up(&mut client);
    // Who does not know the high watermark is told at once (version 18).
    let mut request = observer.request(20_000);
    request.topics[0].partitions[0].high_watermark = observer.next_offset - 1;
    let told = observer.take(client.call(&request, 18));
    assert_eq!(told.high_watermark, observer.next_offset);

    let refusal = |client: &mut Client, change: &dyn Fn(&mut FetchRequest)| {
        let mut request = observer.request(0);
        change(&mut request);
        let response = client.call(&request, 17);
        match response.error_code {
            0 => response.responses[0].partitions[0].clone(),
            error_code => fetch_response::PartitionData::default().with_error_code(error_code),
        }
    };
    let partition = |request: &mut FetchRequest| request.topics[0].partitions.remove(0);
    let put = |request: &mut FetchRequest, partition| request.topics[0].partitions.push(partition);
    let ahead = refusal(&mut client, &|request| {
        let mut asked = partition(request);
        asked.current_leader_epoch += 1;
        put(request, asked);
    });
    assert_eq!(ahead.error_code, ResponseError::UnknownLeaderEpoch.code());
    let beyond = refusal(&mut client, &|request| {
        let mut asked = partition(request);
        asked.fetch_offset += 5;
        put(request, asked);
    });
    assert_eq!(
        (beyond.error_code, beyond.diverging_epoch.end_offset),
        (0, observer.next_offset)
    );
    assert_eq!(beyond.diverging_epoch.epoch, observer.last_epoch);
    let nonsense = refusal(&mut client, &|request| {
        let mut asked = partition(request);
        asked.last_fetched_epoch = asked.current_leader_epoch + 1;
        put(request, asked);
    });
    assert_eq!(nonsense.error_code, ResponseError::InvalidRequest.code());
    let other_topic = refusal(&mut client, &|request| {
        request.topics[0].topic_id = Uuid::from_u128(5);
    });
    assert_eq!(other_topic.error_code, ResponseError::InvalidRequest.code());
    let other_cluster = refusal(&mut client, &|request| {
        request.cluster_id = Some(StrBytes::from_static_str("other"));
    });
    assert_eq!(
        other_cluster.error_code,
        ResponseError::InconsistentClusterId.code()
    );

    let snapshot = fetch_snapshot_request::PartitionSnapshot::default()
        .with_current_leader_epoch(observer.leader_epoch)
        .with_snapshot_id(fetch_snapshot_request::SnapshotId::default().with_end_offset(1));
    let topic = |name: &'static str| {
        fetch_snapshot_request::TopicSnapshot::default()
            .with_name(TopicName(StrBytes::from_static_str(name)))
            .with_partitions(vec![snapshot.clone()])
    };
    let request = |name| FetchSnapshotRequest::default().with_topics(vec![topic(name)]);
    let response = client.call(&request("__cluster_metadata"), 1);
    let partition = &response.topics[0].partitions[0];
    assert_eq!(partition.error_code, ResponseError::SnapshotNotFound.code());
    assert_eq!(partition.current_leader.leader_id, BrokerId(1));
    let response = client.call(&request("t"), 1);
    let unknown = ResponseError::UnknownTopicOrPartition.code();
    assert_eq!(response.topics[0].partitions[0].error_code, unknown);
    node.stop();
}

#[test]
fn an_envelope_holds_a_request_for_the_controller_and_its_answer() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let mut client = Client::to(node.controller);
    let envelope = |data: BytesMut, address: &'static [u8]| {
        EnvelopeRequest::default()
            .with_request_data(data.freeze())
            .with_client_host_address(Bytes::from_static(address))
    };
    let inside = |request: &DescribeQuorumRequest| {
        let mut data = BytesMut::new();
        header::<DescribeQuorumRequest>(2, 77)
            .encode(&mut data, 2)
            .unwrap();
        request.encode(&mut data, 2).unwrap();
        data
    };
    let partition = describe_quorum_request::PartitionData::default();
    let topic = describe_quorum_request::TopicData::default()
        .with_topic_name(TopicName(StrBytes::from_static_str("__cluster_metadata")))
        .with_partitions(vec![partition]);
    let describe = DescribeQuorumRequest::default().with_topics(vec![topic]);
    let response = client.call(&envelope(inside(&describe), &[127, 0, 0, 1]), 0);
    assert_eq!(response.error_code, 0);
    let data = response.response_data.unwrap();
    assert_eq!(data[..4], 77_i32.to_be_bytes(), "the client's own number");
    let described = decode::<DescribeQuorumRequest>(data, 2);
    let quorum = &described.topics[0].partitions[0];
    assert_eq!((quorum.error_code, quorum.leader_id), (0, BrokerId(1)));
    assert!(quorum.high_watermark > 0);
    assert_eq!(quorum.current_voters.len(), 1);
    assert_eq!(described.nodes[0].listeners[0].port, node.controller.port());

    let invalid = ResponseError::InvalidRequest.code();
    let no_address = client.call(&envelope(inside(&describe), &[1, 2]), 0);
    assert_eq!(no_address.error_code, invalid);
    let mut not_forwarded = BytesMut::new();
    header::<ApiVersionsRequest>(3, 1)
        .encode(&mut not_forwarded, 2)
        .unwrap();
    let refused = client.call(&envelope(not_forwarded, &[127, 0, 0, 1]), 0);
    assert_eq!(refused.error_code, invalid);
    let empty = client.call(&envelope(BytesMut::new(), &[127, 0, 0, 1]), 0);
    assert_eq!(empty.error_code, invalid);
    node.stop();
}

#[test]
fn controllers_describe_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::on(dir.path());
    let describe = |address, endpoint_type| {
        let request = DescribeClusterRequest::default().with_endpoint_type(endpoint_type);
        Client::to(address).call(&request, 1)
    };
    let controllers = describe(node.controller, 2);
    assert_eq!((controllers.error_code, controllers.endpoint_type), (0, 2));
    assert_eq!(controllers.controller_id, BrokerId(1));
    assert_eq!(
        controllers.brokers[0].port,
        i32::from(node.controller.port())
    );
    let brokers = describe(node.clients, 1);
    assert_eq!((brokers.error_code, brokers.endpoint_type), (0, 1));
    assert_eq!(brokers.brokers[0].port, i32::from(node.clients.port()));
    let mismatched = ResponseError::MismatchedEndpointType.code();
    assert_eq!(describe(node.controller, 1).error_code, mismatched);
    assert_eq!(describe(node.clients, 2).error_code, mismatched);

    let mut client = Client::to(node.controller);
    let registration = ControllerRegistrationRequest::default()
        .with_controller_id(1)
        .with_incarnation_id(Uuid::from_u128(3))
        .with_listeners(vec![
            controller_registration_request::Listener::default()
                .with_name(StrBytes::from_static_str("CONTROLLER"))
                .with_host(StrBytes::from_static_str("controller.example"))
                .with_port(9093),
        ]);
    assert_eq!(client.call(&registration, 0).error_code, 0);
    let registered = describe(node.controller, 2);
    assert_eq!(registered.brokers[0].host.as_str(), "controller.example");

    let feature = update_features_request::FeatureUpdateKey::default()
        .with_feature(StrBytes::from_static_str(
            "eligible.leader.replicas.version",
        ))
        .with_max_version_level(0);
    let update = |upgrade_type: i8| {
        UpdateFeaturesRequest::default()
            .with_timeout_ms(10_000)
            .with_feature_updates(vec![feature.clone().with_upgrade_type(upgrade_type)])
    };
    let refused = client.call(&update(1), 2);
    assert_eq!(
        refused.error_code,
        ResponseError::InvalidUpdateVersion.code()
    );
    assert!(refused.error_message.unwrap().contains("Can't downgrade"));
    let only_judged = client.call(&update(2).with_validate_only(true), 2);
    assert_eq!(only_judged.error_code, 0);
    assert!(node.broker.broker().image().is_elr_enabled());
    assert_eq!(client.call(&update(2), 2).error_code, 0);
    assert!(!node.broker.broker().image().is_elr_enabled());
    node.stop();
}

#[test]
fn a_controller_without_the_broker_role_takes_up_what_is_configured_at_run_time() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::with(dir.path(), "controller", "CONTROLLER://127.0.0.1:0");
    let key = "unclean.leader.election.enable";
    let in_effect = || {
        let config = node.broker.broker().config.current();
        config.topic_defaults.get(key).cloned()
    };
    assert_ne!(in_effect().as_deref(), Some("true"));
    let entry = incremental_alter_configs_request::AlterableConfig::default()
        .with_name(StrBytes::from_static_str(key))
        .with_value(Some(StrBytes::from_static_str("true")));
    let of_all_brokers = incremental_alter_configs_request::AlterConfigsResource::default()
        .with_resource_type(4)
        .with_configs(vec![entry]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![of_all_brokers]);
    let altered = Client::to(node.controller).call(&request, 1);
    assert_eq!(altered.responses[0].error_code, 0, "{altered:?}");
    assert_eq!(in_effect().as_deref(), Some("true"));
    node.stop();
}
