//! Smallest requests built from the shapes, and what becomes of them when a count lies.

use std::ops::Range;

use bytes::Bytes;
use kafka_protocol::messages::{
    ApiKey, InitProducerIdRequest, OffsetCommitRequest, OffsetFetchRequest, RequestKind,
};
use kafka_protocol::protocol::Message;
use proptest::prelude::*;

use super::*;
use crate::api::table::DecodeError;

/// A request with one element in every array, and where its counts are.
#[derive(Default)]
struct Sample {
    bytes: Vec<u8>,
    counts: Vec<usize>,
    /// Where values with a length lie, and the bytes of a length before flexible versions.
    values: Vec<(Range<usize>, usize)>,
    markers: Vec<usize>,
    api_version: i16,
    is_flexible: bool,
}

impl Sample {
    fn of(shape: &RequestShape, api_version: i16) -> Self {
        let is_flexible = api_version >= shape.flexible_from;
        let mut sample = Sample {
            api_version,
            is_flexible,
            ..Sample::default()
        };
        sample.fields(shape.fields);
        sample
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Fixed(bytes) => self.bytes.extend(std::iter::repeat_n(0, *bytes)),
            Shape::Text => self.value(2, |sample| sample.bytes.push(b'a')),
            Shape::Binary => self.value(4, |sample| sample.bytes.push(b'a')),
            Shape::Array(element) => {
                self.counts.push(self.bytes.len());
                self.value(4, |sample| sample.shape(element));
            }
            Shape::Struct(fields) => self.fields(fields),
            Shape::Nullable(fields) => {
                self.markers.push(self.bytes.len());
                self.bytes.push(1);
                self.fields(fields);
            }
        }
    }

    /// A value of length one, which takes `classic` bytes before flexible versions.
    fn value(&mut self, classic: usize, put: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        if self.is_flexible {
            self.bytes.push(2);
        } else {
            self.bytes
                .extend_from_slice(&1_i32.to_be_bytes()[4 - classic..]);
        }
        put(self);
        self.values.push((start..self.bytes.len(), classic));
    }

    fn fields(&mut self, fields: &'static [Field]) {
        for field in fields {
            let (first, last) = field.versions;
            if field.tag.is_none() && (first..=last).contains(&self.api_version) {
                self.shape(&field.shape);
            }
        }
        if self.is_flexible {
            self.bytes.push(0);
        }
    }

    /// The request with `count` in the place of one of its counts.
    fn with_count(&self, place: usize, count: i32) -> Vec<u8> {
        let length_bytes = if self.is_flexible { 1 } else { 4 };
        self.with(place..place + length_bytes, count, 4)
    }

    /// The request with `length` in the place of some of its bytes.
    fn with(&self, range: Range<usize>, length: i32, classic: usize) -> Vec<u8> {
        let mut bytes = self.bytes[..range.start].to_vec();
        if self.is_flexible {
            let mut value = length.cast_unsigned().wrapping_add(1);
            while value >= 0x80 {
                bytes.push(value as u8 | 0x80);
                value >>= 7;
            }
            bytes.push(value as u8);
        } else if classic == 2 {
            let length = i16::try_from(length).unwrap_or(i16::MIN);
            bytes.extend(length.to_be_bytes());
        } else {
            bytes.extend(length.to_be_bytes());
        }
        bytes.extend_from_slice(&self.bytes[range.end..]);
        bytes
    }
}

/// Every version of every request that kafka-protocol decodes and a broker may be sent.
fn requests() -> impl Iterator<Item = (&'static RequestShape, ApiKey, i16)> {
    let known = SHAPES
        .iter()
        .filter_map(|shape| Some((shape, ApiKey::try_from(shape.api_key).ok()?)));
    known.flat_map(|(shape, key)| {
        let versions = key.valid_versions();
        // Of these three kafka-protocol knows one more version of the response than of the request.
        let max = match key {
            ApiKey::OffsetCommit => OffsetCommitRequest::VERSIONS.max,
            ApiKey::OffsetFetch => OffsetFetchRequest::VERSIONS.max,
            ApiKey::InitProducerId => InitProducerIdRequest::VERSIONS.max,
            _ => versions.max,
        };
        (versions.min..=max).map(move |version| (shape, key, version))
    })
}

