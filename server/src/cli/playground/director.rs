//! Does what is asked for, by a person or by a lesson.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::Semaphore;
use tokio::time::{Instant, interval, sleep};

use super::action::Action;
use super::admin;
use super::lessons::{self, Check, Progress, Seen, Stage, Step};
use super::narrator::{Event, Kind, set};
use super::plan::{BROKERS, CONTROLLER, NODES};
use super::producer::{self, Outcome, Produced};
use super::view::Process;
use super::world::{LAG_MS, World};

/// Bytes a second that a slow broker fetches.
const SLOW_BYTES_PER_SECOND: u32 = 200;
/// Requests of the producer that wait for their answers.
const MAX_ON_THEIR_WAY: usize = 64;
/// How long a step may take to come to what it tells.
const STEP_PATIENCE: Duration = Duration::from_secs(45);
/// How long the cluster may take to be ready for a lesson.
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether a step is done.
const LOOK: Duration = Duration::from_millis(100);

impl World {
    /// Does one thing. Lessons and their steps go on after this has returned.
    ///
    /// # Errors
    /// A sentence that says why it cannot be done.
    pub(super) async fn act(self: &Arc<Self>, action: Action) -> Result<(), String> {
        action.check()?;
        match action {
            Action::Lesson { name } => self.begin_lesson(&name),
            Action::Next => self.begin_step(),
            Action::Leave => {
                self.state.lock().lesson = None;
                self.set_rate(0);
                Ok(())
            }
            action => Box::pin(self.do_now(action)).await,
        }
    }

    async fn do_now(self: &Arc<Self>, action: Action) -> Result<(), String> {
        match action {
            Action::Kill { broker } => {
                if self.process(broker) == Process::Down {
                    return Err(format!("broker {broker} is down already"));
                }
                self.say(format!("kill -9 of broker {broker}."));
                self.kill(broker).await
            }
            Action::Start { broker } => {
                if self.process(broker) != Process::Down {
                    return Err(format!("broker {broker} is there already"));
                }
                self.say(format!("Broker {broker} is started."));
                let lag_ms = self.lag_ms();
                self.start(broker, lag_ms).await
            }
            Action::Freeze { broker } => {
                if self.process(broker) != Process::Running {
                    return Err(format!("broker {broker} does not run"));
                }
                self.say(format!("Broker {broker} is frozen by SIGSTOP."));
                self.signal(broker, Signal::STOP);
                self.set_process(broker, Process::Frozen);
                Ok(())
            }
            Action::Thaw { broker } => {
                if self.process(broker) != Process::Frozen {
                    return Err(format!("broker {broker} is not frozen"));
                }
                self.say(format!("Broker {broker} goes on, by SIGCONT."));
                self.thaw(broker);
                Ok(())
            }
            Action::Cut { from, to, cut } => {
                let what = if cut { "held" } else { "let through" };
                self.say(format!(
                    "What {} sends to {} is {what}.",
                    name(from),
                    name(to)
                ));
                self.network.change(|links| links.set_cut((from, to), cut));
                Ok(())
            }
            Action::Isolate { broker } => {
                self.say(format!("Broker {broker} is cut off from all other nodes."));
                self.set_cut_off(broker, true);
                Ok(())
            }
            Action::Reconnect { broker } => {
                self.say(format!("All links of broker {broker} are whole."));
                self.set_cut_off(broker, false);
                Ok(())
            }
            Action::Heal => {
                self.say("All links are whole.".to_owned());
                self.network.change(super::network::Links::heal);
                Ok(())
            }
            Action::Slow { broker, slow } => {
                let how = if slow {
                    format!("slow: {SLOW_BYTES_PER_SECOND} bytes a second")
                } else {
                    "quick again".to_owned()
                };
                self.say(format!("What broker {broker} fetches is {how}."));
                let rate = slow.then_some(SLOW_BYTES_PER_SECOND);
                self.network.change(|links| {
                    for other in BROKERS.into_iter().filter(|other| *other != broker) {
                        links.set_slow((other, broker), rate);
                    }
                });
                Ok(())
            }
            Action::Produce {
                count,
                acks,
                to,
                prefix,
            } => {
                let acks = acks.unwrap_or_else(|| self.state.lock().acks);
                self.produce(count, acks, to, prefix.as_deref()).await;
                Ok(())
            }
            Action::Rate { per_second } => {
                self.say(match per_second {
                    0 => "The producer stops.".to_owned(),
                    rate => format!("{rate} records a second are produced."),
                });
                self.set_rate(per_second);
                Ok(())
            }
            Action::Acks { acks } => {
                self.state.lock().acks = acks;
                Ok(())
            }
            Action::MinIsr { value } => {
                let topic = self.topic()?;
                let text = value.to_string();
                admin::set_config(self.any_client()?, &topic, "min.insync.replicas", &text).await?;
                self.say(format!("min.insync.replicas is {value}."));
                self.state.lock().min_isr = value;
                Ok(())
            }
            Action::Unclean { on } => {
                let topic = self.topic()?;
                let (key, text) = ("unclean.leader.election.enable", on.to_string());
                admin::set_config(self.any_client()?, &topic, key, &text).await?;
                self.say(format!("{key} is {on}."));
                self.state.lock().unclean = on;
                Ok(())
            }
            Action::Elect => {
                let topic = self.topic()?;
                self.say("A preferred election is asked for.".to_owned());
                admin::elect_preferred(self.any_client()?, &topic).await
            }
            Action::Lesson { .. } | Action::Next | Action::Leave => {
                Err("a lesson is no part of a lesson".to_owned())
            }
        }
    }

