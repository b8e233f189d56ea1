//! What must hold after every step, one file each, numbered as in the list of invariants that replication is built to.
//!
//! Not here: I16 and I17 are about producer state and transactions, which are above these rules; I18 is about the
//! consensus among controllers, and I19 about recovery of files, which have tests of their own.

mod i01_leader_completeness;
mod i02_candidate_completeness;
mod i03_strong_isr;
mod i04_log_matching;
mod i05_isr_superset;
mod i06_offsets;
mod i07_no_loss;
mod i08_consistent_reads;
mod i09_leader_epochs;
mod i10_monotonic_epochs;
mod i11_controller_state;
mod i12_metadata_prefix;
mod i13_one_fetcher;
mod i14_parked_produces;
mod i15_broker_epochs;
mod i20_follower_reads;

use highwater_replication::cluster::PartitionImage;
use highwater_storage::BrokerId;

use crate::model::broker::Broker;
use crate::model::history::History;
use crate::model::world::World;

/// A check that is made after every step. It may remember what was before.
pub(crate) trait Invariant {
    /// Its number and name.
    fn name(&self) -> &'static str;

    /// Whether it is about what was committed, which may be lost where [`World::may_lose`].
    fn is_about_loss(&self) -> bool {
        false
    }

    /// Whether it holds now; if not, what is wrong.
    fn check(&mut self, world: &World) -> Result<(), String>;
}

/// All of them, for one run.
pub(crate) struct Invariants {
    all: Vec<Box<dyn Invariant>>,
}

impl Invariants {
    pub(crate) fn new() -> Self {
        let all: Vec<Box<dyn Invariant>> = vec![
            Box::new(i01_leader_completeness::LeaderCompleteness::default()),
            Box::new(i02_candidate_completeness::CandidateCompleteness::default()),
            Box::new(i03_strong_isr::StrongIsr),
            Box::new(i04_log_matching::LogMatching::default()),
            Box::new(i05_isr_superset::IsrSuperset),
            Box::new(i06_offsets::Offsets::default()),
            Box::new(i07_no_loss::NoLoss::default()),
            Box::new(i08_consistent_reads::ConsistentReads),
            Box::new(i09_leader_epochs::LeaderEpochs::default()),
            Box::new(i10_monotonic_epochs::MonotonicEpochs::default()),
            Box::new(i11_controller_state::ControllerState::default()),
            Box::new(i12_metadata_prefix::MetadataPrefix::default()),
            Box::new(i13_one_fetcher::OneFetcher),
            Box::new(i14_parked_produces::ParkedProduces),
            Box::new(i15_broker_epochs::BrokerEpochs::default()),
            Box::new(i20_follower_reads::FollowerReads::default()),
        ];
        Self { all }
    }

    /// The first that does not hold, by name, and what is wrong.
    pub(crate) fn check(&mut self, world: &World) -> Result<(), String> {
        for invariant in &mut self.all {
            if world.may_lose && invariant.is_about_loss() {
                continue;
            }
            invariant
                .check(world)
                .map_err(|wrong| format!("{}: {wrong}", invariant.name()))?;
        }
        match world.history.violations.first() {
            Some(_) if world.may_lose => Ok(()),
            None => Ok(()),
            Some(wrong) => Err(format!("seen as it happened: {wrong}")),
        }
    }
}

/// The broker, if its process is the one that is registered.
fn registered(world: &World, id: BrokerId) -> Option<&Broker> {
    let broker = world.brokers.get(&id)?;
    let run = broker.run.as_ref()?;
    let registration = world.metadata.latest().broker(id)?;
    (run.epoch == Some(registration.epoch)).then_some(broker)
}

/// min.insync.replicas, or the number of replicas that can be in sync at all if that is smaller.
fn effective_min_isr(world: &World, partition: &PartitionImage) -> usize {
    let replicas = partition.replicas.iter();
    let voters = replicas.filter(|id| !world.setup.observers.contains(id));
    world.min_isr().min(voters.count())
}

/// Whether a broker's log has all that is committed, as far as its log start; if not, what it lacks.
fn lacks_nothing(broker: &Broker, history: &History) -> Result<(), String> {
    let log = &broker.log;
    let from = log.start_offset();
    for (offset, committed) in (0..).zip(&history.committed).skip(from.max(0) as usize) {
        match log.get(offset) {
            Some(record) if record == *committed => {}
            other => {
                return Err(format!(
                    "broker {} has {other:?} at {offset}, where {committed:?} is committed",
                    broker.id
                ));
            }
        }
    }
    if from > history.true_high_watermark() {
        return Err(format!(
            "the log of broker {} begins at {from}, beyond the true high watermark {}",
            broker.id,
            history.true_high_watermark()
        ));
    }
    Ok(())
}

/// Remembers for which versions of logs something was found to hold, so that it is not looked at again.
#[derive(Debug, Default)]
struct Seen {
    key: Vec<(BrokerId, u64)>,
    committed: usize,
}

impl Seen {
    /// Whether this is the same as the last time.
    fn is_same(&mut self, key: Vec<(BrokerId, u64)>, history: &History) -> bool {
        let committed = history.committed.len() + history.unclean_elections * 1_000_000;
        let same = self.key == key && self.committed == committed;
        self.key = key;
        self.committed = committed;
        same
    }
}
