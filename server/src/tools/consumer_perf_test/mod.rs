//! `consumer-perf-test`: how fast records are consumed, as `kafka-consumer-perf-test.sh` measures it.

mod arguments;
mod date;
mod report;

use std::io::Write;
use std::time::Duration;

use tokio::time::Instant;

use super::ToolError;
use super::consumer::{Consumer, ConsumerConfig};
use crate::broker::now_ms;
pub(crate) use arguments::ConsumerPerfTestArguments;
use report::{Progress, Totals};

/// Runs the tool.
pub(super) async fn run(
    arguments: ConsumerPerfTestArguments,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let plan = arguments.plan()?;
    for text in arguments.deprecations() {
        writeln!(out, "{text}")?;
    }
    let config = ConsumerConfig::of(&plan.properties)?;
    if !arguments.hide_header {
        writeln!(out, "{}", report::header(arguments.show_detailed_stats))?;
        out.flush()?;
    }
    let servers = arguments.bootstrap_server.as_str();
    let mut consumer = Consumer::connect(
        servers,
        &plan.properties,
        "perf-consumer-client",
        config,
        plan.subscription,
    )?;
    let timeout = Duration::from_millis(arguments.timeout);
    let interval = Duration::from_millis(arguments.reporting_interval);
    let (start_ms, began) = (now_ms(), Instant::now());
    let mut totals = Totals::default();
    let mut reported = (began, Totals::default(), Duration::ZERO);
    while totals.records < plan.records {
        let Some(received) = consumer.next(Some(Instant::now() + timeout)).await? else {
            break;
        };
        let record = &received.fetched.record;
        let length = |bytes: &Option<bytes::Bytes>| bytes.as_ref().map_or(0, bytes::Bytes::len);
        totals.records += 1;
        totals.bytes += (length(&record.key) + length(&record.value)) as u64;
        let now = Instant::now();
        if now.duration_since(reported.0) >= interval {
            let rebalance = consumer.rebalance_time();
            if arguments.show_detailed_stats {
                let progress = Progress {
                    end: plan.date_format.format(now_ms()),
                    elapsed: now.duration_since(reported.0),
                    rebalance: rebalance.saturating_sub(reported.2),
                    before: reported.1,
                    now: totals,
                };
                writeln!(out, "{progress}")?;
                out.flush()?;
            }
            reported = (now, totals, rebalance);
        }
    }
    let (elapsed, end_ms) = (began.elapsed(), now_ms());
    if totals.records < plan.records {
        writeln!(
            out,
            "WARNING: Exiting before consuming the expected number of records: timeout ({} ms) exceeded. You can use the \
             --timeout option to increase the timeout.",
            arguments.timeout
        )?;
    }
    let rebalance = consumer.rebalance_time();
    consumer.close().await?;
    if !arguments.show_detailed_stats {
        let (start, end) = (
            plan.date_format.format(start_ms),
            plan.date_format.format(end_ms),
        );
        writeln!(
            out,
            "{start}, {end}, {}",
            report::total(totals, elapsed, rebalance)
        )?;
    }
    Ok(())
}
