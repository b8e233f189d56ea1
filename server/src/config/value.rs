//! Values of configuration keys, and their texts.

use std::fmt;

use super::ConfigType;

/// A parsed value.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigValue {
    /// Not set and without a default.
    Null,
    /// Of a [`ConfigType::Boolean`].
    Boolean(bool),
    /// Of a [`ConfigType::Short`], [`ConfigType::Int`] or [`ConfigType::Long`].
    Integer(i64),
    /// Of a [`ConfigType::Double`].
    Real(f64),
    /// Of a text, class or password.
    Text(String),
    /// Of a [`ConfigType::List`].
    List(Vec<String>),
}

impl ConfigValue {
    /// Reads a text as Kafka does: blanks around it do not count. `None` when it does not have the type.
    pub fn parse(config_type: ConfigType, text: &str) -> Option<ConfigValue> {
        let text = text.trim();
        let integer = |bits: u32| -> Option<ConfigValue> {
            let number = text.parse::<i64>().ok()?;
            let limit = 1i128 << (bits - 1);
            (-limit..limit)
                .contains(&i128::from(number))
                .then_some(ConfigValue::Integer(number))
        };
        match config_type {
            ConfigType::Boolean if text.eq_ignore_ascii_case("true") => {
                Some(ConfigValue::Boolean(true))
            }
            ConfigType::Boolean if text.eq_ignore_ascii_case("false") => {
                Some(ConfigValue::Boolean(false))
            }
            ConfigType::Boolean => None,
            ConfigType::Short => integer(16),
            ConfigType::Int => integer(32),
            ConfigType::Long => integer(64),
            ConfigType::Double => {
                let number = text.parse::<f64>().ok()?;
                number.is_finite().then_some(ConfigValue::Real(number))
            }
            ConfigType::Text | ConfigType::Class | ConfigType::Password => {
                Some(ConfigValue::Text(text.to_owned()))
            }
            ConfigType::List => parse_list(text).map(ConfigValue::List),
        }
    }

    /// Whether there is nothing in it: null, an empty text or an empty list.
    pub fn is_empty(&self) -> bool {
        match self {
            ConfigValue::Null => true,
            ConfigValue::Text(text) => text.is_empty(),
            ConfigValue::List(list) => list.is_empty(),
            _ => false,
        }
    }

    /// The text that DescribeConfigs gives; `None` for null.
    pub fn to_text(&self) -> Option<String> {
        match self {
            ConfigValue::Null => None,
            value => Some(value.to_string()),
        }
    }
}

/// Texts separated by commas, as Java splits them: commas at the end do not count. `None` when one is empty or there
/// twice.
fn parse_list(text: &str) -> Option<Vec<String>> {
    let text = text.trim_end_matches([',', ' ', '\t']);
    if text.is_empty() {
        return Some(Vec::new());
    }
    let mut list: Vec<String> = Vec::new();
    for item in text.split(',').map(str::trim) {
        if item.is_empty() || list.iter().any(|earlier| earlier == item) {
            return None;
        }
        list.push(item.to_owned());
    }
    Some(list)
}

impl fmt::Display for ConfigValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigValue::Null => f.write_str("null"),
            ConfigValue::Boolean(value) => write!(f, "{value}"),
            ConfigValue::Integer(value) => write!(f, "{value}"),
            ConfigValue::Real(value) => f.write_str(&java_double(*value)),
            ConfigValue::Text(text) => f.write_str(text),
            ConfigValue::List(list) => f.write_str(&list.join(",")),
        }
    }
}

/// The text of a number as Java's `Double.toString` writes it: `0.5`, `10.0`, `1.7976931348623157E308`.
fn java_double(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 || (1e-3..1e7).contains(&magnitude) {
        return format!("{value:?}");
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0E{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_trimmed_and_written_as_kafka_writes_them() {
        let text = |config_type, text| {
            ConfigValue::parse(config_type, text).map(|value| value.to_string())
        };
        assert_eq!(text(ConfigType::Boolean, " TRUE ").as_deref(), Some("true"));
        assert_eq!(text(ConfigType::Boolean, "yes"), None);
        assert_eq!(text(ConfigType::Int, " 42\t").as_deref(), Some("42"));
        assert_eq!(text(ConfigType::Int, "2147483648"), None);
        assert_eq!(text(ConfigType::Short, "32768"), None);
        assert_eq!(
            text(ConfigType::Long, "-9223372036854775808").as_deref(),
            Some("-9223372036854775808")
        );
        assert_eq!(text(ConfigType::Long, "1.5"), None);
        assert_eq!(
            text(ConfigType::Double, "1e308").as_deref(),
            Some("1.0E308")
        );
        assert_eq!(text(ConfigType::Double, "10").as_deref(), Some("10.0"));
        assert_eq!(text(ConfigType::Double, "NaN"), None);
        assert_eq!(text(ConfigType::List, " a , b ").as_deref(), Some("a,b"));
        assert_eq!(text(ConfigType::List, "a,b,").as_deref(), Some("a,b"));
        assert_eq!(text(ConfigType::List, "a,,b"), None);
        assert_eq!(text(ConfigType::List, "a,a"), None);
        assert_eq!(
            ConfigValue::parse(ConfigType::List, " "),
            Some(ConfigValue::List(Vec::new()))
        );
    }
}
