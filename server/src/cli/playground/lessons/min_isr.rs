//! acks=all against min.insync.replicas=2, with 3, 2, 1 and no in-sync replicas that are there.

use super::super::action::Action;
use super::{Check, Lesson, Seen, Step, when};

pub(super) static LESSON: Lesson = Lesson {
    name: "min-isr",
    title: "min.insync.replicas, row by row",
    about: "acks=all waits for all in-sync replicas, however few they are. min.insync.replicas says how few are too few. \
            Here it is 2 of 3.",
    lag_ms: 10_000,
    replicas: &[1, 2, 3],
    min_isr: 2,
    steps: &[
        Step {
            title: "3 in sync: acknowledged",
            text: "One record with acks=all. All three have it before the answer comes.",
            acts: || vec![one(-1)],
            check: |seen| acknowledged_with(seen, 3),
        },
        Step {
            title: "2 in sync: acknowledged",
            text: "Broker 3 is killed and leaves the ISR. Two are in sync, the fewest that are allowed: one broker may fail \
                   and everything goes on.",
            acts: || vec![Action::Kill { broker: 3 }],
            check: |seen| {
                when(
                    seen.now.isr().len() == 2,
                    || "ISR {1, 2}.".to_owned(),
                    "two in-sync replicas",
                )
            },
        },
        Step {
            title: "… so it is",
            text: "One record with acks=all to the two.",
            acts: || vec![one(-1)],
            check: |seen| acknowledged_with(seen, 2),
        },
        Step {
            title: "1 in sync: refused",
            text: "Broker 2 is killed too. The leader is alone, and still takes part: the controller is a process of its \
                   own, so the ISR really shrinks to one.",
            acts: || vec![Action::Kill { broker: 2 }],
            check: |seen| {
                when(
                    seen.now.isr() == [1],
                    || "ISR {1}.".to_owned(),
                    "one in-sync replica",
                )
            },
        },
        Step {
            title: "… NOT_ENOUGH_REPLICAS",
            text: "The same record with acks=all: refused before anything is written, the log end offset stays. With \
                   acks=1 the next one is taken: min.insync.replicas is only for acks=all. Taken, but not committed: the \
                   high watermark does not move while the ISR is too small.",
            acts: || vec![one(-1), one(1)],
            check: |seen| {
                let refused = seen
                    .produced
                    .iter()
                    .any(|p| p.acks == -1 && p.is_refused_with("NOT_ENOUGH_REPLICAS"));
                let taken = seen
                    .produced
                    .iter()
                    .any(|p| p.acks == 1 && p.is_acknowledged());
                when(
                    refused && taken,
                    || "acks=all: NOT_ENOUGH_REPLICAS. acks=1: written by one.".to_owned(),
                    "a refusal of acks=all and an acknowledgement of acks=1",
                )
            },
        },
        Step {
            title: "None of the ISR alive: no leader",
            text: "Broker 1, the last of the ISR, is killed, and broker 3 comes back. It does not have all that was \
                   acknowledged, so it may not lead: with unclean.leader.election.enable=false nobody does, until one \
                   comes back that has everything. The partition stands still rather than lose something.",
            acts: || vec![Action::Kill { broker: 1 }, Action::Start { broker: 3 }],
            check: |seen| {
                let decided = seen.now.decided();
                let is_so = decided.is_some_and(|decided| decided.leader.is_none());
                when(
                    is_so,
                    || "Nobody leads.".to_owned(),
                    "a partition without a leader",
                )
            },
        },
        Step {
            title: "… refused",
            text: "One record with acks=all to the broker that is there. It does not lead. A real client \
                   looks for the leader again and again until delivery.timeout.ms is over.",
            acts: || vec![one(-1)],
            check: |seen| {
                let refused = seen
                    .produced
                    .iter()
                    .any(|p| p.is_refused_with("NOT_LEADER_OR_FOLLOWER"));
                when(
                    refused,
                    || "NOT_LEADER_OR_FOLLOWER.".to_owned(),
                    "a refusal",
                )
            },
        },
        Step {
            title: "Everybody is back",
            text: "Brokers 1 and 2 are started. Broker 1 was the last in the ISR and leads again, the others fetch what \
                   they lack and join.",
            acts: || vec![Action::Start { broker: 1 }, Action::Start { broker: 2 }],
            check: |seen| {
                when(
                    seen.now.isr().len() == 3,
                    || "ISR {1, 2, 3}.".to_owned(),
                    "three in-sync replicas",
                )
            },
        },
        Step {
            title: "3 in sync: acknowledged",
            text: "One record with acks=all, as in the beginning. Nothing that was acknowledged with acks=all was ever \
                   lost; what was taken with acks=1 survived because broker 1 did.",
            acts: || vec![one(-1)],
            check: |seen| match acknowledged_with(seen, 3) {
                Check::Done(_) if !seen.now.same_logs(&[1, 2, 3]) => {
                    Check::Wait("three equal logs".to_owned())
                }
                other => other,
            },
        },
    ],
};

fn one(acks: i16) -> Action {
    Action::Produce {
        count: 1,
        acks: Some(acks),
        to: None,
        prefix: None,
    }
}

fn acknowledged_with(seen: &Seen<'_>, isr: usize) -> Check {
    let is_so = seen
        .produced
        .iter()
        .any(|p| p.acks == -1 && p.is_acknowledged());
    when(
        is_so && seen.now.isr().len() == isr,
        || format!("Acknowledged with {isr} in sync."),
        "an acknowledgement",
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::producer::{Outcome, Produced};
    use super::super::super::view::tests::{elect, healthy};
    use super::*;

    fn produced(acks: i16, outcome: Outcome) -> Produced {
        Produced {
            number: 0,
            first: "m0".to_owned(),
            count: 1,
            broker: Some(1),
            acks,
            outcome,
            isr: 1,
        }
    }

    #[test]
    fn the_row_of_one_needs_the_refusal_and_the_acknowledgement() {
        let mut now = healthy([4, 3, 2], 3);
        elect(&mut now, 0, Some(1), 0, &[1]);
        let refused = produced(-1, Outcome::Refused("NOT_ENOUGH_REPLICAS".to_owned()));
        let taken = produced(1, Outcome::Acknowledged(3));
        let check = LESSON.steps[4].check;
        let judge = |produced: &[Produced]| {
            check(&Seen {
                now: &now,
                before: &now,
                produced,
            })
        };
        assert!(matches!(
            judge(std::slice::from_ref(&refused)),
            Check::Wait(_)
        ));
        assert!(matches!(judge(&[refused, taken]), Check::Done(_)));
    }

    #[test]
    fn an_acknowledgement_counts_for_as_many_as_are_in_sync() {
        let now = healthy([1, 1, 1], 1);
        let produced = [produced(-1, Outcome::Acknowledged(0))];
        let seen = Seen {
            now: &now,
            before: &now,
            produced: &produced,
        };
        assert!(matches!(acknowledged_with(&seen, 3), Check::Done(_)));
        assert!(matches!(acknowledged_with(&seen, 2), Check::Wait(_)));
    }
}
