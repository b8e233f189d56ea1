//! What this node does with others: it follows the active controller, asks it for changes, tells it that it lives, and
//! fetches from the brokers that lead its partitions.

pub mod alter_partition;
pub mod auto_topics;
pub mod controller_channel;
pub mod controller_registration;
pub mod directory_assignments;
pub mod leader_endpoint;
pub mod lifecycle;
pub mod observer;
pub mod producer_ids;

#[cfg(test)]
mod requests_tests;
#[cfg(test)]
mod test_node;
