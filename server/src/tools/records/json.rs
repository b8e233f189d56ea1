//! JSON as Kafka's tools print it: no spaces, fields in the schema's order, bytes in Base64, characters as they are.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Number(i64),
    /// A number of Java's type double.
    Double(f64),
    /// A string.
    Text(String),
    /// Bytes, printed in Base64.
    Binary(Vec<u8>),
    /// An array.
    Array(Vec<Json>),
    /// An object, in the order of its fields.
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    /// The value of an object's field.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields
                .iter()
                .find_map(|(found, value)| (*found == name).then_some(value)),
            _ => None,
        }
    }

    /// The value of an object's field, to change it.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Json> {
        match self {
            Json::Object(fields) => fields
                .iter_mut()
                .find_map(|(found, value)| (*found == name).then_some(value)),
            _ => None,
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Number(value) => write!(f, "{value}"),
            Json::Double(value) => f.write_str(&java_double(*value)),
            Json::Text(text) => quoted(text, f),
            Json::Binary(bytes) => write!(f, "\"{}\"", STANDARD.encode(bytes)),
            Json::Array(elements) => {
                f.write_str("[")?;
                for (index, element) in elements.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{element}")?;
                }
                f.write_str("]")
            }
            Json::Object(fields) => {
                f.write_str("{")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}\"{name}\":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\u{8}' => f.write_str("\\b")?,
            '\u{c}' => f.write_str("\\f")?,
            control if u32::from(control) < 0x20 => write!(f, "\\u{:04X}", u32::from(control))?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

/// A number as Java's `Double.toString` writes it.
#[must_use]
pub(crate) fn java_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        Some((digits, exponent)) => format!("{digits}E{exponent}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_without_spaces_and_in_order() {
        let json = Json::Object(vec![
            (
                "b",
                Json::Array(vec![Json::Null, Json::Bool(true), Json::Number(-7)]),
            ),
            ("a", Json::Text("q\"\\\n\u{1f}é/".to_owned())),
            ("bytes", Json::Binary(vec![0xfb, 0xff])),
        ]);
        assert_eq!(
            json.to_string(),
            r#"{"b":[null,true,-7],"a":"q\"\\\n\u001Fé/","bytes":"+/8="}"#
        );
    }

    #[test]
    fn doubles_are_written_as_java_writes_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (1_048_576.5, "1048576.5"),
            (1e7, "1.0E7"),
            (1.25e10, "1.25E10"),
            (f64::INFINITY, "Infinity"),
        ] {
            assert_eq!(java_double(value), text);
        }
    }
}
