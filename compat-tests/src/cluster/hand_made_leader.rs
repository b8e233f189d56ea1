//! A leader that is nothing but frames which a test answers: a real follower fetches from it, and what it is told is
//! what the test says.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::fetch_response::{
    EpochEndOffset, FetchableTopicResponse, PartitionData,
};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, FetchRequest, FetchResponse,
    ListOffsetsRequest, ListOffsetsResponse, RequestHeader, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable};

use super::hand_made::Follower;
use super::leader_log::LeaderLog;
use crate::raw::{Frame, code, read_frame};

/// Last version of ListOffsets whose layout the codec knows; the one after has the same.
const LIST_OFFSETS: i16 = 10;
/// Versions of Fetch that name topics by id and say whether a follower diverges.
const FETCHES: (i16, i16) = (13, 18);
/// A follower that has everything is kept waiting so long, whatever it asks for.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct State {
    leader_epoch: i32,
    log: LeaderLog,
    high_watermark: i64,
    /// Where followers asked, without repetitions.
    asked: Vec<Follower>,
    /// Requests that could not be answered.
    troubles: Vec<String>,
    ended: bool,
}

/// A listener that answers Fetch, ListOffsets and ApiVersions of followers for every partition as if it led it.
#[derive(Debug)]
pub struct HandMadeLeader {
    state: Arc<Mutex<State>>,
    address: SocketAddr,
}

impl HandMadeLeader {
    /// Listens on a free port; its log is empty.
    ///
    /// # Errors
    /// When no port can be had.
    pub fn listen() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State {
            leader_epoch: 0,
            log: LeaderLog::of(&[]),
            high_watermark: 0,
            asked: Vec::new(),
            troubles: Vec::new(),
            ended: false,
        }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if lock(&shared).ended {
                    return;
                }
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    if let Err(error) = stream.context("accept").and_then(|s| serve(s, &shared)) {
                        lock(&shared).troubles.push(format!("{error:#}"));
                    }
                });
            }
        });
        Ok(Self { state, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Leads in this epoch with this log, all of it shown to consumers, and forgets who asked before.
    pub fn lead(&self, leader_epoch: i32, log: LeaderLog) {
        let mut state = lock(&self.state);
        state.high_watermark = log.end_offset();
        state.leader_epoch = leader_epoch;
        state.log = log;
        state.asked.clear();
    }

    /// Sets what it says of the high watermark.
    pub fn set_high_watermark(&self, high_watermark: i64) {
        lock(&self.state).high_watermark = high_watermark;
    }

    /// Where followers that know its epoch asked since it leads, without repetitions.
    #[must_use]
    pub fn asked(&self) -> Vec<Follower> {
        lock(&self.state).asked.clone()
    }

    /// Requests that could not be answered.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        lock(&self.state).troubles.clone()
    }
}

impl Drop for HandMadeLeader {
    fn drop(&mut self) {
        lock(&self.state).ended = true;
        TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).ok();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) -> Result<()> {
    stream.set_nodelay(true)?;
    while let Some(Frame(mut bytes)) = read_frame(&mut stream)? {
        if lock(state).ended {
            return Ok(());
        }
        let key = bytes.get(..2).context("a short request")?;
        let key = i16::from_be_bytes([key[0], key[1]]);
        let version = bytes.get(2..4).context("a short request")?;
        let version = i16::from_be_bytes([version[0], version[1]]);
        let api = ApiKey::try_from(key)
            .ok()
            .with_context(|| format!("key {key}"))?;
        // The layout of a version that the codec does not know yet.
        let known = match api {
            ApiKey::ListOffsets => version.min(LIST_OFFSETS),
            _ => version,
        };
        let header = RequestHeader::decode(&mut bytes, api.request_header_version(known))?;
        let mut reply = BytesMut::new();
        reply.put_i32(0);
        ResponseHeader::default()
            .with_correlation_id(header.correlation_id)
            .encode(&mut reply, api.response_header_version(known))?;
        match api {
            ApiKey::Fetch => {
                let request = FetchRequest::decode(&mut bytes, known)?;
                let (response, has_news) = fetch(&request, &mut lock(state));
                if !has_news {
                    std::thread::sleep(PAUSE);
                }
                response.encode(&mut reply, known)?;
            }
            ApiKey::ListOffsets => {
                let request = ListOffsetsRequest::decode(&mut bytes, known)?;
                list_offsets(&request, &lock(state)).encode(&mut reply, known)?;
            }
            ApiKey::ApiVersions => {
                ApiVersionsRequest::decode(&mut bytes, known)?;
                api_versions().encode(&mut reply, known)?;
            }
            other => bail!("a follower sent {other:?} v{version}"),
        }
        if bytes.has_remaining() {
            bail!("{} bytes left over after {api:?} v{version}", bytes.len());
        }
        let length = i32::try_from(reply.len() - 4)?;
        reply[..4].copy_from_slice(&length.to_be_bytes());
        std::io::Write::write_all(&mut stream, &reply)?;
    }
    Ok(())
}

