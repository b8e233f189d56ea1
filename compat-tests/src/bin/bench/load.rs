//! The load: requests encoded once, one blocking socket and one thread a connection.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use compat_tests::raw::{Batch, Connection, Frame, encode_frame};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{FetchRequest, ProduceRequest};
use rustix::net::RecvFlags;

use crate::broker::topic_name;

/// Version of Produce and Fetch used: the last ones by topic name.
const PRODUCE_VERSION: i16 = 9;
const FETCH_VERSION: i16 = 12;

/// Shared by the threads of one load and the thread that measures.
#[derive(Default)]
pub(crate) struct Window {
    /// Requests answered now are counted.
    measuring: AtomicBool,
    stop: AtomicBool,
    /// Payload bytes answered since the start, warm-up included.
    total_bytes: AtomicU64,
}

/// What one connection or all of them saw while it was measured.
#[derive(Default)]
pub(crate) struct Samples {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    /// One entry a request.
    pub(crate) latencies_ns: Vec<u64>,
}

impl Samples {
    fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latencies_ns.extend(other.latencies_ns);
    }

    /// Latency in microseconds that this share of all requests stayed below.
    pub(crate) fn percentile_us(&mut self, share: f64) -> f64 {
        if self.latencies_ns.is_empty() {
            return f64::NAN;
        }
        self.latencies_ns.sort_unstable();
        let last = self.latencies_ns.len() - 1;
        self.latencies_ns[(share * last as f64).round() as usize] as f64 / 1000.0
    }
}

/// The body of one connection's thread.
pub(crate) type LoadThread<'a> = Box<dyn FnOnce(&Window) -> Result<Samples> + Send + 'a>;

/// How long a load runs.
#[derive(Clone, Copy)]
pub(crate) struct Length {
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
    /// The window ends early when this many bytes have passed, so that disks stay out of it.
    pub(crate) max_bytes: u64,
}

/// A produce load: one partition a connection.
#[derive(Clone, Copy)]
pub(crate) struct ProduceLoad<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) topic: &'a str,
    pub(crate) batch_bytes: usize,
    pub(crate) connections: usize,
    pub(crate) in_flight: usize,
    /// Waits this long after each answer: a bystander that is timed must not take the machine.
    pub(crate) pause: Option<Duration>,
}

/// Runs `threads` while `between` samples the broker at the edges of the window.
pub(crate) fn run_window<T>(
    length: Length,
    threads: Vec<LoadThread<'_>>,
    mut sample: impl FnMut() -> Result<T>,
) -> Result<(Samples, Duration, T, T)> {
    let window = Window::default();
    std::thread::scope(|scope| {
        let running: Vec<_> = threads
            .into_iter()
            .map(|body| {
                let window = &window;
                scope.spawn(move || {
                    let result = body(window);
                    if result.is_err() {
                        window.stop.store(true, Ordering::Relaxed);
                    }
                    result
                })
            })
            .collect();
        pause(&window, length.warm_up, u64::MAX);
        let before = sample();
        let began = Instant::now();
        let bytes_before = window.total_bytes.load(Ordering::Relaxed);
        window.measuring.store(true, Ordering::Relaxed);
        pause(
            &window,
            length.measured,
            bytes_before.saturating_add(length.max_bytes),
        );
        window.measuring.store(false, Ordering::Relaxed);
        let elapsed = began.elapsed();
        let after = sample();
        window.stop.store(true, Ordering::Relaxed);
        let mut all = Samples::default();
        for thread in running {
            let samples = thread
                .join()
                .map_err(|_| anyhow::anyhow!("a load thread panicked"))?;
            all.merge(samples?);
        }
        Ok((all, elapsed, before?, after?))
    })
}

fn pause(window: &Window, length: Duration, max_total_bytes: u64) {
    let began = Instant::now();
    while began.elapsed() < length
        && !window.stop.load(Ordering::Relaxed)
        && window.total_bytes.load(Ordering::Relaxed) < max_total_bytes
    {
        std::thread::sleep(Duration::from_millis(2).min(length));
    }
}

/// A frame that appends `batch` with acks=all.
pub(crate) fn produce_frame(topic: &str, partition: i32, batch: Bytes) -> Result<Bytes> {
    let data = PartitionProduceData::default()
        .with_index(partition)
        .with_records(Some(batch));
    let topic = TopicProduceData::default()
        .with_name(topic_name(topic))
        .with_partition_data(vec![data]);
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic]);
    encode_frame(PRODUCE_VERSION, 0, &request)
}

/// A frame that fetches one partition without a session.
pub(crate) fn fetch_frame(
    topic: &str,
    partition: i32,
    max_bytes: i32,
    max_wait_ms: i32,
) -> Result<Bytes> {
    let part = FetchPartition::default()
        .with_partition(partition)
        .with_partition_max_bytes(max_bytes);
    let topic = FetchTopic::default()
        .with_topic(topic_name(topic))
        .with_partitions(vec![part]);
    let request = FetchRequest::default()
        .with_max_wait_ms(max_wait_ms)
        .with_min_bytes(1)
        .with_max_bytes(50 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![topic]);
    encode_frame(FETCH_VERSION, 0, &request)
}

