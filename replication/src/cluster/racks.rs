//! Racks and their brokers taking turns, as Kafka's placement does: the replicas of a partition go to as many racks as
//! there are, the next partition begins one rack and one broker further on, and once every broker has led, the order is
//! shuffled, so that partitions do not fall into groups with the same brokers.
//!
//! Nothing is random here: the shuffle is drawn from a seed.

use std::collections::BTreeMap;

use highwater_storage::types::BrokerId;

/// Brokers in a circle.
#[derive(Debug, Default)]
struct Circle {
    brokers: Vec<BrokerId>,
    /// Where this turn began.
    start: usize,
    taken: usize,
    turn: usize,
}

impl Circle {
    /// The next broker of the turn that is not taken yet; another turn begins one broker further on.
    fn next(&mut self, turn: usize) -> Option<BrokerId> {
        let count = self.brokers.len();
        if count == 0 {
            return None;
        }
        if self.turn != turn {
            self.turn = turn;
            self.taken = 0;
            self.start = (self.start + 1) % count;
        }
        if self.taken == count {
            return None;
        }
        self.taken += 1;
        Some(self.brokers[(self.start + self.taken - 1) % count])
    }
}

/// One rack: brokers that serve, and fenced ones, which are used when there are no others.
#[derive(Debug, Default)]
struct Rack {
    unfenced: Circle,
    fenced: Circle,
}

impl Rack {
    fn next(&mut self, turn: usize) -> Option<BrokerId> {
        self.unfenced.next(turn).or_else(|| self.fenced.next(turn))
    }
}

/// All racks, in turn. Brokers without a rack are one rack.
#[derive(Debug)]
pub(super) struct Racks {
    racks: Vec<Rack>,
    /// The rack that the next partition begins with.
    start: usize,
    turn: usize,
    unfenced_count: usize,
    random: SplitMix64,
}

impl Racks {
    /// The racks of `brokers`: rack, id, whether it is fenced. `seed` says where the turns begin.
    pub(super) fn new(
        brokers: impl Iterator<Item = (Option<String>, BrokerId, bool)>,
        seed: u64,
    ) -> Self {
        let mut by_name: BTreeMap<Option<String>, Rack> = BTreeMap::new();
        let mut unfenced_count = 0;
        for (name, id, is_fenced) in brokers {
            let rack = by_name.entry(name).or_default();
            match is_fenced {
                true => rack.fenced.brokers.push(id),
                false => {
                    rack.unfenced.brokers.push(id);
                    unfenced_count += 1;
                }
            }
        }
        let mut racks: Vec<Rack> = by_name.into_values().collect();
        for rack in &mut racks {
            for circle in [&mut rack.unfenced, &mut rack.fenced] {
                circle.brokers.sort_unstable();
                circle.start = position(seed, circle.brokers.len());
            }
        }
        let start = position(seed, racks.len());
        Self {
            racks,
            start,
            turn: 0,
            unfenced_count,
            random: SplitMix64(seed),
        }
    }

    /// The brokers of the next partition: the first, which leads, is not fenced. There must be an unfenced broker, and
    /// as many brokers as replicas.
    pub(super) fn place(&mut self, replicas: usize) -> Vec<BrokerId> {
        if self.turn == self.unfenced_count && self.unfenced_count > 1 {
            self.shuffle();
            self.turn = 0;
        }
        let count = self.racks.len();
        let turn = self.turn;
        let mut placed = Vec::with_capacity(replicas);
        let mut rack_of_leader = None;
        for index in (0..count).map(|step| (self.start + step) % count) {
            if let Some(leader) = self.racks[index].unfenced.next(turn) {
                placed.push(leader);
                rack_of_leader = Some(index);
                break;
            }
        }
        let mut index = self.start % count.max(1);
        // A round over all racks that finds nobody is the last.
        let mut empty_racks = 0;
        while placed.len() < replicas && empty_racks <= count {
            match rack_of_leader {
                // It has had its turn of the first round.
                Some(of_leader) if of_leader == index => rack_of_leader = None,
                _ => match self.racks[index].next(turn) {
                    Some(broker) => {
                        placed.push(broker);
                        empty_racks = 0;
                    }
                    None => empty_racks += 1,
                },
            }
            index = (index + 1) % count;
        }
        self.turn += 1;
        self.start = (self.start + 1) % count.max(1);
        placed
    }

    fn shuffle(&mut self) {
        self.random.shuffle(&mut self.racks);
        for rack in &mut self.racks {
            self.random.shuffle(&mut rack.unfenced.brokers);
            self.random.shuffle(&mut rack.fenced.brokers);
        }
    }
}

fn position(seed: u64, count: usize) -> usize {
    (seed % count.max(1) as u64) as usize
}

/// Where the replicas of a topic with so many partitions would go on these brokers (rack, id), as the controller would
/// place them: one list a partition, spread over brokers and racks. There must be as many brokers as replicas. `seed`
/// says where the turns begin.
pub fn spread_replicas(
    brokers: &[(Option<&str>, BrokerId)],
    partitions: usize,
    replicas: usize,
    seed: u64,
) -> Vec<Vec<BrokerId>> {
    let brokers = brokers
        .iter()
        .map(|(rack, id)| (rack.map(str::to_owned), *id, false));
    let mut racks = Racks::new(brokers, seed);
    (0..partitions).map(|_| racks.place(replicas)).collect()
}

/// Steele, Lea and Flood's generator: enough to mix an order.
#[derive(Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = position(self.next(), last + 1);
            items.swap(last, other);
        }
    }
}
