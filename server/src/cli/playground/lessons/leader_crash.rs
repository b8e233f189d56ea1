//! The leader crashes: another in-sync replica leads in the next leader epoch, the old one comes back as a follower.

use super::super::action::Action;
use super::{Lesson, Step, when};

pub(super) static LESSON: Lesson = Lesson {
    name: "leader-crash",
    title: "The leader crashes",
    about: "Who leads next, what the leader epoch is for, and how the old leader finds its place again. Records are \
            produced with acks=all all the time.",
    lag_ms: 10_000,
    replicas: &[1, 2, 3],
    min_isr: 2,
    steps: &[
        Step {
            title: "A healthy partition",
            text: "10 records a second with acks=all. Broker 1 is the first replica of the partition, the preferred \
                   leader, and leads in leader epoch 0. Each record in the logs has the colour of the epoch in which it \
                   was written.",
            acts: || vec![Action::Acks { acks: -1 }, Action::Rate { per_second: 10 }],
            check: |seen| {
                when(
                    seen.now.leader_high_watermark() > Some(5),
                    || "Broker 1 leads, ISR {1, 2, 3}.".to_owned(),
                    "some committed records",
                )
            },
        },
        Step {
            title: "kill -9 the leader",
            text: "The process of broker 1 is gone without a word to anybody. The controller sees that its connections \
                   have ended and fences it (Apache Kafka waits for broker.session.timeout.ms, as is done here for a \
                   broker that is only silent), takes it out of the ISR, and elects the next in-sync replica, with a \
                   leader epoch that is one higher. Until then producers get no answer; then they find the new leader.",
            acts: || vec![Action::Kill { broker: 1 }],
            check: |seen| {
                let leader = seen.now.leader().map(|leader| leader.id);
                let elected = leader.is_some_and(|leader| leader != 1);
                let newer = seen.now.leader_epoch() > seen.before.leader_epoch();
                when(
                    elected && newer && !seen.now.isr().contains(&1),
                    || {
                        format!(
                            "Broker {} leads in leader epoch {} (before: {}).",
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
            title: "Two go on",
            text: "Two in-sync replicas are enough for min.insync.replicas=2: the high watermark moves again. Everything \
                   that was acknowledged is in the new leader's log, because it was in the ISR.",
            acts: Vec::new,
            check: |seen| {
                let moved = seen.now.leader_high_watermark()
                    >= seen.before.leader_high_watermark().map(|hw| hw + 5);
                when(
                    moved,
                    || "New records are committed by two.".to_owned(),
                    "five more committed records",
                )
            },
        },
        Step {
            title: "The old leader comes back",
            text: "Broker 1 starts on the data that it has and finds that it follows now. Its first fetch names its log \
                   end and the epoch of its last record. If the new leader's log of that epoch ends earlier, the answer \
                   says where, and broker 1 cuts there (this is what the OffsetForLeaderEpoch request was made for; \
                   today it is part of Fetch). Then it fetches what it lacks and joins the ISR.",
            acts: || vec![Action::Start { broker: 1 }],
            check: |seen| {
                when(
                    seen.now.isr().contains(&1),
                    || "Broker 1 is in sync again, as a follower.".to_owned(),
                    "broker 1 in the ISR",
                )
            },
        },
        Step {
            title: "The preferred leader leads again",
            text: "Leadership does not go back by itself here. A preferred election (kafka-leader-election.sh \
                   --election-type preferred) gives it to the first replica, in one more leader epoch.",
            acts: || vec![Action::Elect],
            check: |seen| {
                let leads = seen.now.leader().is_some_and(|leader| leader.id == 1);
                when(
                    leads && seen.now.leader_epoch() > seen.before.leader_epoch(),
                    || {
                        format!(
                            "Broker 1 leads in leader epoch {}.",
                            seen.now.leader_epoch()
                        )
                    },
                    "broker 1 to lead again",
                )
            },
        },
        Step {
            title: "Nothing is missing",
            text: "The producer stops. The three logs are the same, across all three epochs.",
            acts: || vec![Action::Rate { per_second: 0 }],
            check: |seen| {
                let quiet = seen.now.leader_end() == seen.now.leader_high_watermark();
                when(
                    quiet && seen.now.same_logs(&[1, 2, 3]),
                    || "Three equal logs.".to_owned(),
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

    #[test]
    fn a_new_leader_without_a_new_epoch_is_none() {
        let before = healthy([5, 5, 5], 5);
        let mut now = before.clone();
        elect(&mut now, 1, Some(2), 0, &[2, 3]);
        let check = LESSON.steps[1].check;
        let judge = |now: &_| {
            check(&Seen {
                now,
                before: &before,
                produced: &[],
            })
        };
        assert!(matches!(judge(&now), Check::Wait(_)));
        elect(&mut now, 1, Some(2), 1, &[2, 3]);
        assert_eq!(
            judge(&now),
            Check::Done("Broker 2 leads in leader epoch 1 (before: 0).".to_owned())
        );
        elect(&mut now, 1, None, 2, &[2, 3]);
        assert!(matches!(judge(&now), Check::Wait(_)));
    }
}
