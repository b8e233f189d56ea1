//! Java's `.properties` format, as Kafka's configuration files use it.

/// Reads a properties text into its entries, in their order; of a key that is there twice the later one counts.
///
/// As in Java: `#` and `!` begin comment lines; key and value are separated by `=`, `:` or blanks; a backslash at the
/// end of a line joins it with the next; `\t`, `\n`, `\r`, `\f` and `\uXXXX` are escapes, and any other escaped
/// character stands for itself. The text is UTF-8; a file that is not is read as Latin-1.
///
/// # Errors
/// The line number (from 1) and the reason, for a `\u` without four hexadecimal digits.
pub fn parse_properties(bytes: &[u8]) -> Result<Vec<(String, String)>, (usize, String)> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut entries = Vec::new();
    let mut lines = NaturalLines {
        rest: text,
        number: 0,
    };
    while let Some((number, line)) = lines.next_logical() {
        if let Some(entry) = parse_line(&line).map_err(|reason| (number, reason))? {
            entries.push(entry);
        }
    }
    Ok(entries)
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\x0c')
}

struct NaturalLines<'a> {
    rest: &'a str,
    number: usize,
}

impl<'a> NaturalLines<'a> {
    /// The next line of the file; it ends at `\n`, `\r` or `\r\n`.
    fn next_natural(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let end = self.rest.find(['\n', '\r']).unwrap_or(self.rest.len());
        let line = &self.rest[..end];
        let after = &self.rest[end..];
        self.rest = after
            .strip_prefix("\r\n")
            .or_else(|| after.get(1..))
            .unwrap_or("");
        Some(line)
    }

    /// The next line that is not a comment, with those joined to it that a backslash joins, and the number of the first.
    fn next_logical(&mut self) -> Option<(usize, String)> {
        loop {
            let first = self.next_natural()?.trim_start_matches(is_blank);
            let number = self.number;
            if first.is_empty() || first.starts_with(['#', '!']) {
                continue;
            }
            let mut line = first.to_owned();
            while ends_with_open_backslash(&line) {
                line.pop();
                match self.next_natural() {
                    Some(next) => line.push_str(next.trim_start_matches(is_blank)),
                    None => break,
                }
            }
            return Some((number, line));
        }
    }
}

/// An odd number of backslashes at the end: the last one is not escaped itself.
fn ends_with_open_backslash(line: &str) -> bool {
    line.chars()
        .rev()
        .take_while(|&character| character == '\\')
        .count()
        % 2
        == 1
}

fn parse_line(line: &str) -> Result<Option<(String, String)>, String> {
    let mut key_end = line.len();
    let mut escaped = false;
    for (index, character) in line.char_indices() {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if is_blank(character) || matches!(character, '=' | ':') {
            key_end = index;
            break;
        }
    }
    let after_blanks = line[key_end..].trim_start_matches(is_blank);
    let value = after_blanks
        .strip_prefix(['=', ':'])
        .map_or(after_blanks, |value| value.trim_start_matches(is_blank));
    let key = unescape(&line[..key_end])?;
    if key.is_empty() && value.is_empty() {
        return Ok(None);
    }
    Ok(Some((key, unescape(value)?)))
}

fn unescape(text: &str) -> Result<String, String> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut characters = text.chars();
    let mut buffer = [0u16; 2];
    while let Some(character) = characters.next() {
        let unescaped = match character {
            '\\' => match characters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\x0c',
                Some('u') => {
                    units.push(hexadecimal(&mut characters)?);
                    continue;
                }
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        units.extend_from_slice(unescaped.encode_utf16(&mut buffer));
    }
    Ok(String::from_utf16_lossy(&units))
}

fn hexadecimal(characters: &mut std::str::Chars<'_>) -> Result<u16, String> {
    let digits: String = characters.by_ref().take(4).collect();
    let valid = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    match u16::from_str_radix(&digits, 16) {
        Ok(unit) if valid => Ok(unit),
        _ => Err(format!(
            "'\\u{digits}' is not an escape: \\u and four hexadecimal digits are expected"
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Vec<(String, String)> {
        parse_properties(text.as_bytes()).expect("a well-formed text")
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn separators_blanks_and_comments_are_read_as_java_reads_them() {
        assert_eq!(
            parse("# a comment\n! another\n\n a=1\nb : 2 \nc 3\r\nd\t=\t4\re\nf==5\ng=a b=c"),
            pairs(&[
                ("a", "1"),
                ("b", "2 "),
                ("c", "3"),
                ("d", "4"),
                ("e", ""),
                ("f", "=5"),
                ("g", "a b=c")
            ])
        );
    }

    #[test]
    fn a_backslash_joins_lines_and_a_pair_of_them_does_not() {
        assert_eq!(
            parse("a=1,\\\n   2,\\\n  3\nb=x\\\\\nc=y\\"),
            pairs(&[("a", "1,2,3"), ("b", "x\\"), ("c", "y")])
        );
        assert_eq!(
            parse("# comments do not go on\\\na=1"),
            pairs(&[("a", "1")])
        );
    }

    #[test]
    fn escapes_stand_for_their_characters() {
        assert_eq!(
            parse("a\\=b\\:c\\ d=\\tx\\n\\u00e9\\q\\ud83d\\ude00"),
            pairs(&[("a=b:c d", "\tx\n\u{e9}q\u{1f600}")])
        );
    }

    #[test]
    fn a_bad_unicode_escape_is_refused_with_its_line() {
        let (line, reason) = parse_properties(b"a=1\n\nb=\\u12g4").expect_err("a bad escape");
        assert_eq!(line, 3);
        assert!(reason.contains("\\u12g4"), "{reason}");
        assert!(parse_properties(b"b=\\u+123").is_err());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_latin1() {
        assert_eq!(
            parse_properties(b"a=\xe9").expect("well-formed"),
            pairs(&[("a", "\u{e9}")])
        );
        assert_eq!(
            parse_properties("\u{feff}a=é".as_bytes()).expect("well-formed"),
            pairs(&[("a", "é")])
        );
    }

    /// Writes an entry the way `java.util.Properties.store` does.
    fn store(key: &str, value: &str) -> String {
        let escape = |text: &str, all_blanks: bool| {
            let mut out = String::new();
            for (index, character) in text.chars().enumerate() {
                match character {
                    ' ' if all_blanks || index == 0 => out.push_str("\\ "),
                    '\t' => out.push_str("\\t"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\x0c' => out.push_str("\\f"),
                    '=' | ':' | '#' | '!' | '\\' => {
                        out.push('\\');
                        out.push(character);
                    }
                    ' '..='~' => out.push(character),
                    other => {
                        for unit in other.encode_utf16(&mut [0; 2]) {
                            out.push_str(&format!("\\u{unit:04X}"));
                        }
                    }
                }
            }
            out
        };
        format!("{}={}\n", escape(key, true), escape(value, false))
    }

    proptest! {
        #[test]
        fn what_java_stores_is_read_again(entries in prop::collection::vec(("\\PC{1,12}", "[\\PC\\t\\n\\r]{0,20}"), 0..8)) {
            let text: String = entries.iter().map(|(key, value)| store(key, value)).collect();
            prop_assert_eq!(parse(&text), entries);
        }

        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_properties(&bytes);
        }
    }
}
