//! Who this node is, and which nodes it may be told of.

use super::ConfigError;
use super::layers::Layers;

pub(super) fn check_node_id(layers: &Layers<'_>) -> Result<(), ConfigError> {
    let broker_id = layers.get::<i32>("broker.id")?;
    if broker_id < -1 {
        return Err(ConfigError::invalid(
            "broker.id",
            &broker_id.to_string(),
            "a whole number from 0 to 2147483647 is expected",
        ));
    }
    let node_id = layers.get::<i32>("node.id")?;
    if broker_id != -1 && broker_id != node_id {
        return Err(ConfigError::Conflict(format!(
            "node.id={node_id} and broker.id={broker_id} contradict each other: leave broker.id out"
        )));
    }
    Ok(())
}

/// A single node may be described in every form that Apache Kafka has for one; more than one node is not served yet.
pub(super) fn check_quorum(layers: &Layers<'_>) -> Result<(), ConfigError> {
    let roles = layers.get::<Vec<String>>("process.roles")?;
    if roles.len() != 2 {
        return Err(ConfigError::not_supported(
            "process.roles",
            &roles.join(","),
            "a node is always broker,controller so far",
        ));
    }
    let node_id = layers.get::<i32>("node.id")?;
    let voters = layers.get::<Vec<String>>("controller.quorum.voters")?;
    let refuse = |expected: &str| {
        Err(ConfigError::invalid(
            "controller.quorum.voters",
            &voters.join(","),
            expected,
        ))
    };
    for voter in &voters {
        let Some(id) = voter.split_once('@').and_then(|(id, address)| {
            let (host, port) = address.rsplit_once(':')?;
            (!host.is_empty() && port.parse::<u16>().is_ok())
                .then(|| id.trim().parse::<i32>().ok())?
        }) else {
            return refuse("id@host:port is expected");
        };
        if voters.len() == 1 && id != node_id {
            return refuse("the id of the only controller is expected to be node.id");
        }
    }
    for (key, servers) in [
        ("controller.quorum.voters", &voters),
        (
            "controller.quorum.bootstrap.servers",
            &layers.get::<Vec<String>>("controller.quorum.bootstrap.servers")?,
        ),
    ] {
        if servers.len() > 1 {
            return Err(ConfigError::not_supported(
                key,
                &servers.join(","),
                "only this node itself can be a controller so far",
            ));
        }
    }
    Ok(())
}
