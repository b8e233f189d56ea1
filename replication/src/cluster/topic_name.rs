//! Which topic names are allowed.

use super::error::ClusterError;

/// Longest name, so that `<topic>-<partition>.<uuid>-delete` is a file name.
pub const MAX_TOPIC_NAME_LENGTH: usize = 249;
/// Offsets and group metadata of consumer groups.
pub const GROUP_METADATA_TOPIC: &str = "__consumer_offsets";
/// State of transactions.
pub const TRANSACTION_STATE_TOPIC: &str = "__transaction_state";
/// State of share groups.
pub const SHARE_GROUP_STATE_TOPIC: &str = "__share_group_state";
/// The metadata log itself, which is no topic of the metadata.
pub const CLUSTER_METADATA_TOPIC: &str = "__cluster_metadata";
/// The id that Kafka gives to the metadata log.
pub const CLUSTER_METADATA_TOPIC_ID: uuid::Uuid = uuid::Uuid::from_u128(1);

/// Whether clients are told that the topic is internal.
pub fn is_internal(name: &str) -> bool {
    [
        GROUP_METADATA_TOPIC,
        TRANSACTION_STATE_TOPIC,
        SHARE_GROUP_STATE_TOPIC,
    ]
    .contains(&name)
}

/// Refuses a name that Kafka refuses, with its reason.
pub fn validate(name: &str) -> Result<(), ClusterError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let reason = match name {
        "" => "the empty string is not allowed".to_owned(),
        "." => "'.' is not allowed".to_owned(),
        ".." => "'..' is not allowed".to_owned(),
        // Kafka counts UTF-16 units; only ASCII passes the next rule.
        _ if name.encode_utf16().count() > MAX_TOPIC_NAME_LENGTH => {
            format!(
                "the length of '{name}' is longer than the max allowed length {MAX_TOPIC_NAME_LENGTH}"
            )
        }
        _ if !name.bytes().all(allowed) => format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        ),
        _ => return Ok(()),
    };
    Err(ClusterError::InvalidTopic(format!(
        "Topic name is invalid: {reason}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_topics_are_kafkas_own() {
        assert!(is_internal("__consumer_offsets") && !is_internal("__mine"));
    }
}
