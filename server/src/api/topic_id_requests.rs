//! OffsetCommit and OffsetFetch requests in version 10, which name topics by id. kafka-protocol knows the fields and the
//! responses, but decodes the requests up to version 9 only.

use anyhow::{Context, Result, bail};
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::{
    GroupId, OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
};
use kafka_protocol::protocol::buf::{ByteBuf, ByteBufMut};
use kafka_protocol::protocol::{
    Decodable, Encodable, HeaderVersion, Message, Request, StrBytes, VersionRange,
};
use uuid::Uuid;

/// The version from which topics are named by id.
pub(super) const TOPIC_IDS: i16 = 10;
/// The version whose other fields version 10 has.
const TOPIC_NAMES: i16 = 9;

/// An OffsetCommit request of any version up to 10.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OffsetCommit(pub(crate) OffsetCommitRequest);

/// An OffsetFetch request of any version up to 10.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OffsetFetch(pub(crate) OffsetFetchRequest);

/// The traits of a request, but for decoding, from the request of kafka-protocol.
macro_rules! request_up_to_topic_ids {
    ($request:ty, $inner:ty, $response:ty) => {
        impl Message for $request {
            const VERSIONS: VersionRange = VersionRange {
                min: <$inner>::VERSIONS.min,
                max: TOPIC_IDS,
            };
            const DEPRECATED_VERSIONS: Option<VersionRange> = <$inner>::DEPRECATED_VERSIONS;
        }

        impl HeaderVersion for $request {
            fn header_version(version: i16) -> i16 {
                <$inner>::header_version(version)
            }
        }

        impl Encodable for $request {
            fn encode<B: ByteBufMut>(&self, buf: &mut B, version: i16) -> Result<()> {
                self.0.encode(buf, version)
            }

            fn compute_size(&self, version: i16) -> Result<usize> {
                self.0.compute_size(version)
            }
        }

        impl Request for $request {
            const KEY: i16 = <$inner>::KEY;
            type Response = $response;
        }
    };
}

request_up_to_topic_ids!(OffsetCommit, OffsetCommitRequest, OffsetCommitResponse);
request_up_to_topic_ids!(OffsetFetch, OffsetFetchRequest, OffsetFetchResponse);

impl Decodable for OffsetCommit {
    fn decode<B: ByteBuf>(buf: &mut B, version: i16) -> Result<Self> {
        if version < TOPIC_IDS {
            return OffsetCommitRequest::decode(buf, version).map(OffsetCommit);
        }
        let request = OffsetCommitRequest::default()
            .with_group_id(GroupId(string(buf)?))
            .with_generation_id_or_member_epoch(buf.try_get_i32()?)
            .with_member_id(string(buf)?)
            .with_group_instance_id(nullable_string(buf)?)
            .with_topics(array(buf, commit_topic)?);
        skip_tagged_fields(buf)?;
        Ok(OffsetCommit(request))
    }
}

fn commit_topic<B: ByteBuf>(buf: &mut B) -> Result<OffsetCommitRequestTopic> {
    let topic = OffsetCommitRequestTopic::default()
        .with_topic_id(topic_id(buf)?)
        .with_partitions(array(buf, |buf| {
            OffsetCommitRequestPartition::decode(buf, TOPIC_NAMES)
        })?);
    skip_tagged_fields(buf)?;
    Ok(topic)
}

impl Decodable for OffsetFetch {
    fn decode<B: ByteBuf>(buf: &mut B, version: i16) -> Result<Self> {
        if version < TOPIC_IDS {
            return OffsetFetchRequest::decode(buf, version).map(OffsetFetch);
        }
        let request = OffsetFetchRequest::default()
            .with_groups(array(buf, fetch_group)?)
            .with_require_stable(buf.try_get_u8()? != 0);
        skip_tagged_fields(buf)?;
        Ok(OffsetFetch(request))
    }
}

fn fetch_group<B: ByteBuf>(buf: &mut B) -> Result<OffsetFetchRequestGroup> {
    let group = OffsetFetchRequestGroup::default()
        .with_group_id(GroupId(string(buf)?))
        .with_member_id(nullable_string(buf)?)
        .with_member_epoch(buf.try_get_i32()?)
        .with_topics(nullable_array(buf, fetch_topic)?);
    skip_tagged_fields(buf)?;
    Ok(group)
}

fn fetch_topic<B: ByteBuf>(buf: &mut B) -> Result<OffsetFetchRequestTopics> {
    let topic = OffsetFetchRequestTopics::default()
        .with_topic_id(topic_id(buf)?)
        .with_partition_indexes(array(buf, |buf| Ok(buf.try_get_i32()?))?);
    skip_tagged_fields(buf)?;
    Ok(topic)
}

fn topic_id<B: ByteBuf>(buf: &mut B) -> Result<Uuid> {
    Ok(Uuid::from_u128(buf.try_get_u128()?))
}

