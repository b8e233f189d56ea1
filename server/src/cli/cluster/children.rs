//! The nodes of a cluster as child processes: their output with a prefix, their end, and how they are stopped.

use std::io::Write as _;
use std::process::{ExitStatus, Stdio};

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use super::plan::NodePlan;

/// What the line that a node prints when it is ready contains.
const READY_MARK: &str = " is ready on ";

/// What happens to a node.
#[derive(Debug)]
pub(super) enum NodeEvent {
    /// It has printed that it is ready.
    Ready {
        /// Which one.
        id: u16,
        /// The line.
        line: String,
    },
    /// It has ended.
    Exited {
        /// Which one.
        id: u16,
        /// How; the error is that of waiting for it.
        status: std::io::Result<ExitStatus>,
    },
}

/// A running node. Closing its stdin stops it, so that none outlives this process, however that ends.
#[derive(Debug)]
pub(super) struct Node {
    /// Id of the process.
    pub(super) pid: u32,
    stdin: Option<ChildStdin>,
}

impl Node {
    /// Starts a node in a process group of its own (Ctrl-C on the terminal is for us alone) and tells `events` what
    /// becomes of it.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub(super) fn start(
        plan: &NodePlan,
        cluster_id: &str,
        log: Option<&str>,
        events: &mpsc::Sender<NodeEvent>,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find the program's own file")?;
        let mut command = Command::new(program);
        command
            .arg("start")
            .arg(&plan.properties_file)
            .args(["--cluster-id", cluster_id, "--until-stdin-closes"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(filter) = log {
            command.args(["--log", filter]);
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", plan.name))?;
        let pid = child.id().unwrap_or_default();
        let stdin = child.stdin.take();
        let events = events.clone();
        let (id, name) = (plan.id, plan.name.clone());
        tokio::spawn(async move {
            let status = follow(id, &name, &mut child, &events).await;
            // Nobody listens any more when this process ends.
            let _ = events.send(NodeEvent::Exited { id, status }).await;
        });
        Ok(Node { pid, stdin })
    }

    /// Asks the node to stop.
    pub(super) fn stop(&mut self) {
        self.stdin = None;
    }
}

/// Prints what the node prints until it has ended.
async fn follow(
    id: u16,
    name: &str,
    child: &mut Child,
    events: &mpsc::Sender<NodeEvent>,
) -> std::io::Result<ExitStatus> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let log = async {
        if let Some(stderr) = stderr {
            print_lines(stderr, |line| print_line(name, line)).await;
        }
    };
    let ready = async {
        let Some(stdout) = stdout else { return };
        let mut lines = BufReader::new(stdout).lines();
        // What follows the line are the examples of a single broker; ours name all of them.
        while let Ok(Some(line)) = lines.next_line().await {
            if line.contains(READY_MARK) {
                let _ = events.send(NodeEvent::Ready { id, line }).await;
            }
        }
    };
    tokio::join!(log, ready);
    child.wait().await
}

async fn print_lines(reader: impl AsyncRead + Unpin, print: impl Fn(&str)) {
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        print(&line);
    }
}

/// Prints a line with its node's name before it; a reader that has gone away does not matter.
pub(super) fn print_line(name: &str, line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{name} | {line}");
}
