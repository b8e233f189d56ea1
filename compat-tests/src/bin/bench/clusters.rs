//! Three brokers on this machine: what replication costs, and how quickly a lost leader is replaced.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use compat_tests::broker::BrokerKind;
use compat_tests::cluster::{Cluster, ClusterOptions};
use compat_tests::raw::{Batch, Connection};
use kafka_protocol::messages::ProduceRequest;

use crate::load::{ProduceLoad, produce_frame, produce_threads_to, run_window};
use crate::report::{Figure, Report, figure};
use crate::workloads::{MIB, Settings, cpu_seconds, load_figures, used_by_all};

/// Heap of each Apache Kafka node; three of them have to fit beside ours.
const KAFKA_HEAP_MIB: u32 = 1024;
/// Version of the produce frames of [`produce_frame`].
const PRODUCE_VERSION: i16 = 9;
/// Bytes that a follower has to catch up with.
const CATCH_UP_BYTES: u64 = 2 << 30;
const PARTITIONS: usize = 1000;
/// How long a cluster may take for anything but a load.
const PATIENCE: Duration = Duration::from_secs(300);

/// One line of the plan.
pub(crate) struct ClusterWorkload {
    pub(crate) name: &'static str,
    /// Rounds when the command line names none.
    rounds: usize,
    /// Whether a long round goes before the measured ones.
    warms_up: bool,
    run: fn(&mut ClusterBench, &Settings) -> Result<Vec<Figure>>,
}

/// Everything, in the order in which it runs.
pub(crate) const ALL: &[ClusterWorkload] = &[
    ClusterWorkload {
        name: "cluster-produce-1k-one",
        rounds: 5,
        warms_up: true,
        run: |bench, settings| bench.produce(settings, 1 << 10, 1, 1),
    },
    ClusterWorkload {
        name: "cluster-produce-64k",
        rounds: 5,
        warms_up: true,
        run: |bench, settings| bench.produce(settings, 64 << 10, 4, 8),
    },
    ClusterWorkload {
        name: "cluster-produce-16k-one-connection",
        rounds: 5,
        warms_up: true,
        run: |bench, settings| bench.produce(settings, 16 << 10, 1, 8),
    },
    ClusterWorkload {
        name: "cluster-fail-over",
        rounds: 5,
        warms_up: false,
        run: |bench, _| bench.fail_over(),
    },
    ClusterWorkload {
        name: "cluster-catch-up",
        rounds: 2,
        warms_up: false,
        run: |bench, _| bench.catch_up(),
    },
    ClusterWorkload {
        name: "cluster-1000-partitions",
        rounds: 1,
        warms_up: false,
        run: |bench, _| bench.many_partitions(),
    },
];

/// Runs the chosen workloads, both clusters in turn, and adds their figures to the report.
pub(crate) fn run(
    chosen: &[&ClusterWorkload],
    rounds: Option<usize>,
    products: &[BrokerKind],
    [warm_up, settings]: [&Settings; 2],
    report: &mut Report,
) {
    for workload in chosen {
        let rounds = rounds.unwrap_or(workload.rounds);
        eprintln!("{}: {rounds} rounds", workload.name);
        let mut run = || -> Result<()> {
            let started: Result<Vec<_>> =
                products.iter().map(|k| ClusterBench::start(*k)).collect();
            let mut clusters = started?;
            if workload.warms_up {
                for cluster in &mut clusters {
                    (workload.run)(cluster, warm_up)?;
                }
            }
            for round in 0..rounds {
                for i in 0..clusters.len() {
                    let at = (i + round) % clusters.len();
                    let cluster = &mut clusters[at];
                    let figures = (workload.run)(cluster, settings)?;
                    report.add(workload.name, cluster.cluster.kind(), round, figures);
                }
            }
            Ok(())
        };
        if let Err(error) = run() {
            eprintln!("{} failed: {error:#}", workload.name);
        }
        println!("{}", report.table(Some(workload.name), false));
    }
}

/// A cluster under measurement.
struct ClusterBench {
    cluster: Cluster,
    topics_made: u32,
}

impl ClusterBench {
    fn start(kind: BrokerKind) -> Result<Self> {
        let options = ClusterOptions::new()
            .for_measurement(KAFKA_HEAP_MIB)
            .set("log.segment.delete.delay.ms", 0)
            .set("auto.create.topics.enable", false)
            .set("broker.heartbeat.interval.ms", 2000)
            .set("broker.session.timeout.ms", 9000)
            .set("replica.lag.time.max.ms", 30_000);
        Ok(Self {
            cluster: Cluster::start(kind, &options)?,
            topics_made: 0,
        })
    }

    fn pids(&self) -> Result<Vec<u32>> {
        let pid = |id: i32| self.cluster.node(id)?.id().context("a node is not running");
        self.cluster.awake_brokers().into_iter().map(pid).collect()
    }

