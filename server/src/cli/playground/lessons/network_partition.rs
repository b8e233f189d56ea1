//! An isolated leader takes writes that nobody else has; they are gone when it is back, without a new write.

use super::super::action::Action;
use super::{Lesson, Step, when};

const OLD: i32 = 1;
const DIRTY: &str = "dirty";

pub(super) static LESSON: Lesson = Lesson {
    name: "network-partition",
    title: "An isolated leader",
    about: "The leader is cut off from everybody else and does not know. What it still acknowledges with acks=1 is a \
            history of its own, and the leader epoch decides which history counts.",
    lag_ms: 10_000,
    replicas: &[1, 2, 3],
    min_isr: 2,
    steps: &[
        Step {
            title: "Something to begin with",
            text: "Three records with acks=all: all replicas have them, they are committed.",
            acts: || {
                vec![Action::Produce {
                    count: 3,
                    acks: Some(-1),
                    to: None,
                    prefix: None,
                }]
            },
            check: |seen| {
                let hw = seen.now.leader_high_watermark();
                when(
                    hw >= Some(3) && seen.now.same_logs(&[1, 2, 3]),
                    || "HW 3 everywhere.".to_owned(),
                    "three committed records",
                )
            },
        },
        Step {
            title: "Cut off, and still taking writes",
            text: "Broker 1 is cut from the other brokers and from the controller, both ways. At once, two records are \
                   produced straight to it with acks=1. It still believes that it leads and acknowledges them. Nobody \
                   else has them, and its high watermark does not move: these are the dirty writes.",
            acts: || {
                vec![
                    Action::Isolate { broker: OLD },
                    Action::Produce {
                        count: 2,
                        acks: Some(1),
                        to: Some(OLD),
                        prefix: Some(DIRTY.to_owned()),
                    },
                ]
            },
            check: |seen| {
                let has = seen.now.broker(OLD).is_some_and(is_dirty);
                let others = [2, 3]
                    .iter()
                    .any(|id| seen.now.broker(*id).is_some_and(is_dirty));
                let acknowledged = seen
                    .produced
                    .iter()
                    .any(|produced| produced.is_acknowledged());
                when(
                    has && !others && acknowledged,
                    || "Acknowledged by broker 1, in no other log.".to_owned(),
                    "two records in broker 1's log alone",
                )
            },
        },
        Step {
            title: "The others elect",
            text: "The controller hears no heartbeat for 3 seconds, fences broker 1 and elects another leader in the next \
                   leader epoch. Broker 1 cannot hear of it: look at what it believes. But its session with the \
                   controller has expired on its side too, and from then on it refuses acks=0 and acks=1, which need \
                   no other replica. (Apache Kafka's leader goes on acknowledging them until it hears of the new \
                   epoch: more dirty writes, the same end.)",
            acts: Vec::new,
            check: |seen| {
                let leader = seen.now.leader().map(|leader| leader.id);
                let newer = seen.now.leader_epoch() > seen.before.leader_epoch();
                when(
                    leader.is_some_and(|leader| leader != OLD) && newer,
                    || {
                        format!(
                            "Broker {} leads in leader epoch {}; broker 1 believes in epoch {}.",
                            leader.unwrap_or(0),
                            seen.now.leader_epoch(),
                            seen.before.leader_epoch()
                        )
                    },
                    "another leader in a later leader epoch",
                )
            },
        },
        Step {
            title: "Two histories",
            text: "Two records to the new leader with acks=all: they take the same offsets as the dirty ones, in a later \
                   epoch. And one more to broker 1 with acks=1, which refuses it now. The same offset with two different \
                   records: only the epoch tells them apart.",
            acts: || {
                vec![
                    Action::Produce {
                        count: 2,
                        acks: Some(-1),
                        to: None,
                        prefix: Some("clean".to_owned()),
                    },
                    Action::Produce {
                        count: 1,
                        acks: Some(1),
                        to: Some(OLD),
                        prefix: Some("late".to_owned()),
                    },
                ]
            },
            check: |seen| {
                let clean = [2, 3].iter().all(|id| {
                    seen.now.broker(*id).is_some_and(|broker| {
                        broker.tail.iter().any(|r| r.value.starts_with("clean"))
                    })
                });
                let refused = seen
                    .produced
                    .iter()
                    .any(|produced| produced.is_refused_with("NOT_LEADER_OR_FOLLOWER"));
                when(
                    clean && refused,
                    || "Broker 1 answers NOT_LEADER_OR_FOLLOWER.".to_owned(),
                    "two new records on brokers 2 and 3, and a refusal of broker 1",
                )
            },
        },
        Step {
            title: "Healed: the dirty writes go",
            text: "The links are whole, and nothing is written. Broker 1 hears of the new leader epoch and becomes a \
                   follower. Its fetch names offset and epoch of what it has last, the leader answers where that epoch \
                   ended, and broker 1 cuts the dirty records off and fetches the clean ones. They were acknowledged with \
                   acks=1, which promised no more than this.",
            acts: || vec![Action::Heal],
            check: |seen| {
                let gone = !seen.now.broker(OLD).is_some_and(is_dirty);
                let same = seen.now.same_logs(&[1, 2, 3]);
                when(
                    gone && same && seen.now.isr().len() == 3,
                    || "No dirty record left, three equal logs, ISR {1, 2, 3}.".to_owned(),
                    "three equal logs without the dirty records",
                )
            },
        },
    ],
};

fn is_dirty(broker: &super::super::view::BrokerView) -> bool {
    broker
        .tail
        .iter()
        .any(|record| record.value.starts_with(DIRTY))
}

#[cfg(test)]
mod tests {
    use super::super::super::view::tests::healthy;
    use super::super::{Check, Seen};
    use super::*;

    #[test]
    fn healed_means_that_no_dirty_record_is_left() {
        let mut now = healthy([5, 5, 5], 5);
        let before = now.clone();
        let check = LESSON.steps[4].check;
        assert!(matches!(
            check(&Seen {
                now: &now,
                before: &before,
                produced: &[]
            }),
            Check::Done(_)
        ));
        now.brokers[0].tail[4].value = "dirty0".to_owned();
        assert!(matches!(
            check(&Seen {
                now: &now,
                before: &before,
                produced: &[]
            }),
            Check::Wait(_)
        ));
    }
}
