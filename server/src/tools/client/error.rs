//! What a tool is told when something fails, in Kafka's words.

use crate::kafka_names::constant_name;
use crate::network::client::ClientError;

/// An error with the class and text that Kafka's Java client gives it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{class}: {message}")]
pub(crate) struct KafkaError {
    /// Simple name of Java's exception class.
    pub(crate) class: &'static str,
    /// What is wrong, without the class.
    pub(crate) message: String,
    /// The protocol's error code; 0 where the error is the client's own.
    pub(crate) code: i16,
    /// Whether asking again may help.
    pub(crate) is_retriable: bool,
}

impl KafkaError {
    /// The error for a code that is not 0, with the broker's text if it has one.
    pub(crate) fn new(code: i16, text: Option<&str>) -> Self {
        let (class, default_text) = super::exceptions::describe(code);
        let is_retriable = kafka_protocol::ResponseError::try_from_code(code)
            .is_some_and(|error| error.is_retriable());
        KafkaError {
            class,
            message: text.unwrap_or(default_text).to_owned(),
            code,
            is_retriable,
        }
    }

    /// `Ok` for code 0, else the error.
    ///
    /// # Errors
    /// For every code but 0.
    pub(crate) fn check(code: i16, text: Option<&str>) -> Result<(), Self> {
        match code {
            0 => Ok(()),
            code => Err(Self::new(code, text)),
        }
    }

    /// An error that the client itself finds; asking again does not help.
    pub(crate) fn of_client(class: &'static str, message: impl Into<String>) -> Self {
        KafkaError {
            class,
            message: message.into(),
            code: 0,
            is_retriable: false,
        }
    }

    /// What the client finds wrong with its settings.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::of_client("ConfigException", message)
    }

    /// As [`of_client`](Self::of_client), where asking again may help.
    pub(crate) fn retriable(class: &'static str, message: impl Into<String>) -> Self {
        KafkaError {
            is_retriable: true,
            ..Self::of_client(class, message)
        }
    }

    /// Whether a node is too old for what it was asked.
    pub(crate) fn is_unsupported(&self) -> bool {
        self.class == "UnsupportedVersionException"
    }

    /// Class with its package, and the text: how Java prints a throwable.
    pub(crate) fn in_full(&self) -> String {
        format!("{}: {}", self.full_class(), self.message)
    }

    /// Name of Java's exception class with its package.
    pub(crate) fn full_class(&self) -> String {
        let package = match self.class {
            "BufferExhaustedException" => "org.apache.kafka.clients.producer",
            "ConfigException" => "org.apache.kafka.common.config",
            "IllegalArgumentException" => "java.lang",
            "InvalidRecordException" => "org.apache.kafka.common",
            _ => "org.apache.kafka.common.errors",
        };
        format!("{package}.{}", self.class)
    }
}

impl From<ClientError> for KafkaError {
    fn from(error: ClientError) -> Self {
        let class = match &error {
            ClientError::Connect { .. } | ClientError::TimedOut { .. } => "TimeoutException",
            ClientError::Closed { .. } => "DisconnectException",
            ClientError::UnsupportedVersion { .. } | ClientError::Encode { .. } => {
                "UnsupportedVersionException"
            }
            ClientError::Decode { .. } => "UnknownServerException",
        };
        let message = match &error {
            ClientError::UnsupportedVersion { api, .. } => {
                format!("The node does not support {}", constant_name(api))
            }
            _ => error.to_string(),
        };
        KafkaError {
            class,
            message,
            code: 0,
            is_retriable: error.is_retriable(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_code_has_its_exception_and_the_better_text() {
        assert_eq!(KafkaError::check(0, None), Ok(()));
        let error = KafkaError::new(3, None);
        assert!(error.is_retriable);
        assert_eq!(
            error.in_full(),
            "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: \
             This server does not host this topic-partition."
        );
        let error = KafkaError::new(36, Some("Topic 'a' already exists."));
        assert!(!error.is_retriable && !error.is_unsupported());
        assert_eq!(
            error.to_string(),
            "TopicExistsException: Topic 'a' already exists."
        );
    }

    #[test]
    fn an_api_that_is_not_served_has_kafkas_name() {
        let error = KafkaError::from(ClientError::UnsupportedVersion {
            address: "a:1".into(),
            api: "DescribeTopicPartitions",
            min: 0,
            max: 0,
        });
        assert_eq!(
            error.message,
            "The node does not support DESCRIBE_TOPIC_PARTITIONS"
        );
        assert!(!error.is_retriable && error.is_unsupported());
        assert!(KafkaError::new(35, None).is_unsupported());
    }
}
