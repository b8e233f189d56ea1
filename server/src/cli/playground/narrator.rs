//! A line of text for each thing that happens, with the rule that made it happen. Pure: log lines of the nodes and views
//! in, events out.

use serde_json::Value;

use super::view::View;

/// What an event is about; the page marks each with a sign and a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Somebody did it here.
    Control,
    /// Who leads.
    Leader,
    /// Who is in sync.
    Isr,
    /// What is committed.
    HighWatermark,
    /// Something old was refused.
    Fenced,
    /// A log was cut.
    Truncated,
    /// A produce was refused.
    Refused,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Control => "control",
            Kind::Leader => "leader",
            Kind::Isr => "isr",
            Kind::HighWatermark => "high watermark",
            Kind::Fenced => "fenced",
            Kind::Truncated => "truncated",
            Kind::Refused => "refused",
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: Kind,
    pub(super) text: String,
    /// The rule that did it; empty where nothing but a person did.
    pub(super) rule: &'static str,
    /// A move of the high watermark from here; moves in a row are one line.
    pub(super) moved_from: Option<i64>,
}

impl Event {
    pub(super) fn new(kind: Kind, text: impl Into<String>, rule: &'static str) -> Self {
        Event {
            kind,
            text: text.into(),
            rule,
            moved_from: None,
        }
    }

    /// This line in place of `before`, when both are moves of the high watermark.
    pub(super) fn merged(&self, before: &Event) -> Option<Event> {
        let from = before.moved_from?;
        let own_from = self.moved_from?;
        let text = self
            .text
            .replacen(&own_from.to_string(), &from.to_string(), 1);
        Some(Event {
            text,
            moved_from: Some(from),
            ..self.clone()
        })
    }
}

/// What became other between two looks at the cluster.
pub(super) fn of_views(before: &View, now: &View) -> Vec<Event> {
    let mut events = Vec::new();
    if before.topic != now.topic {
        return events;
    }
    // Where no broker answered for a while, what was known last before that.
    let (Some(was), Some(is)) = (before.last_decided(), now.decided()) else {
        return events;
    };
    if was.leader != is.leader || was.leader_epoch != is.leader_epoch {
        let (from, to) = (who(was.leader), who(is.leader));
        let text = format!(
            "Leader: {from} → {to}. Leader epoch: {} → {}.",
            was.leader_epoch, is.leader_epoch
        );
        let rule = match is.leader {
            Some(leader) if was.isr.contains(&leader) => {
                "The controller elects from the in-sync replicas and adds one to the leader epoch."
            }
            Some(_) if is.leader_epoch > was.leader_epoch + 1 => {
                "There were several elections between two looks. Each adds one to the leader epoch."
            }
            Some(_) => {
                "An unclean election, and what the new leader lacks is lost; or one of an eligible leader replica, which \
                 has everything that is committed. The new leader was not in the ISR."
            }
            None => {
                "No replica that is sure to have everything that is committed can lead, so nobody does."
            }
        };
        events.push(Event::new(Kind::Leader, text, rule));
    }
    if sorted(&was.isr) != sorted(&is.isr) {
        let left: Vec<i32> = minus(&was.isr, &is.isr);
        let joined: Vec<i32> = minus(&is.isr, &was.isr);
        let text = format!("ISR: {} → {}.", set(&was.isr), set(&is.isr));
        let rule = match (left.is_empty(), joined.is_empty()) {
            (false, true) => {
                "A replica leaves when its broker is fenced, or when it has not caught up for \
                 replica.lag.time.max.ms; how many records it lacks does not matter."
            }
            (true, false) => {
                "A replica joins when its fetch asks for the leader's high watermark or more, and for no less than where \
                 the leader epoch begins."
            }
            _ => "The controller records each change with a new partition epoch.",
        };
        events.push(Event::new(Kind::Isr, text, rule));
    }
    let moved = before
        .leader_high_watermark()
        .zip(now.leader_high_watermark());
    if let Some((from, to)) = moved.filter(|(from, to)| from != to && was.leader == is.leader) {
        let text = format!("High watermark: {from} → {to}. ISR {}.", set(&is.isr));
        events.push(Event {
            moved_from: Some(from),
            ..Event::new(
                Kind::HighWatermark,
                text,
                "It is the smallest log end offset among the in-sync replicas, as far as their fetches have told the leader.",
            )
        });
    }
    events
}

fn who(leader: Option<i32>) -> String {
    leader.map_or_else(|| "nobody".to_owned(), |leader| format!("broker {leader}"))
}

fn sorted(ids: &[i32]) -> Vec<i32> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids
}

