//! What can happen next, as lines of a script.

use std::fmt;

use highwater_replication::state::commit::Acks;
use highwater_storage::BrokerId;

use super::broker::acks_name;
use super::controller::{ElectionKind, Wish};
use super::message::{Channel, Node, Purpose};
use super::setup::{id, number};

/// One event. What cannot happen in the present state does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Time passes.
    Advance(i64),
    /// A producer sends a record to a broker.
    Produce(BrokerId, Acks),
    /// A consumer reads on a broker from an offset on.
    Consume(BrokerId, i64),
    /// A follower sends its next request to its leader.
    SendFetch(BrokerId),
    /// A leader sends the AlterPartition that waits.
    SendAlter(BrokerId, usize),
    /// A broker sends a heartbeat, or registers, to a controller.
    SendHeartbeat(BrokerId, usize),
    /// A broker gives up the request of a purpose: it was not answered in time.
    GiveUp(BrokerId, Purpose),
    /// A leader looks who lags.
    LagCheck(BrokerId),
    /// A leader answers produces that have waited too long.
    Expire(BrokerId),
    /// A leader does not look at parked produces any more, or does again.
    Hold(BrokerId, bool),
    /// A broker receives committed metadata: so many entries, or all.
    Metadata(BrokerId, Option<usize>),
    /// A broker forces its log to disk.
    Sync(BrokerId),
    /// A broker writes the checkpoint of its high watermark.
    Checkpoint(BrokerId),
    /// A leader deletes records before an offset.
    DeleteRecords(BrokerId, i64),
    /// The next message of a channel arrives.
    Deliver(Channel),
    /// A channel breaks.
    Lose(Channel),
    /// Messages from one node do not reach another, or do again.
    Cut(Node, Node),
    Mend(Node, Node),
    /// The process ends.
    Crash(BrokerId),
    /// The machine ends: what was not synced is lost from an offset on, or with it all that happened since the sync.
    PowerCut(BrokerId, Option<i64>),
    /// The process stops cleanly.
    Stop(BrokerId),
    /// The process wants to stop, and asks the controller first.
    WantStop(BrokerId),
    /// The process starts.
    Start(BrokerId),
    /// The process is stopped by a signal, or goes on.
    Pause(BrokerId),
    Resume(BrokerId),
    /// The disk is empty when the process starts again.
    Wipe(BrokerId),
    /// A controller is elected.
    ElectController(usize),
    /// A controller hears that another one was elected.
    Depose(usize),
    /// A controller's entry is committed.
    Commit(usize),
    /// A controller is asked for something.
    Ask(usize, Wish),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Advance(ms) => write!(f, "advance {ms}"),
            Self::Produce(b, acks) => write!(f, "produce {b} acks={}", acks_name(*acks)),
            Self::Consume(b, offset) => write!(f, "consume {b} from {offset}"),
            Self::SendFetch(b) => write!(f, "send-fetch {b}"),
            Self::SendAlter(b, c) => write!(f, "send-alter {b} C{c}"),
            Self::SendHeartbeat(b, c) => write!(f, "send-heartbeat {b} C{c}"),
            Self::GiveUp(b, purpose) => write!(f, "give-up {b} {purpose}"),
            Self::LagCheck(b) => write!(f, "lag-check {b}"),
            Self::Expire(b) => write!(f, "expire {b}"),
            Self::Hold(b, true) => write!(f, "hold {b}"),
            Self::Hold(b, false) => write!(f, "release {b}"),
            Self::Metadata(b, None) => write!(f, "metadata {b}"),
            Self::Metadata(b, Some(count)) => write!(f, "metadata {b} {count}"),
            Self::Sync(b) => write!(f, "sync {b}"),
            Self::Checkpoint(b) => write!(f, "checkpoint {b}"),
            Self::DeleteRecords(b, offset) => write!(f, "delete-records {b} before {offset}"),
            Self::Deliver(channel) => write!(f, "deliver {channel}"),
            Self::Lose(channel) => write!(f, "lose {channel}"),
            Self::Cut(from, to) => write!(f, "cut {from}->{to}"),
            Self::Mend(from, to) => write!(f, "mend {from}->{to}"),
            Self::Crash(b) => write!(f, "crash {b}"),
            Self::PowerCut(b, Some(keep)) => write!(f, "power-cut {b} keep={keep}"),
            Self::PowerCut(b, None) => write!(f, "power-cut {b} as-synced"),
            Self::Stop(b) => write!(f, "stop {b}"),
            Self::WantStop(b) => write!(f, "want-stop {b}"),
            Self::Start(b) => write!(f, "start {b}"),
            Self::Pause(b) => write!(f, "pause {b}"),
            Self::Resume(b) => write!(f, "resume {b}"),
            Self::Wipe(b) => write!(f, "wipe {b}"),
            Self::ElectController(c) => write!(f, "elect C{c}"),
            Self::Depose(c) => write!(f, "depose C{c}"),
            Self::Commit(c) => write!(f, "commit C{c}"),
            Self::Ask(c, wish) => write!(f, "ask C{c} {wish}"),
        }
    }
}

