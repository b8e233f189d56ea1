//! Names as Kafka writes them.

use kafka_protocol::ResponseError;

/// `LIST_OFFSETS` of `ListOffsets`.
pub(crate) fn constant_name(name: &str) -> String {
    let mut constant = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !constant.is_empty() {
            constant.push('_');
        }
        constant.push(character.to_ascii_uppercase());
    }
    constant
}

/// `UNKNOWN_TOPIC_OR_PARTITION` of 3; `None` of 0 and of a code that is not known.
pub(crate) fn error_name(code: i16) -> Option<String> {
    match ResponseError::try_from_code(code)? {
        ResponseError::Unknown(_) => None,
        error => Some(constant_name(&format!("{error:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_kafkas_names() {
        assert_eq!(error_name(6).as_deref(), Some("NOT_LEADER_OR_FOLLOWER"));
        assert_eq!(error_name(-1).as_deref(), Some("UNKNOWN_SERVER_ERROR"));
        assert_eq!(error_name(0), None);
        assert_eq!(error_name(12_345), None);
    }
}
