//! What is known about one configuration key.

use super::{ConfigError, ConfigValue};

/// Type of a value, as Kafka declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigType {
    /// `true` or `false`, in any case.
    Boolean,
    /// Text, Kafka's `STRING`.
    Text,
    /// Whole number of 16 bits.
    Short,
    /// Whole number of 32 bits.
    Int,
    /// Whole number of 64 bits.
    Long,
    /// Number with a fraction.
    Double,
    /// Texts separated by commas.
    List,
    /// Name of a Java class.
    Class,
    /// Text that is never shown.
    Password,
}

impl ConfigType {
    /// Kafka's name of the type, as DescribeConfigs and the documentation give it.
    pub fn name(self) -> &'static str {
        match self {
            ConfigType::Boolean => "boolean",
            ConfigType::Text => "string",
            ConfigType::Short => "short",
            ConfigType::Int => "int",
            ConfigType::Long => "long",
            ConfigType::Double => "double",
            ConfigType::List => "list",
            ConfigType::Class => "class",
            ConfigType::Password => "password",
        }
    }

    /// The code of the type in a DescribeConfigs response (KIP-569).
    pub fn describe_code(self) -> i8 {
        match self {
            ConfigType::Boolean => 1,
            ConfigType::Text => 2,
            ConfigType::Int => 3,
            ConfigType::Short => 4,
            ConfigType::Long => 5,
            ConfigType::Double => 6,
            ConfigType::List => 7,
            ConfigType::Class => 8,
            ConfigType::Password => 9,
        }
    }
}

/// Which values of the right type are accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Allowed {
    /// All of them.
    Any,
    /// Numbers from here on.
    AtLeast(i64),
    /// Numbers between the two, both included.
    Between(i64, i64),
    /// Numbers between the two, both included, and -1.
    BetweenOrMinusOne(i64, i64),
    /// Numbers with a fraction between the two, both included.
    BetweenReal(f64, f64),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// One of these texts, in any case.
    OneOfIgnoringCase(&'static [&'static str]),
    /// A list of some of these texts.
    ListOf(&'static [&'static str]),
    /// A text of at least one character.
    NotEmpty,
}

/// When a key may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateMode {
    /// Only by a restart.
    ReadOnly,
    /// At run time, for single brokers (KIP-226).
    PerBroker,
    /// At run time, for single brokers or for all (KIP-226).
    ClusterWide,
}

impl UpdateMode {
    /// Kafka's name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            UpdateMode::ReadOnly => "read-only",
            UpdateMode::PerBroker => "per-broker",
            UpdateMode::ClusterWide => "cluster-wide",
        }
    }
}

/// Whether a key does anything here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// It acts as in Apache Kafka.
    Active,
    /// It tunes a part of Apache Kafka that this broker does not have; any value is fine. Says why.
    NoCounterpart(&'static str),
    /// What it governs does not exist yet. Another value than the default is named in a warning at start.
    NotYet,
    /// As `NotYet`, but another value than the default stops the start: ignoring it would be dangerous.
    Refused,
}

/// One configuration key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfigKey {
    /// Kafka's dotted name.
    pub name: &'static str,
    /// Type of the value.
    pub config_type: ConfigType,
    /// Default in this broker as text; `None` is null.
    pub default: Option<&'static str>,
    /// Default of Apache Kafka 4.4; `None` is null or no default.
    pub kafka_default: Option<&'static str>,
    /// Which values are accepted.
    pub allowed: Allowed,
    /// When the key may change.
    pub update_mode: UpdateMode,
    /// Whether the key does anything here.
    pub support: Support,
    /// Left out of documentation and DescribeConfigs, as in Kafka.
    pub internal: bool,
    /// What it does, in a sentence or two.
    pub doc: &'static str,
}

impl ConfigKey {
    /// A read-only, supported key with this default.
    pub(super) const fn new(
        name: &'static str,
        config_type: ConfigType,
        default: Option<&'static str>,
    ) -> Self {
        ConfigKey {
            name,
            config_type,
            default,
            kafka_default: default,
            allowed: Allowed::Any,
            update_mode: UpdateMode::ReadOnly,
            support: Support::Active,
            internal: false,
            doc: "",
        }
    }

    /// This broker's default where it differs from Kafka's.
    pub(super) const fn default_here(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    pub(super) const fn at_least(mut self, minimum: i64) -> Self {
        self.allowed = Allowed::AtLeast(minimum);
        self
    }

    pub(super) const fn between(mut self, minimum: i64, maximum: i64) -> Self {
        self.allowed = Allowed::Between(minimum, maximum);
        self
    }

    pub(super) const fn or_minus_one(mut self) -> Self {
        if let Allowed::Between(minimum, maximum) = self.allowed {
            self.allowed = Allowed::BetweenOrMinusOne(minimum, maximum);
        }
        self
    }

    pub(super) const fn between_real(mut self, minimum: f64, maximum: f64) -> Self {
        self.allowed = Allowed::BetweenReal(minimum, maximum);
        self
    }

    pub(super) const fn one_of(mut self, texts: &'static [&'static str]) -> Self {
        self.allowed = Allowed::OneOf(texts);
        self
    }