fn minus(all: &[i32], without: &[i32]) -> Vec<i32> {
    let left = all.iter().filter(|id| !without.contains(id));
    left.copied().collect()
}

/// `{1, 2}`.
pub(super) fn set(ids: &[i32]) -> String {
    let ids: Vec<String> = sorted(ids).iter().map(i32::to_string).collect();
    format!("{{{}}}", ids.join(", "))
}

/// What a line of a node's log, as JSON, means for the topic; `None` for what is of no interest here.
pub(super) fn of_log(node: &str, line: &str, topic: &str) -> Option<Event> {
    let line: Value = serde_json::from_str(line).ok()?;
    let field = |name: &str| match line.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "?".to_owned(),
    };
    let message = line.get("message")?.as_str()?;
    if message == "fenced a broker that is silent" {
        let text = format!("The controller fences broker {}.", field("broker_id"));
        let rule = "Its heartbeats have stopped for broker.session.timeout.ms, or its process is gone and their connection with \
                    it. A fenced broker leads nothing and is in no ISR.";
        return Some(Event::new(Kind::Fenced, text, rule));
    }
    let partition = format!("{topic}-0");
    let is_ours = ["topic_partition", "what"].iter().any(|name| {
        line.get(*name)
            .and_then(Value::as_str)
            .is_some_and(|what| what.contains(&partition))
    });
    if !is_ours {
        return None;
    }
    let epoch = field("leader_epoch");
    Some(match message {
        "leading" => Event::new(
            Kind::Leader,
            format!(
                "{node} leads in leader epoch {epoch}, from its log end offset {} on.",
                field("log_end_offset")
            ),
            "A new leader's log is the truth: it keeps what it has, and notes where its epoch begins.",
        ),
        "following" => Event::new(
            Kind::Leader,
            format!(
                "{node} follows broker {} in leader epoch {epoch}, its own log ends at {}.",
                field("leader"),
                field("log_end_offset")
            ),
            "A follower asks from its log end on and names the epoch of its last record; the leader says where they \
             diverge.",
        ),
        "shrinking the in-sync replicas" => Event::new(
            Kind::Isr,
            format!(
                "{node} asks the controller to take {} out of the ISR (leader epoch {epoch}).",
                set(&numbers(&field("leaving")))
            ),
            "A follower that has not caught up for replica.lag.time.max.ms is out of sync.",
        ),
        "expanding the in-sync replicas" => Event::new(
            Kind::Isr,
            format!(
                "{node} asks the controller to add broker {} to the ISR (leader epoch {epoch}).",
                field("candidate")
            ),
            "It has fetched up to the high watermark, and everything from before the leader epoch.",
        ),
        "the leader's log diverges, truncating" => {
            let (from, to) = (field("log_end_offset"), field("offset"));
            let text = if from == to {
                format!(
                    "{node} has nothing to cut: up to its log end {to} the leader of epoch {epoch} has the same."
                )
            } else {
                format!(
                    "{node} cuts its log from {from} to {to}: there the leader's log of epoch {epoch} goes another way."
                )
            };
            Event::new(
                Kind::Truncated,
                text,
                "Followers cut where the leader epochs diverge, never at their high watermark.",
            )
        }
        // The playground's own, which it tells itself, or which are of no interest.
        "refused"
            if matches!(
                field("who").as_str(),
                "a producer" | "who asks for an offset"
            ) =>
        {
            return None;
        }
        "refused" => Event::new(
            Kind::Fenced,
            format!("{node} refuses {}: {}.", field("who"), field("error")),
            refusal_rule(&field("reason")),
        ),
        _ => return None,
    })
}

fn refusal_rule(reason: &str) -> &'static str {
    match reason {
        "stale_leader_epoch" => {
            "Who speaks in an older leader epoch is fenced: it has not heard of the new leader yet."
        }
        "future_leader_epoch" => {
            "Who speaks in a newer leader epoch knows more than this broker, which must not answer for it."
        }
        "stale_broker_epoch" => "A run of a broker that is over changes nothing any more.",
        "not_leader" => {
            "Only the leader serves this. A leader whose session with the controller has expired may have been replaced."
        }
        "not_enough_replicas_after_append" => {
            "The ISR shrank below min.insync.replicas after the append: the record is written, but not as safe as asked."
        }
        "stale_partition_epoch" => {
            "A change of the ISR is made from the state that it changes, or not at all."
        }
        _ => "",
    }
}

