//! Patterns of topic names, as Kafka's tools take them for `--topic`.

use regex::bytes::{Regex, RegexBuilder};

use super::ToolError;

/// A regular expression for whole topic names; commas separate alternatives, blanks and quotes around it do not count.
#[derive(Debug, Clone)]
pub(super) struct TopicPattern {
    regex: Regex,
}

impl TopicPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// In Kafka's words.
    pub(super) fn new(raw: &str) -> Result<Self, ToolError> {
        let pattern = raw.trim().replace(',', "|").replace(' ', "");
        let pattern = pattern.trim_matches(['"', '\'']);
        let regex = RegexBuilder::new(&format!("^(?:{pattern})$"))
            .unicode(false)
            .build()
            .map_err(|_| ToolError::failed(format!("{pattern} is an invalid regex.")))?;
        Ok(TopicPattern { regex })
    }

    /// Whether the pattern is the whole name.
    pub(super) fn matches(&self, topic: &str) -> bool {
        self.regex.is_match(topic.as_bytes())
    }
}

/// Why something is no pattern, without the drawing of it that shows the place.
pub(super) fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let said = text.lines().find_map(|line| line.strip_prefix("error: "));
    said.unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, topic: &str) -> bool {
        let pattern = TopicPattern::new(pattern).expect("a pattern");
        pattern.matches(topic)
    }

    #[test]
    fn a_pattern_is_for_the_whole_name() {
        assert!(matches("a.*", "abc"));
        assert!(!matches("a", "abc"));
        assert!(matches("a, b", "b"));
        assert!(!matches("a,b", "ab"));
        assert!(matches("'t\\d+\"", "t12"));
    }

    #[test]
    fn why_something_is_no_pattern_is_one_line() {
        let reason_of =
            |pattern: &str| reason(&regex::Regex::new(pattern).expect_err("no pattern"));
        assert_eq!(reason_of("^(?:[)$"), "unclosed character class");
        assert_eq!(
            reason_of("a{2,1}\n(?x) b"),
            "invalid repetition count range, the start must be <= the end"
        );
        let error = regex::RegexBuilder::new("a{9}{9}").size_limit(1).build();
        assert_eq!(
            reason(&error.expect_err("too large")),
            "Compiled regex exceeds size limit of 1 bytes."
        );
    }

    #[test]
    fn what_is_no_pattern_is_named() {
        let error = TopicPattern::new("a[").expect_err("no pattern");
        assert_eq!(error.to_string(), "a[ is an invalid regex.");
    }
}