    fn thaw(&self, broker: i32) {
        self.set_process(broker, Process::Running);
        self.signal(broker, Signal::CONT);
    }

    fn set_cut_off(&self, broker: i32, is_cut: bool) {
        self.network.change(|links| {
            for other in NODES.into_iter().filter(|other| *other != broker) {
                links.set_cut((broker, other), is_cut);
                links.set_cut((other, broker), is_cut);
            }
        });
    }

    fn say(&self, text: String) {
        self.tell(Event::new(Kind::Control, text, ""));
    }

    fn topic(&self) -> Result<String, String> {
        let topic = self.state.lock().topic.clone();
        match topic.is_empty() {
            true => Err("the topic is not there yet".to_owned()),
            false => Ok(topic),
        }
    }

    /// What brokers are started with now.
    fn lag_ms(&self) -> u32 {
        let state = self.state.lock();
        state.lesson.as_ref().map_or_else(
            || state.lag_ms.values().next().copied().unwrap_or(LAG_MS),
            |progress| progress.lesson.lag_ms,
        )
    }

    fn set_rate(&self, per_second: u32) {
        self.rate.send_replace(per_second);
    }

    /// Produces so many records in one request, and takes note of what became of it.
    async fn produce(&self, count: u32, acks: i16, to: Option<i32>, prefix: Option<&str>) {
        let (topic, number, first, isr, broker) = {
            let mut state = self.state.lock();
            let number = state.produced_in_all;
            state.produced_in_all += 1;
            // Values with a prefix of their own count from 0, in the order of the records.
            let first = if prefix.is_some() {
                0
            } else {
                state.values_made
            };
            if prefix.is_none() {
                state.values_made += u64::from(count);
            }
            let is_running = |id: &i32| state.processes.get(id) == Some(&Process::Running);
            let leader = state.view.decided().and_then(|decided| decided.leader);
            let leader = leader.or_else(|| BROKERS.into_iter().find(is_running));
            let isr = state.view.isr().len();
            (state.topic.clone(), number, first, isr, to.or(leader))
        };
        let prefix = prefix.unwrap_or("m");
        let values: Vec<String> = (first..first + u64::from(count))
            .map(|value| format!("{prefix}{value}"))
            .collect();
        let client = broker.and_then(|id| Some((id, self.clients.get(&id)?)));
        let outcome = match client {
            Some((id, client)) => {
                let port = self.plan.client_port(id);
                producer::produce(client, port, &topic, acks, &values).await
            }
            None => Outcome::Failed("no broker is there".to_owned()),
        };
        let produced = Produced {
            number,
            first: values.first().cloned().unwrap_or_default(),
            count: values.len(),
            broker,
            acks,
            outcome,
            isr,
        };
        if let Outcome::Refused(error) = &produced.outcome {
            self.tell(self.refusal(&produced, error));
        }
        self.on_produced(produced);
    }

