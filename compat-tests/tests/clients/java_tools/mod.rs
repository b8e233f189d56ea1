//! Apache Kafka's own command-line tools: what they print, on both brokers.

mod configs;
mod console;
mod consumer_groups;
mod dump_log;
mod load;
mod queries;
mod topics;

use compat_tests::broker::Broker;
use compat_tests::java_tools::{blank, rows};

/// The first line of what a failing tool printed to either output that names `wanted`.
#[track_caller]
fn refused(broker: &Broker, tool: &str, args: &[&str], wanted: &str) {
    let run = crate::support::try_tool(broker, tool, args, b"");
    assert_ne!(
        run.status,
        0,
        "{tool} {args:?} on {} was not refused: {}",
        broker.kind(),
        run.out
    );
    let all = format!("{}{}", run.out, run.err);
    assert!(
        all.contains(wanted),
        "{tool} {args:?} on {} said:\n{all}\nand not: {wanted}",
        broker.kind()
    );
}
