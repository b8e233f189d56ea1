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
    fn what_is_no_pattern_is_named() {
        let error = TopicPattern::new("a[").expect_err("no pattern");
        assert_eq!(error.to_string(), "a[ is an invalid regex.");
    }
}
