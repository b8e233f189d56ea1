//! The keys and values of `__consumer_offsets`, byte for byte as Apache Kafka writes them.
//!
//! A key starts with its type: 1 (or 0, written long ago) is a committed offset, 2 a group of the classic protocol.
//! A value starts with its version. Offsets are written in version 4, which is flexible and carries the topic id in
//! tag 0, or in version 1 when the client gave a retention time of its own; groups are written in version 3. All
//! versions from 0 are read.

use bytes::{Buf, BufMut, Bytes};
use thiserror::Error;
use uuid::Uuid;

const OFFSET_COMMIT_KEY_LEGACY: i16 = 0;
const OFFSET_COMMIT_KEY: i16 = 1;
const GROUP_METADATA_KEY: i16 = 2;

const OFFSET_COMMIT_VERSION_WITH_EXPIRY: i16 = 1;
const OFFSET_COMMIT_VERSION: i16 = 4;
const GROUP_METADATA_VERSION: i16 = 3;
/// The newest version of both values; the first flexible one.
const NEWEST_VERSION: i16 = 4;

const TOPIC_ID_TAG: u32 = 0;

/// One record of `__consumer_offsets`; a value of `None` is a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRecord {
    /// The offset that a group committed for a partition.
    OffsetCommit {
        /// The group's id.
        group: String,
        /// The topic's name.
        topic: String,
        /// The partition's index.
        partition: i32,
        /// What was committed.
        value: Option<OffsetCommitValue>,
    },
    /// A group of the classic protocol with its members.
    GroupMetadata {
        /// The group's id.
        group: String,
        /// The group as of its last generation.
        value: Option<GroupMetadataValue>,
    },
}

/// The value of a committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommitValue {
    /// The committed offset.
    pub offset: i64,
    /// The leader epoch of the last consumed record, -1 if not known.
    pub leader_epoch: i32,
    /// The client's own text.
    pub metadata: String,
    /// When the offset was committed.
    pub commit_timestamp_ms: i64,
    /// When it expires, if the client said so.
    pub expire_timestamp_ms: Option<i64>,
    /// The topic's id, nil if not known.
    pub topic_id: Uuid,
}

/// The value of a group of the classic protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMetadataValue {
    /// The protocol type, empty for a group that never had a member.
    pub protocol_type: String,
    /// The generation.
    pub generation: i32,
    /// The chosen protocol; none when the group is empty.
    pub protocol: Option<String>,
    /// The leader's member id; none when the group is empty.
    pub leader: Option<String>,
    /// When the group last changed its state, -1 if not known.
    pub current_state_timestamp_ms: i64,
    /// The members.
    pub members: Vec<MemberMetadata>,
}

/// A member within a [`GroupMetadataValue`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberMetadata {
    /// The member's id.
    pub member_id: String,
    /// `group.instance.id` of a static member.
    pub group_instance_id: Option<String>,
    /// The client's id.
    pub client_id: String,
    /// The client's host as Java prints it.
    pub client_host: String,
    /// The rebalance time-out; -1 in records that have none.
    pub rebalance_timeout_ms: i32,
    /// The session time-out.
    pub session_timeout_ms: i32,
    /// The member's metadata for the chosen protocol.
    pub subscription: Bytes,
    /// What the leader assigned to the member.
    pub assignment: Bytes,
}

/// A record of `__consumer_offsets` that cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RecordError {
    /// The key or value ends before its last field.
    #[error("key or value ends too early")]
    TooShort,
    /// A length is negative where the field is not nullable.
    #[error("a length is negative")]
    NegativeLength,
    /// A string is not UTF-8.
    #[error("a string is not valid UTF-8")]
    InvalidUtf8,
    /// A variable-length integer is too long.
    #[error("a variable-length integer is too long")]
    InvalidVarint,
    /// A string or an array is longer than its field can say.
    #[error("a string or array is too long for its field")]
    TooLong,
    /// The value has a version that did not exist when this was written.
    #[error("unknown value version {0}")]
    UnknownVersion(i16),
}

impl GroupRecord {
    /// The key's bytes. Fails when a name is longer than 32,767 bytes, as in Kafka.
    pub fn key(&self) -> Result<Bytes, RecordError> {
        let mut out = Vec::new();
        match self {
            GroupRecord::OffsetCommit {
                group,
                topic,
                partition,
                ..
            } => {
                out.put_i16(OFFSET_COMMIT_KEY);
                put_string(&mut out, group)?;
                put_string(&mut out, topic)?;
                out.put_i32(*partition);
            }
            GroupRecord::GroupMetadata { group, .. } => {
                out.put_i16(GROUP_METADATA_KEY);
                put_string(&mut out, group)?;
            }
        }
        Ok(out.into())
    }

    /// The value's bytes, none for a tombstone. Fails when a string is longer than its field can say.
    pub fn value(&self) -> Result<Option<Bytes>, RecordError> {
        match self {
            GroupRecord::OffsetCommit { value, .. } => {
                value.as_ref().map(OffsetCommitValue::encode).transpose()
            }
            GroupRecord::GroupMetadata { value, .. } => {
                value.as_ref().map(GroupMetadataValue::encode).transpose()
            }
        }
    }