fn unsigned_varint<B: ByteBuf>(buf: &mut B) -> Result<u32> {
    let mut value = 0_u32;
    for shift in (0..35).step_by(7) {
        let byte = buf.try_get_u8()?;
        value |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    bail!("variable-length integer is too long")
}

/// A length, which is sent plus one so that 0 is null; no element is shorter than a byte.
fn length<B: ByteBuf>(buf: &mut B) -> Result<Option<usize>> {
    let length = usize::try_from(unsigned_varint(buf)?)?.checked_sub(1);
    if length.is_some_and(|length| length > buf.remaining()) {
        bail!("length is larger than what is left");
    }
    Ok(length)
}

fn nullable_string<B: ByteBuf>(buf: &mut B) -> Result<Option<StrBytes>> {
    let Some(length) = length(buf)? else {
        return Ok(None);
    };
    Ok(Some(StrBytes::from_utf8(buf.copy_to_bytes(length))?))
}

fn string<B: ByteBuf>(buf: &mut B) -> Result<StrBytes> {
    nullable_string(buf)?.context("string is null")
}

fn nullable_array<B: ByteBuf, T>(
    buf: &mut B,
    mut element: impl FnMut(&mut B) -> Result<T>,
) -> Result<Option<Vec<T>>> {
    let Some(length) = length(buf)? else {
        return Ok(None);
    };
    (0..length)
        .map(|_| element(buf))
        .collect::<Result<_>>()
        .map(Some)
}

fn array<B: ByteBuf, T>(buf: &mut B, element: impl FnMut(&mut B) -> Result<T>) -> Result<Vec<T>> {
    nullable_array(buf, element)?.context("array is null")
}

fn skip_tagged_fields<B: ByteBuf>(buf: &mut B) -> Result<()> {
    for _ in 0..unsigned_varint(buf)? {
        let _tag = unsigned_varint(buf)?;
        let size = usize::try_from(unsigned_varint(buf)?)?;
        if size > buf.remaining() {
            bail!("tagged field is larger than what is left");
        }
        buf.advance(size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::{BufMut, Bytes};

    use super::*;

    fn topic_id() -> Uuid {
        Uuid::from_u128(0x57cf4156_c1bc_4a26_9e75_7365b583c750)
    }

    /// Version 9's bytes with each topic's name, given as the text of an id, replaced by the id.
    fn with_ids(v9: &[u8]) -> Bytes {
        let name = topic_id().to_string();
        let mut out = Vec::new();
        let mut rest = v9;
        let mut field = vec![name.len() as u8 + 1];
        field.extend(name.as_bytes());
        while let Some(at) = rest.windows(field.len()).position(|window| window == field) {
            out.extend_from_slice(&rest[..at]);
            out.put_slice(topic_id().as_bytes());
            rest = &rest[at + field.len()..];
        }
        out.extend_from_slice(rest);
        out.into()
    }

    fn name() -> kafka_protocol::messages::TopicName {
        kafka_protocol::messages::TopicName(StrBytes::from_string(topic_id().to_string()))
    }

    #[test]
    fn a_commit_in_version_ten_is_version_nine_with_ids() {
        let partition = |index| {
            OffsetCommitRequestPartition::default()
                .with_partition_index(index)
                .with_committed_offset(7)
                .with_committed_leader_epoch(2)
                .with_committed_metadata(Some(StrBytes::from_static_str("m")))
        };
        let topic = OffsetCommitRequestTopic::default()
            .with_name(name())
            .with_partitions(vec![partition(0), partition(9)]);
        let mut request = OffsetCommitRequest::default()
            .with_group_id(GroupId(StrBytes::from_static_str("g")))
            .with_generation_id_or_member_epoch(3)
            .with_member_id(StrBytes::from_static_str("a"))
            .with_group_instance_id(Some(StrBytes::from_static_str("i")))
            .with_topics(vec![topic.clone(), topic]);
        let mut v9 = Vec::new();
        request.encode(&mut v9, 9).unwrap();
        let mut v10 = with_ids(&v9);
        let read = OffsetCommit::decode(&mut v10, 10).unwrap();
        assert!(v10.is_empty());
        for topic in &mut request.topics {
            topic.name = Default::default();
            topic.topic_id = topic_id();
        }
        assert_eq!(read.0, request);
    }

    #[test]
    fn a_fetch_in_version_ten_is_version_nine_with_ids() {
        let topic = OffsetFetchRequestTopics::default()
            .with_name(name())
            .with_partition_indexes(vec![0, 5]);
        let group = |topics| {
            OffsetFetchRequestGroup::default()
                .with_group_id(GroupId(StrBytes::from_static_str("g")))
                .with_member_epoch(-1)
                .with_topics(topics)
        };
        let mut request = OffsetFetchRequest::default()
            .with_groups(vec![group(Some(vec![topic.clone(), topic])), group(None)])
            .with_require_stable(true);
        let mut v9 = Vec::new();
        request.encode(&mut v9, 9).unwrap();
        let mut v10 = with_ids(&v9);
        let read = OffsetFetch::decode(&mut v10, 10).unwrap();
        assert!(v10.is_empty());
        for topic in request
            .groups
            .iter_mut()
            .flat_map(|group| group.topics.iter_mut().flatten())
        {
            topic.name = Default::default();
            topic.topic_id = topic_id();
        }
        assert_eq!(read.0, request);
    }

    #[test]
    fn cut_and_lying_requests_are_refused() {
        let mut body = Vec::new();
        body.extend([2, b'g', 0, 0, 0, 3, 1, 0]);
        body.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert!(OffsetCommit::decode(&mut Bytes::from(body.clone()), 10).is_err());
        for length in 0..body.len() {
            let mut cut = Bytes::copy_from_slice(&body[..length]);
            assert!(OffsetCommit::decode(&mut cut.clone(), 10).is_err());
            assert!(OffsetFetch::decode(&mut cut, 10).is_err());
        }
    }
}