    pub(super) const fn one_of_ignoring_case(mut self, texts: &'static [&'static str]) -> Self {
        self.allowed = Allowed::OneOfIgnoringCase(texts);
        self
    }

    pub(super) const fn list_of(mut self, texts: &'static [&'static str]) -> Self {
        self.allowed = Allowed::ListOf(texts);
        self
    }

    pub(super) const fn not_empty(mut self) -> Self {
        self.allowed = Allowed::NotEmpty;
        self
    }

    pub(super) const fn per_broker(mut self) -> Self {
        self.update_mode = UpdateMode::PerBroker;
        self
    }

    pub(super) const fn cluster_wide(mut self) -> Self {
        self.update_mode = UpdateMode::ClusterWide;
        self
    }

    pub(super) const fn internal(mut self) -> Self {
        self.internal = true;
        self
    }

    pub(super) const fn no_counterpart(mut self, reason: &'static str) -> Self {
        self.support = Support::NoCounterpart(reason);
        self
    }

    pub(super) const fn not_supported_yet(mut self) -> Self {
        self.support = Support::NotYet;
        self
    }

    pub(super) const fn refused_unless_default(mut self) -> Self {
        self.support = Support::Refused;
        self
    }

    pub(super) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// Whether the value must never be shown.
    pub fn is_sensitive(&self) -> bool {
        self.config_type == ConfigType::Password
    }

    /// The value of `text`, if it has the right type and is one of those allowed.
    pub fn parse(&self, text: &str) -> Result<ConfigValue, ConfigError> {
        let value = ConfigValue::parse(self.config_type, text)
            .filter(|value| self.allows(value))
            .ok_or_else(|| ConfigError::invalid(self.name, text.trim(), self.expectation()))?;
        Ok(value)
    }

    /// The default as a value.
    pub fn default_value(&self) -> ConfigValue {
        self.default
            .and_then(|text| ConfigValue::parse(self.config_type, text))
            .unwrap_or(ConfigValue::Null)
    }

    /// Whether the value is this broker's default or Kafka's.
    pub fn is_default(&self, value: &ConfigValue) -> bool {
        let kafka = self
            .kafka_default
            .and_then(|text| ConfigValue::parse(self.config_type, text))
            .unwrap_or(ConfigValue::Null);
        *value == self.default_value()
            || *value == kafka
            || (kafka == ConfigValue::Null && value.is_empty())
    }

    fn allows(&self, value: &ConfigValue) -> bool {
        match (self.allowed, value) {
            (Allowed::Any, _) => true,
            (Allowed::AtLeast(minimum), ConfigValue::Integer(number)) => *number >= minimum,
            (Allowed::AtLeast(minimum), ConfigValue::Real(number)) => *number >= minimum as f64,
            (Allowed::Between(minimum, maximum), ConfigValue::Integer(number)) => {
                (minimum..=maximum).contains(number)
            }
            (Allowed::Between(minimum, maximum), ConfigValue::Real(number)) => {
                (minimum as f64..=maximum as f64).contains(number)
            }
            (Allowed::BetweenOrMinusOne(minimum, maximum), ConfigValue::Integer(number)) => {
                *number == -1 || (minimum..=maximum).contains(number)
            }
            (Allowed::BetweenReal(minimum, maximum), ConfigValue::Real(number)) => {
                (minimum..=maximum).contains(number)
            }
            (Allowed::OneOf(texts), ConfigValue::Text(text)) => texts.contains(&text.as_str()),
            (Allowed::OneOfIgnoringCase(texts), ConfigValue::Text(text)) => texts
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(text)),
            (Allowed::ListOf(texts), ConfigValue::List(list)) => {
                list.iter().all(|text| texts.contains(&text.as_str()))
            }
            (Allowed::NotEmpty, ConfigValue::Text(text)) => !text.is_empty(),
            _ => false,
        }
    }

    /// What is accepted, as the end of a sentence.
    pub fn expectation(&self) -> String {
        let (minimum, maximum) = match self.config_type {
            ConfigType::Short => (i64::from(i16::MIN), i64::from(i16::MAX)),
            ConfigType::Int => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        };
        let real = self.config_type == ConfigType::Double;
        match self.allowed {
            Allowed::AtLeast(minimum) if real => {
                format!("a number of at least {minimum} is expected")
            }
            Allowed::AtLeast(minimum) => {
                format!("a whole number from {minimum} to {maximum} is expected")
            }
            Allowed::Between(minimum, maximum) if real => {
                format!("a number from {minimum} to {maximum} is expected")
            }
            Allowed::Between(minimum, maximum) => {
                format!("a whole number from {minimum} to {maximum} is expected")
            }
            Allowed::BetweenOrMinusOne(minimum, maximum) => {
                format!("a whole number from {minimum} to {maximum}, or -1, is expected")
            }
            Allowed::BetweenReal(minimum, maximum) => {
                format!("a number from {minimum} to {maximum} is expected")
            }
            Allowed::OneOf(texts) => format!("one of {} is expected", texts.join(", ")),
            Allowed::OneOfIgnoringCase(texts) => format!("one of {} is expected", texts.join(", ")),
            Allowed::ListOf(texts) => format!("a list of some of {} is expected", texts.join(", ")),
            Allowed::NotEmpty => "a text that is not empty is expected".to_owned(),
            Allowed::Any => match self.config_type {
                ConfigType::Boolean => "true or false is expected".to_owned(),
                ConfigType::Short | ConfigType::Int | ConfigType::Long => {
                    format!("a whole number from {minimum} to {maximum} is expected")
                }
                ConfigType::Double => "a number is expected".to_owned(),
                ConfigType::List => {
                    "texts separated by commas, none of them twice, are expected".to_owned()
                }
                ConfigType::Text | ConfigType::Class | ConfigType::Password => {
                    "a text is expected".to_owned()
                }
            },
        }
    }
}
