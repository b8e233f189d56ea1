//! One run: a cluster, clients, faults one after the other, and the checks at the end.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::checkers::{Finding, Verdict, check};
use super::nemesis;
use super::plan::{Kind, Plan};
use super::replicas::{compare, ends, wait_until_in_sync};
use super::workload::{Clients, Workload};
use crate::broker::BrokerKind;
use crate::cluster::{Cluster, ClusterOptions};

const TOPIC: &str = "unique-values";
/// Enough for what clients write in hours, and filled at once.
const DISK_MIB: u32 = 512;

/// What is done between the healthy start and the healthy end.
#[derive(Debug, Clone)]
pub enum Program {
    /// Faults from a seed for so long; each is begun when the cluster has recovered from the one before.
    Faults {
        /// Chooses the faults.
        seed: u64,
        /// Which kinds there may be.
        kinds: Vec<Kind>,
        /// When no further one is begun.
        lasts: Duration,
        /// How long one fault lasts at most.
        longest: Duration,
    },
    /// Every node is stopped and started again, one after the other, so many times.
    RollingRestart {
        /// How often each node is restarted.
        rounds: u32,
    },
}

/// A run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Number of partitions, each with three replicas.
    pub partitions: i32,
    /// The clients.
    pub clients: Clients,
    /// What is done.
    pub program: Program,
    /// Whether to print each fault as it begins.
    pub verbose: bool,
}

impl Settings {
    /// Three partitions, two producers, two readers and a group of two, under this program.
    #[must_use]
    pub fn new(program: Program) -> Self {
        Self {
            partitions: 3,
            clients: Clients {
                producers: 2,
                per_second: 100,
                consumers: 2,
                members: 2,
            },
            program,
            verbose: false,
        }
    }
}

/// What a run did, and what it found.
#[derive(Debug)]
pub struct Report {
    /// Which implementation.
    pub kind: BrokerKind,
    /// How long the clients ran.
    pub lasted: Duration,
    /// How often each thing was done to the cluster.
    pub done: BTreeMap<String, u32>,
    /// Longest time from the end of a fault to the cluster's recovery.
    pub slowest_recovery: Duration,
    /// Batches compared between replicas.
    pub batches_compared: usize,
    /// What the clients' histories say.
    pub verdict: Verdict,
}

impl Report {
    /// What must not be; none in a good run.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.verdict.findings.iter()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done: Vec<String> = self
            .done
            .iter()
            .map(|(what, times)| format!("{times} {what}"))
            .collect();
        writeln!(
            f,
            "{} for {:.0} s; faults: {}; recovered within {:.1} s",
            self.kind,
            self.lasted.as_secs_f64(),
            if done.is_empty() {
                "none".to_owned()
            } else {
                done.join(", ")
            },
            self.slowest_recovery.as_secs_f64(),
        )?;
        writeln!(f, "{}", self.verdict)?;
        write!(
            f,
            "{} batches compared between replicas",
            self.batches_compared
        )?;
        for finding in self.findings().take(50) {
            write!(f, "\nFOUND {finding:?}")?;
        }
        Ok(())
    }
}

/// Runs it on a cluster of its own. A finding is no error: it is in the report.
///
/// # Errors
/// When the cluster does not start or recover, the clients do not get on, or replicas differ at the end; the text holds
/// the ends of the nodes' logs.
pub fn run(kind: BrokerKind, settings: &Settings) -> Result<Report> {
    let mut options = ClusterOptions::new()
        .set("auto.create.topics.enable", "false")
        .set("unclean.leader.election.enable", "false");
    if let Program::Faults { kinds, .. } = &settings.program {
        options = options.with_network();
        if kinds.contains(&Kind::DiskFull) {
            options = options.with_small_disks(DISK_MIB);
        }
        if kinds.contains(&Kind::Clock) {
            options = options.with_clocks();
        }
    }
    let mut cluster = Cluster::start(kind, &options)?;
    run_on(&mut cluster, settings).with_context(|| cluster.ends_of_logs(40))
}

