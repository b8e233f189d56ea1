//! When this node asks to lead: some time after it last heard from a leader, not at the same moment as the others, and
//! only if a majority would let it (KIP-996).
//!
//! openraft looks at its own timer only as often as it sends signs of life, so that nodes that were started together
//! ask together, again and again; and it raises its term each time, so that a node that was cut off unseats a leader
//! when it is back. Its timer is off.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openraft::ServerState;
use openraft::network::RaftNetworkFactory;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use uuid::Uuid;

use super::lease::Lease;
use super::log_store::LogStore;
use super::network::{QuorumClient, QuorumNetwork};
use super::types::{LogId, Raft};

/// When a leader, or a candidate that this node votes for, was last heard from.
#[derive(Debug)]
pub(super) struct Contact(Mutex<Option<Instant>>);

impl Contact {
    /// As of a start: if there was a leader before it, there may be one now.
    pub(super) fn new(knows_a_leader: bool) -> Self {
        Self(Mutex::new(knows_a_leader.then(Instant::now)))
    }

    /// Notes that it was heard from now.
    pub(super) fn touch(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    /// Until when nobody else is to lead.
    fn until(&self, lease: Duration) -> Instant {
        self.0.lock().map_or_else(Instant::now, |last| last + lease)
    }
}

/// What decides over pre-votes: how long a leader counts as present after its last sign of life, and the log.
#[derive(Clone)]
pub(super) struct Electorate {
    pub(super) node: u64,
    pub(super) contact: Arc<Contact>,
    pub(super) store: LogStore,
    /// As long as openraft votes for nobody else.
    pub(super) leader_lease: Duration,
    /// What this node may do while it leads.
    pub(super) lease: Arc<Lease>,
}

impl Electorate {
    /// Whether this node may have a say in who leads. One whose log was begun anew may have forgotten what was agreed on
    /// with its vote, and could make one leader who does not have it; until it is up to date, it votes only where nothing
    /// was agreed on yet: in a new cluster.
    pub(super) fn may_vote_for(&self, last_log_id: Option<LogId>) -> bool {
        !self.store.may_lack_entries() || has_only_begun(last_log_id)
    }

    /// Whether this node is about to have a part in the first election of a new cluster: from then on it lacks nothing.
    pub(super) fn is_first_election(&self, last_log_id: Option<LogId>) -> bool {
        self.store.may_lack_entries()
            && has_only_begun(last_log_id)
            && has_only_begun(self.store.last_log_id())
    }

    /// Whether this node would vote for one whose log ends with `last_log_id`: it hears from no leader, is none that a
    /// majority answers, and has no more itself. Promises nothing.
    pub(super) fn would_vote(&self, raft: &Raft, last_log_id: Option<LogId>) -> bool {
        if !self.may_vote_for(last_log_id) {
            return false;
        }
        let is_leader = raft.metrics().borrow().state == ServerState::Leader;
        let leads = is_leader && self.lease.is_valid();
        let hears_a_leader = self.contact.until(self.leader_lease) > Instant::now();
        !leads && !hears_a_leader && last_log_id >= self.store.last_log_id()
    }
}

/// Whether a log has nothing but the entry that every log begins with, or not even that.
fn has_only_begun(last_log_id: Option<LogId>) -> bool {
    last_log_id.is_none_or(|last| last.index == 0)
}

/// Asks for elections.
pub(super) struct ElectionTimer {
    pub(super) raft: Raft,
    pub(super) electorate: Electorate,
    pub(super) network: QuorumNetwork,
    pub(super) others: Vec<u64>,
    /// The most that is waited beyond the lease, and between two attempts.
    pub(super) election_timeout: Duration,
}

impl ElectionTimer {
    /// Runs until the consensus ends on this node.
    pub(super) async fn run(mut self) {
        let mut clients = BTreeMap::new();
        let mut due = self.next_due();
        loop {
            sleep_until(due).await;
            if self.lease_end() > Instant::now() {
                due = self.next_due();
                continue;
            }
            let last_log_id = self.electorate.store.last_log_id();
            if self.electorate.may_vote_for(last_log_id)
                && self.has_pre_votes(&mut clients).await
                && self.may_ask(last_log_id)
                && let Err(error) = self.raft.trigger().elect().await
            {
                tracing::debug!(%error, "no election, the consensus has ended");
                return;
            }
            let quarter = self.election_timeout / 4;
            due = Instant::now() + quarter + random_up_to(self.election_timeout - quarter);
        }
    }

