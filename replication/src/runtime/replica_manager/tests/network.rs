//! How the brokers of a test reach each other and the controller: by calling functions.

use super::*;
use crate::runtime::testing::ToldFetches;

/// The way from one broker to all others.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) shared: Arc<Shared>,
    pub(super) from: BrokerId,
}

impl LeaderEndpointFactory for Way {
    fn endpoint(&self, leader: BrokerId, _: usize) -> Arc<dyn LeaderEndpoint> {
        Arc::new(Link {
            shared: Arc::clone(&self.shared),
            from: self.from,
            to: leader,
            told: Mutex::default(),
        })
    }
}

impl AlterPartitionChannel for Way {
    fn alter_partitions(
        &self,
        partitions: Vec<AlterPartition>,
    ) -> BoxFuture<'_, Result<Vec<AlteredPartitionResponse>, AlterPartitionChannelError>> {
        Box::pin(async move {
            if self.shared.isolated.lock().contains(&self.from) {
                return Err(AlterPartitionChannelError("cut".to_owned()));
            }
            let proposals: Vec<IsrProposal> = partitions.iter().map(to_proposal).collect();
            let image = Arc::clone(&self.shared.image.lock());
            let epoch = image.broker(self.from).expect("registered").epoch;
            let judged = alter_partition(&image, &DEFAULTS, self.from, epoch, &proposals);
            let (records, results) =
                judged.map_err(|error| AlterPartitionChannelError(error.to_string()))?;
            self.shared.commit(&records);
            let respond = |(asked, result): (AlterPartition, Result<_, _>)| {
                let result: Result<crate::cluster::alter_partition::PartitionState, _> = result;
                AlteredPartitionResponse {
                    topic_id: asked.topic_id,
                    partition: asked.partition,
                    result: result.map_err(to_error).map(|state| AlteredPartition {
                        leader: state.leader,
                        leader_epoch: state.leader_epoch,
                        partition_epoch: state.partition_epoch,
                        isr: state.isr,
                    }),
                }
            };
            Ok(partitions.into_iter().zip(results).map(respond).collect())
        })
    }
}

fn to_proposal(asked: &AlterPartition) -> IsrProposal {
    let known = |epoch| Some(epoch).filter(|epoch| *epoch != UNSPECIFIED_BROKER_EPOCH);
    let members = asked.proposal.isr.iter();
    IsrProposal {
        topic_id: asked.topic_id,
        partition: asked.partition,
        leader_epoch: asked.proposal.leader_epoch,
        partition_epoch: asked.proposal.partition_epoch,
        new_isr: members
            .map(|member| (member.broker, known(member.broker_epoch)))
            .collect(),
        recovering: false,
    }
}

fn to_error(error: ClusterError) -> AlterPartitionError {
    match error {
        ClusterError::FencedLeaderEpoch(_) => AlterPartitionError::FencedLeaderEpoch,
        ClusterError::InvalidUpdateVersion(_) => AlterPartitionError::InvalidUpdateVersion,
        ClusterError::IneligibleReplica(_) => AlterPartitionError::IneligibleReplica,
        ClusterError::NewLeaderElected(_) => AlterPartitionError::NewLeaderElected,
        ClusterError::UnknownTopicId => AlterPartitionError::UnknownTopicId,
        ClusterError::InvalidRequest(_) => AlterPartitionError::InvalidRequest,
        _ => AlterPartitionError::Other(-1),
    }
}

/// The connection of one fetcher, with what the session remembers.
#[derive(Debug)]
struct Link {
    shared: Arc<Shared>,
    from: BrokerId,
    to: BrokerId,
    told: Mutex<ToldFetches>,
}

impl Link {
    fn leader(&self, id: TopicId, index: i32) -> Result<Arc<Partition>, LeaderError> {
        let replicas = &self.shared.nodes[&self.to].replicas;
        let found = replicas.partition_by_id(id, index);
        found.map_err(|_| LeaderError::NotLeaderOrFollower)
    }

    fn hear(&self, request: &FetchRequest) {
        self.told.lock().hear(request);
    }

