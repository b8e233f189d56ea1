//! Who leads the quorum, as an observer finds out: pure.

use crate::config::QuorumVoter;
use crate::controller::ControllerNode;

/// Where a controller can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

/// What a response tells of the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// The leader, if the node that answered knows it.
    pub(super) leader_id: Option<i32>,
    /// The newest epoch that the node knows; -1 if it says none.
    pub(super) epoch: i32,
    /// Where the leader is, if the response says.
    pub(super) address: Option<Address>,
}

/// The quorum as the observer knows it.
#[derive(Debug, Clone)]
pub(super) struct Quorum {
    voters: Vec<QuorumVoter>,
    /// Where to ask while nobody is known to lead: the voters, or the bootstrap servers.
    bootstrap: Vec<Address>,
    next_bootstrap: usize,
    epoch: i32,
    leader: Option<ControllerNode>,
}

impl Quorum {
    /// Nobody is known to lead; the newest epoch known is `epoch`.
    pub(super) fn new(voters: Vec<QuorumVoter>, servers: Vec<(String, u16)>, epoch: i32) -> Self {
        let address = |(host, port)| Address { host, port };
        let bootstrap = match voters.is_empty() {
            true => servers.into_iter().map(address).collect(),
            false => voters
                .iter()
                .map(|voter| address((voter.host.clone(), voter.port)))
                .collect(),
        };
        Quorum {
            voters,
            bootstrap,
            next_bootstrap: 0,
            epoch: epoch.max(0),
            leader: None,
        }
    }

    /// The newest epoch known.
    pub(super) fn epoch(&self) -> i32 {
        self.epoch
    }

    /// Who leads.
    pub(super) fn leader(&self) -> Option<&ControllerNode> {
        self.leader.as_ref()
    }

    /// Where to ask now: the leader, or one of those who may know it; `None` when there is nobody to ask.
    pub(super) fn target(&self) -> Option<Address> {
        match &self.leader {
            Some(leader) => Some(Address {
                host: leader.host.clone(),
                port: leader.port,
            }),
            None => {
                let count = self.bootstrap.len();
                self.bootstrap
                    .get(self.next_bootstrap.checked_rem(count)?)
                    .cloned()
            }
        }
    }

    /// The node that was asked did not answer, or knows no leader: another is asked next.
    pub(super) fn ask_another(&mut self) {
        self.leader = None;
        self.next_bootstrap = self.next_bootstrap.wrapping_add(1);
    }

    /// Takes over what a response tells. Gives whether the leader is another than before.
    pub(super) fn on_told(&mut self, told: Told) -> bool {
        if told.epoch < self.epoch {
            return false;
        }
        if told.epoch > self.epoch {
            self.epoch = told.epoch;
            self.leader = None;
        }
        let is_known = self.leader.is_some();
        let Some(id) = told.leader_id.filter(|_| !is_known) else {
            return false;
        };
        // What this node is configured with comes before what the quorum tells: it may be another way.
        let configured = self.voters.iter().find(|voter| voter.id == id);
        let configured = configured.map(|voter| Address {
            host: voter.host.clone(),
            port: voter.port,
        });
        let Some(address) = configured.or(told.address) else {
            return false;
        };
        self.leader = Some(ControllerNode {
            id,
            epoch: told.epoch,
            host: address.host,
            port: address.port,
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> Address {
        Address {
            host: "controller".to_owned(),
            port,
        }
    }

    fn voters() -> Vec<QuorumVoter> {
        let voter = |id: i32| QuorumVoter {
            id,
            host: "controller".to_owned(),
            port: id as u16,
        };
        vec![voter(1), voter(2), voter(3)]
    }

    fn told(leader_id: Option<i32>, epoch: i32, port: Option<u16>) -> Told {
        Told {
            leader_id,
            epoch,
            address: port.map(address),
        }
    }

    #[test]
    fn each_voter_is_asked_in_turn_until_one_tells_the_leader() {
        let mut quorum = Quorum::new(voters(), Vec::new(), -1);
        for port in [1, 2, 3, 1] {
            assert_eq!(quorum.target(), Some(address(port)));
            quorum.ask_another();
        }
        assert!(quorum.on_told(told(Some(3), 7, None)));
        assert_eq!(quorum.target(), Some(address(3)));
        assert_eq!(quorum.epoch(), 7);
        assert_eq!(
            quorum.leader().map(|leader| (leader.id, leader.epoch)),
            Some((3, 7))
        );
    }

    #[test]
    fn what_is_older_than_what_is_known_is_ignored() {
        let mut quorum = Quorum::new(voters(), Vec::new(), 5);
        assert!(!quorum.on_told(told(Some(1), 4, None)));
        assert_eq!(quorum.leader(), None);
        assert!(quorum.on_told(told(Some(1), 5, None)));
        assert!(
            !quorum.on_told(told(Some(2), 5, None)),
            "an epoch has one leader"
        );
        assert!(!quorum.on_told(told(None, 5, None)), "and keeps it");
        assert_eq!(quorum.target(), Some(address(1)));
        assert!(!quorum.on_told(told(None, 6, None)));
        assert_eq!(quorum.leader(), None, "an election is under way");
    }

    #[test]
    fn without_voters_the_response_says_where_the_leader_is() {
        let servers = vec![("controller".to_owned(), 10)];
        let mut quorum = Quorum::new(Vec::new(), servers, 0);
        assert_eq!(quorum.target(), Some(address(10)));
        assert!(
            !quorum.on_told(told(Some(4), 3, None)),
            "it cannot be reached"
        );
        assert_eq!(quorum.target(), Some(address(10)));
        assert!(quorum.on_told(told(Some(4), 3, Some(44))));
        assert_eq!(quorum.target(), Some(address(44)));
    }

    #[test]
    fn a_configured_address_comes_before_a_told_one() {
        let mut quorum = Quorum::new(voters(), Vec::new(), 0);
        assert!(quorum.on_told(told(Some(2), 1, Some(99))));
        assert_eq!(quorum.target(), Some(address(2)));
    }

    #[test]
    fn a_leader_that_does_not_answer_is_found_again_in_the_same_epoch() {
        let mut quorum = Quorum::new(voters(), Vec::new(), 0);
        assert!(quorum.on_told(told(Some(2), 1, None)));
        quorum.ask_another();
        assert_eq!(quorum.leader(), None);
        assert!(quorum.on_told(told(Some(2), 1, None)));
        assert_eq!(quorum.target(), Some(address(2)));
    }

    #[test]
    fn with_nobody_to_ask_there_is_no_target() {
        assert_eq!(Quorum::new(Vec::new(), Vec::new(), 0).target(), None);
    }
}
