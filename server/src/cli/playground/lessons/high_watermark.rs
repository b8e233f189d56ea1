//! The high watermark in four steps: a record is committed only when the leader has heard that all in-sync replicas
//! have it, and it hears that with their next fetch.

use super::super::action::Action;
use super::{Lesson, Seen, Step, when};

const RECORDS: i64 = 2;

pub(super) static LESSON: Lesson = Lesson {
    name: "high-watermark",
    title: "The high watermark in four steps",
    about: "Where consumers may read to, and why that lags one fetch behind what is really written. The network is held \
            so that each message between leader and followers can be watched by itself.",
    lag_ms: 120_000,
    replicas: &[1, 2, 3],
    min_isr: 2,
    steps: &[
        Step {
            title: "The leader appends",
            text: "Answers from broker 1 to its followers are held in the network. Two records, m0 and m1, are produced \
                   with acks=1: the leader writes them and acknowledges. Its log end offset (LEO) is 2, the followers' \
                   is 0, and so is the high watermark (HW): no consumer can read them.",
            acts: || {
                vec![
                    Action::Cut {
                        from: 1,
                        to: 2,
                        cut: true,
                    },
                    Action::Cut {
                        from: 1,
                        to: 3,
                        cut: true,
                    },
                    Action::Produce {
                        count: 2,
                        acks: Some(1),
                        to: Some(1),
                        prefix: None,
                    },
                ]
            },
            check: |seen| {
                let is_so = ends(seen) == [Some(RECORDS), Some(0), Some(0)] && hw(seen) == Some(0);
                when(
                    is_so,
                    || "LEO 2, 0, 0: the smallest is 0, so HW 0.".to_owned(),
                    "broker 1 at LEO 2, the others and the high watermark at 0",
                )
            },
        },
        Step {
            title: "One follower fetches",
            text: "Broker 2 is let through. It fetches both records, and with its next fetch, which asks from offset 2 on, \
                   the leader knows that it has them. Broker 3 is in the ISR too and has nothing: the high watermark is \
                   the smallest LEO of the ISR, and stays 0.",
            acts: || {
                vec![Action::Cut {
                    from: 1,
                    to: 2,
                    cut: false,
                }]
            },
            check: |seen| {
                let is_so =
                    ends(seen) == [Some(RECORDS), Some(RECORDS), Some(0)] && hw(seen) == Some(0);
                when(
                    is_so,
                    || "LEO 2, 2, 0: the smallest is still 0.".to_owned(),
                    "brokers 1 and 2 at LEO 2, broker 3 and the high watermark at 0",
                )
            },
        },
        Step {
            title: "The other fetches, and the leader does not know",
            text: "Broker 3 gets the answer that was held, and writes both records. Its next fetch is held instead. Now all \
                   three logs have everything, and still the high watermark is 0: the leader learns a follower's LEO only \
                   from the offset that its next fetch asks for.",
            acts: || {
                vec![
                    Action::Cut {
                        from: 3,
                        to: 1,
                        cut: true,
                    },
                    Action::Cut {
                        from: 1,
                        to: 3,
                        cut: false,
                    },
                ]
            },
            check: |seen| {
                let is_so = ends(seen) == [Some(RECORDS); 3] && hw(seen) == Some(0);
                when(
                    is_so,
                    || "LEO 2, 2, 2 and HW 0: written three times, committed not yet.".to_owned(),
                    "all brokers at LEO 2 and the high watermark at 0",
                )
            },
        },
        Step {
            title: "The next fetch commits",
            text: "Broker 3's fetch arrives: it asks from offset 2 on, which says that it has all before. The high \
                   watermark is 2 and consumers can read. The followers are told with the answers to their fetches, so \
                   theirs moves last.",
            acts: || vec![Action::Heal],
            check: |seen| {
                let all: Vec<_> = seen
                    .now
                    .brokers
                    .iter()
                    .map(|broker| broker.high_watermark)
                    .collect();
                when(
                    all == [Some(RECORDS); 3],
                    || "HW 2 on the leader, then on both followers.".to_owned(),
                    "the high watermark at 2 on all brokers",
                )
            },
        },
    ],
};

fn ends(seen: &Seen<'_>) -> Vec<Option<i64>> {
    let brokers = seen.now.brokers.iter();
    brokers.map(|broker| broker.log_end_offset).collect()
}

fn hw(seen: &Seen<'_>) -> Option<i64> {
    seen.now.leader_high_watermark()
}

#[cfg(test)]
mod tests {
    use super::super::super::view::tests::healthy;
    use super::super::Check;
    use super::*;

    #[test]
    fn each_step_has_its_own_picture() {
        let pictures = [
            healthy([2, 0, 0], 0),
            healthy([2, 2, 0], 0),
            healthy([2, 2, 2], 0),
            healthy([2, 2, 2], 2),
        ];
        for (at, step) in LESSON.steps.iter().enumerate() {
            for (picture, now) in pictures.iter().enumerate() {
                let seen = Seen {
                    now,
                    before: &pictures[0],
                    produced: &[],
                };
                let is_done = matches!((step.check)(&seen), Check::Done(_));
                assert_eq!(is_done, at == picture, "step {at}, picture {picture}");
            }
        }
    }
}
