//! What takes a restart to see: many partitions, data that is not in the page cache, a crash.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::fs::Advice;

use crate::broker::Bench;
use crate::load::{
    FetchLoad, Length, ProduceLoad, fetch_threads, fill, produce_threads, run_window,
};
use crate::process::{anonymous_bytes, disk_read_bytes};
use crate::report::{Figure, figure};
use crate::workloads::{MIB, Settings};

pub(crate) fn partitions_1000(broker: &mut Bench, _: &Settings) -> Result<Vec<Figure>> {
    partitions(broker, 1)
}

pub(crate) fn partitions_10000(broker: &mut Bench, _: &Settings) -> Result<Vec<Figure>> {
    partitions(broker, 10)
}

fn partitions(broker: &mut Bench, topics: usize) -> Result<Vec<Figure>> {
    std::thread::sleep(Duration::from_secs(1));
    let memory_before = anonymous_bytes(broker.pid()?)? as f64;
    let began = Instant::now();
    let names = broker.create_topics(topics, 1000, &[])?;
    let created = began.elapsed();
    std::thread::sleep(Duration::from_secs(1));
    let memory_created = anonymous_bytes(broker.pid()?)? as f64;
    let stopped = broker.stop()?;
    let ready = broker.start_again(&names)?;
    std::thread::sleep(Duration::from_secs(1));
    let memory_restarted = anonymous_bytes(broker.pid()?)? as f64;
    Ok(vec![
        figure("create", "s", created.as_secs_f64()),
        figure("memory, all", "MiB", memory_created / MIB),
        figure(
            "memory a partition",
            "KiB",
            (memory_created - memory_before) / (topics as f64 * 1000.0) / 1024.0,
        ),
        figure("clean stop", "s", stopped.as_secs_f64()),
        figure(
            "ready after a clean stop",
            "ms",
            ready.as_secs_f64() * 1000.0,
        ),
        figure("memory after the restart", "MiB", memory_restarted / MIB),
    ])
}

/// 1 KB batches, one each millisecond, timed alone and again while two connections read old data.
pub(crate) fn fetch_old(broker: &mut Bench, _: &Settings) -> Result<Vec<Figure>> {
    let old = broker.create_topics(1, 2, &[])?;
    let live = broker.create_topics(1, 1, &[])?;
    fill(broker.address, &old[0], 2, 64 << 10, 2 << 30)?;
    // A broker that maps its files would keep the pages: they are dropped while it is down.
    broker.stop()?;
    drop_from_page_cache(broker.data_dir())?;
    broker.start_again(&[old[0].clone(), live[0].clone()])?;
    let pid = broker.pid()?;
    let produce = ProduceLoad {
        address: broker.address,
        topic: &live[0],
        batch_bytes: 1 << 10,
        connections: 1,
        in_flight: 1,
        pause: Some(Duration::from_millis(1)),
    };
    let window = |seconds| Length {
        warm_up: Duration::ZERO,
        measured: Duration::from_secs(seconds),
        max_bytes: u64::MAX,
    };
    // Warm up and measure alone.
    run_window(window(3), produce_threads(produce)?, || Ok(()))?;
    let (mut alone, ..) = run_window(window(3), produce_threads(produce)?, || Ok(()))?;

    let fetch = FetchLoad {
        address: broker.address,
        topic: &old[0],
        connections: 2,
        max_bytes: 1 << 20,
        batch_bytes: 64 << 10,
        once: true,
    };
    let fetching = std::sync::atomic::AtomicBool::new(true);
    let read_before = disk_read_bytes(pid)?;
    let (fetched, mut beside) = std::thread::scope(|scope| -> Result<_> {
        let fetching = &fetching;
        let reader = scope.spawn(move || {
            let result = run_window(window(60), fetch_threads(fetch)?, || Ok(()));
            fetching.store(false, std::sync::atomic::Ordering::Relaxed);
            result
        });
        let mut beside = Vec::new();
        while fetching.load(std::sync::atomic::Ordering::Relaxed) {
            let short = Length {
                measured: Duration::from_millis(200),
                ..window(0)
            };
            beside.push(run_window(short, produce_threads(produce)?, || Ok(()))?.0);
        }
        let fetched = reader
            .join()
            .map_err(|_| anyhow::anyhow!("the reader panicked"))??;
        let mut all = crate::load::Samples::default();
        for mut samples in beside {
            all.latencies_ns.append(&mut samples.latencies_ns);
        }
        Ok((fetched, all))
    })?;
    let from_disk = disk_read_bytes(pid)?.saturating_sub(read_before);
    let (mut samples, elapsed, (), ()) = fetched;
    Ok(vec![
        figure(
            "throughput",
            "MB/s",
            samples.bytes as f64 / 1e6 / elapsed.as_secs_f64(),
        ),
        figure(
            "read from disk",
            "share",
            from_disk as f64 / samples.bytes as f64,
        ),
        figure("fetch p99", "µs", samples.percentile_us(0.99)),
        figure("produce alone p50", "µs", alone.percentile_us(0.5)),
        figure("produce alone p99", "µs", alone.percentile_us(0.99)),
        figure("produce alone p999", "µs", alone.percentile_us(0.999)),
        figure("produce beside it p50", "µs", beside.percentile_us(0.5)),
        figure("produce beside it p99", "µs", beside.percentile_us(0.99)),
        figure("produce beside it p999", "µs", beside.percentile_us(0.999)),
    ])
}

fn drop_from_page_cache(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            drop_from_page_cache(&path)?;
        } else {
            let file = File::open(&path)?;
            rustix::fs::fdatasync(&file)?;
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}

/// Kills the broker with little and with much data on disk; most of it lies in rolled segments.
pub(crate) fn ready_after_kill(broker: &mut Bench, _: &Settings) -> Result<Vec<Figure>> {
    let config = [("segment.bytes", "67108864")];
    let few = broker.create_topics(1, 4, &config)?;
    fill(broker.address, &few[0], 4, 64 << 10, 512 << 20)?;
    let little = kill_and_start(broker, &few)?;
    let many = broker.create_topics(1, 4, &config)?;
    fill(broker.address, &many[0], 4, 64 << 10, 4 << 30)?;
    let much = kill_and_start(broker, &[few[0].clone(), many[0].clone()])?;
    Ok(vec![
        figure("ready, 0.5 GiB", "ms", little.as_secs_f64() * 1000.0),
        figure("ready, 4.5 GiB", "ms", much.as_secs_f64() * 1000.0),
    ])
}

fn kill_and_start(broker: &mut Bench, topics: &[String]) -> Result<Duration> {
    // Time for the recovery point to follow the rolled segments.
    std::thread::sleep(Duration::from_secs(2));
    broker.kill()?;
    broker.start_again(topics)
}
