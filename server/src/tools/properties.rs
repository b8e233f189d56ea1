//! Properties as a file and options give them: `KEY=VALUE`, later ones over earlier ones.

use std::path::Path;

use crate::config::parse_properties;

/// Properties of what a tool reads lines with or prints records with. Unlike those of a client, a value keeps its blanks:
/// they may be a separator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Properties(Vec<(String, String)>);

impl Properties {
    /// The properties in a file; none without one.
    ///
    /// # Errors
    /// When the file cannot be read or is no properties file; the text begins with its name.
    pub(super) fn load(file: Option<&Path>) -> Result<Self, String> {
        let entries = file.map(read_properties).transpose()?;
        Ok(Properties(entries.unwrap_or_default()))
    }

    /// Sets a property over what was there.
    pub(super) fn set(&mut self, key: &str, value: &str) {
        self.0.push((key.to_owned(), value.to_owned()));
    }

    /// Refuses what is not known. `owner` is whose properties they are.
    ///
    /// # Errors
    /// A sentence about the first that is not known.
    pub(super) fn check_known(&self, owner: &str, known: &[&str]) -> Result<(), String> {
        let mut keys = self.0.iter().map(|(key, _)| key.as_str());
        match keys.find(|key| !known.contains(key)) {
            Some(key) => Err(format!("The {owner} property {key} is not known.")),
            None => Ok(()),
        }
    }

    /// The value of a property, if it is set.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let mut latest_first = self.0.iter().rev();
        latest_first.find_map(|(name, value)| (name == key).then_some(value.as_str()))
    }

    /// The value of a property, or its default.
    pub(super) fn text(&self, key: &str, default: &str) -> String {
        self.get(key).unwrap_or(default).to_owned()
    }

    /// Whether a property is `true`; every other value is false, as for Java.
    pub(super) fn flag(&self, key: &str, default: bool) -> bool {
        self.get(key)
            .map_or(default, |value| value.trim().eq_ignore_ascii_case("true"))
    }
}

#[cfg(test)]
impl From<&[(&str, &str)]> for Properties {
    fn from(entries: &[(&str, &str)]) -> Self {
        let mut properties = Properties::default();
        for (key, value) in entries {
            properties.set(key, value);
        }
        properties
    }
}

/// The entries of a properties file, in order.
///
/// # Errors
/// When the file cannot be read or is no properties file; the text begins with its name.
pub(super) fn read_properties(file: &Path) -> Result<Vec<(String, String)>, String> {
    let wrong = |reason: String| format!("{}: {reason}", file.display());
    let bytes = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    parse_properties(&bytes).map_err(|(line, reason)| wrong(format!("line {line}: {reason}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_holds_and_keeps_its_blanks() {
        let entries: &[_] = &[("a", "1"), ("b", " true"), ("a", "\t")];
        let properties = Properties::from(entries);
        assert_eq!(properties.get("a"), Some("\t"));
        assert_eq!(properties.text("c", ", "), ", ");
        assert!(properties.flag("b", false) && !properties.flag("a", true));
        assert!(properties.flag("c", true));
        assert_eq!(properties.check_known("reader", &["a", "b"]), Ok(()));
        assert_eq!(
            properties.check_known("reader", &["a"]),
            Err("The reader property b is not known.".to_owned())
        );
    }

    #[test]
    fn a_file_that_is_none_is_named() {
        let error = Properties::load(Some(Path::new("/no/such.properties"))).expect_err("missing");
        assert!(error.starts_with("/no/such.properties: "), "{error}");
        assert_eq!(Properties::load(None), Ok(Properties::default()));
    }
}