    /// Reads a record. `None` is a record of a kind that is not known here (groups of newer protocols), which a reader
    /// passes over.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Option<GroupRecord>, RecordError> {
        let mut key = Reader(key);
        match key.i16()? {
            OFFSET_COMMIT_KEY_LEGACY | OFFSET_COMMIT_KEY => Ok(Some(GroupRecord::OffsetCommit {
                group: key.string()?,
                topic: key.string()?,
                partition: key.i32()?,
                value: value.map(OffsetCommitValue::decode).transpose()?,
            })),
            GROUP_METADATA_KEY => Ok(Some(GroupRecord::GroupMetadata {
                group: key.string()?,
                value: value.map(GroupMetadataValue::decode).transpose()?,
            })),
            _ => Ok(None),
        }
    }
}

impl OffsetCommitValue {
    fn encode(&self) -> Result<Bytes, RecordError> {
        let mut out = Vec::with_capacity(48 + self.metadata.len());
        if let Some(expire_timestamp_ms) = self.expire_timestamp_ms {
            out.put_i16(OFFSET_COMMIT_VERSION_WITH_EXPIRY);
            out.put_i64(self.offset);
            put_string(&mut out, &self.metadata)?;
            out.put_i64(self.commit_timestamp_ms);
            out.put_i64(expire_timestamp_ms);
        } else {
            out.put_i16(OFFSET_COMMIT_VERSION);
            out.put_i64(self.offset);
            out.put_i32(self.leader_epoch);
            put_compact_string(&mut out, &self.metadata)?;
            out.put_i64(self.commit_timestamp_ms);
            if self.topic_id.is_nil() {
                put_unsigned_varint(&mut out, 0);
            } else {
                put_unsigned_varint(&mut out, 1);
                put_unsigned_varint(&mut out, TOPIC_ID_TAG);
                put_unsigned_varint(&mut out, 16);
                out.put_slice(self.topic_id.as_bytes());
            }
        }
        Ok(out.into())
    }

    fn decode(value: &[u8]) -> Result<Self, RecordError> {
        let mut value = Reader(value);
        let version = value.version()?;
        let flexible = version >= NEWEST_VERSION;
        let offset = value.i64()?;
        let leader_epoch = if version >= 3 { value.i32()? } else { -1 };
        let metadata = if flexible {
            value.compact_string()?
        } else {
            value.string()?
        };
        let commit_timestamp_ms = value.i64()?;
        let expire_timestamp_ms = if version == 1 {
            Some(value.i64()?).filter(|at_ms| *at_ms != -1)
        } else {
            None
        };
        let mut topic_id = Uuid::nil();
        if flexible {
            value.tagged_fields(|tag, mut field| {
                if tag == TOPIC_ID_TAG {
                    topic_id = Uuid::from_u128(u128::from_be_bytes(field.array()?));
                }
                Ok(())
            })?;
        }
        Ok(OffsetCommitValue {
            offset,
            leader_epoch,
            metadata,
            commit_timestamp_ms,
            expire_timestamp_ms,
            topic_id,
        })
    }
}

impl GroupMetadataValue {
    fn encode(&self) -> Result<Bytes, RecordError> {
        let mut out = Vec::new();
        out.put_i16(GROUP_METADATA_VERSION);
        put_string(&mut out, &self.protocol_type)?;
        out.put_i32(self.generation);
        put_nullable_string(&mut out, self.protocol.as_deref())?;
        put_nullable_string(&mut out, self.leader.as_deref())?;
        out.put_i64(self.current_state_timestamp_ms);
        out.put_i32(i32::try_from(self.members.len()).map_err(|_| RecordError::TooLong)?);
        for member in &self.members {
            put_string(&mut out, &member.member_id)?;
            put_nullable_string(&mut out, member.group_instance_id.as_deref())?;
            put_string(&mut out, &member.client_id)?;
            put_string(&mut out, &member.client_host)?;
            out.put_i32(member.rebalance_timeout_ms);
            out.put_i32(member.session_timeout_ms);
            put_bytes(&mut out, &member.subscription)?;
            put_bytes(&mut out, &member.assignment)?;
        }
        Ok(out.into())
    }

    fn decode(value: &[u8]) -> Result<Self, RecordError> {
        let mut value = Reader(value);
        let version = value.version()?;
        let flexible = version >= NEWEST_VERSION;
        let protocol_type = value.any_string(flexible)?;
        let generation = value.i32()?;
        let protocol = value.any_nullable_string(flexible)?;
        let leader = value.any_nullable_string(flexible)?;
        let current_state_timestamp_ms = if version >= 2 { value.i64()? } else { -1 };
        let count = value.array_length(flexible)?;
        let mut members = Vec::new();
        for _ in 0..count {
            members.push(MemberMetadata::decode(&mut value, version)?);
        }
        if flexible {
            value.tagged_fields(|_, _| Ok(()))?;
        }
        Ok(GroupMetadataValue {
            protocol_type,
            generation,
            protocol,
            leader,
            current_state_timestamp_ms,
            members,
        })
    }
}

