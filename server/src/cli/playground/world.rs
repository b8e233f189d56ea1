//! The cluster of the playground and what is known of it: its processes, its network, its clients.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::json;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use super::admin;
use super::lessons::Progress;
use super::log_tail::LogTail;
use super::narrator::{self, Event, Kind};
use super::network::Network;
use super::plan::{BROKERS, CONTROLLER, Plan};
use super::producer::{self, Produced};
use super::view::{Process, View};
use crate::cli::cluster::children::{Node, NodeEvent, print_line};
use crate::cli::cluster::write_properties;
use crate::network::client::Client;
use crate::web::rows::Rows;

/// Pages that may be open at the same time.
const MAX_WATCHERS: usize = 6;
/// Lines that are kept, and requests to produce.
const MAX_EVENTS: usize = 200;
const MAX_PRODUCED: usize = 40;
/// Moves of the high watermark that are no longer apart than this are one line.
const ONE_MOVE: Duration = Duration::from_secs(4);
/// The same refusal is told again after this.
const TOLD_AGAIN: Duration = Duration::from_secs(3);
/// How long a process may take to end by SIGKILL, and a broker to serve.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How often something that changes soon is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// `replica.lag.time.max.ms` outside of lessons.
pub(super) const LAG_MS: u32 = 10_000;

/// What changes.
pub(super) struct State {
    pub(super) view: View,
    pub(super) processes: BTreeMap<i32, Process>,
    /// `replica.lag.time.max.ms` that each broker was started with.
    pub(super) lag_ms: BTreeMap<i32, u32>,
    pub(super) topic: String,
    pub(super) topics_made: u32,
    pub(super) acks: i16,
    pub(super) min_isr: i32,
    pub(super) unclean: bool,
    pub(super) produced: VecDeque<Produced>,
    pub(super) produced_in_all: u64,
    pub(super) values_made: u64,
    pub(super) lesson: Option<Progress>,
    pub(super) lessons_begun: u64,
    /// The cluster is made ready, for a lesson or at the start.
    pub(super) is_preparing: bool,
    events: VecDeque<(u64, Instant, Event)>,
    events_in_all: u64,
}

/// The processes.
#[derive(Default)]
struct Nodes {
    running: BTreeMap<i32, Node>,
    /// All of them are being stopped, so none is started any more.
    is_stopping: bool,
}

/// All of it, shared.
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) network: Network,
    pub(super) state: Mutex<State>,
    pub(super) tails: Mutex<BTreeMap<i32, LogTail>>,
    pub(super) clients: BTreeMap<i32, Client>,
    pub(super) rate: watch::Sender<u32>,
    pub(super) watchers: Arc<Semaphore>,
    /// Somebody has come to look.
    pub(super) interest: Notify,
    /// Held while the cluster is made ready, which two must not do at once.
    pub(super) preparing: tokio::sync::Mutex<()>,
    cluster_id: String,
    prints_logs: bool,
    nodes: Mutex<Nodes>,
    node_events: mpsc::Sender<NodeEvent>,
    logs: mpsc::Sender<(i32, String)>,
    began: Instant,
}

impl World {
    pub(super) fn new(
        plan: Plan,
        network: Network,
        cluster_id: String,
        prints_logs: bool,
        node_events: mpsc::Sender<NodeEvent>,
        logs: mpsc::Sender<(i32, String)>,
    ) -> Self {
        let clients = BROKERS.map(|id| (id, producer::client(plan.client_port(id))));
        World {
            state: Mutex::new(State {
                view: View::empty(""),
                processes: BROKERS.map(|id| (id, Process::Down)).into(),
                lag_ms: BTreeMap::new(),
                topic: String::new(),
                topics_made: 0,
                acks: -1,
                min_isr: 2,
                unclean: false,
                produced: VecDeque::new(),
                produced_in_all: 0,
                values_made: 0,
                lesson: None,
                lessons_begun: 0,
                is_preparing: false,
                events: VecDeque::new(),
                events_in_all: 0,
            }),
            plan,
            network,
            tails: Mutex::default(),
            clients: clients.into(),
            rate: watch::Sender::new(0),
            watchers: Arc::new(Semaphore::new(MAX_WATCHERS)),
            interest: Notify::new(),
            preparing: tokio::sync::Mutex::default(),
            cluster_id,
            prints_logs,
            nodes: Mutex::default(),
            node_events,
            logs,
            began: Instant::now(),
        }
    }

