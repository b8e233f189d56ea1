//! What connections cost that do nothing.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use compat_tests::raw::Connection;
use kafka_protocol::messages::{ApiVersionsRequest, FetchRequest};
use kafka_protocol::protocol::StrBytes;

use crate::broker::Bench;
use crate::load::fetch_frame;
use crate::process::anonymous_bytes;
use crate::report::{Figure, figure};
use crate::workloads::{Settings, cpu_seconds, used};

const CONNECTIONS: usize = 2000;
const CONSUMERS: usize = 200;
const WATCHED: Duration = Duration::from_secs(10);

pub(crate) fn idle_connections(broker: &mut Bench, _: &Settings) -> Result<Vec<Figure>> {
    let pid = broker.pid()?;
    let request = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("bench"))
        .with_client_software_version(StrBytes::from_static_str("1"));
    // The first ones pay for what all share.
    let mut open = Vec::new();
    for _ in 0..50 {
        open.push(Connection::open(broker.address)?);
    }
    for connection in &mut open {
        connection.call(3, &request)?;
    }
    std::thread::sleep(Duration::from_secs(1));
    let memory_before = anonymous_bytes(pid)?;
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::open(broker.address)?;
        connection.call(3, &request)?;
        open.push(connection);
    }
    std::thread::sleep(Duration::from_secs(1));
    let memory_after = anonymous_bytes(pid)?;
    let before = used(pid)?;
    std::thread::sleep(WATCHED);
    let after = used(pid)?;
    let grown = memory_after as f64 - memory_before as f64;
    Ok(vec![
        figure(
            "memory a connection",
            "KiB",
            grown / CONNECTIONS as f64 / 1024.0,
        ),
        figure(
            "CPU",
            "% of a core",
            cpu_seconds(&before, &after) / WATCHED.as_secs_f64() * 100.0,
        ),
    ])
}

/// Consumers that ask again every 500 ms, as clients do by default.
pub(crate) fn idle_consumers(broker: &mut Bench, _: &Settings) -> Result<Vec<Figure>> {
    long_poll(broker, 500)
}

/// Consumers whose fetch waits for longer than the measurement takes.
pub(crate) fn parked_consumers(broker: &mut Bench, _: &Settings) -> Result<Vec<Figure>> {
    long_poll(broker, 25_000)
}

fn long_poll(broker: &mut Bench, max_wait_ms: i32) -> Result<Vec<Figure>> {
    let topics = broker.create_topics(1, 10, &[])?;
    let pid = broker.pid()?;
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (address, topic) = (broker.address, &topics[0]);
    std::thread::scope(|scope| {
        let mut polling = Vec::new();
        for i in 0..CONSUMERS {
            let frame = fetch_frame(topic, (i % 10) as i32, 1 << 20, max_wait_ms)?;
            let stop = &stop;
            let body = move || -> Result<()> {
                let mut connection = Connection::open(address)?;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    connection.write(&frame)?;
                    let reply = connection.read_frame()?.context("closed")?;
                    let reply = reply.decode::<FetchRequest>(12)?;
                    ensure!(reply.error_code == 0, "fetch: {reply:?}");
                }
                Ok(())
            };
            let thread = std::thread::Builder::new().stack_size(128 << 10);
            polling.push(thread.spawn_scoped(scope, body)?);
        }
        std::thread::sleep(Duration::from_secs(2));
        let before = used(pid)?;
        std::thread::sleep(WATCHED);
        let after = used(pid)?;
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for thread in polling {
            thread
                .join()
                .map_err(|_| anyhow::anyhow!("a consumer panicked"))??;
        }
        let share = cpu_seconds(&before, &after) / WATCHED.as_secs_f64();
        Ok(vec![figure("CPU", "% of a core", share * 100.0)])
    })
}
