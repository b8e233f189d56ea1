//! `highwater playground`: three real brokers and a controller as child processes, and a page on which replication can be
//! watched, broken and repaired. Nothing is simulated: what the page shows is asked from the brokers, and read from
//! their logs.

mod action;
mod admin;
mod director;
mod folder;
mod lessons;
mod log_tail;
mod narrator;
mod network;
mod observer;
mod page;
mod plan;
mod producer;
mod site;
mod view;
mod world;

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use self::folder::TemporaryFolder;
use self::network::Network;
use self::plan::{BROKERS, CONTROLLER, NODES, Plan};
use self::site::{Gate, PlaygroundSite};
use self::view::Process;
use self::world::{LAG_MS, World};
use super::cluster::children::{NodeEvent, print_line};
use super::signals::StopSignals;
use super::{failed, print, runtime};
use crate::log_dirs;
use crate::web::WebServer;

/// How long the nodes may take to stop; then they are killed.
const STOP_PATIENCE: Duration = Duration::from_secs(8);
/// How long they may take to be gone then.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// How long the cluster may take to come to serve.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Lines of logs that wait to be looked at.
const LOG_LINES: usize = 1024;

/// How the playground is started.
#[derive(Debug, Clone, Args)]
pub(super) struct PlaygroundArguments {
    /// Port of the page; ten more are taken after it. 0: free ones
    #[arg(long, value_name = "PORT", default_value_t = 9640)]
    port: u16,

    /// An empty folder for the data, which is kept; without it a temporary one is used and removed at the end
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Only print the page's address, do not open it
    #[arg(long)]
    no_open: bool,

    /// Print the logs of the nodes
    #[arg(long)]
    logs: bool,

    /// Stop when stdin ends: for a process that must not leave the playground behind
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

/// Starts the playground, serves until a signal ends it, and gives the exit code.
pub(super) fn playground(arguments: &PlaygroundArguments) -> ExitCode {
    let done = runtime::build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| {
            let done = runtime.block_on(run(arguments));
            runtime.shutdown_background();
            done
        });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

async fn run(arguments: &PlaygroundArguments) -> anyhow::Result<()> {
    let mut signals = StopSignals::listen()?;
    if arguments.until_stdin_closes {
        signals.watch_stdin();
    }
    let (first_port, page_socket) = plan::take_ports(arguments.port).map_err(anyhow::Error::msg)?;
    let temporary = match &arguments.data_dir {
        Some(_) => None,
        None => {
            let all = std::env::temp_dir();
            for left in folder::sweep(&all) {
                let text = format!(
                    "removed {}, which a playground that was killed left",
                    left.display()
                );
                print_line("playground", &text);
            }
            Some(TemporaryFolder::make(&all).context("cannot make a temporary folder")?)
        }
    };
    let data_dir = match (&arguments.data_dir, &temporary) {
        (Some(dir), _) => prepare_dir(dir)?,
        (None, Some(dir)) => dir.path().to_owned(),
        (None, None) => anyhow::bail!("there is no folder for the data"),
    };
    let ended = play(arguments, first_port, page_socket, data_dir, &mut signals).await;
    if let Some(dir) = temporary {
        let path = dir.path().to_owned();
        if let Err(error) = dir.remove() {
            print_line(
                "playground",
                &format!("{} cannot be removed: {error}", path.display()),
            );
        }
    }
    ended
}

/// Starts all, serves until a signal comes or it cannot go on, and stops all again: nothing runs in `data_dir` after it.
async fn play(
    arguments: &PlaygroundArguments,
    first_port: u16,
    page_socket: std::net::TcpListener,
    data_dir: PathBuf,
    signals: &mut StopSignals,
) -> anyhow::Result<()> {
    let network = Network::new();
    let mut plan = Plan {
        first_port,
        data_dir,
        proxies: Vec::new(),
    };
    for node in NODES {
        let proxy = network.add_proxy(node, plan.node_port(node)).await;
        plan.proxies.push((
            node,
            proxy.context("cannot make the network between the nodes")?,
        ));
    }
    let (node_events, mut nodes) = mpsc::channel(64);
    let (logs, mut log_lines) = mpsc::channel(LOG_LINES);
    let world = Arc::new(World::new(
        plan,
        network,
        log_dirs::new_cluster_id(),
        arguments.logs,
        node_events,
        logs,
    ));
    let token = Uuid::new_v4().simple().to_string();
    let url = format!("http://127.0.0.1:{first_port}/?token={token}");
    page_socket.set_nonblocking(true)?;
    let site = PlaygroundSite::new(Arc::clone(&world), Gate::new(token, first_port));
    let web = WebServer::on_socket(TcpListener::from_std(page_socket)?, Arc::new(site))?;

    let of_logs = Arc::clone(&world);
    tokio::spawn(async move {
        while let Some((node, line)) = log_lines.recv().await {
            of_logs.on_log(node, &line);
        }
    });
    let mut in_order = [CONTROLLER].into_iter().chain(BROKERS);
    let ended = match in_order.try_for_each(|node| world.spawn(node, LAG_MS)) {
        Ok(()) => {
            tokio::spawn(observer::observe(Arc::clone(&world)));
            tokio::spawn(Arc::clone(&world).produce_at_rate());
            serve(&world, &mut nodes, signals, &url, arguments.no_open).await
        }
        Err(error) => Err(error),
    };
    web.stop();
    // Also after a failed start: those that were started before it run.
    stop(&world, &mut nodes, signals).await;
    ended
}

/// Serves until a signal comes, or the controller has ended.
async fn serve(
    world: &Arc<World>,
    nodes: &mut mpsc::Receiver<NodeEvent>,
    signals: &mut StopSignals,
    url: &str,
    no_open: bool,
) -> anyhow::Result<()> {
    let starting = Arc::clone(world);
    let mut prepared = tokio::spawn(async move {
        for broker in BROKERS {
            starting.until_serves(broker).await?;
        }
        starting.prepare(LAG_MS, &BROKERS, 2).await
    });
    let mut is_prepared = false;
    let deadline = Instant::now() + START_PATIENCE;
    loop {
        tokio::select! {
            received = signals.next() => {
                print_line("playground", &format!("{}: stopping", received.name));
                return Ok(());
            }
            Some(event) = nodes.recv() => on_node_event(world, &event)?,
            done = &mut prepared, if !is_prepared => {
                done?
                    .map_err(|error| anyhow::anyhow!("{error}; --logs tells more"))
                    .context("the cluster does not come to serve")?;
                is_prepared = true;
                tell_ready(world, url);
                if !no_open {
                    open(url);
                }
            }
            () = tokio::time::sleep_until(deadline), if !is_prepared => {
                anyhow::bail!("the cluster does not come to serve; --logs tells more");
            }
        }
    }
}

fn on_node_event(world: &World, event: &NodeEvent) -> anyhow::Result<()> {
    match event {
        NodeEvent::Ready { id, .. } => {
            let id = i32::from(*id);
            if world.process(id) == Process::Starting {
                world.set_process(id, Process::Running);
            }
        }
        NodeEvent::Exited { id, status } => {
            world.on_exit(i32::from(*id));
            if i32::from(*id) == CONTROLLER {
                let how = match status {
                    Ok(status) => status.to_string(),
                    Err(error) => error.to_string(),
                };
                anyhow::bail!("the controller has ended ({how}); --logs tells more");
            }
        }
    }
    Ok(())
}

/// Stops all nodes and waits for them; those that do not stop in time, or not before another signal, are killed.
async fn stop(world: &World, nodes: &mut mpsc::Receiver<NodeEvent>, signals: &mut StopSignals) {
    let stopping_since = Instant::now();
    // Links are made whole, and the controller stops last: brokers hand over what they lead.
    world.network.change(network::Links::heal);
    let stopping = async {
        world.stop(|node| node != CONTROLLER);
        until_left(world, nodes, 1).await;
        world.stop(|node| node == CONTROLLER);
        until_left(world, nodes, 0).await;
    };
    tokio::select! {
        stopped = timeout(STOP_PATIENCE, stopping) => {
            if stopped.is_ok() {
                return;
            }
        }
        _ = signals.next_on_purpose(stopping_since) => {}
    }
    world.kill_all();
    if timeout(KILL_PATIENCE, until_left(world, nodes, 0))
        .await
        .is_err()
    {
        print_line("playground", "some nodes do not end");
    }
}

/// Waits until at most so many processes are left.
async fn until_left(world: &World, nodes: &mut mpsc::Receiver<NodeEvent>, left: usize) {
    while world.node_count() > left {
        match nodes.recv().await {
            Some(NodeEvent::Exited { id, .. }) => world.on_exit(i32::from(id)),
            Some(NodeEvent::Ready { .. }) => {}
            None => return,
        }
    }
}

/// The folder for the data, which is made if it is not there and has to be empty.
fn prepare_dir(dir: &Path) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut entries =
        std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    if entries.next().is_some() {
        anyhow::bail!(
            "{} is not empty: the playground begins with an empty folder",
            dir.display()
        );
    }
    Ok(std::path::absolute(dir)?)
}