    /// Whether anybody looks, or something is done that depends on what is seen.
    pub(super) fn is_watched(&self) -> bool {
        let state = self.state.lock();
        let is_needed = state.is_preparing || *self.rate.borrow() > 0 || state.lesson.is_some();
        is_needed || self.watchers.available_permits() < MAX_WATCHERS
    }

    pub(super) fn process(&self, broker: i32) -> Process {
        let state = self.state.lock();
        let process = state.processes.get(&broker);
        process.copied().unwrap_or(Process::Down)
    }

    pub(super) fn set_process(&self, broker: i32, process: Process) {
        self.state.lock().processes.insert(broker, process);
    }

    /// Folder of a broker's replica of the topic.
    pub(super) fn replica_dir(&self, broker: i32, topic: &str) -> PathBuf {
        self.plan.log_dir(broker).join(format!("{topic}-0"))
    }

    /// Adds a line.
    pub(super) fn tell(&self, event: Event) {
        let mut state = self.state.lock();
        let now = Instant::now();
        if let Some((_, when, last)) = state.events.back_mut()
            && when.elapsed() < ONE_MOVE
            && let Some(merged) = event.merged(last)
        {
            *last = merged;
            return;
        }
        let told = state.events.iter().rev().take(20);
        let is_again = |(_, when, known): &(u64, Instant, Event)| {
            *known == event && now.duration_since(*when) < TOLD_AGAIN
        };
        if matches!(event.kind, Kind::Fenced | Kind::Refused) && told.into_iter().any(is_again) {
            return;
        }
        let number = state.events_in_all;
        state.events_in_all += 1;
        state.events.push_back((number, now, event));
        if state.events.len() > MAX_EVENTS {
            state.events.pop_front();
        }
    }

    /// Takes in a line of a node's log.
    pub(super) fn on_log(&self, node: i32, line: &str) {
        let name = match node {
            CONTROLLER => "The controller".to_owned(),
            broker => format!("Broker {broker}"),
        };
        if self.prints_logs {
            print_line(&name.to_lowercase().replace(' ', "-"), line);
        }
        let topic = self.state.lock().topic.clone();
        if topic.is_empty() {
            return;
        }
        if let Some(event) = narrator::of_log(&name, line, &topic) {
            self.tell(event);
        }
    }

    /// Starts a node's process.
    ///
    /// # Errors
    /// When it is there already, when all are being stopped, or when it cannot be started.
    pub(super) fn spawn(&self, node: i32, lag_ms: u32) -> anyhow::Result<()> {
        let plan = self.plan.node(node, lag_ms);
        // Held until it is noted: nobody starts it twice, and a stop that begins meanwhile sees it.
        let mut nodes = self.nodes.lock();
        ensure!(!nodes.is_stopping, "the playground is stopping");
        let is_there = nodes.running.contains_key(&node);
        ensure!(!is_there, "{} is there already", plan.name);
        write_properties(&plan.properties_file, &plan.properties)?;
        let logs = self.logs.clone();
        // A line that nobody has time for is left out.
        let on_log = move |line: &str| drop(logs.try_send((node, line.to_owned())));
        let log = ["--log", "info", "--log-format", "json"];
        let started = Node::start(&plan, &self.cluster_id, &log, on_log, &self.node_events)?;
        nodes.running.insert(node, started);
        drop(nodes);
        if node != CONTROLLER {
            let mut state = self.state.lock();
            state.processes.insert(node, Process::Starting);
            state.lag_ms.insert(node, lag_ms);
        }
        Ok(())
    }