/// Where the fetch offset stands in a frame of [`fetch_frame`]: counted from its end.
const FETCH_OFFSET_FROM_END: usize = 8 + 4 + 8 + 4 + 1 + 1 + 1 + 1 + 1;

/// The threads of a produce load against one broker.
pub(crate) fn produce_threads(load: ProduceLoad<'_>) -> Result<Vec<LoadThread<'_>>> {
    produce_threads_to(load, &[load.address])
}

/// The threads of a produce load; `leaders` leads the partitions in turn.
pub(crate) fn produce_threads_to<'a>(
    load: ProduceLoad<'a>,
    leaders: &[SocketAddr],
) -> Result<Vec<LoadThread<'a>>> {
    let batch = Batch::of_size(load.batch_bytes).encode();
    let mut threads: Vec<LoadThread<'_>> = Vec::new();
    for (partition, address) in (0..load.connections).zip(leaders.iter().cycle()) {
        let frame = produce_frame(load.topic, partition as i32, batch.clone())?;
        let load = ProduceLoad {
            address: *address,
            ..load
        };
        threads.push(Box::new(move |window| produce(load, frame, window)));
    }
    Ok(threads)
}

fn produce(load: ProduceLoad<'_>, frame: Bytes, window: &Window) -> Result<Samples> {
    let mut connection = Connection::open(load.address)?;
    let first = first_reply(&mut connection, &frame)?;
    let reply_bytes = 4 + first.0.len();
    // correlation id, header tags, array, name, array, partition index; see ProduceResponse v9
    let error_at = 4 + 4 + 1 + 1 + 1 + load.topic.len() + 1 + 4;
    let mut pipeline = Pipeline::new(&frame, load.in_flight, connection.into_stream());
    let mut samples = Samples::default();
    let mut received = vec![0; reply_bytes * load.in_flight];
    let mut filled = 0;
    pipeline.send(load.in_flight)?;
    while !pipeline.sent_at.is_empty() {
        let got = pipeline.stream.read(&mut received[filled..])?;
        ensure!(got > 0, "the broker closed the connection");
        filled += got;
        let now = Instant::now();
        let whole = filled / reply_bytes;
        let measuring = window.measuring.load(Ordering::Relaxed);
        for reply in received[..whole * reply_bytes].chunks_exact(reply_bytes) {
            let sent_at = pipeline.take(reply)?;
            ensure!(
                reply[error_at..error_at + 2] == [0, 0],
                "produce was refused under load"
            );
            if measuring {
                samples.requests += 1;
                samples.bytes += load.batch_bytes as u64;
                samples.latencies_ns.push((now - sent_at).as_nanos() as u64);
            }
        }
        received.copy_within(whole * reply_bytes..filled, 0);
        filled -= whole * reply_bytes;
        window
            .total_bytes
            .fetch_add((whole * load.batch_bytes) as u64, Ordering::Relaxed);
        if let Some(pause) = load.pause {
            std::thread::sleep(pause);
        }
        if !window.stop.load(Ordering::Relaxed) {
            pipeline.send(whole)?;
        }
    }
    Ok(samples)
}

/// Appends one batch; a leader that was just elected may not know of it at once.
fn first_reply(connection: &mut Connection, frame: &[u8]) -> Result<Frame> {
    let began = Instant::now();
    loop {
        connection.write(frame)?;
        let first = connection
            .read_frame()?
            .context("closed at the first produce")?;
        let reply = first.decode::<ProduceRequest>(PRODUCE_VERSION)?;
        let mut partitions = reply
            .responses
            .iter()
            .flat_map(|topic| &topic.partition_responses);
        match partitions.find(|partition| partition.error_code != 0) {
            None => return Ok(first),
            Some(_) if began.elapsed() < Duration::from_secs(10) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Some(partition) => bail!("produce: {partition:?}"),
        }
    }
}

/// Copies of one frame in a ring, so that several are sent in one write.
struct Pipeline {
    stream: TcpStream,
    ring: Vec<u8>,
    frame_bytes: usize,
    slots: usize,
    next_id: u32,
    expected_id: u32,
    sent_at: VecDeque<Instant>,
}

impl Pipeline {
    fn new(frame: &[u8], slots: usize, stream: TcpStream) -> Self {
        Self {
            stream,
            ring: frame.repeat(slots),
            frame_bytes: frame.len(),
            slots,
            next_id: 0,
            expected_id: 0,
            sent_at: VecDeque::with_capacity(slots),
        }
    }