/// Every API on every kind of listener.
fn served() -> impl Iterator<Item = &'static crate::api::table::ApiEntry> {
    use crate::network::ListenerKind::{Broker, Controller};
    [Broker, Controller].into_iter().flat_map(crate::api::apis)
}

#[test]
fn shapes_are_sorted_by_api_key() {
    assert!(SHAPES.is_sorted_by_key(|shape| shape.api_key));
}

#[test]
fn every_api_that_is_served_has_a_shape() {
    for entry in served() {
        assert!(
            SHAPES.iter().any(|shape| shape.api_key == entry.key),
            "{}",
            entry.name
        );
    }
}

#[test]
fn the_smallest_request_of_every_version_passes_and_kafka_protocol_reads_it_to_its_end() {
    for (shape, key, version) in requests() {
        let sample = Sample::of(shape, version);
        assert_eq!(
            walk(shape.api_key, version, &sample.bytes),
            Ok(Vec::new()),
            "{key:?} v{version}"
        );
        let mut body = Bytes::from(sample.bytes.clone());
        let decoded = RequestKind::decode(key, &mut body, version);
        assert!(decoded.is_ok(), "{key:?} v{version}: {decoded:?}");
        assert!(
            body.is_empty(),
            "{key:?} v{version}: {} bytes left",
            body.len()
        );
    }
}

#[test]
fn a_request_that_ends_early_never_passes() {
    for (shape, key, version) in requests() {
        let sample = Sample::of(shape, version);
        for end in 0..sample.bytes.len() {
            let cut = walk(shape.api_key, version, &sample.bytes[..end]);
            assert!(cut.is_err(), "{key:?} v{version} cut at {end}");
        }
    }
}

#[test]
fn a_count_that_the_request_cannot_hold_never_passes_for_any_array_of_any_request() {
    let mut arrays = 0;
    for (shape, key, version) in requests() {
        let sample = Sample::of(shape, version);
        for place in &sample.counts {
            arrays += 1;
            for count in [i32::MAX, 1 << 30, 10_000] {
                let lying = sample.with_count(*place, count);
                let walked = walk(shape.api_key, version, &lying);
                assert!(
                    walked.is_err(),
                    "{key:?} v{version}: {count} elements at {place}"
                );
            }
        }
    }
    assert!(arrays > 300, "{arrays} arrays");
}

#[test]
fn an_api_that_is_served_refuses_a_count_of_2_to_the_31_in_any_array_of_any_version() {
    for entry in served() {
        let shape = SHAPES
            .iter()
            .find(|shape| shape.api_key == entry.key)
            .unwrap();
        for version in entry.min_version..=entry.max_version {
            let sample = Sample::of(shape, version);
            let whole = (entry.decode)(version, Bytes::from(sample.bytes.clone()));
            assert!(whole.is_ok(), "{} v{version}: {whole:?}", entry.name);
            for place in &sample.counts {
                let lying = Bytes::from(sample.with_count(*place, i32::MAX));
                let refused = (entry.decode)(version, lying);
                let is_shape = matches!(refused, Err(DecodeError::Shape(_)));
                assert!(
                    is_shape,
                    "{} v{version} at {place}: {refused:?}",
                    entry.name
                );
            }
        }
    }
}

#[test]
fn more_elements_than_allowed_never_pass_even_when_they_are_there() {
    // Metadata version 0: an array of strings.
    let count = MAX_ELEMENTS + 1;
    let mut body = (count as i32).to_be_bytes().to_vec();
    body.resize(4 + 2 * count, 0);
    assert_eq!(walk(3, 0, &body), Err(ShapeError::TooManyElements));
}

/// What kafka-protocol makes of a request after the walk, as text.
fn read(key: ApiKey, version: i16, body: Vec<u8>) -> Result<String, String> {
    let mut body = checked(key as i16, version, Bytes::from(body)).map_err(|e| e.to_string())?;
    let request = RequestKind::decode(key, &mut body, version).map_err(|e| e.to_string())?;
    Ok(format!("{request:?}, {} bytes left", body.len()))
}

