//! The records of the metadata log, byte for byte as KRaft writes them.
//!
//! On the log each is framed as: frame version 1, type, version (all unsigned variable-length integers), then the
//! flexible body. ACLs, quotas, SCRAM credentials and delegation tokens are [kept](super::inert) as they are. Reading any
//! other type is an error: state of which nothing is known must not be skipped.

use uuid::Uuid;

pub use super::codec::RecordError;
use super::codec::{Field, Reader, write_tagged_fields, write_unsigned_varint};
use super::inert::InertRecord;

/// The only frame version that Kafka defines.
const FRAME_VERSION: u32 = 1;

/// `PartitionChangeRecord::leader` when the record leaves the leader as it is.
pub const NO_LEADER_CHANGE: i32 = -2;
/// The leader id of a partition without one.
pub const NO_LEADER: i32 = -1;
/// `ConfigRecord::resource_type` of a topic.
pub const RESOURCE_TYPE_TOPIC: i8 = 2;

/// Declares one struct of a record (or nested in one) with its codec. Each field names the version that first has it
/// and, if it is tagged, its tag; a tagged field is written only when it differs from its default.
macro_rules! record_struct {
    (@tagged $tag:tt) => { Some($tag) };
    (@tagged) => { None::<u32> };
    (
        $(#[$struct_doc:meta])*
        $name:ident {
            $( $(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr, since $since:literal $(, tag $tag:literal)?; )*
        }
    ) => {
        $(#[$struct_doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl Field for $name {
            #[allow(unused_mut, unused_variables)]
            fn encode(&self, version: i16, out: &mut Vec<u8>) {
                let mut tagged: Vec<(u32, Vec<u8>)> = Vec::new();
                $(
                    if version >= $since {
                        match record_struct!(@tagged $($tag)?) {
                            None => self.$field.encode(version, out),
                            Some(tag) => {
                                let default: $type = $default;
                                if self.$field != default {
                                    let mut bytes = Vec::new();
                                    self.$field.encode(version, &mut bytes);
                                    tagged.push((tag, bytes));
                                }
                            }
                        }
                    }
                )*
                tagged.sort_by_key(|(tag, _)| *tag);
                write_tagged_fields(&tagged, out);
            }

            #[allow(unused_mut, unused_variables)]
            fn decode(version: i16, reader: &mut Reader<'_>) -> Result<Self, RecordError> {
                let mut decoded = Self::default();
                $(
                    if version >= $since && record_struct!(@tagged $($tag)?).is_none() {
                        decoded.$field = <$type as Field>::decode(version, reader)?;
                    }
                )*
                reader.tagged_fields(|tag, field| {
                    $(
                        if version >= $since && record_struct!(@tagged $($tag)?) == Some(tag) {
                            decoded.$field = <$type as Field>::decode(version, field)?;
                            return Ok(true);
                        }
                    )*
                    Ok(false)
                })?;
                Ok(decoded)
            }
        }
    };
}

record_struct! {
    /// Where a broker or a controller can be reached.
    Endpoint {
        /// Name of the listener.
        name: String = String::new(), since 0;
        /// Advertised host name.
        host: String = String::new(), since 0;
        /// Advertised port.
        port: u16 = 0, since 0;
        /// Kafka's id of the security protocol; 0 is PLAINTEXT.
        security_protocol: i16 = 0, since 0;
    }
}

record_struct! {
    /// The range of levels of one feature that a node supports (KIP-584).
    FeatureRange {
        /// Name of the feature.
        name: String = String::new(), since 0;
        /// Lowest supported level.
        min_supported_version: i16 = 0, since 0;
        /// Highest supported level.
        max_supported_version: i16 = 0, since 0;
    }
}

record_struct! {
    /// A broker run registered itself (KIP-631); its epoch is this record's offset.
    RegisterBrokerRecord {
        /// The broker.
        broker_id: i32 = 0, since 0;
        /// Left from the days of ZooKeeper; always false.
        is_migrating_zk_broker: bool = false, since 2;
        /// Id of this run of the broker process.
        incarnation_id: Uuid = Uuid::nil(), since 0;
        /// Offset of this record.
        broker_epoch: i64 = 0, since 0;
        /// Listeners that the broker advertises.
        end_points: Vec<Endpoint> = Vec::new(), since 0;
        /// Features that the broker supports.
        features: Vec<FeatureRange> = Vec::new(), since 0;
        /// Rack of the broker.
        rack: Option<String> = None, since 0;
        /// Whether the broker starts fenced.
        fenced: bool = true, since 0;
        /// Whether the broker is shutting down in a controlled way.
        in_controlled_shutdown: bool = false, since 1;
        /// Ids of the log directories that are online (KIP-858).
        log_dirs: Vec<Uuid> = Vec::new(), since 3, tag 0;
        /// Log directories that take no new replicas; null until the broker says.
        cordoned_log_dirs: Option<Vec<Uuid>> = None, since 4, tag 1;
    }
}

record_struct! {
    /// A broker is taken out of the cluster.
    UnregisterBrokerRecord {
        /// The broker.
        broker_id: i32 = 0, since 0;
        /// Its epoch.
        broker_epoch: i64 = 0, since 0;
    }
}

record_struct! {
    /// A topic is created.
    TopicRecord {
        /// Name of the topic.
        name: String = String::new(), since 0;
        /// Id of this incarnation of the topic (KIP-516).
        topic_id: Uuid = Uuid::nil(), since 0;
    }
}

record_struct! {
    /// A partition is created, with everything that is known about it.
    PartitionRecord {
        /// Number of the partition.
        partition_id: i32 = -1, since 0;
        /// The topic.
        topic_id: Uuid = Uuid::nil(), since 0;
        /// Assigned brokers, the preferred leader first.
        replicas: Vec<i32> = Vec::new(), since 0;
        /// In-sync replicas.
        isr: Vec<i32> = Vec::new(), since 0;
        /// Replicas that a reassignment removes.
        removing_replicas: Vec<i32> = Vec::new(), since 0;
        /// Replicas that a reassignment adds.
        adding_replicas: Vec<i32> = Vec::new(), since 0;
        /// The leader, or -1.
        leader: i32 = NO_LEADER, since 0;
        /// 1 while the leader recovers from an unclean election, else 0.
        leader_recovery_state: i8 = 0, since 0, tag 0;
        /// Epoch of the leader.
        leader_epoch: i32 = -1, since 0;
        /// Version of the partition's metadata.
        partition_epoch: i32 = -1, since 0;
        /// Log directory of each replica, in the order of `replicas` (KIP-858).
        directories: Vec<Uuid> = Vec::new(), since 1;
        /// Eligible leader replicas (KIP-966).
        eligible_leader_replicas: Option<Vec<i32>> = None, since 2, tag 1;
        /// Last known leader when nobody is eligible (KIP-966).
        last_known_elr: Option<Vec<i32>> = None, since 2, tag 2;
    }
}

record_struct! {
    /// A configuration is set, or removed when the value is null.
    ConfigRecord {
        /// Kafka's id of the kind of resource: 2 topic, 4 broker, 16 client metrics, 32 group.
        resource_type: i8 = 0, since 0;
        /// Name of the resource; empty is the default of all brokers.
        resource_name: String = String::new(), since 0;
        /// The key.
        name: String = String::new(), since 0;
        /// The value, or null to remove the key.
        value: Option<String> = None, since 0;
    }
}

record_struct! {
    /// Something about a partition changes; fields left at their default stay as they are.
    PartitionChangeRecord {
        /// Number of the partition.
        partition_id: i32 = -1, since 0;
        /// The topic.
        topic_id: Uuid = Uuid::nil(), since 0;
        /// New in-sync replicas.
        isr: Option<Vec<i32>> = None, since 0, tag 0;
        /// New leader, -1 for none, [`NO_LEADER_CHANGE`] to keep it. Any other value raises the leader epoch.
        leader: i32 = NO_LEADER_CHANGE, since 0, tag 1;
        /// New assignment.
        replicas: Option<Vec<i32>> = None, since 0, tag 2;
        /// New set of replicas that are being removed.
        removing_replicas: Option<Vec<i32>> = None, since 0, tag 3;
        /// New set of replicas that are being added.
        adding_replicas: Option<Vec<i32>> = None, since 0, tag 4;
        /// New recovery state; -1 keeps it.
        leader_recovery_state: i8 = -1, since 0, tag 5;
        /// New log directories, in the order of the replicas.
        directories: Option<Vec<Uuid>> = None, since 1, tag 8;
        /// New eligible leader replicas.
        eligible_leader_replicas: Option<Vec<i32>> = None, since 2, tag 6;
        /// New last known leader.
        last_known_elr: Option<Vec<i32>> = None, since 2, tag 7;
    }
}

record_struct! {
    /// A broker is fenced (before `BrokerRegistrationChangeRecord` existed).
    FenceBrokerRecord {
        /// The broker.
        id: i32 = 0, since 0;
        /// Its epoch.
        epoch: i64 = 0, since 0;
    }
}

record_struct! {
    /// A broker is unfenced (before `BrokerRegistrationChangeRecord` existed).
    UnfenceBrokerRecord {
        /// The broker.
        id: i32 = 0, since 0;
        /// Its epoch.
        epoch: i64 = 0, since 0;
    }
}

record_struct! {
    /// A topic is deleted with all of its partitions.
    RemoveTopicRecord {
        /// The topic.
        topic_id: Uuid = Uuid::nil(), since 0;
    }
}

record_struct! {
    /// The finalized level of a feature changes; 0 removes it.
    FeatureLevelRecord {
        /// Name of the feature.
        name: String = String::new(), since 0;
        /// The new level.
        feature_level: i16 = 0, since 0;
    }
}

record_struct! {
    /// A block of producer ids was handed out (KIP-730).
    ProducerIdsRecord {
        /// The broker that asked for the block.
        broker_id: i32 = 0, since 0;
        /// Its epoch.
        broker_epoch: i64 = -1, since 0;
        /// First producer id of the next block.
        next_producer_id: i64 = 0, since 0;
    }
}

record_struct! {
    /// Something about a broker's registration changes.
    BrokerRegistrationChangeRecord {
        /// The broker.
        broker_id: i32 = 0, since 0;
        /// Its epoch.
        broker_epoch: i64 = 0, since 0;
        /// -1 unfences, 1 fences, 0 keeps.
        fenced: i8 = 0, since 0, tag 0;
        /// 1 when a controlled shutdown begins, 0 keeps.
        in_controlled_shutdown: i8 = 0, since 1, tag 1;
        /// New set of online log directories; empty keeps.
        log_dirs: Vec<Uuid> = Vec::new(), since 2, tag 2;
        /// New set of cordoned log directories; null keeps.
        cordoned_log_dirs: Option<Vec<Uuid>> = None, since 3, tag 3;
    }
}

record_struct! {
    /// Changes nothing.
    NoOpRecord {
    }
}

record_struct! {
    /// The records up to the matching end take effect together or not at all (KIP-868).
    BeginTransactionRecord {
        /// What the transaction is for.
        name: Option<String> = None, since 0, tag 0;
    }
}

record_struct! {
    /// The open transaction takes effect.
    EndTransactionRecord {
    }
}

record_struct! {
    /// The open transaction is dropped.
    AbortTransactionRecord {
        /// Why.
        reason: Option<String> = None, since 0, tag 0;
    }
}

record_struct! {
    /// A controller registered itself (KIP-919).
    RegisterControllerRecord {
        /// The controller.
        controller_id: i32 = 0, since 0;
        /// Id of this run of the controller process.
        incarnation_id: Uuid = Uuid::nil(), since 0;
        /// Left from the days of ZooKeeper; always false.
        zk_migration_ready: bool = false, since 0;
        /// Listeners of the controller.
        end_points: Vec<Endpoint> = Vec::new(), since 0;
        /// Features that the controller supports.
        features: Vec<FeatureRange> = Vec::new(), since 0;
    }
}

record_struct! {
    /// The eligible leader replicas of a topic (or of all) are forgotten, since its min.insync.replicas changed.
    ClearElrRecord {
        /// The topic; empty for all.
        topic_name: String = String::new(), since 0;
    }
}

record_struct! {
    /// A controller is taken out of the cluster.
    UnregisterControllerRecord {
        /// The controller.
        controller_id: i32 = 0, since 0;
    }
}

macro_rules! metadata_records {
    ($( $(#[$doc:meta])* $variant:ident($struct:ident) = $api_key:literal, up to $max_version:literal, write $write:expr; )*) => {
        /// One record of the metadata log.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum MetadataRecord {
            $( $(#[$doc])* $variant($struct), )*
            /// Kept and not acted on.
            Inert(InertRecord),
        }

        impl MetadataRecord {
            /// Kafka's id of this type of record.
            pub fn api_key(&self) -> i16 {
                match self {
                    $( Self::$variant(_) => $api_key, )*
                    Self::Inert(record) => record.api_key(),
                }
            }

            /// The version that this release writes this record in: the one that Kafka writes at the finalized
            /// metadata.version.
            pub fn write_version(&self) -> i16 {
                match self {
                    $( Self::$variant(record) => {
                        let version: fn(&$struct) -> i16 = $write;
                        version(record)
                    } )*
                    Self::Inert(record) => record.version(),
                }
            }

            /// The framed bytes of this record in `version`: a record's value on the log.
            pub fn encode_version(&self, version: i16) -> Vec<u8> {
                let mut out = Vec::with_capacity(64);
                write_unsigned_varint(FRAME_VERSION, &mut out);
                write_unsigned_varint(self.api_key() as u32, &mut out);
                write_unsigned_varint(version as u32, &mut out);
                match self {
                    $( Self::$variant(record) => record.encode(version, &mut out), )*
                    Self::Inert(record) => record.encode(&mut out),
                }
                out
            }

            /// Reads a framed record and the version that it was written in.
            pub fn decode_with_version(bytes: &[u8]) -> Result<(Self, i16), RecordError> {
                let mut reader = Reader::new(bytes);
                let frame_version = reader.unsigned_varint()?;
                if frame_version != FRAME_VERSION {
                    return Err(RecordError::UnknownFrameVersion(frame_version));
                }
                let api_key = reader.unsigned_varint()?;
                let version = reader.unsigned_varint()?;
                let record = match api_key {
                    $(
                        $api_key => {
                            if version > $max_version {
                                return Err(RecordError::UnknownVersion { api_key: $api_key, version });
                            }
                            Self::$variant($struct::decode(version as i16, &mut reader)?)
                        }
                    )*
                    other => Self::Inert(InertRecord::decode(other, version, &mut reader)?),
                };
                match reader.remaining_bytes() {
                    0 => Ok((record, version as i16)),
                    rest => Err(RecordError::TrailingBytes(rest)),
                }
            }
        }

        $(
            impl From<$struct> for MetadataRecord {
                fn from(record: $struct) -> Self {
                    Self::$variant(record)
                }
            }
        )*
    };
}

metadata_records! {
    /// A broker registered.
    RegisterBroker(RegisterBrokerRecord) = 0, up to 4, write |_| 4;
    /// A broker left for good.
    UnregisterBroker(UnregisterBrokerRecord) = 1, up to 0, write |_| 0;
    /// A topic was created.
    Topic(TopicRecord) = 2, up to 0, write |_| 0;
    /// A partition was created.
    Partition(PartitionRecord) = 3, up to 2, write |_| 2;
    /// A configuration changed.
    Config(ConfigRecord) = 4, up to 0, write |_| 0;
    /// A partition changed.
    PartitionChange(PartitionChangeRecord) = 5, up to 2, write |_| 2;
    /// A broker was fenced.
    FenceBroker(FenceBrokerRecord) = 7, up to 0, write |_| 0;
    /// A broker was unfenced.
    UnfenceBroker(UnfenceBrokerRecord) = 8, up to 0, write |_| 0;
    /// A topic was deleted.
    RemoveTopic(RemoveTopicRecord) = 9, up to 0, write |_| 0;
    /// A feature level changed.
    FeatureLevel(FeatureLevelRecord) = 12, up to 0, write |_| 0;
    /// A block of producer ids was handed out.
    ProducerIds(ProducerIdsRecord) = 15, up to 0, write |_| 0;
    /// A broker's registration changed.
    BrokerRegistrationChange(BrokerRegistrationChangeRecord) = 17, up to 3, write broker_registration_change_version;
    /// Nothing changed.
    NoOp(NoOpRecord) = 20, up to 0, write |_| 0;
    /// A transaction begins.
    BeginTransaction(BeginTransactionRecord) = 23, up to 0, write |_| 0;
    /// A transaction takes effect.
    EndTransaction(EndTransactionRecord) = 24, up to 0, write |_| 0;
    /// A transaction is dropped.
    AbortTransaction(AbortTransactionRecord) = 25, up to 0, write |_| 0;
    /// A controller registered.
    RegisterController(RegisterControllerRecord) = 27, up to 0, write |_| 0;
    /// Eligible leader replicas were forgotten.
    ClearElr(ClearElrRecord) = 28, up to 0, write |_| 0;
    /// A controller left for good.
    UnregisterController(UnregisterControllerRecord) = 29, up to 0, write |_| 0;
}

/// The lowest version that carries what the record says, as Kafka chooses it.
fn broker_registration_change_version(record: &BrokerRegistrationChangeRecord) -> i16 {
    if record.cordoned_log_dirs.is_some() {
        3
    } else if !record.log_dirs.is_empty() {
        2
    } else if record.in_controlled_shutdown != 0 {
        1
    } else {
        0
    }
}

impl MetadataRecord {
    /// The framed bytes of this record: a record's value on the log.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_version(self.write_version())
    }

    /// Reads a framed record. Unknown types and versions are errors.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        Self::decode_with_version(bytes).map(|(record, _)| record)
    }
}

#[cfg(test)]
mod tests;
