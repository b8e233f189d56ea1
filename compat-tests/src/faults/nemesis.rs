//! Does faults to a cluster and takes them back.

use std::time::Duration;

use anyhow::Result;

use super::plan::{Fault, Kind};
use crate::cluster::{Cluster, DataCopy, Link};

/// How late things come on a slow link.
const DELAY: Duration = Duration::from_millis(200);

/// A fault that lasts.
#[derive(Debug)]
pub struct Ongoing {
    fault: Fault,
    /// What the node finds on its disk when it comes back.
    image: Option<DataCopy>,
}

/// Begins a fault. With [`Kind::LostTail`], half of its time passes between the image and the end of the node.
///
/// # Errors
/// When it cannot be done to this cluster.
pub fn begin(cluster: &mut Cluster, fault: Fault) -> Result<Ongoing> {
    let Fault { node, other, .. } = fault;
    let mut image = None;
    match fault.kind {
        Kind::Kill => cluster.kill(node)?,
        Kind::Stop => {
            cluster.stop(node)?;
        }
        Kind::Pause => cluster.pause(node)?,
        Kind::Isolate => {
            let others: Vec<i32> = cluster.shape().nodes();
            let others: Vec<i32> = others.into_iter().filter(|&id| id != node).collect();
            cluster.network()?.partition(&[node], &others);
        }
        Kind::Cut => cluster.network()?.cut(node, other),
        Kind::CutOneWay => cluster.network()?.cut_one_way(node, other),
        Kind::Delay => {
            let slow = Link {
                delay: DELAY,
                ..Link::default()
            };
            cluster.network()?.set_link(node, other, slow);
            cluster.network()?.set_link(other, node, slow);
        }
        Kind::LostTail => {
            image = Some(cluster.copy_partitions(node)?);
            std::thread::sleep(fault.lasts / 2);
            cluster.kill(node)?;
        }
        Kind::DiskFull => cluster.disk(node)?.fill()?,
        Kind::Clock => cluster.set_clock(node, fault.jump)?,
    }
    Ok(Ongoing { fault, image })
}

/// Ends a fault: nodes run again and links are whole. They need not have caught up.
///
/// # Errors
/// When a node does not start.
pub fn end(cluster: &mut Cluster, ongoing: Ongoing) -> Result<()> {
    let node = ongoing.fault.node;
    match ongoing.fault.kind {
        Kind::Kill | Kind::Stop => cluster.start_again(node),
        Kind::LostTail => {
            if let Some(image) = &ongoing.image {
                cluster.put_back(image)?;
            }
            cluster.start_again(node)
        }
        Kind::DiskFull => {
            cluster.disk(node)?.make_space()?;
            // It may have ended by itself.
            cluster.kill(node)?;
            cluster.start_again(node)
        }
        Kind::Pause => cluster.resume(node),
        Kind::Clock => cluster.set_clock(node, 0),
        Kind::Isolate | Kind::Cut | Kind::CutOneWay | Kind::Delay => {
            cluster.network()?.heal();
            Ok(())
        }
    }
}