    fn refusal(&self, produced: &Produced, error: &str) -> Event {
        let state = self.state.lock();
        let broker = produced.broker.map_or_else(|| "nobody".to_owned(), name);
        let acks = producer::acks_name(produced.acks);
        let text = format!(
            "Produce with acks={acks} to {broker}: {error}. ISR {}, min.insync.replicas {}.",
            set(state.view.isr()),
            state.min_isr
        );
        let rule = match error {
            "NOT_ENOUGH_REPLICAS" => {
                "acks=all is refused before anything is written while the ISR is smaller than min.insync.replicas."
            }
            "NOT_ENOUGH_REPLICAS_AFTER_APPEND" => {
                "The ISR shrank below min.insync.replicas after the record was written: written, but not as safe as asked."
            }
            "NOT_LEADER_OR_FOLLOWER" => {
                "Only the leader takes records. Here one whose session with the controller has expired refuses acks=0 and 1 \
                 too; Apache Kafka's goes on until it hears of the next leader."
            }
            "REQUEST_TIMED_OUT" => {
                "The record is written on the leader, and an in-sync replica did not fetch it in time: the outcome is not known."
            }
            _ => "",
        };
        Event::new(Kind::Refused, text, rule)
    }

    /// Produces at the rate that is set, one record a request.
    pub(super) async fn produce_at_rate(self: Arc<Self>) {
        let mut rate = self.rate.subscribe();
        let places = Arc::new(Semaphore::new(MAX_ON_THEIR_WAY));
        loop {
            let Ok(per_second) = rate.wait_for(|rate| *rate > 0).await.map(|rate| *rate) else {
                return;
            };
            let mut ticks = interval(Duration::from_secs(1) / per_second);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            while *self.rate.borrow() == per_second {
                ticks.tick().await;
                // As many as a client has on their way at most; with acks=all they may wait for a slow replica.
                let Ok(permit) = Arc::clone(&places).acquire_owned().await else {
                    return;
                };
                let world = Arc::clone(&self);
                tokio::spawn(async move {
                    let acks = world.state.lock().acks;
                    world.produce(1, acks, None, None).await;
                    drop(permit);
                });
            }
            rate.mark_unchanged();
        }
    }

    fn begin_lesson(self: &Arc<Self>, name: &str) -> Result<(), String> {
        let lesson = lessons::find(name).ok_or_else(|| format!("there is no lesson {name}"))?;
        let run = {
            let mut state = self.state.lock();
            let stage = state.lesson.as_ref().map(|progress| &progress.stage);
            if matches!(stage, Some(Stage::Preparing | Stage::Running(_))) {
                return Err("a step is being done".to_owned());
            }
            state.lessons_begun += 1;
            let run = state.lessons_begun;
            state.lesson = Some(Progress::new(run, lesson));
            run
        };
        self.say(format!("Lesson: {}.", lesson.title));
        let world = Arc::clone(self);
        tokio::spawn(async move {
            let prepared = world.prepare(lesson.lag_ms, lesson.replicas, lesson.min_isr);
            let prepared = prepared.await;
            world.in_lesson(run, |progress| progress.on_prepared(prepared));
        });
        Ok(())
    }

    /// Makes the cluster whole, with a new topic, so that what a lesson tells is what happens.
    pub(super) async fn prepare(
        self: &Arc<Self>,
        lag_ms: u32,
        replicas: &[i32],
        min_isr: i32,
    ) -> Result<(), String> {
        let _alone = self.preparing.lock().await;
        self.state.lock().is_preparing = true;
        let prepared = self.make_ready(lag_ms, replicas, min_isr).await;
        self.state.lock().is_preparing = false;
        prepared
    }

