//! Keys: security.

use crate::config::key::ConfigKey;
use crate::config::key::ConfigType::{Class, Long, Password, Text};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("authorizer.class.name", Text, Some(""))
        .refused_unless_default()
        .doc("Class that decides who may do what."),
    ConfigKey::new(
        "principal.builder.class",
        Class,
        Some("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"),
    )
    .per_broker()
    .refused_unless_default()
    .doc("Class that turns a login into a principal."),
    ConfigKey::new("security.providers", Text, None)
        .refused_unless_default()
        .doc("Classes that add security algorithms."),
    ConfigKey::new("delegation.token.secret.key", Password, None)
        .refused_unless_default()
        .doc("Secret that signs delegation tokens."),
    ConfigKey::new("delegation.token.max.lifetime.ms", Long, Some("604800000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Longest life of a delegation token."),
    ConfigKey::new("delegation.token.expiry.time.ms", Long, Some("86400000"))
        .at_least(1)
        .not_supported_yet()
        .doc("Life of a delegation token before it must be renewed."),
    ConfigKey::new(
        "delegation.token.expiry.check.interval.ms",
        Long,
        Some("3600000"),
    )
    .at_least(1)
    .not_supported_yet()
    .doc("How often expired delegation tokens are removed."),
];
