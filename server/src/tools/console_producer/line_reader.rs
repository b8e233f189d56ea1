//! Lines as `key<separator>value` with headers in front, as Kafka's LineMessageReader takes them apart.

use bytes::Bytes;
use regex::Regex;

use super::Record;
use crate::tools::properties::Properties;

const KNOWN: &[&str] = &[
    "topic",
    "parse.key",
    "key.separator",
    "parse.headers",
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "ignore.error",
    "null.marker",
];

/// Takes lines apart.
#[derive(Debug)]
pub(super) struct LineReader {
    parses_key: bool,
    key_separator: String,
    parses_headers: bool,
    headers_delimiter: String,
    headers_separator: Regex,
    headers_key_separator: String,
    ignores_errors: bool,
    null_marker: Option<String>,
    line_number: u64,
}

impl LineReader {
    /// The text of an error is a sentence.
    pub(super) fn new(properties: &Properties) -> Result<Self, String> {
        properties.check_known("reader", KNOWN)?;
        let text = |key: &str, default: &str| properties.text(key, default);
        let flag = |key: &str| properties.flag(key, false);
        let separators = [
            ("key.separator", text("key.separator", "\t")),
            ("headers.delimiter", text("headers.delimiter", "\t")),
            ("headers.separator", text("headers.separator", ",")),
            ("headers.key.separator", text("headers.key.separator", ":")),
        ];
        let null_marker = properties.get("null.marker");
        check(&separators, null_marker)?;
        let [
            (_, key_separator),
            (_, headers_delimiter),
            (_, headers),
            (_, headers_key_separator),
        ] = separators;
        Ok(LineReader {
            parses_key: flag("parse.key"),
            key_separator,
            parses_headers: flag("parse.headers"),
            headers_delimiter,
            headers_separator: Regex::new(&headers)
                .map_err(|error| format!("headers.separator is no regular expression: {error}."))?,
            headers_key_separator,
            ignores_errors: flag("ignore.error"),
            null_marker: null_marker.map(str::to_owned),
            line_number: 0,
        })
    }

    /// The record of a line, without a timestamp. The text of an error is Kafka's.
    pub(super) fn record(&mut self, line: &[u8]) -> Result<Record, String> {
        self.line_number += 1;
        let line = String::from_utf8_lossy(line);
        let (headers, rest) = self.part(
            self.parses_headers,
            &line,
            &line,
            &self.headers_delimiter,
            "headers delimiter",
        )?;
        let (key, value) = self.part(
            self.parses_key,
            &line,
            rest,
            &self.key_separator,
            "key separator",
        )?;
        let headers = match headers {
            Some(headers) if self.null_marker.as_deref() != Some(headers) => {
                self.headers(headers)?
            }
            _ => Vec::new(),
        };
        Ok(Record {
            key: key.and_then(|key| self.bytes(key)),
            value: self.bytes(value),
            headers,
            timestamp: -1,
        })
    }

    fn bytes(&self, text: &str) -> Option<Bytes> {
        (self.null_marker.as_deref() != Some(text)).then(|| Bytes::from(text.to_owned()))
    }

    /// What is in front of the separator, and what is behind it.
    fn part<'a>(
        &self,
        is_wanted: bool,
        line: &str,
        rest: &'a str,
        separator: &str,
        name: &str,
    ) -> Result<(Option<&'a str>, &'a str), String> {
        if !is_wanted {
            return Ok((None, rest));
        }
        match rest.split_once(separator) {
            Some((part, rest)) => Ok((Some(part), rest)),
            None if self.ignores_errors => Ok((None, rest)),
            None => Err(format!(
                "No {name} found on line number {}: '{line}'",
                self.line_number
            )),
        }
    }

    fn headers(&self, headers: &str) -> Result<Vec<(Bytes, Option<Bytes>)>, String> {
        let mut pairs: Vec<&str> = self.headers_separator.split(headers).collect();
        // Java's split leaves out what is empty at the end.
        while pairs.len() > 1 && pairs.last() == Some(&"") {
            pairs.pop();
        }
        let header = |pair: &str| match pair.split_once(&self.headers_key_separator) {
            Some((key, _)) if self.null_marker.as_deref() == Some(key) => Err(format!(
                "Header keys should not be equal to the null marker '{key}' as they can't be null"
            )),
            Some((key, value)) => Ok((Bytes::from(key.to_owned()), self.bytes(value))),
            None if self.ignores_errors => Ok((Bytes::from(pair.to_owned()), None)),
            None => Err(format!(
                "No header key separator found in pair '{pair}' on line number {}",
                self.line_number
            )),
        };
        pairs.into_iter().map(header).collect()
    }
}

fn check(separators: &[(&str, String); 4], null_marker: Option<&str>) -> Result<(), String> {
    let [key, delimiter, separator, key_separator] = separators;
    for (first, second) in [
        (delimiter, separator),
        (delimiter, key_separator),
        (separator, key_separator),
    ] {
        if first.1 == second.1 {
            return Err(format!("{} and {} may not be equal", first.0, second.0));
        }
    }
    for (name, separator) in [key, separator, delimiter, key_separator] {
        if null_marker == Some(separator) {
            return Err(format!("null.marker and {name} may not be equal"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(properties: &[(&str, &str)]) -> Result<LineReader, String> {
        LineReader::new(&Properties::from(properties))
    }

    fn text(bytes: &Option<Bytes>) -> Option<&str> {
        bytes
            .as_deref()
            .map(|bytes| std::str::from_utf8(bytes).expect("text"))
    }

    #[test]
    fn headers_key_and_value() {
        let properties = [
            ("parse.key", "true"),
            ("parse.headers", "true"),
            ("key.separator", "="),
            ("null.marker", "NULL"),
        ];
        let mut reader = reader(&properties).expect("sound");
        let record = reader.record(b"a:1,b:NULL\tk=v=w").expect("a record");
        assert_eq!(text(&record.key), Some("k"));
        assert_eq!(text(&record.value), Some("v=w"));
        assert_eq!(record.headers[0], ("a".into(), Some("1".into())));
        assert_eq!(record.headers[1], ("b".into(), None));
        let record = reader.record(b"NULL\tNULL=NULL").expect("a record");
        assert_eq!((record.key, record.value), (None, None));
        assert!(record.headers.is_empty());
    }

    #[test]
    fn a_line_without_a_separator_is_an_error_or_a_value() {
        let mut strict = reader(&[("parse.key", "true")]).expect("sound");
        assert_eq!(
            strict.record(b"x"),
            Err("No key separator found on line number 1: 'x'".to_owned())
        );
        let properties = [("parse.key", "true"), ("ignore.error", "true")];
        let mut lenient = reader(&properties).expect("sound");
        let record = lenient.record(b"x").expect("a record");
        assert_eq!((record.key, text(&record.value)), (None, Some("x")));
    }

    #[test]
    fn separators_differ_and_properties_are_known() {
        for properties in [
            [("headers.separator", ":")],
            [("null.marker", ",")],
            [("parse.value", "true")],
        ] {
            assert!(reader(&properties).is_err(), "{properties:?}");
        }
    }
}
