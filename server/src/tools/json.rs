//! The JSON files that some tools take.

use std::path::Path;

use serde_json::Value;

use super::ToolError;

/// The only version of the formats.
const VERSION: i64 = 1;

/// Reads a file.
///
/// # Errors
/// One sentence with the file's name.
pub(super) fn read_file(file: &Path) -> Result<String, ToolError> {
    std::fs::read_to_string(file)
        .map_err(|error| ToolError::failed(format!("{}: {error}", file.display())))
}

/// Parses a document of version 1, which is also the version of one that names none.
///
/// # Errors
/// In Kafka's words.
pub(super) fn parse(text: &str) -> Result<Value, ToolError> {
    let document: Value = serde_json::from_str(text).map_err(|error| {
        ToolError::failed(format!("The input string is not a valid JSON: {error}"))
    })?;
    match document.get("version") {
        None => Ok(document),
        Some(version) if version.as_i64() == Some(VERSION) => Ok(document),
        Some(version) => {
            let text = format!("Not supported version field value {version}");
            Err(ToolError::failed(text))
        }
    }
}

/// The elements of an array that must be there.
///
/// # Errors
/// When it is not there or is no array.
pub(super) fn array<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], ToolError> {
    let value = value
        .get(key)
        .ok_or_else(|| ToolError::failed(format!("Missing {key} field")))?;
    let array = value.as_array().map(Vec::as_slice);
    array.ok_or_else(|| ToolError::failed(format!("{key} is no array: {value}")))
}

/// A text that must be there.
///
/// # Errors
/// When it is not there or is no text.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, ToolError> {
    let found = value.get(key).and_then(Value::as_str);
    found.ok_or_else(|| ToolError::failed(format!("{key} must be a text in {value}")))
}

/// An integer that must be there and fit.
///
/// # Errors
/// When it is not there or is no such integer.
pub(super) fn integer<N: TryFrom<i64>>(value: &Value, key: &str) -> Result<N, ToolError> {
    let found = value.get(key).and_then(Value::as_i64);
    let found = found.and_then(|number| N::try_from(number).ok());
    found.ok_or_else(|| ToolError::failed(format!("{key} must be an integer in {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_version_1_is_read() {
        assert!(parse("{}").is_ok());
        assert!(parse(r#"{"version":1}"#).is_ok());
        let error = |text| parse(text).expect_err(text).to_string();
        assert_eq!(
            error(r#"{"version":2}"#),
            "Not supported version field value 2"
        );
        assert!(error("{").starts_with("The input string is not a valid JSON"));
    }

    #[test]
    fn fields_are_checked() {
        let value = parse(r#"{"a":[1],"t":"x","n":4294967296}"#).expect("parses");
        assert_eq!(array(&value, "a").expect("an array").len(), 1);
        assert_eq!(
            array(&value, "partitions").expect_err("none").to_string(),
            "Missing partitions field"
        );
        assert_eq!(text(&value, "t").expect("a text"), "x");
        assert!(text(&value, "a").is_err());
        assert_eq!(integer::<i64>(&value, "n").expect("fits"), 1 << 32);
        assert!(integer::<i32>(&value, "n").is_err(), "does not fit");
    }
}