    fn send(&mut self, count: usize) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let first = self.next_id as usize % self.slots;
            let together = left.min(self.slots - first);
            for slot in first..first + together {
                let at = slot * self.frame_bytes + 8;
                self.ring[at..at + 4].copy_from_slice(&self.next_id.to_be_bytes());
                self.next_id = self.next_id.wrapping_add(1);
            }
            let now = Instant::now();
            self.sent_at.extend(std::iter::repeat_n(now, together));
            let range = first * self.frame_bytes..(first + together) * self.frame_bytes;
            self.stream.write_all(&self.ring[range])?;
            left -= together;
        }
        Ok(())
    }

    /// Accounts for a reply; gives when its request was sent.
    fn take(&mut self, reply: &[u8]) -> Result<Instant> {
        let id = &reply[4..8];
        ensure!(id == self.expected_id.to_be_bytes(), "a reply out of order");
        self.expected_id = self.expected_id.wrapping_add(1);
        self.sent_at.pop_front().context("a reply to no request")
    }
}

/// A fetch load: each connection reads one partition from start to end, again and again.
#[derive(Clone, Copy)]
pub(crate) struct FetchLoad<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) topic: &'a str,
    pub(crate) connections: usize,
    pub(crate) max_bytes: i32,
    /// Bytes of one stored batch, which is one record.
    pub(crate) batch_bytes: usize,
    /// Reads each partition once and then stops.
    pub(crate) once: bool,
}

/// The threads of a fetch load.
pub(crate) fn fetch_threads(load: FetchLoad<'_>) -> Result<Vec<LoadThread<'_>>> {
    let mut threads: Vec<LoadThread<'_>> = Vec::new();
    for partition in 0..load.connections {
        let frame = fetch_frame(load.topic, partition as i32, load.max_bytes, 0)?;
        threads.push(Box::new(move |window| {
            let result = fetch(load, frame.to_vec(), window);
            if load.once {
                window.stop.store(true, Ordering::Relaxed);
            }
            result
        }));
    }
    Ok(threads)
}

fn fetch(load: FetchLoad<'_>, mut frame: Vec<u8>, window: &Window) -> Result<Samples> {
    let mut stream = Connection::open(load.address)?.into_stream();
    let offset_at = frame.len() - FETCH_OFFSET_FROM_END;
    let mut offset = 0_i64;
    let mut samples = Samples::default();
    let mut head = [0_u8; 256];
    let head_bytes = fetch_reply_head_bytes(load.topic);
    let mut scratch = vec![0; 1 << 20];
    while !window.stop.load(Ordering::Relaxed) {
        frame[offset_at..offset_at + 8].copy_from_slice(&offset.to_be_bytes());
        let sent_at = Instant::now();
        stream.write_all(&frame)?;
        stream.read_exact(&mut head[..head_bytes])?;
        let reply_bytes = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize + 4;
        let error_at = head_bytes - 4 - 1 - 3 * 8 - 2;
        ensure!(
            head[error_at..error_at + 2] == [0, 0],
            "fetch was refused under load"
        );
        drain(&mut stream, reply_bytes - head_bytes, &mut scratch)?;
        let batches = (reply_bytes - head_bytes) / load.batch_bytes;
        let bytes = (batches * load.batch_bytes) as u64;
        offset += batches as i64;
        if batches == 0 {
            ensure!(offset > 0, "nothing to fetch");
            if load.once {
                break;
            }
            offset = 0;
        }
        window.total_bytes.fetch_add(bytes, Ordering::Relaxed);
        if window.measuring.load(Ordering::Relaxed) {
            samples.requests += 1;
            samples.bytes += bytes;
            samples
                .latencies_ns
                .push(sent_at.elapsed().as_nanos() as u64);
        }
    }
    Ok(samples)
}

/// Length, correlation id, tags, throttle, error, session, array, name, array, index, error, three
/// offsets, abort list, preferred replica; then come the records. See FetchResponse v12.
fn fetch_reply_head_bytes(topic: &str) -> usize {
    4 + 4 + 1 + 4 + 2 + 4 + 1 + (1 + topic.len()) + 1 + 4 + 2 + 3 * 8 + 1 + 4
}

/// Takes `left` bytes off the socket without copying them, which keeps the client cheap.
fn drain(stream: &mut TcpStream, mut left: usize, scratch: &mut [u8]) -> Result<()> {
    while left > 0 {
        let want = left.min(scratch.len());
        let (_, got) = rustix::net::recv(&*stream, &mut scratch[..want], RecvFlags::TRUNC)?;
        ensure!(got > 0, "the broker closed the connection");
        left -= got;
    }
    Ok(())
}

/// Appends `total_bytes` evenly to the partitions of a topic, as fast as it goes.
pub(crate) fn fill(
    address: SocketAddr,
    topic: &str,
    partitions: usize,
    batch_bytes: usize,
    total_bytes: u64,
) -> Result<()> {
    let load = ProduceLoad {
        address,
        topic,
        batch_bytes,
        connections: partitions,
        in_flight: 4,
        pause: None,
    };
    let length = Length {
        warm_up: Duration::ZERO,
        measured: Duration::from_secs(600),
        max_bytes: total_bytes,
    };
    run_window(length, produce_threads(load)?, || Ok(()))?;
    Ok(())
}