    /// Sends a signal to a node's process; nothing when it has ended.
    pub(super) fn signal(&self, node: i32, signal: Signal) {
        if let Some(node) = self.nodes.lock().running.get(&node) {
            node.signal(signal);
        }
    }

    /// A node's process has ended.
    pub(super) fn on_exit(&self, node: i32) {
        self.nodes.lock().running.remove(&node);
        self.network.on_process_end(node);
        if node != CONTROLLER {
            self.set_process(node, Process::Down);
        }
    }

    /// Kills a broker and waits until it is gone.
    pub(super) async fn kill(&self, broker: i32) -> Result<(), String> {
        self.signal(broker, Signal::KILL);
        let gone = self.until(KILL_PATIENCE, || self.process(broker) == Process::Down);
        gone.await
            .map_err(|()| format!("broker {broker} does not end"))
    }

    /// Starts a broker that is down and waits until it serves.
    pub(super) async fn start(&self, broker: i32, lag_ms: u32) -> Result<(), String> {
        self.spawn(broker, lag_ms)
            .map_err(|error| format!("{error:#}"))?;
        self.until_serves(broker).await
    }

    /// Waits until a broker that was started serves.
    pub(super) async fn until_serves(&self, broker: i32) -> Result<(), String> {
        let served = self.until(START_PATIENCE, || self.process(broker) != Process::Starting);
        served
            .await
            .map_err(|()| format!("broker {broker} does not come to serve"))?;
        match self.process(broker) {
            Process::Down => Err(format!("broker {broker} has ended while it started")),
            _ => Ok(()),
        }
    }

    /// Waits until something is so.
    pub(super) async fn until(
        &self,
        patience: Duration,
        is_so: impl Fn() -> bool,
    ) -> Result<(), ()> {
        let looking = async {
            while !is_so() {
                sleep(LOOK).await;
            }
        };
        timeout(patience, looking).await.map_err(|_| ())
    }

    /// A broker that answers and is not cut off, to ask the cluster for something.
    pub(super) fn any_client(&self) -> Result<&Client, String> {
        let links = self.network.links();
        let is_usable = |id: &i32| {
            self.process(*id) == Process::Running && !links.is_cut_between(*id, CONTROLLER)
        };
        let id = BROKERS.into_iter().find(is_usable);
        id.and_then(|id| self.clients.get(&id))
            .ok_or_else(|| "no broker is there that reaches the controller".to_owned())
    }

    /// Makes a new topic in place of an old one.
    pub(super) async fn new_topic(
        &self,
        old: &str,
        replicas: &[i32],
        min_isr: i32,
    ) -> Result<(), String> {
        let number = {
            let mut state = self.state.lock();
            state.topics_made += 1;
            state.topics_made
        };
        let topic = format!("topic-{number}");
        let client = self.any_client()?;
        if !old.is_empty()
            && let Err(error) = admin::delete_topic(client, old).await
        {
            tracing::debug!(topic = old, error, "the topic before is not deleted");
        }
        let configs = [
            ("min.insync.replicas", min_isr.to_string()),
            ("unclean.leader.election.enable", "false".to_owned()),
        ];
        admin::create_topic(client, &topic, replicas, &configs).await?;
        let mut state = self.state.lock();
        state.topic.clone_from(&topic);
        state.view = View::empty(&topic);
        state.min_isr = min_isr;
        state.unclean = false;
        state.values_made = 0;
        state.produced.clear();
        Ok(())
    }

    /// Stops the brokers, the frozen ones go on first, or the controller; none is started any more. The events of their
    /// ends come as always.
    pub(super) fn stop(&self, which: impl Fn(i32) -> bool) {
        let mut nodes = self.nodes.lock();
        nodes.is_stopping = true;
        for (_, node) in nodes.running.iter_mut().filter(|(id, _)| which(**id)) {
            node.signal(Signal::CONT);
            node.stop();
        }
    }