    async fn make_ready(
        self: &Arc<Self>,
        lag_ms: u32,
        replicas: &[i32],
        min_isr: i32,
    ) -> Result<(), String> {
        self.set_rate(0);
        // What becomes of it is no part of the story.
        let old = std::mem::take(&mut self.state.lock().topic);
        self.network.change(super::network::Links::heal);
        for broker in BROKERS {
            if self.process(broker) == Process::Frozen {
                self.thaw(broker);
            }
            let started_with = self.state.lock().lag_ms.get(&broker).copied();
            let is_up = self.process(broker) != Process::Down;
            if is_up && started_with != Some(lag_ms) {
                // It reads this setting when it starts only.
                self.kill(broker).await?;
            }
        }
        for broker in BROKERS {
            if self.process(broker) == Process::Down {
                self.spawn(broker, lag_ms)
                    .map_err(|error| format!("{error:#}"))?;
            }
        }
        for broker in BROKERS {
            self.until_serves(broker).await?;
        }
        let deadline = Instant::now() + READY_PATIENCE;
        while admin::active_brokers(self.any_client()?).await? < BROKERS.len() {
            if Instant::now() > deadline {
                return Err("the controller does not let all brokers in".to_owned());
            }
            sleep(LOOK).await;
        }
        self.new_topic(&old, replicas, min_isr).await?;
        self.state.lock().acks = -1;
        let is_ready = || {
            let state = self.state.lock();
            let decided = state.view.decided();
            decided.is_some_and(|decided| {
                decided.leader == replicas.first().copied()
                    && decided.isr.len() == replicas.len()
                    && replicas.iter().all(|id| {
                        let broker = state.view.broker(*id);
                        broker.is_some_and(|broker| broker.log_end_offset == Some(0))
                    })
            })
        };
        self.interest.notify_one();
        let ready = self.until(READY_PATIENCE, is_ready).await;
        ready.map_err(|()| "the replicas of the new topic do not get in sync".to_owned())
    }

    fn begin_step(self: &Arc<Self>) -> Result<(), String> {
        let (step, before, number, run) = {
            let mut state = self.state.lock();
            let number = state.produced_in_all;
            let before = state.view.clone();
            let progress = state.lesson.as_mut().ok_or("no lesson is being taken")?;
            let step = progress.begin_step().ok_or("there is no step to do now")?;
            (step, before, number, progress.run)
        };
        let world = Arc::clone(self);
        tokio::spawn(async move { world.do_step(run, step, &before, number).await });
        Ok(())
    }

    /// Does a step of lesson number `run`, and looks until it is so or the lesson is left.
    async fn do_step(
        self: &Arc<Self>,
        run: u64,
        step: &'static Step,
        before: &super::view::View,
        from: u64,
    ) {
        for action in (step.acts)() {
            if !self.in_lesson(run, |_| ()) {
                return;
            }
            if let Err(error) = Box::pin(self.do_now(action)).await {
                let failed = Check::Wait(error);
                self.in_lesson(run, |progress| progress.on_check(failed, true));
                return;
            }
        }
        let deadline = Instant::now() + STEP_PATIENCE;
        loop {
            let check = {
                let state = self.state.lock();
                let produced: Vec<Produced> = state
                    .produced
                    .iter()
                    .filter(|produced| produced.number >= from)
                    .cloned()
                    .collect();
                (step.check)(&Seen {
                    now: &state.view,
                    before,
                    produced: &produced,
                })
            };
            let is_late = Instant::now() > deadline;
            let is_over = is_late || matches!(check, Check::Done(_));
            let is_taken = self.in_lesson(run, |progress| progress.on_check(check, is_late));
            if is_over || !is_taken {
                return;
            }
            sleep(LOOK).await;
        }
    }

    /// Changes lesson number `run`; `false` when it was left.
    pub(super) fn in_lesson(&self, run: u64, change: impl FnOnce(&mut Progress)) -> bool {
        let mut state = self.state.lock();
        let progress = state.lesson.as_mut();
        progress
            .filter(|progress| progress.run == run)
            .map(change)
            .is_some()
    }
}

fn name(node: i32) -> String {
    match node {
        CONTROLLER => "the controller".to_owned(),
        broker => format!("broker {broker}"),
    }
}