/// The answer without a session, and whether it says anything that the follower does not know.
fn fetch(request: &FetchRequest, state: &mut State) -> (FetchResponse, bool) {
    let mut has_news = false;
    let mut topics = Vec::new();
    for topic in &request.topics {
        let mut partitions = Vec::new();
        for partition in &topic.partitions {
            let follower = Follower {
                leader_epoch: partition.current_leader_epoch,
                fetch_offset: partition.fetch_offset,
                last_fetched_epoch: partition.last_fetched_epoch,
            };
            let limit = usize::try_from(partition.partition_max_bytes).unwrap_or(0);
            let answer = answer(state, follower, limit).with_partition_index(partition.partition);
            let records = answer.records.as_ref().map_or(0, Bytes::len);
            has_news |= records > 0 || answer.diverging_epoch.end_offset >= 0;
            partitions.push(answer);
        }
        topics.push(
            FetchableTopicResponse::default()
                .with_topic(topic.topic.clone())
                .with_topic_id(topic.topic_id)
                .with_partitions(partitions),
        );
    }
    (FetchResponse::default().with_responses(topics), has_news)
}

/// What a leader says to a follower that stands there.
fn answer(state: &mut State, follower: Follower, limit: usize) -> PartitionData {
    let refuse = |error_code| {
        PartitionData::default()
            .with_error_code(error_code)
            .with_high_watermark(-1)
            .with_records(Some(Bytes::new()))
    };
    if follower.leader_epoch < state.leader_epoch {
        return refuse(code::FENCED_LEADER_EPOCH);
    }
    if follower.leader_epoch > state.leader_epoch {
        return refuse(code::UNKNOWN_LEADER_EPOCH);
    }
    if state.asked.last() != Some(&follower) {
        state.asked.push(follower);
    }
    let log = &state.log;
    let nothing = PartitionData::default()
        .with_high_watermark(state.high_watermark)
        .with_log_start_offset(log.start_offset())
        .with_records(Some(Bytes::new()));
    if follower.fetch_offset < log.start_offset() {
        return refuse(code::OFFSET_OUT_OF_RANGE);
    }
    if follower.last_fetched_epoch >= 0 {
        let end = log.end_of_epoch(follower.last_fetched_epoch, state.leader_epoch);
        let Some((epoch, end_offset)) = end else {
            return refuse(code::OFFSET_OUT_OF_RANGE);
        };
        if epoch < follower.last_fetched_epoch || end_offset < follower.fetch_offset {
            let diverging = EpochEndOffset::default()
                .with_epoch(epoch)
                .with_end_offset(end_offset);
            return nothing.with_diverging_epoch(diverging);
        }
    }
    if follower.fetch_offset > log.end_offset() {
        return refuse(code::OFFSET_OUT_OF_RANGE);
    }
    nothing.with_records(Some(log.read(follower.fetch_offset, limit)))
}

/// What it understands, for a follower that asks.
fn api_versions() -> ApiVersionsResponse {
    let versions = [
        (ApiKey::Fetch, FETCHES),
        (ApiKey::ListOffsets, (1, LIST_OFFSETS)),
        (ApiKey::ApiVersions, (0, 4)),
    ];
    let versions = versions.map(|(key, (first, last))| {
        ApiVersion::default()
            .with_api_key(key as i16)
            .with_min_version(first)
            .with_max_version(last)
    });
    ApiVersionsResponse::default().with_api_keys(versions.into())
}

/// The first or, for every other timestamp, the last offset.
fn list_offsets(request: &ListOffsetsRequest, state: &State) -> ListOffsetsResponse {
    const EARLIEST: i64 = -2;
    const EARLIEST_LOCAL: i64 = -4;
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let offset = match partition.timestamp {
                EARLIEST | EARLIEST_LOCAL => state.log.start_offset(),
                _ => state.log.end_offset(),
            };
            ListOffsetsPartitionResponse::default()
                .with_partition_index(partition.partition_index)
                .with_offset(offset)
                .with_leader_epoch(state.leader_epoch)
        });
        ListOffsetsTopicResponse::default()
            .with_name(topic.name.clone())
            .with_partitions(partitions.collect())
    });
    ListOffsetsResponse::default().with_topics(topics.collect())
}
