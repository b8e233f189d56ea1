//! Kafka's deserializers by the names of their classes, and how what they read is printed.

use crate::tools::records::java_double;

const PACKAGE: &str = "org.apache.kafka.common.serialization.";

/// A deserializer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deserializer {
    String,
    Bytes,
    ByteBuffer,
    Boolean,
    Short,
    Integer,
    Long,
    Float,
    Double,
    Uuid,
}

const ALL: [(&str, Deserializer); 10] = [
    ("StringDeserializer", Deserializer::String),
    ("BytesDeserializer", Deserializer::Bytes),
    ("ByteBufferDeserializer", Deserializer::ByteBuffer),
    ("BooleanDeserializer", Deserializer::Boolean),
    ("ShortDeserializer", Deserializer::Short),
    ("IntegerDeserializer", Deserializer::Integer),
    ("LongDeserializer", Deserializer::Long),
    ("FloatDeserializer", Deserializer::Float),
    ("DoubleDeserializer", Deserializer::Double),
    ("UUIDDeserializer", Deserializer::Uuid),
];

impl Deserializer {
    /// The deserializer of this class. The text of an error is a sentence.
    pub(super) fn named(class: &str) -> Result<Self, String> {
        let name = class.strip_prefix(PACKAGE);
        let found = ALL.iter().find(|(known, _)| name == Some(known));
        found.map(|(_, deserializer)| *deserializer).ok_or_else(|| {
            let names: Vec<_> = ALL.iter().map(|(name, _)| *name).collect();
            format!(
                "The deserializer {class} is not known; there are {} of {}",
                names.join(", "),
                PACKAGE.trim_end_matches('.')
            )
        })
    }

    /// What Java prints of the object that the bytes are. The text of an error is Kafka's.
    pub(super) fn text(self, bytes: &[u8]) -> Result<String, String> {
        let name = ALL.iter().find(|(_, known)| *known == self);
        let name = name.map_or("", |(name, _)| *name);
        let wrong = |size: usize| format!("Size of data received by {name} is not {size}");
        Ok(match self {
            Deserializer::String => String::from_utf8_lossy(bytes).into_owned(),
            Deserializer::Bytes => bytes.iter().map(|byte| escaped(*byte)).collect(),
            Deserializer::ByteBuffer => {
                let size = bytes.len();
                format!("java.nio.HeapByteBuffer[pos=0 lim={size} cap={size}]")
            }
            Deserializer::Boolean => match bytes {
                [0] => "false".to_owned(),
                [1] => "true".to_owned(),
                [other] => format!("Unexpected byte received by BooleanDeserializer: {other}"),
                _ => return Err(wrong(1)),
            },
            Deserializer::Short => i16::from_be_bytes(exact(bytes).ok_or(wrong(2))?).to_string(),
            Deserializer::Integer => i32::from_be_bytes(exact(bytes).ok_or(wrong(4))?).to_string(),
            Deserializer::Long => i64::from_be_bytes(exact(bytes).ok_or(wrong(8))?).to_string(),
            Deserializer::Float => {
                let value = f32::from_be_bytes(exact(bytes).ok_or(wrong(4))?);
                // The shortest digits of the float, not of the double that it is.
                java_double(value.to_string().parse().unwrap_or(f64::from(value)))
            }
            Deserializer::Double => java_double(f64::from_be_bytes(exact(bytes).ok_or(wrong(8))?)),
            Deserializer::Uuid => {
                let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
                let parsed = uuid::Uuid::parse_str(text)
                    .map_err(|_| "Error parsing data into UUID".to_owned())?;
                parsed.to_string()
            }
        })
    }
}

fn exact<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

fn escaped(byte: u8) -> String {
    match byte {
        b'\\' => format!("\\x{byte:02X}"),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02X}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_known_by_their_whole_names() {
        assert_eq!(
            Deserializer::named("org.apache.kafka.common.serialization.LongDeserializer"),
            Ok(Deserializer::Long)
        );
        for unknown in ["LongDeserializer", "com.example.Mine"] {
            let error = Deserializer::named(unknown).expect_err(unknown);
            assert!(error.contains(unknown), "{error}");
        }
    }

    #[test]
    fn numbers_need_their_size() {
        assert_eq!(
            Deserializer::Integer.text(&[0, 0, 1, 0]).as_deref(),
            Ok("256")
        );
        assert_eq!(
            Deserializer::Integer.text(b"null!"),
            Err("Size of data received by IntegerDeserializer is not 4".to_owned())
        );
        assert_eq!(
            Deserializer::Float.text(&0.1f32.to_be_bytes()).as_deref(),
            Ok("0.1")
        );
        assert_eq!(
            Deserializer::Double.text(&1e9f64.to_be_bytes()).as_deref(),
            Ok("1.0E9")
        );
        assert_eq!(
            Deserializer::Bytes.text(b"a\\\x01").as_deref(),
            Ok("a\\x5C\\x01")
        );
    }
}