    /// Creates a topic whose partitions are led by the three brokers in turn; gives its name and their leaders.
    fn create_topic(&mut self, partitions: usize) -> Result<(String, Vec<SocketAddr>)> {
        let name = format!("bench-{}", self.topics_made);
        self.topics_made += 1;
        let in_turn: [&[i32]; 3] = [&[1, 2, 3], &[2, 3, 1], &[3, 1, 2]];
        let assignment: Vec<&[i32]> = in_turn.into_iter().cycle().take(partitions).collect();
        self.cluster.create_topic(&name, &assignment, &[]);
        let leaders: Result<Vec<_>> = (1..=3).map(|id| self.cluster.address(id)).collect();
        Ok((name, leaders?))
    }

    fn produce(
        &mut self,
        settings: &Settings,
        batch_bytes: usize,
        connections: usize,
        in_flight: usize,
    ) -> Result<Vec<Figure>> {
        let (topic, leaders) = self.create_topic(connections)?;
        let load = ProduceLoad {
            address: leaders[0],
            topic: &topic,
            batch_bytes,
            connections,
            in_flight,
            pause: None,
        };
        let pids = self.pids()?;
        let threads = produce_threads_to(load, &leaders)?;
        let (samples, elapsed, before, after) =
            run_window(settings.length(), threads, || used_by_all(&pids))?;
        self.cluster.delete_topic(&topic)?;
        Ok(load_figures(samples, elapsed, &before, &after))
    }

    /// From the `kill -9` of a leader to the first write that another one acknowledges.
    fn fail_over(&mut self) -> Result<Vec<Figure>> {
        let (topic, _) = self.create_topic(1)?;
        let frame = produce_frame(&topic, 0, Batch::of_size(1 << 10).encode())?;
        ensure!(self.try_produce(1, &frame), "the first leader acknowledges");
        let began = Instant::now();
        self.cluster.kill(1)?;
        while ![2, 3].iter().any(|id| self.try_produce(*id, &frame)) {
            ensure!(began.elapsed() < PATIENCE, "no broker took over");
            std::thread::sleep(Duration::from_millis(5));
        }
        let took = began.elapsed();
        self.cluster.start_again(1)?;
        self.wait_for_isr(&topic, 1)?;
        Ok(vec![figure(
            "first acknowledged write",
            "ms",
            took.as_secs_f64() * 1000.0,
        )])
    }

    fn try_produce(&self, id: i32, frame: &[u8]) -> bool {
        let attempt = || -> Result<bool> {
            let mut connection = Connection::open(self.cluster.address(id)?)?;
            connection.write(frame)?;
            let reply = connection.read_frame()?.context("closed")?;
            let reply = reply.decode::<ProduceRequest>(PRODUCE_VERSION)?;
            let mut partitions = reply.responses.iter().flat_map(|t| &t.partition_responses);
            Ok(partitions.all(|partition| partition.error_code == 0))
        };
        attempt().unwrap_or(false)
    }

    fn wait_for_isr(&self, topic: &str, member: i32) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let leader = 2;
            let view = self.cluster.partition(leader, topic, 0)?;
            if view.isr.contains(&member) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("broker {member} is not in the ISR of {topic}-0 within {PATIENCE:?}")
    }

    /// A follower was down while the others took 2 GiB: from its start until it is in sync.
    fn catch_up(&mut self) -> Result<Vec<Figure>> {
        let (topic, leaders) = self.create_topic(2)?;
        self.cluster.stop(3)?;
        let load = ProduceLoad {
            address: leaders[0],
            topic: &topic,
            batch_bytes: 64 << 10,
            connections: 2,
            in_flight: 4,
            pause: None,
        };
        let fill = Settings {
            measured: PATIENCE,
            max_bytes: CATCH_UP_BYTES,
        };
        let threads = produce_threads_to(load, &leaders)?;
        run_window(fill.length(), threads, || Ok(()))?;
        let before = used_by_all(&self.pids()?)?;
        let began = Instant::now();
        self.cluster.start_again(3)?;
        for partition in 0..2 {
            while !self
                .cluster
                .partition(2, &topic, partition)?
                .isr
                .contains(&3)
            {
                ensure!(began.elapsed() < PATIENCE, "the follower never caught up");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let took = began.elapsed();
        // The follower's process began at zero.
        let after = used_by_all(&self.pids()?)?;
        self.cluster.delete_topic(&topic)?;
        Ok(vec![
            figure("in sync after", "s", took.as_secs_f64()),
            figure("CPU of all brokers", "s", cpu_seconds(&before, &after)),
        ])
    }

    fn many_partitions(&mut self) -> Result<Vec<Figure>> {
        let began = Instant::now();
        self.create_topic(PARTITIONS)?;
        let created = began.elapsed();
        std::thread::sleep(Duration::from_secs(2));
        let pids = self.pids()?;
        let before = used_by_all(&pids)?;
        std::thread::sleep(Duration::from_secs(10));
        let after = used_by_all(&pids)?;
        Ok(vec![
            figure("create until in sync", "s", created.as_secs_f64()),
            figure(
                "idle CPU of all brokers",
                "% of a core",
                cpu_seconds(&before, &after) * 10.0,
            ),
            figure(
                "memory of all brokers",
                "MiB",
                after.anonymous_bytes as f64 / MIB,
            ),
        ])
    }
}
