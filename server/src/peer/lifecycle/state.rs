//! What a broker says to the controller next, and what the answers make of it: a pure state machine.
//!
//! Times are in milliseconds of any clock that does not go back.

/// The first rest after a refused or lost request.
const FIRST_BACKOFF_MS: i64 = 100;
/// The first rest while the controller has not yet done what was asked: it is about to.
const FIRST_POLL_MS: i64 = 10;
/// The first rest of a broker that waits to be let go: leaders move in about this time.
const FIRST_SHUTDOWN_POLL_MS: i64 = 50;
/// Doublings after which a rest grows no more, whatever its limit.
const MAX_DOUBLINGS: u32 = 20;

/// Where a broker is in its life, under Kafka's names and with the numbers of Kafka's metric `BrokerState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum BrokerState {
    /// Not registered with the controller, or not yet caught up with the metadata up to its registration.
    Starting = 1,
    /// Caught up, and fenced until it is ready to serve.
    Recovery = 2,
    /// Unfenced: it may lead and be in ISRs.
    Running = 3,
    /// Its leaderships are moving away.
    PendingControlledShutdown = 6,
    /// Let go, or stopping without being let go.
    ShuttingDown = 7,
}

/// The settings of the life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifecycleSettings {
    /// `broker.heartbeat.interval.ms`.
    pub heartbeat_interval_ms: i64,
    /// `broker.session.timeout.ms`.
    pub session_timeout_ms: i64,
    /// `initial.broker.registration.timeout.ms`.
    pub registration_timeout_ms: i64,
}

/// What to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Communication {
    /// A BrokerRegistration.
    Register,
    /// A BrokerHeartbeat.
    Heartbeat {
        /// The epoch that the registration gave.
        broker_epoch: i64,
        /// Offset of the last metadata record that the broker has acted on.
        metadata_offset: i64,
        /// The broker is not ready to serve.
        want_fence: bool,
        /// The broker wants to stop.
        want_shut_down: bool,
    },
}

/// What a heartbeat was answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatAnswer {
    /// The broker has seen its own registration.
    pub is_caught_up: bool,
    /// The broker is fenced.
    pub is_fenced: bool,
    /// The broker leads nothing any more and may stop.
    pub should_shut_down: bool,
}

/// Why a broker cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no registration with the controller within {0} ms")]
pub struct RegistrationTimedOut(pub i64);

/// The life of one run of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifecycle {
    settings: LifecycleSettings,
    state: BrokerState,
    started_ms: i64,
    broker_epoch: Option<i64>,
    metadata_offset: i64,
    ready_to_unfence: bool,
    /// When the next request is due.
    due_ms: i64,
    /// A request is on its way.
    in_flight: bool,
    /// Something happened that the request on its way does not tell.
    is_news: bool,
    /// Refusals and losses since the last success.
    failures: u32,
    /// Answers in a row that did not bring what is waited for.
    polls: u32,
    /// When the request on its way was sent.
    sent_ms: i64,
    /// When the last request was sent whose answer says that this broker is registered and not fenced.
    last_success_ms: Option<i64>,
    is_superseded: bool,
}

impl Lifecycle {
    /// Begins a life: to be registered at once. `metadata_offset` is what the broker has acted on already.
    pub fn new(settings: LifecycleSettings, metadata_offset: i64, now_ms: i64) -> Self {
        Lifecycle {
            settings,
            state: BrokerState::Starting,
            started_ms: now_ms,
            broker_epoch: None,
            metadata_offset,
            ready_to_unfence: false,
            due_ms: now_ms,
            in_flight: false,
            is_news: false,
            failures: 0,
            polls: 0,
            sent_ms: now_ms,
            last_success_ms: None,
            is_superseded: false,
        }
    }

    /// Where the broker is.
    pub fn state(&self) -> BrokerState {
        self.state
    }

    /// The epoch of this run; `None` before the registration.
    pub fn broker_epoch(&self) -> Option<i64> {
        self.broker_epoch
    }

    /// When something is to be done next: [`next`](Self::next), or [`check`](Self::check); `None` when nothing is
    /// before an answer comes or the broker has ended.
    pub fn due_ms(&self) -> Option<i64> {
        let deadline = self.registration_deadline_ms();
        let due = (!self.in_flight && !self.is_over()).then_some(self.due_ms);
        [deadline, due].into_iter().flatten().min()
    }

    fn registration_deadline_ms(&self) -> Option<i64> {
        (self.broker_epoch.is_none() && !self.is_over())
            .then(|| self.started_ms + self.settings.registration_timeout_ms)
    }

    fn is_over(&self) -> bool {
        self.state == BrokerState::ShuttingDown
    }

    /// Whether the broker may go on: the registration must not take too long.
    ///
    /// # Errors
    /// Once, when the time is over; the broker is shutting down then.
    pub fn check(&mut self, now_ms: i64) -> Result<(), RegistrationTimedOut> {
        match self.registration_deadline_ms() {
            Some(deadline) if now_ms >= deadline => {
                self.state = BrokerState::ShuttingDown;
                Err(RegistrationTimedOut(self.settings.registration_timeout_ms))
            }
            _ => Ok(()),
        }
    }

    /// The request that is due; none while one is on its way.
    pub fn next(&mut self, now_ms: i64) -> Option<Communication> {
        if self.in_flight || self.is_over() || now_ms < self.due_ms {
            return None;
        }
        self.in_flight = true;
        self.is_news = false;
        self.sent_ms = now_ms;
        Some(match self.broker_epoch {
            None => Communication::Register,
            Some(broker_epoch) => Communication::Heartbeat {
                broker_epoch,
                metadata_offset: self.metadata_offset,
                want_fence: !self.ready_to_unfence,
                want_shut_down: self.state == BrokerState::PendingControlledShutdown,
            },
        })
    }