fn run_on(cluster: &mut Cluster, settings: &Settings) -> Result<Report> {
    let partitions = settings.partitions;
    let orders: [&[i32]; 3] = [&[1, 2, 3], &[2, 3, 1], &[3, 1, 2]];
    let assignment: Vec<&[i32]> = orders
        .into_iter()
        .cycle()
        .take(usize::try_from(partitions)?)
        .collect();
    cluster.create_topic(TOPIC, &assignment, &[("min.insync.replicas", "2")]);
    let folder = tempfile::tempdir()?;
    let mut workload = Workload::start(
        &cluster.bootstrap(),
        TOPIC,
        partitions,
        &settings.clients,
        folder.path(),
    )?;
    let begun = Instant::now();
    let mut run = Run {
        cluster,
        workload: &workload,
        settings,
        done: BTreeMap::new(),
        slowest_recovery: Duration::ZERO,
    };
    run.wait_for_progress()?;
    match &settings.program {
        Program::Faults {
            seed,
            kinds,
            lasts,
            longest,
        } => run.faults(Plan::new(*seed, kinds, &[1, 2, 3], *longest), *lasts)?,
        Program::RollingRestart { rounds } => run.rolling_restart(*rounds)?,
    }
    let Run {
        done,
        slowest_recovery,
        ..
    } = run;
    workload.end_sending()?;
    let ends = ends(cluster, TOPIC, partitions)?;
    workload.end_reading(&ends, Cluster::PATIENCE)?;
    let lasted = begun.elapsed();
    let batches_compared = compare(cluster, TOPIC, &ends)?;
    let verdict = check(&workload.history()?);
    Ok(Report {
        kind: cluster.kind(),
        lasted,
        done,
        slowest_recovery,
        batches_compared,
        verdict,
    })
}

struct Run<'a> {
    cluster: &'a mut Cluster,
    workload: &'a Workload,
    settings: &'a Settings,
    done: BTreeMap<String, u32>,
    slowest_recovery: Duration,
}

impl Run<'_> {
    /// A healthy cluster serves its clients: more than one second's worth of values goes through.
    fn wait_for_progress(&self) -> Result<()> {
        let clients = &self.settings.clients;
        let count = clients.producers * clients.per_second;
        self.workload
            .wait_for_progress(usize::try_from(count)?, Cluster::PATIENCE)
    }

    fn note(&mut self, what: &str, details: &dyn fmt::Display) {
        *self.done.entry(what.to_owned()).or_default() += 1;
        if self.settings.verbose {
            eprintln!("{details}");
        }
    }

    fn recover(&mut self) -> Result<()> {
        let ended = Instant::now();
        wait_until_in_sync(self.cluster, TOPIC, self.settings.partitions)?;
        self.slowest_recovery = self.slowest_recovery.max(ended.elapsed());
        self.wait_for_progress()
    }

    fn faults(&mut self, plan: Plan, lasts: Duration) -> Result<()> {
        let begun = Instant::now();
        for fault in plan {
            if begun.elapsed() >= lasts {
                break;
            }
            self.note(fault.kind.name(), &fault);
            let ongoing = nemesis::begin(self.cluster, fault)?;
            std::thread::sleep(fault.lasts);
            nemesis::end(self.cluster, ongoing)?;
            self.recover().with_context(|| format!("after {fault}"))?;
        }
        Ok(())
    }

    fn rolling_restart(&mut self, rounds: u32) -> Result<()> {
        for round in 1..=rounds {
            for node in self.cluster.shape().nodes() {
                self.note("restart", &format_args!("round {round}: restart {node}"));
                let status = self.cluster.stop(node)?;
                // A JVM ended by SIGTERM exits with 143 after its shutdown hooks have run.
                ensure!(
                    matches!(status.code(), Some(0 | 143)),
                    "node {node}: {status}"
                );
                self.wait_until_led()?;
                self.cluster.start_again(node)?;
                self.recover()
                    .with_context(|| format!("round {round}, node {node}"))?;
            }
        }
        Ok(())
    }

    /// Waits until every partition is led by a broker that runs.
    fn wait_until_led(&mut self) -> Result<()> {
        let stopped = Instant::now();
        let awake = self.cluster.awake_brokers();
        let led = |partition: i32| {
            awake.iter().all(|&id| {
                let view = self.cluster.partition(id, TOPIC, partition);
                view.is_ok_and(|view| awake.contains(&view.leader))
            })
        };
        let all_led = || (0..self.settings.partitions).all(led).then_some(());
        crate::process::poll(Cluster::PATIENCE, all_led)
            .context("a partition is without a leader")?;
        self.slowest_recovery = self.slowest_recovery.max(stopped.elapsed());
        Ok(())
    }
}
