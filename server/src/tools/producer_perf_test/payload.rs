//! What the records are: their values and keys.

use std::io::Write;

use bytes::Bytes;

use super::arguments::{KeyDistribution, ProducerPerfTestArguments};
use crate::tools::ToolError;

/// A generator of numbers that look random and are the same for the same seed (SplitMix64).
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// The values of records, one after the other.
#[derive(Debug)]
pub(super) struct Payloads {
    source: Source,
    random: Random,
}

#[derive(Debug)]
enum Source {
    /// Random capital letters.
    Letters(usize),
    /// One of these, at random.
    Lines(Vec<Bytes>),
    /// The number of the record.
    Monotonic,
}

impl Payloads {
    /// Reads the payload file if there is one, and says so.
    pub(super) fn new(
        arguments: &ProducerPerfTestArguments,
        out: &mut dyn Write,
    ) -> Result<Self, ToolError> {
        let source = if let Some(file) = &arguments.payload_file {
            let path = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            writeln!(out, "Reading payloads from: {}", path.display())?;
            let text = std::fs::read_to_string(file).unwrap_or_default();
            if text.is_empty() {
                return Err(ToolError::failed(
                    "File does not exist or empty file provided.",
                ));
            }
            let delimiter = match arguments.payload_delimiter.as_str() {
                "\\n" => "\n",
                other => other,
            };
            let lines = split(&text, delimiter)?;
            writeln!(out, "Number of records read: {}", lines.len())?;
            if lines.is_empty() {
                return Err(ToolError::failed("The payload file has no payloads."));
            }
            Source::Lines(lines)
        } else {
            match arguments.record_size {
                Some(size) => Source::Letters(size as usize),
                None => Source::Monotonic,
            }
        };
        Ok(Payloads {
            source,
            random: Random(arguments.random_seed),
        })
    }

    /// The value of the record with this number.
    pub(super) fn next(&mut self, number: u64) -> Bytes {
        match &self.source {
            Source::Letters(size) => {
                let mut bytes = Vec::with_capacity(*size + 8);
                while bytes.len() < *size {
                    // Eight letters from one number.
                    let word = self.random.next().to_le_bytes();
                    bytes.extend(word.map(|byte| b'A' + byte % 26));
                }
                bytes.truncate(*size);
                bytes.into()
            }
            Source::Lines(lines) => {
                let place = self.random.below(lines.len() as u64) as usize;
                lines.get(place).cloned().unwrap_or_default()
            }
            Source::Monotonic => number.to_string().into(),
        }
    }
}

/// The delimiter is a regular expression, as in Kafka.
fn split(text: &str, delimiter: &str) -> Result<Vec<Bytes>, ToolError> {
    let delimiter = regex::Regex::new(delimiter).map_err(|error| {
        ToolError::failed(format!(
            "--payload-delimiter is no regular expression: {error}"
        ))
    })?;
    let mut parts: Vec<_> = delimiter
        .split(text)
        .map(|part| Bytes::from(part.to_owned()))
        .collect();
    if parts.last().is_some_and(Bytes::is_empty) {
        parts.pop();
    }
    Ok(parts)
}

/// The keys of records, one after the other.
#[derive(Debug)]
pub(super) struct Keys {
    distribution: KeyDistribution,
    random: Random,
}

impl Keys {
    pub(super) fn new(distribution: KeyDistribution, seed: u64) -> Self {
        Keys {
            distribution,
            random: Random(seed ^ 0x6b65_7973),
        }
    }

    /// The key of the record with this number.
    pub(super) fn next(&mut self, number: u64) -> Option<Bytes> {
        let key = match self.distribution {
            KeyDistribution::None => return None,
            KeyDistribution::Range(keys) => number % keys.max(1),
            KeyDistribution::Random(keys) => self.random.below(keys),
        };
        Some(key.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_split_as_a_scanner_does() {
        let parts = split("a\nbb\n\nc\n", "\n").expect("splits");
        assert_eq!(parts, ["a", "bb", "", "c"].map(Bytes::from));
    }

    #[test]
    fn letters_have_the_size_and_repeat_with_the_seed() {
        let payloads = |seed| Payloads {
            source: Source::Letters(13),
            random: Random(seed),
        };
        let first = payloads(1).next(0);
        assert_eq!(first.len(), 13);
        assert!(first.iter().all(u8::is_ascii_uppercase));
        assert_eq!(first, payloads(1).next(0));
        assert_ne!(first, payloads(2).next(0));
    }

    #[test]
    fn keys_go_round_their_range() {
        let mut keys = Keys::new(KeyDistribution::Range(3), 0);
        let found: Vec<_> = (0..4).filter_map(|number| keys.next(number)).collect();
        assert_eq!(found, ["0", "1", "2", "0"].map(Bytes::from));
        let mut keys = Keys::new(KeyDistribution::Random(2), 0);
        assert!(
            (0..9)
                .filter_map(|number| keys.next(number))
                .all(|key| key == "0" || key == "1")
        );
        assert_eq!(Keys::new(KeyDistribution::None, 0).next(5), None);
    }
}
