//! `producer-perf-test`: how fast records are produced, as `kafka-producer-perf-test.sh` measures it.

mod arguments;
mod payload;
mod stats;

use std::io::Write;
use std::time::Duration;

use tokio::time::Instant;

use super::ToolError;
use super::client::Cluster;
use super::producer::{Producer, ProducerConfig, Record};
use crate::broker::now_ms;
pub(crate) use arguments::ProducerPerfTestArguments;
use payload::{Keys, Payloads};
use stats::Stats;

/// Runs the tool.
pub(super) async fn run(
    arguments: ProducerPerfTestArguments,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let plan = arguments.plan()?;
    for text in arguments.deprecations() {
        writeln!(out, "{text}")?;
    }
    let mut payloads = Payloads::new(&arguments, out)?;
    let mut keys = Keys::new(plan.keys, arguments.random_seed);
    let config = ProducerConfig::of(&plan.properties)?;
    let cluster = Cluster::new(&plan.servers, &plan.properties, "perf-producer-client")?;
    let mut producer = Producer::new(cluster, &arguments.topic, config).await?;
    let warmup = arguments.warmup_records;
    if warmup > 0 {
        writeln!(
            out,
            "Warmup first {warmup} records. Steady state results will print after the complete test summary."
        )?;
    }
    let interval = Duration::from_millis(arguments.reporting_interval);
    let began = Instant::now();
    let mut stats = Stats::new(arguments.num_records, interval, false, began);
    let mut steady: Option<(Instant, Stats)> = None;
    for number in 0..arguments.num_records {
        let now = Instant::now();
        if warmup > 0 && number == warmup {
            let records = arguments.num_records - warmup;
            steady = Some((now, Stats::new(records, interval, true, now)));
            stats.suppress_printing();
        }
        let record = Record {
            key: keys.next(number),
            value: Some(payloads.next(number)),
            headers: Vec::new(),
            timestamp: now_ms(),
        };
        producer.send(record).await?;
        note(&mut producer, &mut stats, &mut steady, out)?;
        if let Some(rest) = pause(number + 1, began.elapsed(), arguments.throughput) {
            producer.work_until(Instant::now() + rest).await?;
            note(&mut producer, &mut stats, &mut steady, out)?;
        }
    }
    producer.flush().await?;
    note(&mut producer, &mut stats, &mut steady, out)?;
    let now = Instant::now();
    writeln!(out, "{}", stats.total(now))?;
    if let Some((_, steady)) = &mut steady {
        writeln!(out, "{}", steady.total(now))?;
    }
    Ok(())
}

/// How long to wait so that no more than so many records a second are sent.
fn pause(sent: u64, elapsed: Duration, throughput: f64) -> Option<Duration> {
    if throughput <= 0.0 {
        return None;
    }
    let due = Duration::try_from_secs_f64(sent as f64 / throughput).ok()?;
    // Short waits are saved up: a timer is not as fine as a record.
    due.checked_sub(elapsed)
        .filter(|rest| *rest >= Duration::from_millis(2))
}

fn note(
    producer: &mut Producer,
    stats: &mut Stats,
    steady: &mut Option<(Instant, Stats)>,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    for completion in producer.completions() {
        if let Some(error) = completion.error {
            ToolError::warn(&error.in_full());
            continue;
        }
        let record = completion.record;
        let latency = completion.at.saturating_duration_since(record.since);
        let bytes = u64::try_from(record.value_bytes).unwrap_or(0);
        let line = stats.record(latency, bytes, completion.at);
        if let Some(line) = line {
            writeln!(out, "{line}")?;
            out.flush()?;
        }
        if let Some((since, steady)) = steady
            && record.since >= *since
            && let Some(line) = steady.record(latency, bytes, completion.at)
        {
            writeln!(out, "{line}")?;
            out.flush()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_held_back_to_the_throughput() {
        let second = Duration::from_secs(1);
        assert_eq!(pause(100, second, -1.0), None);
        assert_eq!(pause(100, second, 100.0), None);
        assert_eq!(pause(150, second, 100.0), Some(second / 2));
        assert_eq!(pause(50, second, 100.0), None);
    }
}