fn tell_ready(world: &World, url: &str) {
    let bootstrap = world.plan.bootstrap_servers();
    let data = world.plan.data_dir.display();
    let text = format!(
        "\nThe playground is ready. Open\n  {url}\n\nIts brokers: {bootstrap} (data in {data})\n\
         Ctrl-C stops all.\n\n"
    );
    // A reader that has gone away does not matter.
    print(&text);
}

/// Opens the page in the browser of this desktop, if there is one.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    match opener(program, url).spawn() {
        Ok(mut child) => {
            // Waited for, so that no process is left half-way; it says nothing that matters.
            std::thread::spawn(move || drop(child.wait()));
        }
        Err(error) => tracing::debug!(%error, program, "the page is not opened"),
    }
}

/// In a process group of its own: Ctrl-C on the terminal is not for a browser that it starts.
fn opener(program: &str, url: &str) -> Command {
    let mut opener = Command::new(program);
    opener
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    opener
}

#[cfg(test)]
mod tests {
    use super::super::in_full;
    use super::*;

    #[test]
    fn a_signal_to_the_group_of_the_terminal_does_not_reach_the_browser() {
        let mut browser = opener("sleep", "20").spawn().expect("started");
        let pid = rustix::process::Pid::from_child(&browser);
        let group = rustix::process::getpgid(Some(pid));
        browser.kill().and_then(|()| browser.wait()).expect("ended");
        assert_eq!(group, Ok(pid));
    }

    #[test]
    fn a_folder_with_something_in_it_is_refused_and_left_as_it_is() {
        let dir = tempfile::tempdir().expect("a folder");
        let inner = dir.path().join("new");
        assert_eq!(prepare_dir(&inner).ok(), Some(inner));
        let error = prepare_dir(dir.path()).expect_err("not empty").to_string();
        assert!(error.contains("is not empty"), "{error}");
        assert!(dir.path().join("new").is_dir());
        let file = dir.path().join("file");
        std::fs::write(&file, "x").expect("written");
        let error = in_full(&prepare_dir(&file).expect_err("a file"));
        assert!(error.starts_with("cannot make "), "{error}");
        assert_eq!(std::fs::read(&file).expect("there still"), b"x");
    }
}