/// The numbers in a text such as `[BrokerId(2), BrokerId(3)]`.
fn numbers(text: &str) -> Vec<i32> {
    let parts = text.split(|letter: char| !letter.is_ascii_digit());
    parts.filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{elect, healthy};
    use super::*;

    #[test]
    fn an_election_names_both_leaders_and_both_epochs() {
        let before = healthy([5, 5, 5], 5);
        let mut now = before.clone();
        elect(&mut now, 1, Some(2), 1, &[2, 3]);
        let events = of_views(&before, &now);
        assert_eq!(events.len(), 2);
        assert_eq!(
            events[0].text,
            "Leader: broker 1 → broker 2. Leader epoch: 0 → 1."
        );
        assert!(events[0].rule.contains("in-sync replicas"));
        assert_eq!(events[1].text, "ISR: {1, 2, 3} → {2, 3}.");
        elect(&mut now, 1, None, 2, &[3]);
        let events = of_views(&before, &now);
        assert!(events[0].text.contains("→ nobody"), "{:?}", events[0]);
    }

    #[test]
    fn an_unclean_election_is_called_so() {
        let mut before = healthy([5, 5, 2], 5);
        elect(&mut before, 1, Some(2), 1, &[2]);
        let mut now = before.clone();
        elect(&mut now, 1, Some(3), 2, &[3]);
        assert!(
            of_views(&before, &now)[0]
                .rule
                .starts_with("An unclean election")
        );
    }

    #[test]
    fn what_was_decided_while_nobody_answered_is_told_and_nothing_is_told_backwards() {
        let mut before = healthy([5, 5, 5], 5);
        elect(&mut before, 0, Some(1), 0, &[1]);
        let mut silent = before.clone();
        for broker in &mut silent.brokers {
            broker.belief = None;
        }
        silent.remember(&before);
        assert_eq!(of_views(&before, &silent), []);
        let mut now = before.clone();
        elect(&mut now, 0, None, 1, &[1]);
        now.remember(&silent);
        let events = of_views(&silent, &now);
        assert_eq!(
            events[0].text,
            "Leader: broker 1 → nobody. Leader epoch: 0 → 1."
        );
        // Only one that still believes in epoch 0 answers.
        let mut old = before;
        old.remember(&now);
        assert_eq!(of_views(&now, &old), []);
        // Several elections were not seen: none of them is called unclean.
        elect(&mut now, 0, Some(1), 1, &[1]);
        let mut later = now.clone();
        elect(&mut later, 0, Some(3), 4, &[3]);
        assert!(
            of_views(&now, &later)[0]
                .rule
                .starts_with("There were several")
        );
    }

    #[test]
    fn moves_of_the_high_watermark_in_a_row_are_one_line() {
        let (first, second, third) = (
            healthy([2, 2, 2], 0),
            healthy([2, 2, 2], 2),
            healthy([7, 7, 7], 7),
        );
        let one = of_views(&first, &second).remove(0);
        assert_eq!(one.text, "High watermark: 0 → 2. ISR {1, 2, 3}.");
        let other = of_views(&second, &third).remove(0);
        let merged = other.merged(&one).expect("two moves");
        assert_eq!(merged.text, "High watermark: 0 → 7. ISR {1, 2, 3}.");
        assert_eq!(of_views(&third, &third), []);
    }

    #[test]
    fn lines_of_the_log_that_matter_become_events() {
        let line = r#"{"level":"INFO","message":"refused","reason":"stale_leader_epoch","what":"lesson-1-0","who":"replica 1","error":"leader epoch 0 is older than the current epoch 1"}"#;
        let event = of_log("Broker 2", line, "lesson-1").expect("an event");
        assert_eq!(event.kind, Kind::Fenced);
        assert_eq!(
            event.text,
            "Broker 2 refuses replica 1: leader epoch 0 is older than the current epoch 1."
        );
        assert_eq!(
            of_log("Broker 2", line, "lesson-2"),
            None,
            "of another topic"
        );
        let line = r#"{"message":"shrinking the in-sync replicas","topic_partition":"lesson-1-0","leaving":"[BrokerId(3)]","leader_epoch":"0"}"#;
        let event = of_log("Broker 1", line, "lesson-1").expect("an event");
        assert_eq!(
            event.text,
            "Broker 1 asks the controller to take {3} out of the ISR (leader epoch 0)."
        );
        let line = r#"{"message":"the leader's log diverges, truncating","topic_partition":"lesson-1-0","offset":5,"log_end_offset":7,"leader_epoch":"1"}"#;
        let event = of_log("Broker 1", line, "lesson-1").expect("an event");
        assert!(event.text.contains("from 7 to 5"), "{}", event.text);
        assert_eq!(of_log("Broker 1", "no JSON", "lesson-1"), None);
        assert_eq!(
            of_log("Broker 1", r#"{"message":"flushed"}"#, "lesson-1"),
            None
        );
    }
}