#[test]
fn every_negative_length_of_any_request_is_read_as_minus_one_is() {
    let mut nulls = 0;
    for (shape, key, version) in requests() {
        let sample = Sample::of(shape, version);
        for (range, classic) in &sample.values {
            let read_with =
                |length| read(key, version, sample.with(range.clone(), length, *classic));
            let null = read_with(-1);
            nulls += usize::from(null.is_ok());
            for length in [-2, -30_000, i32::MIN] {
                let other = read_with(length);
                assert_eq!(other, null, "{key:?} v{version}: {length} at {range:?}");
            }
        }
    }
    assert!(nulls > 150, "{nulls} nulls were read");
}

#[test]
fn every_marker_that_is_not_negative_says_that_the_struct_is_there() {
    let mut markers = 0;
    for (shape, key, version) in requests() {
        let sample = Sample::of(shape, version);
        for place in &sample.markers {
            markers += 1;
            let read_with = |marker: i8| {
                let mut bytes = sample.bytes.clone();
                bytes[*place] = marker.cast_unsigned();
                read(key, version, bytes)
            };
            let present = read_with(1);
            assert!(present.is_ok(), "{key:?} v{version}: {present:?}");
            assert_eq!(read_with(0), present, "{key:?} v{version}");
            assert_eq!(read_with(i8::MAX), present, "{key:?} v{version}");
            assert_eq!(read_with(i8::MIN), read_with(-1), "{key:?} v{version}");
            assert_ne!(read_with(-1), present, "{key:?} v{version}");
        }
    }
    assert!(markers > 0, "no request has a nullable struct");
}

#[test]
fn a_null_inside_a_tagged_field_is_put_into_the_decoders_form_where_it_lies() {
    // Fetch v12: the cluster id is the tagged field 0, at the end.
    let shape = SHAPES.iter().find(|shape| shape.api_key == 1).unwrap();
    let mut body = Sample::of(shape, 12).bytes;
    *body.last_mut().unwrap() = 1;
    let with = |value: &[u8]| {
        let mut body = body.clone();
        body.extend([0, value.len() as u8]);
        body.extend(value);
        read(ApiKey::Fetch, 12, body)
    };
    let null = with(&[0]);
    assert!(
        null.as_ref()
            .is_ok_and(|text| text.contains("cluster_id: None"))
    );
    assert_eq!(with(&[0x81, 0x80, 0x80, 0x80, 0x08]), null);
    assert_eq!(with(&[0xff, 0xff, 0xff, 0xff, 0x0f]), null);
}

#[test]
fn a_string_longer_than_two_bytes_can_tell_is_refused_in_flexible_versions_too() {
    // Heartbeat v4 begins with the group's id.
    for (bytes, refused) in [(MAX_TEXT_BYTES, false), (MAX_TEXT_BYTES + 1, true)] {
        let length = bytes as u32 + 1;
        let mut body = vec![
            length as u8 | 0x80,
            (length >> 7) as u8 | 0x80,
            (length >> 14) as u8,
        ];
        body.resize(body.len() + bytes, b'a');
        body.extend([0, 0, 0, 0, 2, b'm', 0, 0]);
        let expected = if refused {
            Err(ShapeError::TextTooLong(bytes))
        } else {
            Ok(Vec::new())
        };
        assert_eq!(walk(12, 4, &body), expected);
    }
}

proptest! {
    #[test]
    fn what_passes_is_decoded_without_a_reservation_beyond_its_size(
        which in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let all: Vec<_> = requests().collect();
        let (shape, key, version) = which.get(&all);
        let mut bytes = Sample::of(shape, *version).bytes;
        for (place, value) in flips {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
        }
        // The walk must be at least as strict as the decoder about lengths: what passes may still fail to decode (text
        // that is not UTF-8), but it cannot fail for want of bytes.
        if let Ok(mut body) = checked(shape.api_key, *version, Bytes::from(bytes)) {
            let decoded = RequestKind::decode(*key, &mut body, *version);
            if let Err(error) = decoded {
                prop_assert!(!error.to_string().contains("ot enough bytes"), "{key:?} v{version}: {error}");
            }
        }
    }
}
