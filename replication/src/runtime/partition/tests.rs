use std::task::Poll;

use highwater_storage::LeaderEpoch;
use tokio::sync::Notify;

use super::super::read::{OffsetQuery, PartitionReadRequest, ReadIsolation};
use super::super::testing::*;
use super::*;
use crate::state::commit::Acks;
use crate::state::fencing::EpochFence;

mod following;
mod leading;

const ALL: &[BrokerId] = &[B1, B2, B3];

/// Whether the notify holds a permit now.
async fn woken(notify: &Notify) -> bool {
    let mut notified = Box::pin(notify.notified());
    std::future::poll_fn(|context| Poll::Ready(notified.as_mut().poll(context).is_ready())).await
}

fn fenced(requested: i32, current: i32) -> EpochFence {
    EpochFence::Fenced {
        requested: LeaderEpoch(requested),
        current: LeaderEpoch(current),
    }
}

fn unknown(requested: i32, current: i32) -> EpochFence {
    EpochFence::Unknown {
        requested: LeaderEpoch(requested),
        current: LeaderEpoch(current),
    }
}
