//! A slow follower leaves the ISR after a time, however many records it lacks, holds nobody up any more, and comes back.

use super::super::action::Action;
use super::{Lesson, Step, when};

const SLOW: i32 = 3;
/// Records that make it plain that the high watermark goes on.
const PLAIN: i64 = 20;

pub(super) static LESSON: Lesson = Lesson {
    name: "slow-follower",
    title: "A slow follower, and its return",
    about: "What happens to the other replicas and to producers when one follower cannot keep up, and when it may come \
            back. replica.lag.time.max.ms is 4 seconds here; Kafka's default is 30.",
    lag_ms: 4000,
    replicas: &[1, 2, 3],
    min_isr: 2,
    steps: &[
        Step {
            title: "All keep up",
            text: "20 records a second with acks=all. All three are in sync: the log ends and the high watermark move \
                   together.",
            acts: || vec![Action::Acks { acks: -1 }, Action::Rate { per_second: 20 }],
            check: |seen| {
                let moved =
                    seen.now.leader_high_watermark() > Some(10) && seen.now.isr().len() == 3;
                when(
                    moved,
                    || "Everything that is written is committed at once, ISR {1, 2, 3}.".to_owned(),
                    "more than 10 committed records with all three in sync",
                )
            },
        },
        Step {
            title: "One gets slow",
            text: "What broker 3 fetches trickles in at 200 bytes a second. It fetches all the time and falls behind all \
                   the same. For 4 seconds the high watermark waits for it, and producers with acks=all wait too. Then \
                   the leader asks the controller to take it out of the ISR: it has not caught up for \
                   replica.lag.time.max.ms.",
            acts: || {
                vec![Action::Slow {
                    broker: SLOW,
                    slow: true,
                }]
            },
            check: |seen| {
                let isr = seen.now.isr();
                when(
                    !isr.is_empty() && !isr.contains(&SLOW),
                    || "ISR {1, 2}.".to_owned(),
                    "broker 3 to leave the ISR",
                )
            },
        },
        Step {
            title: "The others go on without it",
            text: "The high watermark is the smallest log end offset of the ISR, and broker 3 is not in it: it moves on, \
                   and acks=all with min.insync.replicas=2 is satisfied by two. Compare broker 3's log end offset with \
                   the high watermark.",
            acts: Vec::new,
            check: |seen| {
                let behind = seen
                    .now
                    .broker(SLOW)
                    .and_then(|broker| broker.log_end_offset);
                let hw = seen.now.leader_high_watermark();
                let went_on = hw >= seen.before.leader_high_watermark().map(|hw| hw + PLAIN);
                when(
                    went_on && behind < hw,
                    || {
                        format!(
                            "HW {}, broker 3 at LEO {}.",
                            hw.unwrap_or(0),
                            behind.unwrap_or(0)
                        )
                    },
                    "20 more committed records, which broker 3 lacks",
                )
            },
        },
        Step {
            title: "It catches up and comes back",
            text: "Broker 3 is quick again. It fetches what it lacks, and as soon as one of its fetches asks for the \
                   high watermark or more, the leader asks the controller to add it to the ISR.",
            acts: || {
                vec![Action::Slow {
                    broker: SLOW,
                    slow: false,
                }]
            },
            check: |seen| {
                when(
                    seen.now.isr().len() == 3,
                    || "ISR {1, 2, 3} again.".to_owned(),
                    "broker 3 in the ISR",
                )
            },
        },
        Step {
            title: "All logs are the same",
            text: "The producer stops. Nothing is missing anywhere: leaving the ISR never lost a record, it only said \
                   who is waited for.",
            acts: || vec![Action::Rate { per_second: 0 }],
            check: |seen| {
                let same = seen.now.same_logs(&[1, 2, 3]);
                let committed = seen.now.leader_end() == seen.now.leader_high_watermark();
                when(
                    same && committed,
                    || "Three equal logs, all of it committed.".to_owned(),
                    "three equal logs",
                )
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::super::view::tests::{elect, healthy};
    use super::super::{Check, Seen};
    use super::*;

    fn is_done(step: usize, seen: &Seen<'_>) -> bool {
        matches!((LESSON.steps[step].check)(seen), Check::Done(_))
    }

    #[test]
    fn it_is_out_when_the_isr_says_so_and_the_rest_goes_on() {
        let before = healthy([50, 50, 50], 50);
        let mut now = healthy([80, 80, 55], 80);
        let seen = Seen {
            now: &now,
            before: &before,
            produced: &[],
        };
        assert!(!is_done(1, &seen), "still in the ISR");
        elect(&mut now, 0, Some(1), 0, &[1, 2]);
        let seen = Seen {
            now: &now,
            before: &before,
            produced: &[],
        };
        assert!(is_done(1, &seen) && is_done(2, &seen) && !is_done(3, &seen));
        let seen = Seen {
            now: &before,
            before: &before,
            produced: &[],
        };
        assert!(is_done(3, &seen) && is_done(4, &seen));
    }
}
