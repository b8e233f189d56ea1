//! What a seed draws before it begins: the cluster, its times, and which faults there are.

use fastrand::Rng;
use highwater_storage::BrokerId;

use crate::model::clock::Clock;
use crate::model::setup::Setup;

/// Kinds of faults and of administrator's doings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Crash,
    PowerCut,
    Stop,
    Pause,
    Isolate,
    CutOneWay,
    CutFromControllers,
    LoseChannel,
    SlowFollower,
    SlowMetadata,
    NewController,
    HoldParked,
    Wipe,
    PreferredElection,
    UncleanElection,
    Reassign,
    MinIsr,
    DeleteRecords,
}

/// All of them, with how often they come next to each other.
const FAULTS: [(Fault, u32); 18] = [
    (Fault::Crash, 8),
    (Fault::PowerCut, 8),
    (Fault::Stop, 4),
    (Fault::Pause, 6),
    (Fault::Isolate, 6),
    (Fault::CutOneWay, 8),
    (Fault::CutFromControllers, 6),
    (Fault::LoseChannel, 12),
    (Fault::SlowFollower, 8),
    (Fault::SlowMetadata, 8),
    (Fault::NewController, 6),
    (Fault::HoldParked, 2),
    (Fault::Wipe, 2),
    (Fault::PreferredElection, 6),
    (Fault::UncleanElection, 2),
    (Fault::Reassign, 4),
    (Fault::MinIsr, 2),
    (Fault::DeleteRecords, 3),
];

/// The draw of a seed.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) setup: Setup,
    pub(crate) faults: Vec<(Fault, u32)>,
    /// How long there are faults.
    pub(crate) chaos_ms: i64,
    /// How long it takes on average until the next fault.
    pub(crate) fault_every_ms: i64,
    /// How long a fault lasts at most.
    pub(crate) fault_lasts_ms: i64,
    /// How long until the next produce or read on average.
    pub(crate) client_every_ms: i64,
    /// How long messages take at most.
    pub(crate) latency_ms: i64,
    /// Of a hundred messages, how many take much longer, so that those on other connections overtake them.
    pub(crate) straggler_percent: u32,
    /// How often a follower fetches.
    pub(crate) fetch_every_ms: i64,
    /// How often brokers look for metadata.
    pub(crate) metadata_every_ms: i64,
    pub(crate) heartbeat_every_ms: i64,
    /// How long a request may take before it is given up.
    pub(crate) request_timeout_ms: i64,
    /// How long a commit among controllers takes at most.
    pub(crate) commit_ms: i64,
    /// Of a hundred requests to a controller, how many go to any of them rather than to the active one.
    pub(crate) wrong_controller_percent: u32,
}

impl Plan {
    /// Draws.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let session_timeout_ms = rng.i64(1_000..=6_000);
        let setup = draw_setup(rng, session_timeout_ms);
        let may_lose = setup.elr;
        let unclean = setup.unclean;
        let faults = FAULTS.into_iter().filter(|(fault, _)| match fault {
            // Without eligible leader replicas nobody keeps account of brokers that lost records.
            Fault::PowerCut | Fault::Wipe => may_lose,
            Fault::UncleanElection => unclean,
            _ => true,
        });
        let mut faults: Vec<_> = faults.filter(|_| rng.u32(0..5) < 3).collect();
        if faults.is_empty() {
            faults.push((Fault::Crash, 1));
        }
        Self {
            setup,
            faults,
            chaos_ms: rng.i64(8_000..=30_000),
            fault_every_ms: rng.i64(200..=2_500),
            fault_lasts_ms: session_timeout_ms * rng.i64(1..=3),
            client_every_ms: rng.i64(20..=200),
            latency_ms: *pick(rng, &[2, 10, 40, 150]),
            straggler_percent: *pick(rng, &[0, 0, 1, 5]),
            fetch_every_ms: rng.i64(20..=150),
            metadata_every_ms: rng.i64(20..=300),
            heartbeat_every_ms: session_timeout_ms * 2 / 9,
            request_timeout_ms: rng.i64(200..=1_500),
            commit_ms: *pick(rng, &[2, 20, 100]),
            wrong_controller_percent: *pick(rng, &[0, 5, 30]),
        }
    }
}

fn draw_setup(rng: &mut Rng, session_timeout_ms: i64) -> Setup {
    let count = *pick(rng, &[3, 3, 3, 3, 2, 4, 5]);
    let brokers: Vec<BrokerId> = (1..=count).map(BrokerId).collect();
    let mut replicas = brokers.clone();
    rng.shuffle(&mut replicas);
    replicas.truncate(*pick(rng, &[2, 3, 3, 3, 3, 4]));
    let observers = match rng.u32(0..8) {
        0 if replicas.len() > 2 => replicas[replicas.len() - 1..].to_vec(),
        _ => Vec::new(),
    };
    let mut isr = replicas.clone();
    isr.retain(|id| !observers.contains(id));
    let clock = |rng: &mut Rng| Clock {
        offset_ms: rng.i64(0..100_000),
        rate_per_mille: *pick(rng, &[1000, 1000, 1000, 900, 1100, 500, 2000]),
    };
    Setup {
        controllers: 3,
        leader: isr.first().copied(),
        min_isr: *pick(rng, &[1, 2, 2, 2, 3]),
        elr: rng.u32(0..4) > 0,
        unclean: rng.u32(0..10) == 0,
        replica_lag_time_max_ms: rng.i64(500..=5_000),
        session_timeout_ms,
        fetch_records: *pick(rng, &[1, 3, 100]),
        late_reads: rng.u32(0..4) == 0,
        produce_timeout_ms: rng.i64(500..=5_000),
        clocks: brokers.iter().map(|id| (*id, clock(rng))).collect(),
        brokers,
        replicas,
        isr,
        observers,
        ..Setup::default()
    }
}

/// One of several.
pub(crate) fn pick<'a, T>(rng: &mut Rng, of: &'a [T]) -> &'a T {
    &of[rng.usize(0..of.len())]
}