    /// Until when the controller has not fenced this broker without telling it: a session after a heartbeat was sent
    /// that it took. From then on the broker is better silent, as others may lead what it leads. `None` when it is
    /// fenced, or not registered yet.
    pub fn session_end_ms(&self) -> Option<i64> {
        self.last_success_ms
            .map(|sent| sent.saturating_add(self.settings.session_timeout_ms))
    }

    /// Whether another run took this one's place before it came to run.
    pub fn is_superseded(&self) -> bool {
        self.is_superseded
    }

    /// The controller registered this run.
    pub fn on_registered(&mut self, broker_epoch: i64, now_ms: i64) {
        self.broker_epoch = Some(broker_epoch);
        self.last_success_ms = Some(match self.in_flight {
            true => self.sent_ms,
            false => now_ms,
        });
        self.settle();
        self.due_ms = match self.has_seen_registration() {
            true => now_ms,
            false => now_ms + self.settings.heartbeat_interval_ms,
        };
    }

    fn has_seen_registration(&self) -> bool {
        self.broker_epoch
            .is_some_and(|epoch| self.metadata_offset >= epoch)
    }

    /// The broker has acted on the metadata up to this offset.
    pub fn on_metadata_offset(&mut self, offset: i64, now_ms: i64) {
        let had_seen_registration = self.has_seen_registration();
        self.metadata_offset = self.metadata_offset.max(offset);
        if self.state == BrokerState::Starting
            && !had_seen_registration
            && self.has_seen_registration()
        {
            self.make_due(now_ms);
        }
    }

    /// The broker is ready to lead and to serve.
    pub fn on_ready_to_unfence(&mut self, now_ms: i64) {
        if !self.ready_to_unfence {
            self.ready_to_unfence = true;
            if self.broker_epoch.is_some() {
                self.make_due(now_ms);
            }
        }
    }

    /// The broker wants to stop. One that is not running has nothing to hand over and is let go at once.
    pub fn on_begin_controlled_shutdown(&mut self, now_ms: i64) {
        match self.state {
            BrokerState::Running => {
                self.state = BrokerState::PendingControlledShutdown;
                self.polls = 0;
                self.make_due(now_ms);
            }
            BrokerState::PendingControlledShutdown => {}
            BrokerState::Starting | BrokerState::Recovery | BrokerState::ShuttingDown => {
                self.state = BrokerState::ShuttingDown;
            }
        }
    }

    /// The controller answered a heartbeat.
    pub fn on_heartbeat(&mut self, answer: HeartbeatAnswer, now_ms: i64) {
        let is_news = self.settle();
        self.last_success_ms = (!answer.is_fenced).then_some(self.sent_ms);
        let before = self.state;
        if self.state == BrokerState::Starting && answer.is_caught_up {
            self.state = BrokerState::Recovery;
        }
        if self.state == BrokerState::Recovery && !answer.is_fenced {
            self.state = BrokerState::Running;
        }
        if self.state == BrokerState::PendingControlledShutdown && answer.should_shut_down {
            self.state = BrokerState::ShuttingDown;
        }
        let waits_for_more = match self.state {
            BrokerState::Starting => self.has_seen_registration(),
            // A running broker that is fenced was silent for too long; the next heartbeat unfences it.
            BrokerState::Recovery | BrokerState::Running => {
                answer.is_fenced && self.ready_to_unfence
            }
            BrokerState::PendingControlledShutdown => true,
            BrokerState::ShuttingDown => false,
        };
        self.polls = match waits_for_more && self.state == before {
            true => self.polls.saturating_add(1),
            false => u32::from(waits_for_more),
        };
        let first_rest = match self.state {
            BrokerState::PendingControlledShutdown => FIRST_SHUTDOWN_POLL_MS,
            _ => FIRST_POLL_MS,
        };
        let interval = self.settings.heartbeat_interval_ms;
        self.due_ms = now_ms
            + match (is_news, self.polls) {
                (true, _) => 0,
                (false, 0) => interval,
                (false, polls) => doubled(first_rest, polls, interval),
            };
    }

    /// The controller refused the request that was on its way, or it was lost.
    pub fn on_failure(&mut self, now_ms: i64) {
        let is_news = std::mem::take(&mut self.is_news);
        self.in_flight = false;
        self.failures = self.failures.saturating_add(1);
        let rest = doubled(
            FIRST_BACKOFF_MS,
            self.failures,
            self.settings.heartbeat_interval_ms,
        );
        self.due_ms = match is_news {
            true => now_ms,
            false => now_ms + rest,
        };
    }

    /// The controller knows this run no more: another process has registered under this id, or the broker was taken out
    /// of the cluster. One that has not come to run never will.
    pub fn on_stale_epoch(&mut self, now_ms: i64) {
        if self.state < BrokerState::Running {
            self.is_superseded = true;
            self.state = BrokerState::ShuttingDown;
        }
        self.last_success_ms = None;
        self.on_failure(now_ms);
    }

    /// Makes a request due, at the latest when the one on its way is answered.
    fn make_due(&mut self, now_ms: i64) {
        self.is_news = self.in_flight;
        self.due_ms = self.due_ms.min(now_ms);
    }

    /// Notes a success; says whether there is something that the request did not tell.
    fn settle(&mut self) -> bool {
        self.in_flight = false;
        self.failures = 0;
        std::mem::take(&mut self.is_news)
    }
}

/// `first`, doubled with each time after the first, but at most `max`.
fn doubled(first: i64, times: u32, max: i64) -> i64 {
    let doublings = times.saturating_sub(1).min(MAX_DOUBLINGS);
    first.saturating_mul(1 << doublings).min(max.max(1))
}

#[cfg(test)]
mod tests;
