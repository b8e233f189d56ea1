//! Who this node is.

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