    /// Notes that this node lacks nothing, if this is the first election of a new cluster.
    fn may_ask(&self, last_log_id: Option<LogId>) -> bool {
        if !self.electorate.is_first_election(last_log_id) {
            return true;
        }
        let noted = self.electorate.store.set_up_to_date();
        if let Err(error) = &noted {
            tracing::error!(%error, "no election, the quorum's log cannot be written");
        }
        noted.is_ok()
    }

    /// When whoever leads, if it is silent from now on, has been silent for its lease.
    fn lease_end(&self) -> Instant {
        let lease = self.electorate.leader_lease;
        match self.raft.metrics().borrow().state {
            ServerState::Leader => Instant::now() + lease,
            _ => self.electorate.contact.until(lease),
        }
    }

    /// A while after that, another one each time.
    fn next_due(&self) -> Instant {
        self.lease_end() + random_up_to(self.election_timeout / 2)
    }

    /// Whether a majority would vote for this node. The answers of the rest are not waited for.
    async fn has_pre_votes(&mut self, clients: &mut BTreeMap<u64, QuorumClient>) -> bool {
        let voters = self.others.len() + 1;
        let majority = voters / 2 + 1;
        let last_log_id = self.electorate.store.last_log_id();
        let mut asked = JoinSet::new();
        for other in self.others.clone() {
            let mut client = match clients.remove(&other) {
                Some(client) => client,
                None => self.network.new_client(other, &()).await,
            };
            let patience = self.election_timeout;
            asked.spawn(async move {
                let granted = timeout(patience, client.pre_vote(last_log_id)).await;
                (other, client, granted.unwrap_or(false))
            });
        }
        is_granted_by(majority - 1, &mut asked, |(other, client, granted)| {
            clients.insert(other, client);
            granted
        })
        .await
    }
}

/// Whether so many of those who were asked grant it. `granted` takes each answer; those that come after the last one that
/// is needed are not waited for.
async fn is_granted_by<T: 'static>(
    needed: usize,
    asked: &mut JoinSet<T>,
    mut granted: impl FnMut(T) -> bool,
) -> bool {
    let mut votes = 0;
    while votes < needed
        && let Some(answer) = asked.join_next().await
    {
        votes += usize::from(answer.is_ok_and(&mut granted));
    }
    votes >= needed
}

/// Sends signs of life while this node leads, until the consensus ends on it.
pub(super) async fn send_heartbeats(raft: Raft, interval: Duration) {
    let mut metrics = raft.metrics();
    loop {
        let leads = metrics.wait_for(|metrics| metrics.state == ServerState::Leader);
        let has_ended = leads.await.is_err() || raft.trigger().heartbeat().await.is_err();
        if has_ended {
            return;
        }
        sleep(interval).await;
    }
}

/// Any time from nothing to `longest`.
fn random_up_to(longest: Duration) -> Duration {
    let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
    let random = Uuid::new_v4().as_u64_pair().1 & 0xffff_ffff;
    Duration::from_micros(((u128::from(micros) * u128::from(random)) >> 32) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Voters that answer so; `None` stands for one that never does.
    fn asked(answers: &[Option<bool>]) -> JoinSet<bool> {
        let mut asked = JoinSet::new();
        for answer in answers.iter().copied() {
            asked.spawn(async move {
                match answer {
                    Some(granted) => granted,
                    None => std::future::pending().await,
                }
            });
        }
        asked
    }

    #[tokio::test(start_paused = true)]
    async fn a_majority_is_enough_and_the_silent_are_not_waited_for() {
        let ask = async |needed: usize, answers: &[Option<bool>]| {
            let mut asked = asked(answers);
            let granted = is_granted_by(needed, &mut asked, |granted| granted);
            timeout(Duration::from_secs(60), granted).await.ok()
        };
        let (yes, no, silent) = (Some(true), Some(false), None);
        assert_eq!(ask(0, &[]).await, Some(true), "alone");
        assert_eq!(ask(1, &[yes, silent]).await, Some(true));
        assert_eq!(ask(2, &[yes, silent, no, yes]).await, Some(true));
        assert_eq!(ask(2, &[yes, no, no, no]).await, Some(false));
        assert_eq!(ask(1, &[no, silent]).await, None, "it may still come");
    }

    #[test]
    fn random_times_spread_over_the_whole_range() {
        let times: Vec<_> = (0..200)
            .map(|_| random_up_to(Duration::from_millis(100)))
            .collect();
        assert!(times.iter().all(|time| *time < Duration::from_millis(100)));
        assert!(times.iter().any(|time| *time < Duration::from_millis(20)));
        assert!(times.iter().any(|time| *time > Duration::from_millis(80)));
    }
}