    /// Kills what is left.
    pub(super) fn kill_all(&self) {
        for node in self.nodes.lock().running.values() {
            node.signal(Signal::KILL);
        }
    }

    /// How many processes are left.
    pub(super) fn node_count(&self) -> usize {
        self.nodes.lock().running.len()
    }

    /// What the page shows.
    pub(super) fn rows(&self) -> Rows {
        let links = self.network.links();
        let consoles = BROKERS.map(|id| (id, self.plan.console_port(id)));
        let state = self.state.lock();
        let mut rows = state.view.rows(&links, &consoles.into());
        for (id, process) in &state.processes {
            // The view may be a moment older.
            if let Some(row) = rows.get_mut(&format!("broker/{id}")) {
                row["process"] = json!(process.name());
            }
        }
        rows.insert(
            "settings".to_owned(),
            json!({
                "acks": producer::acks_name(state.acks),
                "rate": *self.rate.borrow(),
                "min_isr": state.min_isr,
                "unclean": state.unclean,
                "lag_ms": state.lag_ms.values().next(),
                "bootstrap": self.plan.bootstrap_servers(),
                "version": env!("CARGO_PKG_VERSION"),
            }),
        );
        rows.insert(
            "lesson".to_owned(),
            state.lesson.as_ref().map_or(json!(null), Progress::to_row),
        );
        rows.extend(state.produced.iter().map(Produced::to_row));
        for (number, when, event) in &state.events {
            let row = json!({
                "seconds": when.duration_since(self.began).as_secs(),
                "kind": event.kind.name(),
                "text": event.text,
                "rule": event.rule,
            });
            rows.insert(format!("event/{number:08}"), row);
        }
        rows
    }

    /// Takes note of a request to produce.
    pub(super) fn on_produced(&self, produced: Produced) {
        let mut state = self.state.lock();
        state.produced.push_back(produced);
        if state.produced.len() > MAX_PRODUCED {
            state.produced.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lessons::{self, Stage};
    use super::*;

    fn world(data_dir: PathBuf) -> World {
        let plan = Plan {
            first_port: 9640,
            data_dir,
            proxies: Vec::new(),
        };
        let (node_events, _) = mpsc::channel(1);
        let (logs, _) = mpsc::channel(1);
        let cluster_id = "5L6g3nShT-eMCtK--X86sw".to_owned();
        World::new(plan, Network::new(), cluster_id, false, node_events, logs)
    }

    #[test]
    fn what_comes_of_a_lesson_that_was_left_is_not_for_the_next() {
        let world = world(PathBuf::from("/nowhere"));
        let lesson = lessons::find("min-isr").expect("a lesson");
        world.state.lock().lesson = Some(Progress::new(2, lesson));
        assert!(!world.in_lesson(1, |progress| progress.on_prepared(Ok(()))));
        let stage = |world: &World| {
            let state = world.state.lock();
            state.lesson.as_ref().map(|progress| progress.stage.clone())
        };
        assert_eq!(stage(&world), Some(Stage::Preparing));
        assert!(world.in_lesson(2, |progress| progress.on_prepared(Ok(()))));
        assert_eq!(stage(&world), Some(Stage::Ready));
        world.state.lock().lesson = None;
        assert!(!world.in_lesson(2, |_| ()));
    }

    #[tokio::test]
    async fn a_node_is_started_once_and_none_after_the_stop_has_begun() {
        let dir = tempfile::tempdir().expect("a folder");
        let world = world(dir.path().to_owned());
        // The process is this test's program, which ends at once: it knows no such arguments.
        world.spawn(1, LAG_MS).expect("a process");
        let error = world.spawn(1, LAG_MS).expect_err("twice").to_string();
        assert_eq!(error, "broker-1 is there already");
        world.on_exit(1);
        world.stop(|_| true);
        let error = world.spawn(1, LAG_MS).expect_err("too late").to_string();
        assert_eq!(error, "the playground is stopping");
        assert_eq!((world.node_count(), world.process(1)), (0, Process::Down));
    }
}
