//! Which fault comes next: the same for the same seed.

use std::fmt;
use std::time::Duration;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `kill -9` of a node; what it wrote is in the page cache and survives.
    Kill,
    /// A clean stop of a node.
    Stop,
    /// SIGSTOP of a node.
    Pause,
    /// A node that nobody reaches.
    Isolate,
    /// Two nodes that do not reach each other.
    Cut,
    /// One node does not hear another.
    CutOneWay,
    /// All that two nodes say to each other comes late.
    Delay,
    /// `kill -9` of a node that finds an older image of its partitions when it comes back.
    LostTail,
    /// A node's disk has no space left; when it has again, the node is ended with `kill -9` and started.
    DiskFull,
    /// A node's wall clock jumps by minutes, and is set right again at the end.
    Clock,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Kill,
        Self::Stop,
        Self::Pause,
        Self::Isolate,
        Self::Cut,
        Self::CutOneWay,
        Self::Delay,
        Self::LostTail,
        Self::DiskFull,
        Self::Clock,
    ];

    /// Its name on a command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Pause => "pause",
            Self::Isolate => "isolate",
            Self::Cut => "cut",
            Self::CutOneWay => "cut-one-way",
            Self::Delay => "delay",
            Self::LostTail => "lost-tail",
            Self::DiskFull => "disk-full",
            Self::Clock => "clock",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One fault: what happens to whom, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What happens.
    pub kind: Kind,
    /// The node to which it happens.
    pub node: i32,
    /// Another node, for faults of links.
    pub other: i32,
    /// By how many seconds a clock jumps; back when it is negative. Never 0.
    pub jump: i64,
    /// How long it lasts.
    pub lasts: Duration,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            node,
            other,
            jump,
            ..
        } = self;
        let seconds = self.lasts.as_secs_f64();
        match kind {
            Kind::Cut | Kind::Delay => write!(f, "{kind} {node} and {other} for {seconds:.1} s"),
            Kind::CutOneWay => write!(f, "{kind} {node} to {other} for {seconds:.1} s"),
            Kind::Clock => write!(f, "{kind} of {node} by {jump:+} s for {seconds:.1} s"),
            _ => write!(f, "{kind} {node} for {seconds:.1} s"),
        }
    }
}

/// An endless row of faults, chosen from a seed: every kind has its turn before one comes again.
#[derive(Debug, Clone)]
pub struct Plan {
    random: SplitMix64,
    kinds: Vec<Kind>,
    /// Kinds whose turn is still to come.
    left: Vec<Kind>,
    nodes: Vec<i32>,
    longest: Duration,
}

impl Plan {
    /// Faults of these kinds on these nodes, each of at most `longest`. Both lists must have a member, and `nodes` two.
    #[must_use]
    pub fn new(seed: u64, kinds: &[Kind], nodes: &[i32], longest: Duration) -> Self {
        Self {
            random: SplitMix64(seed),
            kinds: kinds.to_vec(),
            left: Vec::new(),
            nodes: nodes.to_vec(),
            longest,
        }
    }

    fn choose<T: Copy>(random: &mut SplitMix64, from: &[T]) -> T {
        from[random.index(from.len())]
    }
}

impl Iterator for Plan {
    type Item = Fault;

    fn next(&mut self) -> Option<Fault> {
        let random = &mut self.random;
        if self.left.is_empty() {
            self.left.clone_from(&self.kinds);
        }
        let kind = self.left.swap_remove(random.index(self.left.len()));
        let node = Self::choose(random, &self.nodes);
        let others: Vec<i32> = self
            .nodes
            .iter()
            .copied()
            .filter(|&id| id != node)
            .collect();
        let other = Self::choose(random, &others);
        // Less than the hour by which producers' timestamps may be ahead.
        let seconds = 60 + i64::try_from(random.below(29 * 60)).unwrap_or(0);
        let jump = Self::choose(random, &[seconds, -seconds]);
        let share = 0.1 + 0.9 * (random.below(1000) as f64 / 1000.0);
        Some(Fault {
            kind,
            node,
            other,
            jump,
            lasts: self.longest.mul_f64(share),
        })
    }
}

/// A small random generator whose row is fixed for all times (Steele, Lea and Flood's SplitMix64).
#[derive(Debug, Clone)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// An index into a list of this length.
    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn plan(seed: u64) -> Plan {
        Plan::new(seed, &Kind::ALL, &[1, 2, 3], Duration::from_secs(10))
    }

    #[test]
    fn same_seed_gives_the_same_faults_and_another_gives_others() {
        let first: Vec<Fault> = plan(7).take(50).collect();
        assert!(plan(7).take(50).eq(first.iter().copied()));
        assert!(!plan(8).take(50).eq(first.iter().copied()));
    }

    #[test]
    fn every_kind_and_node_has_its_turn_and_no_node_is_cut_from_itself() {
        let faults: Vec<Fault> = plan(1).take(500).collect();
        for round in faults.chunks_exact(Kind::ALL.len()) {
            let kinds: BTreeSet<Kind> = round.iter().map(|fault| fault.kind).collect();
            assert_eq!(kinds.len(), Kind::ALL.len(), "{round:?}");
        }
        let nodes: BTreeSet<i32> = faults.iter().map(|fault| fault.node).collect();
        assert_eq!(nodes, BTreeSet::from([1, 2, 3]));
        assert!(faults.iter().all(|fault| fault.node != fault.other));
        let minutes = faults.iter().map(|fault| fault.jump / 60);
        assert!(minutes.clone().all(|by| (1..30).contains(&by.abs())));
        assert!(minutes.clone().any(|by| by > 0) && minutes.clone().any(|by| by < 0));
        let lasts = faults.iter().map(|fault| fault.lasts);
        assert!(lasts.clone().all(|lasts| lasts <= Duration::from_secs(10)));
        assert!(lasts.clone().all(|lasts| lasts >= Duration::from_secs(1)));
    }

    #[test]
    fn names_are_read_back() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(Kind::from_name("flood"), None);
    }
}
