//! Messages in words, for scripts.

use highwater_replication::state::follower::{FetchAnswer, FetchPosition};

use super::message::{Body, Channel, LogEnd};

/// What arrives, in a line.
pub(crate) fn told(channel: Channel, body: &Body) -> String {
    let Channel { from, to, .. } = channel;
    let what = match body {
        Body::Fetch { position, fetch } => {
            format!("{}, broker epoch {}", at(position), fetch.broker_epoch)
        }
        Body::Fetched {
            sent,
            answer,
            records,
            ..
        } => match answer {
            FetchAnswer::Records { high_watermark, .. } => {
                let first = sent.fetch_offset;
                let records = match records.len() as i64 {
                    0 => "no records".to_owned(),
                    count => format!("records {first}..{}", first + count - 1),
                };
                format!("{records}, high watermark {high_watermark}")
            }
            FetchAnswer::Diverging(end) => {
                format!("diverging: epoch {} ends at {}", end.epoch, end.end_offset)
            }
            FetchAnswer::Error(error) => error.to_string(),
        },
        Body::ListOffset { end, .. } => match end {
            LogEnd::Start => "where does the log begin?".to_owned(),
            LogEnd::End => "where does the log end?".to_owned(),
        },
        Body::ListedOffset { offset, .. } => match offset {
            Ok(offset) => format!("at {offset}"),
            Err(error) => error.to_string(),
        },
        Body::EpochEnd { epoch, .. } => format!("where does epoch {epoch} end?"),
        Body::EpochEnded { end, .. } => match end {
            Ok(Some(end)) => format!("epoch {} ends at {}", end.epoch, end.end_offset),
            Ok(None) => "unknown".to_owned(),
            Err(error) => error.to_string(),
        },
        Body::Altered { result, .. } => match result {
            None => "AlterPartition failed".to_owned(),
            Some(Ok(altered)) => format!("altered to partition epoch {}", altered.partition_epoch),
            Some(Err(error)) => error.to_string(),
        },
        Body::Registered(Err(error)) | Body::Heartbeated(Err(error)) => error.clone(),
        Body::Registered(Ok(epoch)) => format!("registered with broker epoch {epoch}"),
        Body::Heartbeated(Ok(reply)) => format!("{:?}", reply.state),
        Body::Alter { .. } | Body::Register { .. } | Body::Heartbeat(_) => String::new(),
    };
    format!("{from}->{to}: {what}")
}

fn at(position: &FetchPosition) -> String {
    let FetchPosition {
        fetch_offset,
        leader_epoch,
        last_fetched_epoch,
    } = position;
    let last = match last_fetched_epoch {
        None => String::new(),
        Some(epoch) => format!(", last epoch {epoch}"),
    };
    format!("fetch from {fetch_offset} in leader epoch {leader_epoch}{last}")
}
