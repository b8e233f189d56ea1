//! Typed values of configuration keys.

use std::fmt;

/// The type of a key, as DescribeConfigs reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigType {
    /// `true` or `false`.
    Boolean,
    /// Any text.
    String,
    /// 32 bits, signed.
    Int,
    /// 64 bits, signed.
    Long,
    /// A floating-point number.
    Double,
    /// Texts with commas between them.
    List,
}

/// A value that was read by a key's type.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigValue {
    /// Of a [`ConfigType::Boolean`].
    Boolean(bool),
    /// Of a [`ConfigType::String`].
    String(String),
    /// Of a [`ConfigType::Int`].
    Int(i32),
    /// Of a [`ConfigType::Long`].
    Long(i64),
    /// Of a [`ConfigType::Double`].
    Double(f64),
    /// Of a [`ConfigType::List`].
    List(Vec<String>),
}

impl ConfigValue {
    /// Reads `text` as `kind`; the error says what was expected.
    pub(super) fn parse(kind: ConfigType, text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let not_a_number = |name: &str| format!("Not a number of type {name}");
        match kind {
            ConfigType::Boolean => {
                if trimmed.eq_ignore_ascii_case("true") {
                    Ok(Self::Boolean(true))
                } else if trimmed.eq_ignore_ascii_case("false") {
                    Ok(Self::Boolean(false))
                } else {
                    Err("Expected value to be either true or false".to_owned())
                }
            }
            ConfigType::String => Ok(Self::String(trimmed.to_owned())),
            ConfigType::Int => trimmed
                .parse()
                .map(Self::Int)
                .map_err(|_| not_a_number("INT")),
            ConfigType::Long => trimmed
                .parse()
                .map(Self::Long)
                .map_err(|_| not_a_number("LONG")),
            ConfigType::Double => match trimmed.parse::<f64>() {
                Ok(number) => Ok(Self::Double(number)),
                Err(_) => Err(not_a_number("DOUBLE")),
            },
            ConfigType::List if trimmed.is_empty() => Ok(Self::List(Vec::new())),
            ConfigType::List => {
                let mut items: Vec<String> = Vec::new();
                for item in trimmed.split(',').map(str::trim) {
                    if item.is_empty() {
                        return Err("values must not be empty".to_owned());
                    }
                    if !items.iter().any(|known| known == item) {
                        items.push(item.to_owned());
                    }
                }
                Ok(Self::List(items))
            }
        }
    }
}

impl fmt::Display for ConfigValue {
    /// The spelling DescribeConfigs shows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(f),
            Self::String(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Long(value) => value.fmt(f),
            Self::Double(value) if value.fract() == 0.0 => write!(f, "{value:.1}"),
            Self::Double(value) => value.fmt(f),
            Self::List(items) => f.write_str(&items.join(",")),
        }
    }
}
