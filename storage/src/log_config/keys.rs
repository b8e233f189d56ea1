//! What a topic key is, and how its values are read and checked.

use super::table::TOPIC_CONFIG_KEYS;
use super::value::{ConfigType, ConfigValue};
use super::{ConfigError, LogConfig};

/// A broker key that gives a topic key its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerSynonym {
    /// The broker's key.
    pub name: &'static str,
    /// What its number is multiplied by to get the topic key's unit; 1 for texts too.
    pub factor: i64,
}

impl BrokerSynonym {
    /// The broker's value in the topic key's unit.
    pub fn convert(&self, text: &str) -> Result<String, ConfigError> {
        if self.factor == 1 {
            return Ok(text.to_owned());
        }
        let number: i64 = text.trim().parse().map_err(|_| ConfigError::InvalidValue {
            key: self.name,
            value: text.to_owned(),
            reason: "Not a number of type INT".to_owned(),
        })?;
        // Minus one hour of retention means no limit, as minus one millisecond does.
        Ok(if number < 0 {
            number.to_string()
        } else {
            number.saturating_mul(self.factor).to_string()
        })
    }
}

/// What a key's values may be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limits {
    None,
    AtLeast(i64),
    Between(i64, i64),
    BetweenOr(i64, i64, i64),
    Ratio,
    OneOf(&'static [&'static str]),
    EachOneOf(&'static [&'static str]),
    ThrottledReplicas,
    BrokerIds,
}

/// Which values cannot act here yet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Support {
    Full,
    /// Only the default can be kept to.
    DefaultOnly(&'static str),
}

/// One topic key.
#[derive(Debug)]
pub struct TopicConfigKey {
    /// Kafka's name of it.
    pub name: &'static str,
    /// Its type.
    pub kind: ConfigType,
    /// Its default, in DescribeConfigs' spelling; None when it has no default.
    pub default: Option<&'static str>,
    /// The broker keys that give the default, the strongest first.
    pub synonyms: &'static [BrokerSynonym],
    /// What it does.
    pub doc: &'static str,
    /// Not shown to clients; for tests.
    pub internal: bool,
    pub(super) limits: Limits,
    pub(super) support: Support,
    pub(super) apply: fn(&mut LogConfig, &ConfigValue),
}

impl TopicConfigKey {
    /// Reads and checks `text`.
    pub fn parse(&self, text: &str) -> Result<ConfigValue, ConfigError> {
        let value =
            ConfigValue::parse(self.kind, text).map_err(|reason| self.invalid(text, reason))?;
        self.limits
            .check(self.name, &value)
            .map_err(|reason| self.invalid(&shown(&value, text), reason))?;
        if let Support::DefaultOnly(reason) = self.support
            && Some(value.to_string().as_str()) != self.default
        {
            return Err(ConfigError::NotSupported {
                key: self.name,
                value: text.to_owned(),
                reason,
            });
        }
        Ok(value)
    }

    /// Puts a value that [`TopicConfigKey::parse`] gave into `config`.
    pub fn apply(&self, config: &mut LogConfig, value: &ConfigValue) {
        (self.apply)(config, value);
    }

    /// What values are allowed, for the documentation; None when all of the type are.
    pub fn valid_values(&self) -> Option<String> {
        match self.limits {
            Limits::None => None,
            Limits::AtLeast(least) => Some(format!("[{least},...]")),
            Limits::Between(least, most) => Some(format!("[{least},...,{most}]")),
            Limits::BetweenOr(least, most, or) => Some(format!("[{least},...,{most}] or {or}")),
            Limits::Ratio => Some("[0,...,1]".to_owned()),
            Limits::OneOf(names) | Limits::EachOneOf(names) => {
                Some(format!("[{}]", names.join(", ")))
            }
            Limits::ThrottledReplicas => {
                Some("[partitionId]:[brokerId],[partitionId]:[brokerId],...".to_owned())
            }
            Limits::BrokerIds => Some("[brokerId],[brokerId],...".to_owned()),
        }
    }

    /// Why only the default is accepted, if so.
    pub fn unsupported_reason(&self) -> Option<&'static str> {
        match self.support {
            Support::Full => None,
            Support::DefaultOnly(reason) => Some(reason),
        }
    }

    fn invalid(&self, value: &str, reason: String) -> ConfigError {
        ConfigError::InvalidValue {
            key: self.name,
            value: value.to_owned(),
            reason,
        }
    }
}

/// The key called `name`.
pub fn topic_config_key(name: &str) -> Option<&'static TopicConfigKey> {
    TOPIC_CONFIG_KEYS.iter().find(|key| key.name == name)
}

/// How a refused value is quoted: the faulty item of a list, else the text as given.
fn shown(value: &ConfigValue, text: &str) -> String {
    match value {
        ConfigValue::List(items) => items.join(","),
        _ => text.to_owned(),
    }
}

impl Limits {
    fn check(self, name: &str, value: &ConfigValue) -> Result<(), String> {
        match (self, value) {
            (Self::AtLeast(least), value) => in_bounds(value, least, i64::MAX),
            (Self::Between(least, most), value) => in_bounds(value, least, most),
            (Self::BetweenOr(least, most, or), value) => {
                let number = number(value);
                if number == or || (least..=most).contains(&number) {
                    Ok(())
                } else {
                    Err(format!(
                        "Value must be between {least} and {most} or equal to {or}"
                    ))
                }
            }
            (Self::Ratio, ConfigValue::Double(ratio)) => {
                if *ratio > 1.0 {
                    Err("Value must be no more than 1".to_owned())
                } else if *ratio >= 0.0 {
                    Ok(())
                } else {
                    Err("Value must be at least 0".to_owned())
                }
            }
            (Self::OneOf(names), ConfigValue::String(text)) => one_of(names, text),
            (Self::EachOneOf(names), ConfigValue::List(items)) => {
                items.iter().try_for_each(|item| one_of(names, item))
            }
            (Self::ThrottledReplicas, ConfigValue::List(items)) => {
                if is_throttled_replicas(items) {
                    Ok(())
                } else {
                    Err(format!(
                        "{name} must be the literal '*' or a list of replicas in the following format: \
                         [partitionId]:[brokerId],[partitionId]:[brokerId],..."
                    ))
                }
            }
            (Self::BrokerIds, ConfigValue::List(items)) => {
                match items.iter().find(|item| !is_broker_id(item)) {
                    Some(item) => Err(format!("{item} is no broker id")),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

fn is_broker_id(text: &str) -> bool {
    text.parse::<i32>().is_ok_and(|id| id >= 0)
}

fn number(value: &ConfigValue) -> i64 {
    match value {
        ConfigValue::Int(number) => i64::from(*number),
        ConfigValue::Long(number) => *number,
        _ => 0,
    }
}

fn in_bounds(value: &ConfigValue, least: i64, most: i64) -> Result<(), String> {
    let number = number(value);
    if number < least {
        Err(format!("Value must be at least {least}"))
    } else if number > most {
        Err(format!("Value must be no more than {most}"))
    } else {
        Ok(())
    }
}

fn one_of(names: &[&str], text: &str) -> Result<(), String> {
    if names.contains(&text) {
        Ok(())
    } else {
        Err(format!("String must be one of: {}", names.join(", ")))
    }
}

fn is_throttled_replicas(items: &[String]) -> bool {
    let is_pair = |item: &String| {
        item.split_once(':').is_some_and(|(partition, broker)| {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits(partition) && digits(broker)
        })
    };
    matches!(items, [one] if one == "*") || items.iter().all(is_pair)
}
