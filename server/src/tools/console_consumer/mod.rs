//! `console-consumer`: records become lines of standard output.

mod arguments;
mod deserializer;
mod formatter;

use std::io::Write;

use tokio::time::Instant;

use super::ToolError;
use super::consumer::{Consumer, ConsumerConfig, Received};
use super::signals::Signals;
pub(crate) use arguments::ConsoleConsumerArguments;

/// How reading ends.
enum End {
    /// So many records as were asked for, no record in time, or an error that was told.
    Done,
    /// Nobody reads the output.
    OutputGone,
    Signal(u8),
    Failed(ToolError),
}

/// Runs the tool.
pub(super) async fn run(
    arguments: ConsoleConsumerArguments,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let plan = arguments.plan()?;
    for text in arguments.deprecations() {
        writeln!(out, "{text}")?;
    }
    let config = ConsumerConfig::of(&plan.properties)?;
    let servers = arguments.bootstrap_server.as_str();
    let subscription = plan.subscription.clone();
    let mut consumer = Consumer::connect(
        servers,
        &plan.properties,
        "console-consumer",
        config,
        subscription,
    )?;
    let mut count = 0;
    let end = consume(&mut consumer, &arguments, &plan, &mut count, out).await;
    out.flush().or_else(|error| match end {
        End::OutputGone => Ok(()),
        _ => Err(error),
    })?;
    let closed = consumer.close().await;
    ToolError::warn(&format!("Processed a total of {count} messages"));
    match end {
        End::Done => Ok(closed?),
        End::OutputGone => {
            ToolError::warn("Unable to write to standard out, closing consumer.");
            Ok(closed?)
        }
        End::Signal(code) => Err(ToolError::Exit(code)),
        End::Failed(error) => Err(error),
    }
}

async fn consume(
    consumer: &mut Consumer,
    arguments: &ConsoleConsumerArguments,
    plan: &arguments::Plan,
    count: &mut u64,
    out: &mut dyn Write,
) -> End {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return End::Failed(error),
    };
    while arguments.wants_more(*count) {
        let deadline = plan.timeout.map(|timeout| Instant::now() + timeout);
        let received = tokio::select! {
            biased;
            code = signals.next() => return End::Signal(code),
            received = next(consumer, deadline, out) => received,
        };
        let received = match received {
            Ok(Some(received)) => received,
            Ok(None) => {
                ToolError::warn(
                    "Error processing message, terminating consumer process: no message in time",
                );
                return End::Done;
            }
            Err(End::Failed(error)) => {
                // Told, and no failure, as in Kafka.
                ToolError::warn(&format!(
                    "Error processing message, terminating consumer process: {error}"
                ));
                return End::Done;
            }
            Err(end) => return end,
        };
        *count += 1;
        match plan.formatter.write(&received, out) {
            Ok(()) => {}
            Err(formatter::FormatError::Output) => return End::OutputGone,
            Err(formatter::FormatError::Record(reason)) if arguments.skip_message_on_error => {
                ToolError::warn(&format!(
                    "Error processing message, skipping this message: {reason}"
                ));
            }
            Err(formatter::FormatError::Record(reason)) => {
                return End::Failed(ToolError::failed(reason));
            }
        }
    }
    End::Done
}

/// The next record; what was printed is flushed before there is something to wait for.
async fn next(
    consumer: &mut Consumer,
    deadline: Option<Instant>,
    out: &mut dyn Write,
) -> Result<Option<Received>, End> {
    if !consumer.has_received() && out.flush().is_err() {
        return Err(End::OutputGone);
    }
    let received = consumer.next(deadline).await;
    received.map_err(|error| End::Failed(error.into()))
}
