//! A controller in this process, a client of it, and a copy of its metadata log.

use super::*;

pub(super) struct Node {
    pub(super) runtime: Runtime,
    pub(super) broker: RunningBroker,
    pub(super) clients: SocketAddr,
    pub(super) controller: SocketAddr,
}

impl Node {
    pub(super) fn on(dir: &Path) -> Self {
        let listeners = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0";
        Self::with(dir, "broker,controller", listeners)
    }

    pub(super) fn with(dir: &Path, roles: &str, listeners: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let entries = [
            ("log.dirs", dir.to_str().unwrap()),
            ("process.roles", roles),
            ("listeners", listeners),
            ("controller.listener.names", "CONTROLLER"),
        ];
        let config =
            Arc::new(DynamicConfig::new(StaticConfig::from_entries(entries).unwrap()).unwrap());
        let current = config.current();
        let dirs = log_dirs::open(current.log_manager(), current.node_id, None).unwrap();
        let broker = runtime
            .block_on(async {
                let listeners = BoundListeners::bind(&current).unwrap();
                RunningBroker::start(listeners, dirs, config).await
            })
            .unwrap();
        let address = |name: &str| {
            let mut listeners = broker.listeners().iter();
            let listener = listeners.find(|listener| listener.name == name);
            listener.map(|listener| listener.local_address)
        };
        let controller = address("CONTROLLER").unwrap();
        // A controller alone has no other.
        let clients = address("PLAINTEXT").unwrap_or(controller);
        Node {
            runtime,
            broker,
            clients,
            controller,
        }
    }

    pub(super) fn cluster_id(&self) -> StrBytes {
        StrBytes::from_string(self.broker.broker().image().cluster_id().to_string())
    }

    pub(super) fn stop(self) {
        self.runtime.block_on(self.broker.stop()).unwrap();
    }
}

pub(super) struct Client {
    pub(super) stream: TcpStream,
    pub(super) next_id: i32,
}

impl Client {
    pub(super) fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).unwrap();
        Client { stream, next_id: 1 }
    }

    pub(super) fn send<R: Request>(&mut self, request: &R, version: i16) {
        let mut frame = BytesMut::new();
        header::<R>(version, self.next_id)
            .encode(&mut frame, R::header_version(version))
            .unwrap();
        self.next_id += 1;
        request.encode(&mut frame, version).unwrap();
        let length = (frame.len() as i32).to_be_bytes();
        self.stream.write_all(&length).unwrap();
        self.stream.write_all(&frame).unwrap();
    }

    pub(super) fn receive<R: Request>(&mut self, version: i16) -> R::Response {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut body = vec![0; i32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut body).unwrap();
        decode::<R>(Bytes::from(body), version)
    }

    pub(super) fn call<R: Request>(&mut self, request: &R, version: i16) -> R::Response {
        self.send(request, version);
        self.receive::<R>(version)
    }

    pub(super) fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0))
    }
}

pub(super) fn header<R: Request>(version: i16, correlation_id: i32) -> RequestHeader {
    RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(correlation_id)
        .with_client_id(Some(StrBytes::from_static_str("test")))
}

pub(super) fn decode<R: Request>(mut frame: Bytes, version: i16) -> R::Response {
    ResponseHeader::decode(&mut frame, R::Response::header_version(version)).unwrap();
    let response = R::Response::decode(&mut frame, version).unwrap();
    assert!(!frame.has_remaining());
    response
}

/// The metadata log as an observer has it.
#[derive(Default)]
pub(super) struct Observer {
    pub(super) next_offset: i64,
    pub(super) last_epoch: i32,
    pub(super) leader_epoch: i32,
    pub(super) records: Vec<(i64, MetadataRecord)>,
}

impl Observer {
    pub(super) fn request(&self, max_wait_ms: i32) -> FetchRequest {
        let partition = fetch_request::FetchPartition::default()
            .with_partition(0)
            .with_current_leader_epoch(self.leader_epoch)
            .with_fetch_offset(self.next_offset)
            .with_last_fetched_epoch(self.last_epoch);
        let topic = fetch_request::FetchTopic::default()
            .with_topic_id(METADATA_TOPIC_ID)
            .with_partitions(vec![partition]);
        let replica = fetch_request::ReplicaState::default().with_replica_id(BrokerId(ME));
        FetchRequest::default()
            .with_replica_state(replica)
            .with_max_wait_ms(max_wait_ms)
            .with_topics(vec![topic])
    }

    pub(super) fn take(&mut self, response: FetchResponse) -> fetch_response::PartitionData {
        assert_eq!(response.error_code, 0);
        let partition = response.responses[0].partitions[0].clone();
        self.leader_epoch = partition.current_leader.leader_epoch;
        for batch in Batches::new(partition.records.as_deref().unwrap_or_default()) {
            let (header, batch) = batch.unwrap();
            self.next_offset = header.next_offset();
            self.last_epoch = header.partition_leader_epoch;
            if header.is_control() {
                continue;
            }
            for record in
                decode_records(&Bytes::copy_from_slice(batch), DecompressLimits::default()).unwrap()
            {
                let record = record.unwrap();
                let value = MetadataRecord::decode(&record.value.unwrap()).unwrap();
                self.records.push((record.offset, value));
            }
        }
        partition
    }

    /// Fetches until nothing new comes.
    pub(super) fn catch_up(&mut self, client: &mut Client) {
        loop {
            let partition = self.take(client.call(&self.request(0), 17));
            let is_empty = partition.records.is_none_or(|records| records.is_empty());
            if partition.error_code == 0 && is_empty {
                return;
            }
        }
    }
}
