//! What is measured. Each workload drives one broker once; rounds and pairing are the caller's.

use std::time::Duration;

use anyhow::{Context, Result};

use compat_tests::broker::BrokerKind;

use crate::broker::Bench;
use crate::load::{
    FetchLoad, Length, ProduceLoad, Samples, fetch_threads, fill, produce_threads, run_window,
};
use crate::process::{anonymous_bytes, cpu_time};
use crate::report::{Figure, figure};

pub(crate) const MIB: f64 = (1 << 20) as f64;
const GIB: f64 = (1 << 30) as f64;

/// Which broker a workload wants to be given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setup {
    /// One that has run the earlier workloads too, and is warm.
    Shared,
    /// A new process on an empty directory.
    Fresh,
}

/// One line of the plan.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) setup: Setup,
    /// Rounds when the command line names none.
    pub(crate) rounds: usize,
    pub(crate) run: fn(&mut Bench, &Settings) -> Result<Vec<Figure>>,
}

/// From the command line.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) measured: Duration,
    /// The window ends early when this many bytes have passed, so that disks stay out of it.
    pub(crate) max_bytes: u64,
}

/// Everything, in the order in which it runs.
pub(crate) const ALL: &[Workload] = &[
    Workload {
        name: "ready-empty",
        setup: Setup::Fresh,
        rounds: 3,
        run: ready_empty,
    },
    Workload {
        name: "produce-64k",
        setup: Setup::Shared,
        rounds: 5,
        run: produce_64k,
    },
    Workload {
        name: "produce-1k",
        setup: Setup::Shared,
        rounds: 5,
        run: produce_1k,
    },
    Workload {
        name: "produce-1k-one",
        setup: Setup::Shared,
        rounds: 5,
        run: produce_1k_one,
    },
    Workload {
        name: "fetch-fresh",
        setup: Setup::Shared,
        rounds: 5,
        run: fetch_fresh,
    },
    Workload {
        name: "fetch-old",
        setup: Setup::Fresh,
        rounds: 2,
        run: crate::restarts::fetch_old,
    },
    Workload {
        name: "idle-connections",
        setup: Setup::Fresh,
        rounds: 1,
        run: crate::idle::idle_connections,
    },
    Workload {
        name: "idle-consumers",
        setup: Setup::Fresh,
        rounds: 1,
        run: crate::idle::idle_consumers,
    },
    Workload {
        name: "parked-consumers",
        setup: Setup::Fresh,
        rounds: 1,
        run: crate::idle::parked_consumers,
    },
    Workload {
        name: "partitions-1000",
        setup: Setup::Fresh,
        rounds: 2,
        run: crate::restarts::partitions_1000,
    },
    Workload {
        name: "partitions-10000",
        setup: Setup::Fresh,
        rounds: 1,
        run: crate::restarts::partitions_10000,
    },
    Workload {
        name: "memory-steady",
        setup: Setup::Fresh,
        rounds: 1,
        run: memory_steady,
    },
    Workload {
        name: "ready-after-kill",
        setup: Setup::Fresh,
        rounds: 2,
        run: crate::restarts::ready_after_kill,
    },
];

/// CPU and memory of a broker at one moment.
pub(crate) struct Used {
    cpu: Duration,
    pub(crate) anonymous_bytes: u64,
}

pub(crate) fn used(pid: u32) -> Result<Used> {
    Ok(Used {
        cpu: cpu_time(pid)?,
        anonymous_bytes: anonymous_bytes(pid)?,
    })
}

/// The sum over several processes.
pub(crate) fn used_by_all(pids: &[u32]) -> Result<Used> {
    let mut all = Used {
        cpu: Duration::ZERO,
        anonymous_bytes: 0,
    };
    for pid in pids {
        let one = used(*pid)?;
        all.cpu += one.cpu;
        all.anonymous_bytes += one.anonymous_bytes;
    }
    Ok(all)
}

/// CPU seconds spent between two moments.
pub(crate) fn cpu_seconds(before: &Used, after: &Used) -> f64 {
    after.cpu.saturating_sub(before.cpu).as_secs_f64()
}

fn ready_empty(broker: &mut Bench, _: &Settings) -> Result<Vec<Figure>> {
    // The time to ready was taken when this broker was started; see the caller.
    std::thread::sleep(Duration::from_millis(500));
    let before = used(broker.pid()?)?;
    std::thread::sleep(Duration::from_secs(3));
    let after = used(broker.pid()?)?;
    Ok(vec![
        figure("idle memory", "MiB", after.anonymous_bytes as f64 / MIB),
        figure(
            "idle CPU",
            "% of a core",
            cpu_seconds(&before, &after) / 3.0 * 100.0,
        ),
    ])
}