impl MemberMetadata {
    fn decode(value: &mut Reader<'_>, version: i16) -> Result<Self, RecordError> {
        let flexible = version >= NEWEST_VERSION;
        let member = MemberMetadata {
            member_id: value.any_string(flexible)?,
            group_instance_id: if version >= 3 {
                value.any_nullable_string(flexible)?
            } else {
                None
            },
            client_id: value.any_string(flexible)?,
            client_host: value.any_string(flexible)?,
            rebalance_timeout_ms: if version >= 1 { value.i32()? } else { -1 },
            session_timeout_ms: value.i32()?,
            subscription: value.any_bytes(flexible)?,
            assignment: value.any_bytes(flexible)?,
        };
        if flexible {
            value.tagged_fields(|_, _| Ok(()))?;
        }
        Ok(member)
    }
}

/// A cursor over bytes that may come from a damaged or foreign log.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(RecordError::TooShort)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let (taken, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or(RecordError::TooShort)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn i16(&mut self) -> Result<i16, RecordError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    fn i32(&mut self) -> Result<i32, RecordError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn i64(&mut self) -> Result<i64, RecordError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    fn version(&mut self) -> Result<i16, RecordError> {
        match self.i16()? {
            version @ 0..=NEWEST_VERSION => Ok(version),
            version => Err(RecordError::UnknownVersion(version)),
        }
    }

    fn unsigned_varint(&mut self) -> Result<u32, RecordError> {
        let mut value = 0_u32;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array()?;
            value |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(RecordError::InvalidVarint)
    }

    /// A length in front of a string, an array or bytes; -1 is null.
    fn length(&mut self, flexible: bool, short: bool) -> Result<Option<usize>, RecordError> {
        if flexible {
            return Ok((self.unsigned_varint()? as usize).checked_sub(1));
        }
        let length = if short {
            i32::from(self.i16()?)
        } else {
            self.i32()?
        };
        match length {
            -1 => Ok(None),
            length => usize::try_from(length)
                .map(Some)
                .map_err(|_| RecordError::NegativeLength),
        }
    }

    fn any_nullable_string(&mut self, flexible: bool) -> Result<Option<String>, RecordError> {
        let Some(length) = self.length(flexible, true)? else {
            return Ok(None);
        };
        let bytes = self.take(length)?;
        let text = std::str::from_utf8(bytes).map_err(|_| RecordError::InvalidUtf8)?;
        Ok(Some(text.to_owned()))
    }

    fn any_string(&mut self, flexible: bool) -> Result<String, RecordError> {
        self.any_nullable_string(flexible)?
            .ok_or(RecordError::NegativeLength)
    }

    fn string(&mut self) -> Result<String, RecordError> {
        self.any_string(false)
    }

    fn compact_string(&mut self) -> Result<String, RecordError> {
        self.any_string(true)
    }

    fn any_bytes(&mut self, flexible: bool) -> Result<Bytes, RecordError> {
        let length = self
            .length(flexible, false)?
            .ok_or(RecordError::NegativeLength)?;
        Ok(Bytes::copy_from_slice(self.take(length)?))
    }

    /// The count of an array, of which every element takes at least one byte.
    fn array_length(&mut self, flexible: bool) -> Result<usize, RecordError> {
        let count = self
            .length(flexible, false)?
            .ok_or(RecordError::NegativeLength)?;
        if count > self.0.remaining() {
            return Err(RecordError::TooShort);
        }
        Ok(count)
    }

    fn tagged_fields(
        &mut self,
        mut on_field: impl FnMut(u32, Reader<'a>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        for _ in 0..self.unsigned_varint()? {
            let tag = self.unsigned_varint()?;
            let size = self.unsigned_varint()? as usize;
            on_field(tag, Reader(self.take(size)?))?;
        }
        Ok(())
    }
}

fn put_string(out: &mut Vec<u8>, text: &str) -> Result<(), RecordError> {
    out.put_i16(i16::try_from(text.len()).map_err(|_| RecordError::TooLong)?);
    out.put_slice(text.as_bytes());
    Ok(())
}

fn put_nullable_string(out: &mut Vec<u8>, text: Option<&str>) -> Result<(), RecordError> {
    match text {
        Some(text) => put_string(out, text),
        None => {
            out.put_i16(-1);
            Ok(())
        }
    }
}

fn put_compact_string(out: &mut Vec<u8>, text: &str) -> Result<(), RecordError> {
    // Kafka refuses longer ones too: its string length is an i16 in every encoding it checks.
    let length = i16::try_from(text.len()).map_err(|_| RecordError::TooLong)?;
    put_unsigned_varint(out, length as u32 + 1);
    out.put_slice(text.as_bytes());
    Ok(())
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), RecordError> {
    out.put_i32(i32::try_from(bytes.len()).map_err(|_| RecordError::TooLong)?);
    out.put_slice(bytes);
    Ok(())
}

fn put_unsigned_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

#[cfg(test)]
mod tests;