impl Step {
    /// Reads what a controller is asked for; `None` when it is something else.
    pub(crate) fn parse_wish(text: &str) -> Result<Option<Wish>, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(Some(match words.as_slice() {
            ["session-check"] => Wish::SessionCheck,
            ["fence", broker] => Wish::Fence(id(broker)?),
            ["balance"] => Wish::Balance,
            ["unclean-check"] => Wish::UncleanCheck,
            ["elect-preferred"] => Wish::Elect(ElectionKind::Preferred),
            ["elect-unclean"] => Wish::Elect(ElectionKind::Unclean),
            ["reassign", replicas] => {
                let replicas = replicas.split(',').map(number);
                Wish::Reassign(Some(replicas.collect::<Result<Vec<i32>, _>>()?))
            }
            ["cancel-reassignment"] => Wish::Reassign(None),
            ["configure", setting] => {
                let unclear = || format!("{setting} is not key=value");
                let (key, value) = setting.split_once('=').ok_or_else(unclear)?;
                Wish::Configure(key.to_owned(), value.to_owned())
            }
            _ => return Ok(None),
        }))
    }

    /// Reads a line. A controller that is not named is `C1`.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let verb = match words.is_empty() {
            true => return Err("an empty line".to_owned()),
            false => words.remove(0),
        };
        let controller = |index: usize| {
            let text = words.get(index).copied().unwrap_or("C1");
            text.strip_prefix('C')
                .map_or_else(|| Err(format!("{text} is no controller")), number)
        };
        let word = |index: usize| {
            let missing = || format!("{line}: something is missing");
            words.get(index).copied().ok_or_else(missing)
        };
        let broker = || id(word(0)?);
        let value = |index: usize, key: &str| {
            let unclear = || format!("{line}: no {key}=");
            word(index)?
                .strip_prefix(key)
                .and_then(|rest| rest.strip_prefix('='))
                .ok_or_else(unclear)
        };
        Ok(match verb {
            "advance" => Self::Advance(number(word(0)?)?),
            "produce" => {
                let acks = match value(1, "acks")? {
                    "all" => Acks::All,
                    "1" => Acks::Leader,
                    "0" => Acks::None,
                    other => return Err(format!("acks={other}")),
                };
                Self::Produce(broker()?, acks)
            }
            "consume" => Self::Consume(broker()?, number(word(2)?)?),
            "send-fetch" => Self::SendFetch(broker()?),
            "send-alter" => Self::SendAlter(broker()?, controller(1)?),
            "send-heartbeat" => Self::SendHeartbeat(broker()?, controller(1)?),
            "give-up" => Self::GiveUp(broker()?, purpose(word(1)?)?),
            "lag-check" => Self::LagCheck(broker()?),
            "expire" => Self::Expire(broker()?),
            "hold" => Self::Hold(broker()?, true),
            "release" => Self::Hold(broker()?, false),
            "metadata" => {
                let count = words.get(1).map(|count| number(count)).transpose()?;
                Self::Metadata(broker()?, count)
            }
            "sync" => Self::Sync(broker()?),
            "checkpoint" => Self::Checkpoint(broker()?),
            "delete-records" => Self::DeleteRecords(broker()?, number(word(2)?)?),
            "deliver" => Self::Deliver(channel(&words)?),
            "lose" => Self::Lose(channel(&words)?),
            "cut" | "mend" => {
                let (from, to) = ends(word(0)?)?;
                match verb {
                    "cut" => Self::Cut(from, to),
                    _ => Self::Mend(from, to),
                }
            }
            "crash" => Self::Crash(broker()?),
            "power-cut" => match word(1)? {
                "as-synced" => Self::PowerCut(broker()?, None),
                _ => Self::PowerCut(broker()?, Some(number(value(1, "keep")?)?)),
            },
            "stop" => Self::Stop(broker()?),
            "want-stop" => Self::WantStop(broker()?),
            "start" => Self::Start(broker()?),
            "pause" => Self::Pause(broker()?),
            "resume" => Self::Resume(broker()?),
            "wipe" => Self::Wipe(broker()?),
            "elect" => Self::ElectController(controller(0)?),
            "depose" => Self::Depose(controller(0)?),
            "commit" => Self::Commit(controller(0)?),
            "ask" => {
                let rest = line.trim_start().strip_prefix("ask").unwrap_or_default();
                let rest = rest
                    .trim_start()
                    .trim_start_matches(|c: char| !c.is_whitespace());
                let wish = Self::parse_wish(rest)?.ok_or_else(|| format!("unknown wish {rest}"))?;
                Self::Ask(controller(0)?, wish)
            }
            other => return Err(format!("unknown step {other}")),
        })
    }
}

fn purpose(word: &str) -> Result<Purpose, String> {
    match word {
        "fetch" => Ok(Purpose::Fetch),
        "alter" => Ok(Purpose::Alter),
        "heartbeat" => Ok(Purpose::Heartbeat),
        _ => Err(format!("{word} is no purpose")),
    }
}

fn node(word: &str) -> Result<Node, String> {
    match word.strip_prefix('C') {
        Some(controller) => number(controller).map(Node::Controller),
        None => id(word).map(Node::Broker),
    }
}

fn ends(word: &str) -> Result<(Node, Node), String> {
    let (from, to) = word
        .split_once("->")
        .ok_or_else(|| format!("{word} is not A->B"))?;
    Ok((node(from)?, node(to)?))
}

/// Reads `fetch 2->1 #7`. Without a number it is connection 0, which stands for the latest one.
fn channel(words: &[&str]) -> Result<Channel, String> {
    let [first, second, rest @ ..] = words else {
        return Err("a channel is PURPOSE A->B #N".to_owned());
    };
    let (from, to) = ends(second)?;
    let connection = match rest {
        [] => 0,
        [text, ..] => number(text.trim_start_matches('#'))?,
    };
    Ok(Channel {
        purpose: purpose(first)?,
        from,
        to,
        connection,
    })
}
