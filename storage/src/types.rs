//! The small types every room shares: partitions, topic ids, and epochs as newtypes.
//!
//! Offsets, timestamps (milliseconds) and producer ids stay plain `i64` with speaking names.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

/// One partition of one topic, by name. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's number, from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// The partition `partition` of `topic`.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self {
            topic: topic.into(),
            partition,
        }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A topic's id (KIP-516): a deleted and recreated topic has the same name and another id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub Uuid);

impl TopicId {
    /// The id that means "none".
    pub const ZERO: Self = Self(Uuid::nil());

    /// A new random id.
    pub fn random() -> Self {
        loop {
            let id = Self(Uuid::new_v4());
            // Kafka's tools take a leading dash for an option; its own generator avoids it too.
            if !id.to_string().starts_with('-') {
                return id;
            }
        }
    }

    /// Whether this is the id that means "none".
    pub fn is_zero(self) -> bool {
        self.0.is_nil()
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0.as_bytes()))
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no id in Kafka's spelling (22 characters of URL-safe base64).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a topic id: {0:?}")]
pub struct TopicIdParseError(String);

impl FromStr for TopicId {
    type Err = TopicIdParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim_end_matches('='))
            .map_err(|_| TopicIdParseError(text.to_owned()))?;
        Uuid::from_slice(&bytes)
            .map(Self)
            .map_err(|_| TopicIdParseError(text.to_owned()))
    }
}

macro_rules! newtype {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

newtype!(
    /// A broker's id (`node.id`).
    BrokerId(i32)
);
newtype!(
    /// Grows with every new leader of a partition; stamped into each batch.
    LeaderEpoch(i32)
);
newtype!(
    /// Grows with every change of a partition's leader or ISR.
    PartitionEpoch(i32)
);
newtype!(
    /// Grows with every registration of a broker.
    BrokerEpoch(i64)
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_id_is_spelled_as_kafka_spells_it() {
        let id: TopicId = "5L6g3nShT-eMCtK--X86sw".parse().expect("a valid id");
        assert_eq!(id.to_string(), "5L6g3nShT-eMCtK--X86sw");
        assert!("5L6g3nShT".parse::<TopicId>().is_err());
        assert!("not base64 at all!!!!!".parse::<TopicId>().is_err());
    }

    #[test]
    fn random_topic_ids_differ_and_never_start_with_a_dash() {
        let ids: Vec<_> = (0..200).map(|_| TopicId::random()).collect();
        assert!(ids.iter().all(|id| !id.to_string().starts_with('-')));
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn topic_partition_is_spelled_as_its_directory() {
        assert_eq!(TopicPartition::new("a.b-c", 7).to_string(), "a.b-c-7");
    }
}