fn produce_64k(broker: &mut Bench, settings: &Settings) -> Result<Vec<Figure>> {
    produce(broker, settings, 64 << 10, 4, 8)
}

fn produce_1k(broker: &mut Bench, settings: &Settings) -> Result<Vec<Figure>> {
    produce(broker, settings, 1 << 10, 4, 8)
}

fn produce_1k_one(broker: &mut Bench, settings: &Settings) -> Result<Vec<Figure>> {
    produce(broker, settings, 1 << 10, 1, 1)
}

fn produce(
    broker: &mut Bench,
    settings: &Settings,
    batch_bytes: usize,
    connections: usize,
    in_flight: usize,
) -> Result<Vec<Figure>> {
    let topics = broker.create_topics(1, connections as i32, &[])?;
    let load = ProduceLoad {
        address: broker.address,
        topic: &topics[0],
        batch_bytes,
        connections,
        in_flight,
        pause: None,
    };
    let pid = broker.pid()?;
    let (samples, elapsed, before, after) =
        run_window(settings.length(), produce_threads(load)?, || used(pid))?;
    broker.delete_topics(&topics)?;
    let requests_per_second = samples.requests as f64 / elapsed.as_secs_f64();
    let mut figures = vec![figure("requests", "1/s", requests_per_second)];
    figures.extend(load_figures(samples, elapsed, &before, &after));
    Ok(figures)
}

/// Figures that every load has.
pub(crate) fn load_figures(
    mut samples: Samples,
    elapsed: Duration,
    before: &Used,
    after: &Used,
) -> Vec<Figure> {
    let bytes = samples.bytes as f64;
    vec![
        figure("throughput", "MB/s", bytes / 1e6 / elapsed.as_secs_f64()),
        figure("p50", "µs", samples.percentile_us(0.5)),
        figure("p99", "µs", samples.percentile_us(0.99)),
        figure("p999", "µs", samples.percentile_us(0.999)),
        figure(
            "broker CPU",
            "s per GiB",
            cpu_seconds(before, after) / (bytes / GIB),
        ),
        figure("memory", "MiB", after.anonymous_bytes as f64 / MIB),
    ]
}

fn fetch_fresh(broker: &mut Bench, settings: &Settings) -> Result<Vec<Figure>> {
    let topics = broker.create_topics(1, 2, &[])?;
    let topic = &topics[0];
    fill(broker.address, topic, 2, 64 << 10, 512 << 20)?;
    let load = FetchLoad {
        address: broker.address,
        topic,
        connections: 2,
        max_bytes: 1 << 20,
        batch_bytes: 64 << 10,
        once: false,
    };
    let pid = broker.pid()?;
    let length = Length {
        max_bytes: u64::MAX,
        ..settings.length()
    };
    let (samples, elapsed, before, after) = run_window(length, fetch_threads(load)?, || used(pid))?;
    broker.delete_topics(&topics)?;
    Ok(load_figures(samples, elapsed, &before, &after))
}

fn memory_steady(broker: &mut Bench, _: &Settings) -> Result<Vec<Figure>> {
    let pid = broker.pid()?;
    let mut seen = Vec::new();
    for _ in 0..10 {
        let topics = broker.create_topics(4, 4, &[])?;
        for topic in &topics {
            fill(broker.address, topic, 4, 64 << 10, 128 << 20)?;
            fill(broker.address, topic, 4, 1 << 10, 8 << 20)?;
        }
        broker.delete_topics(&topics)?;
        seen.push(anonymous_bytes(pid)? as f64 / MIB);
    }
    let first = *seen.first().context("no rounds")?;
    let last = *seen.last().context("no rounds")?;
    if broker.kind() == BrokerKind::Highwater {
        eprintln!("  anonymous MiB after each round: {seen:.1?}");
    }
    Ok(vec![
        figure("memory after round 1", "MiB", first),
        figure("memory after round 10", "MiB", last),
        figure(
            "most of all rounds",
            "MiB",
            seen.iter().copied().fold(0.0, f64::max),
        ),
    ])
}

impl Settings {
    /// The window of a load.
    pub(crate) fn length(&self) -> Length {
        Length {
            warm_up: Duration::from_millis(500),
            measured: self.measured,
            max_bytes: self.max_bytes,
        }
    }
}
