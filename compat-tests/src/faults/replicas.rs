//! Whether all replicas of a partition hold the same bytes.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use crate::cluster::Cluster;
use crate::process::poll;
use crate::raw::{
    BatchHeader, Connection, batch_headers, code, crc32c_of_batch, fetch_partition, fetch_request,
    list_offsets_request,
};

/// Waits until every replica of every partition of a topic is in sync.
///
/// # Errors
/// When that does not come about; the text says what brokers show.
pub fn wait_until_in_sync(cluster: &Cluster, topic: &str, partitions: i32) -> Result<()> {
    let brokers = cluster.awake_brokers();
    let in_sync = |partition: i32| {
        brokers.iter().all(|&id| {
            cluster
                .partition(id, topic, partition)
                .is_ok_and(|view| view.leader >= 0 && view.isr.len() == view.replicas.len())
        })
    };
    poll(Cluster::PATIENCE, || {
        (0..partitions).all(in_sync).then_some(())
    })
    .with_context(|| {
        let views =
            (0..partitions).map(|partition| cluster.partition(brokers[0], topic, partition));
        format!(
            "not in sync within {:?}: {:?}",
            Cluster::PATIENCE,
            views.collect::<Vec<_>>()
        )
    })
}

/// The end that consumers see of each partition.
///
/// # Errors
/// When a leader does not answer.
pub fn ends(cluster: &Cluster, topic: &str, partitions: i32) -> Result<BTreeMap<i32, i64>> {
    let via = *cluster
        .awake_brokers()
        .first()
        .context("no broker is awake")?;
    let mut ends = BTreeMap::new();
    for partition in 0..partitions {
        let found = poll(Cluster::PATIENCE, || {
            let leader = cluster.partition(via, topic, partition).ok()?.leader;
            let request = list_offsets_request(topic, partition, -1);
            let reply = cluster.connect(leader).ok()?.call(9, &request).ok()?;
            let answer = reply.topics.first()?.partitions.first()?.clone();
            (answer.error_code == code::NONE).then_some(answer.offset)
        });
        ends.insert(
            partition,
            found.with_context(|| format!("nobody says where partition {partition} ends"))?,
        );
    }
    Ok(ends)
}

/// Compares all replicas of all partitions up to their ends, batch by batch: offsets, leader epochs and checksums of the
/// bytes. Gives how many batches were compared.
///
/// # Errors
/// When a replica differs from the first, or is not served to its end.
pub fn compare(cluster: &Cluster, topic: &str, ends: &BTreeMap<i32, i64>) -> Result<usize> {
    let mut compared = 0;
    for (&partition, &end) in ends {
        let mut first: Option<(i32, Vec<(BatchHeader, u32)>)> = None;
        for id in cluster.shape().brokers() {
            let batches = batches_of(&mut cluster.connect(id)?, topic, partition, end)
                .with_context(|| format!("broker {id}, partition {partition}"))?;
            let Some((other, wanted)) = &first else {
                first = Some((id, batches));
                continue;
            };
            compared += wanted.len();
            let differs = wanted
                .iter()
                .zip(&batches)
                .find(|(one, other)| one != other);
            ensure!(
                differs.is_none() && wanted.len() == batches.len(),
                "partition {partition}: brokers {other} and {id} differ: {differs:?}, {} and {} batches",
                wanted.len(),
                batches.len()
            );
        }
    }
    Ok(compared)
}

/// The batches that a broker serves to a consumer, whether it leads or follows.
fn batches_of(
    connection: &mut Connection,
    topic: &str,
    partition: i32,
    end: i64,
) -> Result<Vec<(BatchHeader, u32)>> {
    let mut batches = Vec::new();
    let mut next = 0;
    let mut last_answer = None;
    poll(Cluster::PATIENCE, || {
        while next < end {
            let request = fetch_request(topic, vec![fetch_partition(partition, next)]);
            let reply = connection.call(12, &request);
            let answer = reply.ok()?.responses.first()?.partitions.first()?.clone();
            let records = answer.records.clone().unwrap_or_default();
            let headers = batch_headers(&records);
            if headers.is_empty() {
                last_answer = Some(answer);
                return None;
            }
            let mut rest = &records[..];
            for header in headers {
                let length = i32::from_be_bytes(rest.get(8..12)?.try_into().ok()?);
                let (batch, others) = rest.split_at(usize::try_from(length).ok()? + 12);
                batches.push((header, crc32c_of_batch(batch)));
                next = header.last_offset + 1;
                rest = others;
            }
        }
        Some(())
    })
    .with_context(|| format!("it is served up to {next} and not to {end}: {last_answer:?}"))?;
    Ok(batches)
}
