//! `--add-config` as keys and values.

use indexmap::IndexMap;

use crate::tools::ToolError;

/// Keys and values; of a key that is there twice the later one counts.
pub(super) type Settings = IndexMap<String, String>;

/// Reads `k1=v1,k2=[v1,v2],k3=`: brackets keep the commas and equals signs of a value together.
///
/// # Errors
/// In Kafka's words.
pub(super) fn parse_settings(text: &str) -> Result<Settings, ToolError> {
    let mut settings = Settings::new();
    for pair in split_outside(text, ',') {
        let [key, value] = split_outside(pair, '=')[..] else {
            return Err(ToolError::failed(
                "Invalid entity config: all configs to be added must be in the format \"key=val\" or  \
                 \"key=[val1,val2]\" to group values which contain commas.",
            ));
        };
        let value = value.replace(['[', ']'], "");
        settings.insert(key.trim().to_owned(), value.trim().to_owned());
    }
    check_keys(&settings)?;
    Ok(settings)
}

/// Refuses keys that cannot be any.
///
/// # Errors
/// In Kafka's words.
pub(super) fn check_keys(settings: &Settings) -> Result<(), ToolError> {
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    match settings.keys().find(|key| !key.chars().all(is_allowed)) {
        None => Ok(()),
        Some(key) => {
            let text = format!("Invalid character found for config key: {key}");
            Err(ToolError::failed(text))
        }
    }
}

/// Splits where the separator is not within brackets.
fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let is_outside = |position: usize| {
        let bracket = text[position..].find(['[', ']']);
        bracket.is_none_or(|bracket| text[position + bracket..].starts_with('['))
    };
    let mut parts = Vec::new();
    let mut start = 0;
    for (position, _) in text.match_indices(separator) {
        if is_outside(position) {
            parts.push(&text[start..position]);
            start = position + separator.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        parse_settings(text).expect(text).into_iter().collect()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn brackets_keep_a_value_together() {
        assert_eq!(parsed("a=1"), [pair("a", "1")]);
        assert_eq!(
            parsed("a=1, b = [x,y=z] ,c="),
            [pair("a", "1"), pair("b", "x,y=z"), pair("c", "")]
        );
        assert_eq!(parsed("a=1,a=2"), [pair("a", "2")]);
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for text in ["a", "a=1,b", "a=b=c", ""] {
            let error = parse_settings(text).expect_err(text);
            assert!(
                error.to_string().starts_with("Invalid entity config: all"),
                "{error}"
            );
        }
        let error = parse_settings("a b=1").expect_err("a blank");
        assert_eq!(
            error.to_string(),
            "Invalid character found for config key: a b"
        );
    }
}
