//! What clients did and what they were told, in the order in which each of them says it.

/// A value that is sent once in a run.
pub type Value = u64;

/// A record as a consumer got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Polled {
    /// Partition.
    pub partition: i32,
    /// Offset in it.
    pub offset: i64,
    /// What stood there.
    pub value: Value,
}

/// One thing that a client did or was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A producer hands a value to its client library.
    Send {
        /// Number of the producer.
        producer: u32,
        /// The value.
        value: Value,
        /// The partition it is for.
        partition: i32,
    },
    /// The value was acknowledged.
    Acknowledged {
        /// Number of the producer.
        producer: u32,
        /// The value.
        value: Value,
        /// Partition it went to.
        partition: i32,
        /// Offset it got; none when its library takes it for written since a later one was acknowledged.
        offset: Option<i64>,
    },
    /// The value was given up.
    Failed {
        /// Number of the producer.
        producer: u32,
        /// The value.
        value: Value,
        /// Whether it is certain that it was not written.
        certain: bool,
    },
    /// A consumer was given partitions: it starts anew in all of them.
    Assigned {
        /// Number of the consumer.
        consumer: u32,
    },
    /// A consumer was told that the broker does not know its position.
    PositionLost {
        /// Number of the consumer.
        consumer: u32,
    },
    /// A producer was given up by its library for good.
    ProducerLost {
        /// Number of the program that it ran in.
        producer: u32,
        /// What the library said.
        reason: String,
    },
    /// A consumer got records, in this order.
    Poll {
        /// Number of the consumer.
        consumer: u32,
        /// The records.
        records: Vec<Polled>,
    },
}
