//! Entries of several sources, laid over each other.

use std::collections::BTreeMap;

use super::{ConfigError, ConfigValue, keys};

/// Entries of one source; several of them make a configuration.
pub(super) type Entries = BTreeMap<String, String>;

/// Sources of entries, the strongest first.
pub(super) struct Layers<'a>(pub(super) Vec<&'a Entries>);

impl Layers<'_> {
    /// The text of the strongest source that has the key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find_map(|entries| entries.get(key))
            .map(String::as_str)
    }

    /// The value in effect: of the strongest source that has the key, or the default.
    pub(super) fn value(&self, key: &'static str) -> Result<ConfigValue, ConfigError> {
        let Some(known) = keys::find(key) else {
            return Err(ConfigError::Conflict(format!(
                "{key} is missing from the table of keys"
            )));
        };
        match self.text(key) {
            Some(text) => known.parse(text),
            None => Ok(known.default_value()),
        }
    }

    /// As [`Layers::value`], as the type of a field.
    pub(super) fn get<T: FromValue>(&self, key: &'static str) -> Result<T, ConfigError> {
        let value = self.value(key)?;
        let text = value.to_string();
        T::from_value(value).ok_or_else(|| {
            ConfigError::invalid(
                key,
                &text,
                keys::find(key)
                    .map(|key| key.expectation())
                    .unwrap_or_default(),
            )
        })
    }
}

/// A field's type, made of a value of its key's type.
pub(super) trait FromValue: Sized {
    fn from_value(value: ConfigValue) -> Option<Self>;
}

macro_rules! from_integer {
    ($($type:ty),*) => {$(
        impl FromValue for $type {
            fn from_value(value: ConfigValue) -> Option<Self> {
                match value {
                    ConfigValue::Integer(number) => number.try_into().ok(),
                    _ => None,
                }
            }
        }
    )*};
}

from_integer!(i16, i32, i64, usize);

impl FromValue for f64 {
    fn from_value(value: ConfigValue) -> Option<Self> {
        match value {
            ConfigValue::Real(number) => Some(number),
            _ => None,
        }
    }
}

impl FromValue for bool {
    fn from_value(value: ConfigValue) -> Option<Self> {
        match value {
            ConfigValue::Boolean(value) => Some(value),
            _ => None,
        }
    }
}

impl FromValue for String {
    fn from_value(value: ConfigValue) -> Option<Self> {
        match value {
            ConfigValue::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl FromValue for Vec<String> {
    fn from_value(value: ConfigValue) -> Option<Self> {
        match value {
            ConfigValue::List(list) => Some(list),
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: ConfigValue) -> Option<Self> {
        match value {
            ConfigValue::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}
