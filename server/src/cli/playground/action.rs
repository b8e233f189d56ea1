//! What can be done to the cluster: by a person on the page, or by a lesson.

use serde::{Deserialize, Serialize};

use super::plan::{BROKERS, CONTROLLER};

/// The most records of one request, and the most a second.
const MAX_COUNT: u32 = 500;
const MAX_RATE: u32 = 200;

/// One thing to do. As JSON: `{"do": "kill", "broker": 1}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Action {
    /// SIGKILL.
    Kill {
        /// Whom.
        broker: i32,
    },
    /// Starts a broker that is down, on the data that it has.
    Start {
        /// Which one.
        broker: i32,
    },
    /// SIGSTOP.
    Freeze {
        /// Whom.
        broker: i32,
    },
    /// SIGCONT.
    Thaw {
        /// Whom.
        broker: i32,
    },
    /// Cuts what one node sends to another, or lets it pass.
    Cut {
        /// Who sends.
        from: i32,
        /// Who receives.
        to: i32,
        /// Whether it is cut.
        cut: bool,
    },
    /// Cuts a broker from all other nodes, both ways.
    Isolate {
        /// Whom.
        broker: i32,
    },
    /// Makes the links of a broker whole again.
    Reconnect {
        /// Whose.
        broker: i32,
    },
    /// Makes all links whole and quick.
    Heal,
    /// Slows what a broker fetches from the others, or does not.
    Slow {
        /// Whom.
        broker: i32,
        /// Whether it is slow.
        slow: bool,
    },
    /// Produces records now.
    Produce {
        /// How many, in one request.
        count: u32,
        /// 0, 1 or -1 for all; as is set on the page when not given.
        #[serde(default)]
        acks: Option<i16>,
        /// To which broker; to the leader when not given.
        #[serde(default)]
        to: Option<i32>,
        /// What the values begin with; `m` when not given.
        #[serde(default)]
        prefix: Option<String>,
    },
    /// Produces so many records a second from now on.
    Rate {
        /// How many; 0 for none.
        per_second: u32,
    },
    /// Sets acks of what is produced from now on.
    Acks {
        /// 0, 1 or -1 for all.
        acks: i16,
    },
    /// Sets `min.insync.replicas` of the topic.
    MinIsr {
        /// How many.
        value: i32,
    },
    /// Sets `unclean.leader.election.enable` of the topic.
    Unclean {
        /// Whether it is allowed.
        on: bool,
    },
    /// Lets the preferred replica lead.
    Elect,
    /// Begins a lesson.
    Lesson {
        /// Its name.
        name: String,
    },
    /// Does the next step of the lesson, or the same again when it failed.
    Next,
    /// Leaves the lesson.
    Leave,
}

impl Action {
    /// Checks what the types let through.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        let broker = |id: i32| match BROKERS.contains(&id) {
            true => Ok(()),
            false => Err(format!("there is no broker {id}")),
        };
        let node = |id: i32| if id == CONTROLLER { Ok(()) } else { broker(id) };
        let acks = |acks: i16| match acks {
            -1..=1 => Ok(()),
            other => Err(format!("acks is 0, 1 or -1 for all, not {other}")),
        };
        match self {
            Action::Kill { broker: id }
            | Action::Start { broker: id }
            | Action::Freeze { broker: id }
            | Action::Thaw { broker: id }
            | Action::Isolate { broker: id }
            | Action::Reconnect { broker: id }
            | Action::Slow { broker: id, .. } => broker(*id),
            Action::Cut { from, to, .. } if from == to => Err("a link has two ends".to_owned()),
            Action::Cut { from, to, .. } => node(*from).and_then(|()| node(*to)),
            Action::Produce {
                count,
                acks: given,
                to,
                ..
            } => {
                if !(1..=MAX_COUNT).contains(count) {
                    return Err(format!("1 to {MAX_COUNT} records, not {count}"));
                }
                given.map_or(Ok(()), acks)?;
                to.map_or(Ok(()), broker)
            }
            Action::Rate { per_second } if *per_second > MAX_RATE => {
                Err(format!("at most {MAX_RATE} records a second"))
            }
            Action::Acks { acks: given } => acks(*given),
            Action::MinIsr { value } if !(1..=3).contains(value) => {
                Err("min.insync.replicas is 1, 2 or 3 here".to_owned())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Action, String> {
        let action: Action = serde_json::from_str(json).map_err(|error| error.to_string())?;
        action.check()?;
        Ok(action)
    }

    #[test]
    fn actions_are_read_and_nonsense_is_refused() {
        assert_eq!(
            read(r#"{"do":"kill","broker":1}"#),
            Ok(Action::Kill { broker: 1 })
        );
        assert_eq!(
            read(r#"{"do":"min-isr","value":2}"#),
            Ok(Action::MinIsr { value: 2 })
        );
        assert!(read(r#"{"do":"cut","from":1,"to":3001,"cut":true}"#).is_ok());
        for wrong in [
            r#"{"do":"kill","broker":4}"#,
            r#"{"do":"cut","from":1,"to":1,"cut":true}"#,
            r#"{"do":"produce","count":0}"#,
            r#"{"do":"produce","count":1,"acks":2}"#,
            r#"{"do":"rate","per_second":100000}"#,
            r#"{"do":"min-isr","value":0}"#,
            r#"{"do":"format"}"#,
            "kill",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
