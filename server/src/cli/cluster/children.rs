//! The nodes of a cluster as child processes: their output with a prefix, their end, and how they are stopped.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use super::plan::NodePlan;
use crate::cli::settings::gives_a_key;

/// What the line that a node prints when it is ready contains.
const READY_MARK: &str = " is ready on ";

/// What happens to a node.
#[derive(Debug)]
pub(in crate::cli) enum NodeEvent {
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
pub(in crate::cli) struct Node {
    /// Id of the process.
    pub(in crate::cli) pid: u32,
    stdin: Option<ChildStdin>,
    signals: mpsc::UnboundedSender<Signal>,
}

impl Node {
    /// Starts a node in a process group of its own (Ctrl-C on the terminal is for us alone), gives its log line by line
    /// to `on_log` and tells `events` what becomes of it. `log` are the arguments about what it logs.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub(in crate::cli) fn start(
        plan: &NodePlan,
        cluster_id: &str,
        log: &[&str],
        on_log: impl Fn(&str) + Send + Sync + 'static,
        events: &mpsc::Sender<NodeEvent>,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find the program's own file")?;
        let variables = std::env::vars_os().map(|(name, _)| name);
        let mut child = command(program, plan, cluster_id, log, variables)
            .spawn()
            .with_context(|| format!("cannot start {}", plan.name))?;
        let pid = child.id().unwrap_or_default();
        let stdin = child.stdin.take();
        let events = events.clone();
        let id = plan.id;
        let (signals, mut received) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let status = follow(id, &mut child, &mut received, on_log, &events).await;
            // Nobody listens any more when this process ends.
            let _ = events.send(NodeEvent::Exited { id, status }).await;
        });
        Ok(Node {
            pid,
            stdin,
            signals,
        })
    }

    /// Asks the node to stop.
    pub(in crate::cli) fn stop(&mut self) {
        self.stdin = None;
    }

    /// Sends the process a signal, unless it has ended.
    pub(in crate::cli) fn signal(&self, signal: Signal) {
        // Whoever would take it is gone with the process.
        let _ = self.signals.send(signal);
    }
}

/// What starts a node. Of our own `variables` it does not get those that give configuration keys: they would win over
/// its properties file, and have all nodes use one id, the same ports, or a data folder that is none of ours.
fn command(
    program: PathBuf,
    plan: &NodePlan,
    cluster_id: &str,
    log: &[&str],
    variables: impl Iterator<Item = OsString>,
) -> Command {
    let mut command = Command::new(program);
    command
        .arg("start")
        .arg(&plan.properties_file)
        .args(["--cluster-id", cluster_id, "--until-stdin-closes"])
        .args(log)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    for name in variables.filter(|name| gives_a_key(name)) {
        command.env_remove(name);
    }
    command
}

/// Passes on what the node prints, and signals to it, until it has ended.
async fn follow(
    id: u16,
    child: &mut Child,
    signals: &mut mpsc::UnboundedReceiver<Signal>,
    on_log: impl Fn(&str),
    events: &mpsc::Sender<NodeEvent>,
) -> std::io::Result<ExitStatus> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let log = async {
        if let Some(stderr) = stderr {
            print_lines(stderr, on_log).await;
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
    let ended = async {
        loop {
            tokio::select! {
                status = child.wait() => return status,
                Some(signal) = signals.recv() => send_signal(child, signal),
            }
        }
    };
    let ((), (), status) = tokio::join!(log, ready, ended);
    status
}

/// Sends a signal to a child that was not waited for yet, so that its id is no other's.
fn send_signal(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    let Some(pid) = pid.and_then(Pid::from_raw) else {
        return;
    };
    if let Err(error) = kill_process(pid, signal) {
        tracing::warn!(%error, ?signal, "a signal cannot be sent");
    }
}

async fn print_lines(reader: impl AsyncRead + Unpin, print: impl Fn(&str)) {
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        print(&line);
    }
}

/// Prints a line with its node's name before it; a reader that has gone away does not matter.
pub(in crate::cli) fn print_line(name: &str, line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{name} | {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_give_keys_are_kept_from_the_nodes() {
        let plan = NodePlan {
            id: 1,
            name: "broker-1".to_owned(),
            address: "127.0.0.1:1".to_owned(),
            properties_file: PathBuf::from("/data/broker-1.properties"),
            properties: String::new(),
            log_dir: PathBuf::from("/data/broker-1"),
        };
        let variables = ["KAFKA_LOG_DIRS", "PATH", "KAFKA_NODE_ID", "HIGHWATER_LOG"];
        let variables = variables.into_iter().map(OsString::from);
        let command = command(PathBuf::from("highwater"), &plan, "id", &[], variables);
        let changed: Vec<_> = command.as_std().get_envs().collect();
        assert_eq!(
            changed,
            [
                ("KAFKA_LOG_DIRS".as_ref(), None),
                ("KAFKA_NODE_ID".as_ref(), None)
            ]
        );
    }
}
