//! `highwater cluster`: several brokers on this machine as child processes, the shortest way to see replication.

pub(super) mod children;
pub(super) mod plan;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use highwater_storage::log_manager::is_in_use;
use tokio::sync::mpsc;

use self::children::{Node, NodeEvent, print_line};
use self::plan::{ClusterPlan, NodePlan};
use super::signals::StopSignals;
use super::{FAILURE, failed, print, runtime};
use crate::log_dirs;

/// How long the nodes may take to stop; longer than a controlled shutdown with its retries.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// How the cluster is started.
#[derive(Debug, Clone, Args)]
pub(super) struct ClusterArguments {
    /// How many brokers; the first 1, 3 or 5 are controllers too
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=99))]
    brokers: u16,

    /// Folder for the data folders broker-1, broker-2 ... and their properties files
    #[arg(long, value_name = "DIR", default_value = "./highwater-cluster")]
    data_dir: PathBuf,

    /// Client port of the first broker; each broker takes two ports, the second for controllers
    #[arg(long, value_name = "PORT", default_value_t = 9092, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,

    /// Set a configuration key of every broker
    #[arg(long = "override", value_name = "KEY=VALUE")]
    overrides: Vec<String>,

    /// What the brokers log, as info or highwater=debug,warn
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

/// Starts the cluster, serves until a signal ends it, and gives the exit code.
pub(super) fn cluster(arguments: &ClusterArguments) -> ExitCode {
    let done = runtime::build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(arguments)));
    match done {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

async fn run(arguments: &ClusterArguments) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let mut signals = StopSignals::listen()?;
    let plan = ClusterPlan {
        brokers: arguments.brokers,
        first_port: arguments.port,
        data_dir: std::path::absolute(&arguments.data_dir)?,
        overrides: arguments.overrides.clone(),
    };
    let nodes = plan.nodes().map_err(anyhow::Error::msg)?;
    let cluster_id = cluster_id(&nodes)?;
    // Before anything is written: the files say where the nodes that run now are.
    for node in &nodes {
        if is_in_use(&node.log_dir)? {
            bail!("{} is in use by another broker", node.log_dir.display());
        }
    }
    check_ports(plan.ports())?;
    std::fs::create_dir_all(&plan.data_dir)
        .with_context(|| format!("cannot make {}", plan.data_dir.display()))?;
    let (sender, mut events) = mpsc::channel(64);
    let mut running = BTreeMap::new();
    for node in &nodes {
        write_properties(&node.properties_file, &node.properties)?;
        let log: Vec<&str> = match &arguments.log {
            Some(filter) => vec!["--log", filter],
            None => Vec::new(),
        };
        let name = node.name.clone();
        let print = move |line: &str| print_line(&name, line);
        let started = Node::start(node, &cluster_id, &log, print, &sender)?;
        running.insert(node.id, started);
    }
    let mut waiting = nodes.len();
    let code = loop {
        tokio::select! {
            received = signals.next() => {
                print_line("cluster", &format!("{}: stopping", received.name));
                break ExitCode::SUCCESS;
            }
            Some(event) = events.recv() => match event {
                NodeEvent::Ready { id, line } => {
                    print_line(&name(id), &line);
                    waiting = waiting.saturating_sub(1);
                    if waiting == 0 {
                        tell_ready(&plan, &nodes, &running, began.elapsed());
                    }
                }
                NodeEvent::Exited { id, status } => {
                    running.remove(&id);
                    tell_exit(&nodes, id, status);
                    if running.is_empty() {
                        print_line("cluster", "no broker is left");
                        break ExitCode::from(FAILURE);
                    }
                }
            },
        }
    };
    stop(running, &mut events, &mut signals).await;
    Ok(code)
}

/// Stops all nodes and waits for them; a second signal or too long a wait ends this process, and with it their stdin.
async fn stop(
    mut running: BTreeMap<u16, Node>,
    events: &mut mpsc::Receiver<NodeEvent>,
    signals: &mut StopSignals,
) {
    let stopping_since = tokio::time::Instant::now();
    for node in running.values_mut() {
        node.stop();
    }
    let all_ended = async {
        while !running.is_empty() {
            match events.recv().await {
                Some(NodeEvent::Exited { id, .. }) => drop(running.remove(&id)),
                Some(NodeEvent::Ready { .. }) => {}
                None => return,
            }
        }
    };
    tokio::select! {
        stopped = tokio::time::timeout(STOP_PATIENCE, all_ended) => match stopped {
            Ok(()) => print_line("cluster", "stopped"),
            Err(_) => print_line("cluster", "some brokers are still stopping; not waiting for them"),
        },
        _ = signals.next_on_purpose(stopping_since) => print_line("cluster", "not waiting for the brokers"),
    }
}

fn name(id: u16) -> String {
    format!("broker-{id}")
}

/// The id that the data folders have already, or a new one.
fn cluster_id(nodes: &[NodePlan]) -> anyhow::Result<String> {
    for node in nodes {
        if let Some(id) = log_dirs::read_cluster_id(&node.log_dir)? {
            return Ok(id);
        }
    }
    Ok(log_dirs::new_cluster_id())
}

/// Whether nobody listens on these ports. Else brokers that have theirs would wait for those that do not start.
fn check_ports(ports: impl Iterator<Item = u16>) -> anyhow::Result<()> {
    for port in ports {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .with_context(|| format!("port {port} cannot be used (choose others with --port)"))?;
    }
    Ok(())
}

pub(super) fn write_properties(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Tells that all brokers are ready, and what can be done now.
fn tell_ready(
    plan: &ClusterPlan,
    nodes: &[NodePlan],
    running: &BTreeMap<u16, Node>,
    took: Duration,
) {
    let bootstrap = plan.bootstrap_servers();
    let mut text = format!(
        "\nA cluster of {} brokers is ready ({} ms), data in {}\n",
        nodes.len(),
        took.as_millis(),
        plan.data_dir.display()
    );
    for node in nodes {
        let pid = running.get(&node.id).map_or(0, |node| node.pid);
        text += &format!("  {}  {}  pid {pid}\n", node.name, node.address);
    }
    text += &format!(
        "\nTry it:\n  \
         kafka-topics.sh --bootstrap-server {bootstrap} --create --topic orders --partitions 3 --replication-factor {}\n  \
         echo hello | kcat -b {bootstrap} -t orders -P -X acks=all && kcat -b {bootstrap} -t orders -C -e\n  \
         kill -9 <pid> of one, then kafka-topics.sh --bootstrap-server {bootstrap} --describe --topic orders\n\
         Ctrl-C stops all.\n\n",
        nodes.len().min(3)
    );
    // A reader that has gone away does not matter.
    print(&text);
}

/// Tells that a broker has ended, and how it is started again.
fn tell_exit(nodes: &[NodePlan], id: u16, status: std::io::Result<ExitStatus>) {
    let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    print_line(&name(id), &format!("ended: {how}"));
    if let Some(node) = nodes.iter().find(|node| node.id == id) {
        let file = node.properties_file.display();
        print_line(
            &name(id),
            &format!("start it again with: highwater start {file}"),
        );
    }
}
