//! Smallest requests built from the shapes, and what becomes of them when a count lies.

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
            Shape::Text if self.is_flexible => self.bytes.extend([2, b'a']),
            Shape::Text => self.bytes.extend([0, 1, b'a']),
            Shape::Binary if self.is_flexible => self.bytes.extend([2, b'a']),
            Shape::Binary => self.bytes.extend([0, 0, 0, 1, b'a']),
            Shape::Array(element) => {
                self.counts.push(self.bytes.len());
                if self.is_flexible {
                    self.bytes.push(2);
                } else {
                    self.bytes.extend([0, 0, 0, 1]);
                }
                self.shape(element);
            }
            Shape::Struct(fields) => self.fields(fields),
            Shape::Nullable(fields) => {
                self.bytes.push(1);
                self.fields(fields);
            }
        }
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
    fn with_count(&self, place: usize, count: u32) -> Vec<u8> {
        let (before, after) = self.bytes.split_at(place);
        let mut bytes = before.to_vec();
        if self.is_flexible {
            let mut value = u64::from(count) + 1;
            while value >= 0x80 {
                bytes.push(value as u8 | 0x80);
                value >>= 7;
            }
            bytes.push(value as u8);
            bytes.extend_from_slice(&after[1..]);
        } else {
            bytes.extend_from_slice(&count.to_be_bytes());
            bytes.extend_from_slice(&after[4..]);
        }
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
            check(shape.api_key, version, &sample.bytes),
            Ok(()),
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
            let cut = check(shape.api_key, version, &sample.bytes[..end]);
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
            for count in [i32::MAX as u32, 1 << 30, 10_000, 0x8000_0000] {
                let lying = sample.with_count(*place, count);
                let checked = check(shape.api_key, version, &lying);
                assert!(
                    checked.is_err(),
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
                let lying = Bytes::from(sample.with_count(*place, i32::MAX as u32));
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
    assert_eq!(check(3, 0, &body), Err(ShapeError::TooManyElements));
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
        if check(shape.api_key, *version, &bytes).is_ok() {
            let decoded = RequestKind::decode(*key, &mut Bytes::from(bytes), *version);
            if let Err(error) = decoded {
                prop_assert!(!error.to_string().contains("ot enough bytes"), "{key:?} v{version}: {error}");
            }
        }
    }
}
