//! m2 is not lost: a follower that comes back cuts its log where the leader epochs diverge, not at its high watermark.

use super::super::action::Action;
use super::{Check, Lesson, Seen, Step, when};

const RECORD: &str = "m2";

pub(super) static LESSON: Lesson = Lesson {
    name: "epoch-truncation",
    title: "Leader epochs save m2",
    about: "Before Kafka 0.11 a follower that came back cut its log at its high watermark, and a record that both replicas \
            had could vanish. Two replicas, B1 and B2, and the record m2: watch it through two crashes.",
    lag_ms: 120_000,
    replicas: &[1, 2],
    min_isr: 1,
    steps: &[
        Step {
            title: "m0 and m1 are committed",
            text: "Two records with acks=all. Both brokers have them and know it: LEO 2, HW 2.",
            acts: || {
                vec![Action::Produce {
                    count: 2,
                    acks: Some(-1),
                    to: None,
                    prefix: None,
                }]
            },
            check: |seen| {
                let both = [1, 2].iter().all(|id| {
                    seen.now
                        .broker(*id)
                        .is_some_and(|b| b.log_end_offset == Some(2) && b.high_watermark == Some(2))
                });
                when(
                    both,
                    || "LEO 2 and HW 2 on both.".to_owned(),
                    "both brokers at LEO 2 and HW 2",
                )
            },
        },
        Step {
            title: "m2 is in both logs, but nobody knows",
            text: "Broker 2's fetches are held in the network, answers to it are not. m2 is produced with acks=1; the fetch \
                   that waits at the leader is answered, and broker 2 writes m2. Its next fetch does not arrive, so the \
                   leader does not know. Both logs end at 3, both high watermarks are 2: the dangerous moment.",
            acts: || {
                vec![
                    Action::Cut {
                        from: 2,
                        to: 1,
                        cut: true,
                    },
                    Action::Produce {
                        count: 1,
                        acks: Some(1),
                        to: Some(1),
                        prefix: None,
                    },
                ]
            },
            check: |seen| {
                let both = [1, 2]
                    .iter()
                    .all(|id| seen.now.broker(*id).is_some_and(|b| b.has(RECORD)));
                when(
                    both && seen.now.leader_high_watermark() == Some(2),
                    || "LEO 3 and HW 2 on both.".to_owned(),
                    "m2 in both logs, and the high watermark at 2",
                )
            },
        },
        Step {
            title: "The leader loses power",
            text: "Broker 1 is killed. Broker 2 is in sync and leads, in the next leader epoch. Its log is the truth now, \
                   and m2 is in it.",
            acts: || vec![Action::Kill { broker: 1 }, Action::Heal],
            check: |seen| {
                let leads = seen
                    .now
                    .leader()
                    .is_some_and(|leader| leader.id == 2 && leader.has(RECORD));
                when(
                    leads,
                    || {
                        format!(
                            "Broker 2 leads in leader epoch {}, with m2.",
                            seen.now.leader_epoch()
                        )
                    },
                    "broker 2 to lead",
                )
            },
        },
        Step {
            title: "It comes back, and does not cut m2",
            text: "By the old rule broker 1 would cut its log at its high watermark, 2, and throw m2 away, to fetch it \
                   again. By the rule of epochs it asks: my last record is of epoch 0 and my log ends at 3. Broker 2's \
                   log of epoch 0 ends at 3 too: nothing diverges, nothing is cut.",
            acts: || vec![Action::Start { broker: 1 }],
            check: |seen| {
                let kept = seen.now.broker(1).is_some_and(|broker| broker.has(RECORD));
                when(
                    kept && seen.now.isr().contains(&1),
                    || "Broker 1 is in sync and has m2, of epoch 0.".to_owned(),
                    "broker 1 in the ISR, with m2",
                )
            },
        },
        Step {
            title: "The other loses power too",
            text: "Broker 2 is killed. By the old rule, at the wrong moment, broker 1 would lead now without m2, and \
                   broker 2 would throw its own away when it came back: acknowledged, in two logs, and gone. Here broker 1 \
                   leads, and m2 is where it was.",
            acts: || vec![Action::Kill { broker: 2 }],
            check: |seen| {
                let leads = seen
                    .now
                    .leader()
                    .is_some_and(|leader| leader.id == 1 && leader.has(RECORD));
                when(
                    leads,
                    || {
                        format!(
                            "Broker 1 leads in leader epoch {}, with m2.",
                            seen.now.leader_epoch()
                        )
                    },
                    "broker 1 to lead",
                )
            },
        },
        Step {
            title: "Two epochs later",
            text: "Broker 2 is back. m2 lies at offset 2 in both logs, written in epoch 0. leader-epoch-checkpoint on each \
                   broker tells where each epoch began.",
            acts: || vec![Action::Start { broker: 2 }],
            check: |seen| m2_everywhere(seen),
        },
    ],
};

fn m2_everywhere(seen: &Seen<'_>) -> Check {
    let both = [1, 2].iter().all(|id| {
        let broker = seen.now.broker(*id);
        broker.is_some_and(|broker| {
            let mut records = broker.tail.iter();
            records.any(|r| r.value == RECORD && r.offset == 2 && r.leader_epoch == 0)
        })
    });
    when(
        both && seen.now.isr().len() == 2,
        || "m2 at offset 2 of epoch 0, in both logs.".to_owned(),
        "m2 in both logs, and both in sync",
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::view::tests::{elect, healthy};
    use super::*;

    #[test]
    fn m2_counts_only_at_its_offset_and_in_its_epoch() {
        let mut now = healthy([3, 3, 0], 3);
        elect(&mut now, 0, Some(1), 2, &[1, 2]);
        let judge = |now: &_| {
            m2_everywhere(&Seen {
                now,
                before: now,
                produced: &[],
            })
        };
        assert!(matches!(judge(&now), Check::Done(_)));
        now.brokers[0].tail[2].leader_epoch = 1;
        assert!(matches!(judge(&now), Check::Wait(_)), "written anew");
    }
}