    fn look(
        &self,
        request: &FetchRequest,
        wanted: &FetchPartition,
        is_first_look: bool,
    ) -> Result<FetchedRecords, LeaderError> {
        let TopicIdPartition {
            topic_id,
            topic_partition: TopicPartition { partition, .. },
        } = &wanted.partition;
        let leader = self.leader(*topic_id, *partition)?;
        let fetch_offset = wanted.position.fetch_offset;
        let read = leader.read_for_follower(
            PartitionReadRequest {
                max_bytes: usize::try_from(wanted.max_bytes).expect("positive"),
                current_leader_epoch: Some(wanted.position.leader_epoch),
                last_fetched_epoch: wanted.position.last_fetched_epoch,
                ..read_request(fetch_offset)
            },
            FollowerRead {
                fetch: FollowerFetch {
                    replica: request.replica,
                    broker_epoch: request.broker_epoch,
                    fetch_offset,
                    log_start_offset: wanted.log_start_offset,
                },
                is_first_look,
            },
        );
        let read = read.map_err(|error| match error {
            PartitionError::OffsetOutOfRange { .. } => LeaderError::OffsetOutOfRange,
            PartitionError::Fenced(EpochFence::Fenced { .. }) => LeaderError::FencedLeaderEpoch,
            PartitionError::Fenced(EpochFence::Unknown { .. })
            | PartitionError::NotAReplica { .. } => LeaderError::UnknownLeaderEpoch,
            _ => LeaderError::NotLeaderOrFollower,
        })?;
        leader.on_sent_to_follower(&read);
        Ok(FetchedRecords {
            high_watermark: read.high_watermark,
            log_start_offset: read.log_start_offset,
            diverging_epoch: read
                .diverging_epoch
                .map(|(epoch, end_offset)| EpochEnd { epoch, end_offset }),
            records: read.records.map_or_else(Bytes::new, |read| read.records),
        })
    }

    fn look_at_all(&self, request: &FetchRequest, is_first_look: bool) -> Vec<FetchedPartition> {
        let told = self.told.lock();
        let look = |(key, wanted): (&(TopicId, i32), &FetchPartition)| FetchedPartition {
            topic_id: key.0,
            partition: key.1,
            answer: self.look(request, wanted, is_first_look),
        };
        told.0.iter().map(look).collect()
    }

    async fn answer(&self, request: FetchRequest) -> Result<FetchResponse, LeaderEndpointError> {
        self.shared.reaches(self.from, self.to)?;
        self.hear(&request);
        let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).expect("positive"));
        let deadline = tokio::time::Instant::now() + wait;
        let notify = Arc::new(Notify::new());
        let mut is_first_look = true;
        loop {
            let keys: Vec<_> = self.told.lock().0.keys().copied().collect();
            let leaders = keys
                .iter()
                .filter_map(|(id, index)| self.leader(*id, *index).ok());
            let _registrations: Vec<_> = leaders
                .map(|leader| {
                    let next = leader.log().log_end_offset() + 1;
                    leader.log_end_watch().register(next, Arc::clone(&notify))
                })
                .collect();
            let partitions = self.look_at_all(&request, is_first_look);
            is_first_look = false;
            let has_news = |fetched: &FetchedPartition| match &fetched.answer {
                Ok(fetched) => !fetched.records.is_empty() || fetched.diverging_epoch.is_some(),
                Err(_) => true,
            };
            if partitions.iter().any(has_news)
                || tokio::time::timeout_at(deadline, notify.notified())
                    .await
                    .is_err()
            {
                self.shared.reaches(self.from, self.to)?;
                return Ok(FetchResponse {
                    session_id: 7,
                    partitions,
                });
            }
        }
    }
}

impl LeaderEndpoint for Link {
    fn fetch(
        &self,
        request: FetchRequest,
    ) -> BoxFuture<'_, Result<FetchResponse, LeaderEndpointError>> {
        Box::pin(self.answer(request))
    }

    fn list_offset(
        &self,
        partition: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
        which: ReplicaOffset,
    ) -> BoxFuture<'_, Result<Result<i64, LeaderError>, LeaderEndpointError>> {
        Box::pin(async move {
            self.shared.reaches(self.from, self.to)?;
            let query = match which {
                ReplicaOffset::LogEnd => OffsetQuery::Latest,
                ReplicaOffset::LogStart => OffsetQuery::Earliest,
            };
            let index = partition.topic_partition.partition;
            Ok(self.leader(partition.topic_id, index).and_then(|leader| {
                let epoch = Some(current_leader_epoch);
                let found = leader.list_offset(query, ReadIsolation::LogEnd, epoch, true);
                let found = found.map_err(|_| LeaderError::NotLeaderOrFollower)?;
                Ok(found.expect("the ends are known").offset)
            }))
        })
    }

    fn end_offset_for_epoch(
        &self,
        partition: TopicIdPartition,
        current_leader_epoch: LeaderEpoch,
        epoch: LeaderEpoch,
    ) -> BoxFuture<'_, Result<Result<Option<EpochEnd>, LeaderError>, LeaderEndpointError>> {
        Box::pin(async move {
            self.shared.reaches(self.from, self.to)?;
            let index = partition.topic_partition.partition;
            Ok(self.leader(partition.topic_id, index).and_then(|leader| {
                let found = leader.end_offset_for_epoch(epoch, Some(current_leader_epoch));
                let found = found.map_err(|_| LeaderError::NotLeaderOrFollower)?;
                Ok(found.map(|(epoch, end_offset)| EpochEnd { epoch, end_offset }))
            }))
        })
    }

    fn disconnect(&self) {}
}
