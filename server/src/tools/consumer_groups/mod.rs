//! `consumer-groups`: consumer groups, their members and offsets.

mod arguments;
mod csv;
mod groups;
mod offsets;
mod regex;
mod reset;
mod tables;
mod time;

use std::io::Write;

use super::client::{Cluster, KafkaError};
use super::{ToolError, consumer_groups::arguments::Action};
pub(crate) use arguments::ConsumerGroupsArguments;

/// Runs the tool.
pub(super) async fn run(
    arguments: ConsumerGroupsArguments,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let action = arguments.checked()?;
    if let Action::ValidateRegex(text) = action {
        writeln!(out, "{}", regex::verdict(text))?;
        return Ok(());
    }
    let cluster = arguments.cluster()?;
    let result = match action {
        Action::List => list(&arguments, &cluster, out).await,
        Action::Describe => describe(&arguments, &cluster, out).await,
        Action::Delete => delete(&arguments, &cluster, out).await,
        Action::ResetOffsets => reset::run(&arguments, &cluster, out).await,
        Action::DeleteOffsets => offsets::delete(&arguments, &cluster, out).await,
        Action::ValidateRegex(_) => Ok(()),
    };
    match result {
        Ok(()) => Ok(()),
        Err(Failure::Tool(error)) => Err(error),
        // Kafka's tool tells it on stdout and ends as if nothing was.
        Err(Failure::Kafka(error)) => print_error(
            out,
            &format!("Executing consumer group command failed due to {error}"),
        ),
    }
}

/// How an action fails: as every tool, or in the cluster.
enum Failure {
    Tool(ToolError),
    /// The text behind "failed due to".
    Kafka(String),
}

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Self {
        Failure::Kafka(error.in_full())
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Failure::Tool(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Tool(error.into())
    }
}

fn print_error(out: &mut dyn Write, text: &str) -> Result<(), ToolError> {
    writeln!(out, "\nError: {text}")?;
    Ok(())
}

async fn list(
    arguments: &ConsumerGroupsArguments,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (states, types) = (arguments.states()?, arguments.types()?);
    let listed = groups::list(cluster, &states, &types).await?;
    let (with_type, with_state) = (arguments.type_.is_some(), arguments.state.is_some());
    if with_type || with_state {
        write!(out, "{}", tables::listing(&listed, with_type, with_state))?;
    } else {
        for group in &listed {
            writeln!(out, "{}", group.id)?;
        }
    }
    Ok(())
}

/// The groups that are named, or all.
async fn wanted(
    arguments: &ConsumerGroupsArguments,
    cluster: &Cluster,
) -> Result<Vec<String>, KafkaError> {
    if !arguments.all_groups {
        let mut named = arguments.group.clone();
        named.sort();
        named.dedup();
        return Ok(named);
    }
    let listed = groups::list(cluster, &[], &[]).await?;
    Ok(listed.into_iter().map(|group| group.id).collect())
}

async fn describe(
    arguments: &ConsumerGroupsArguments,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut described = Vec::new();
    for id in wanted(arguments, cluster).await? {
        described.push(groups::describe(cluster, &id).await?);
    }
    for group in &described {
        if arguments.members {
            let is_printed = announce(group, group.members.len(), out)?;
            write!(
                out,
                "{}",
                tables::members(group, is_printed, arguments.verbose)
            )?;
        } else if arguments.state.is_some() {
            if announce(group, 1, out)? {
                write!(out, "{}", tables::state(group, arguments.verbose))?;
            }
        } else {
            let rows = offsets::rows(cluster, group).await?;
            if announce(group, rows.len(), out)? {
                write!(out, "{}", tables::offsets(&rows, arguments.verbose))?;
            }
        }
    }
    Ok(())
}

/// Says what is special about a group's state; whether there is something to print.
fn announce(
    group: &groups::Description,
    rows: usize,
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    let id = &group.id;
    match group.state.as_str() {
        "Dead" => {
            print_error(out, &format!("Consumer group '{id}' does not exist."))?;
            return Ok(false);
        }
        "Empty" => {
            out.flush()?;
            ToolError::warn(&format!("\nConsumer group '{id}' has no active members."));
        }
        "PreparingRebalance" | "CompletingRebalance" | "Assigning" | "Reconciling" => {
            out.flush()?;
            ToolError::warn(&format!("\nWarning: Consumer group '{id}' is rebalancing."));
        }
        _ => {}
    }
    Ok(rows > 0)
}

async fn delete(
    arguments: &ConsumerGroupsArguments,
    cluster: &Cluster,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut deleted = Vec::new();
    let mut failed = Vec::new();
    for id in wanted(arguments, cluster).await? {
        match groups::delete(cluster, &id).await {
            Ok(()) => deleted.push(format!("'{id}'")),
            Err(error) => failed.push((id, error)),
        }
    }
    let deleted_list = deleted.join(", ");
    if failed.is_empty() {
        writeln!(
            out,
            "Deletion of requested consumer groups ({deleted_list}) was successful."
        )?;
        return Ok(());
    }
    print_error(out, "Deletion of some consumer groups failed:")?;
    for (id, error) in failed {
        writeln!(
            out,
            "* Group '{id}' could not be deleted due to: {}",
            error.in_full()
        )?;
    }
    if !deleted.is_empty() {
        writeln!(
            out,
            "\nThese consumer groups were deleted successfully: {deleted_list}"
        )?;
    }
    Ok(())
}
