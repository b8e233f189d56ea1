//! Where the configuration of a node comes from: the arguments that `start` and `health` share.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::{
    ConfigError, ConfigNotice, DynamicConfig, StaticConfig, VARIABLE_PREFIX, container_file,
    environment_properties,
};

/// What a configuration is read from.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct SettingsArguments {
    /// Properties file, as for Apache Kafka; without one everything has its default
    #[arg(value_name = "SERVER.PROPERTIES")]
    pub(super) file: Option<PathBuf>,

    /// Set a configuration key; wins over the environment (KAFKA_NODE_ID and so on) and the file
    #[arg(long = "override", value_name = "KEY=VALUE")]
    pub(super) overrides: Vec<String>,

    /// Take what suits a container where nothing else is said: a server.properties mounted in /mnt/shared/config or
    /// /etc/highwater, data in /var/lib/highwater, all interfaces
    #[arg(long)]
    pub(super) container: bool,
}

impl SettingsArguments {
    /// The configuration that these arguments and the variables of the environment make, and what is to be said about it.
    ///
    /// # Errors
    /// As [`StaticConfig::load`] and [`DynamicConfig::new`]; where a variable is to blame the text names it.
    pub(super) fn load(
        &self,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> anyhow::Result<(DynamicConfig, Vec<ConfigNotice>)> {
        let variables = text_variables(variables)?;
        let mut file = self.file.clone();
        if self.container && file.is_none() {
            file = container_file(Path::new("/"))?;
        }
        let load = match self.container {
            true => StaticConfig::load_in_container,
            false => StaticConfig::load,
        };
        let loaded = load(file.as_deref(), variables.clone(), &self.overrides).and_then(|config| {
            let notices = config.notices();
            Ok((DynamicConfig::new(config)?, notices))
        });
        loaded.map_err(|error| match self.variable_to_blame(&error, &variables) {
            Some(variable) => anyhow::Error::new(error).context(variable),
            None => error.into(),
        })
    }

    /// The variable that gave the key of this error.
    fn variable_to_blame(
        &self,
        error: &ConfigError,
        variables: &[(String, String)],
    ) -> Option<String> {
        let (ConfigError::InvalidValue { key: wrong, .. }
        | ConfigError::NotSupported { key: wrong, .. }) = error
        else {
            return None;
        };
        let is_overridden = self.overrides.iter().any(|text| {
            text.split_once('=')
                .is_some_and(|(key, _)| key.trim() == wrong)
        });
        let gives_it = |variable: &&(String, String)| {
            environment_properties([(*variable).clone()])
                .iter()
                .any(|(key, _)| key == wrong)
        };
        let variable = variables.iter().find(gives_it)?;
        (!is_overridden).then(|| variable.0.clone())
    }
}

/// Whether a variable of this name gives a configuration key.
pub(super) fn gives_a_key(name: &OsStr) -> bool {
    name.as_encoded_bytes()
        .starts_with(VARIABLE_PREFIX.as_bytes())
}

/// The variables whose name is text; of those that give keys the value must be text too.
fn text_variables(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let mut texts = Vec::new();
    for (name, value) in variables {
        let gives_a_key = gives_a_key(&name);
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => texts.push((name, value)),
            (Ok(name), Err(_)) if gives_a_key => {
                return Err(ConfigError::VariableIsNotText(name));
            }
            _ => {}
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;
    use std::sync::Arc;

    use super::*;
    use crate::config::BrokerConfig;

    fn load(
        arguments: &SettingsArguments,
        variables: &[(&str, &[u8])],
    ) -> Result<Arc<BrokerConfig>, String> {
        let variables = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from_vec(value.to_vec())));
        let loaded = arguments.load(variables);
        loaded
            .map(|(config, _)| config.current())
            .map_err(|error| super::super::in_full(&error))
    }

    #[test]
    fn the_variable_with_a_wrong_value_is_named() {
        let mut arguments = SettingsArguments::default();
        let error = load(&arguments, &[("KAFKA_LISTENERS", b"9092")]).expect_err("no listener");
        assert!(
            error.starts_with("KAFKA_LISTENERS: invalid value '9092' for listeners: "),
            "{error}"
        );
        let error = load(&arguments, &[("KAFKA_NODE_ID", b"one")]).expect_err("no number");
        assert!(
            error.starts_with("KAFKA_NODE_ID: invalid value 'one' for node.id: "),
            "{error}"
        );
        arguments.overrides.push("node.id=two".to_owned());
        let error = load(&arguments, &[("KAFKA_NODE_ID", b"one")]).expect_err("no number");
        assert!(
            error.starts_with("invalid value 'two' for node.id: "),
            "{error}"
        );
    }

    #[test]
    fn only_variables_that_give_keys_must_be_text() {
        let arguments = SettingsArguments::default();
        let error = load(&arguments, &[("KAFKA_BROKER_RACK", b"\xff")]).expect_err("no text");
        assert_eq!(error, "the value of KAFKA_BROKER_RACK is not UTF-8");
        let config = load(&arguments, &[("LESSOPEN", b"\xff")]).expect("a configuration");
        assert_eq!(config.node_id, 1);
    }

    #[test]
    fn in_a_container_what_suits_it_lies_under_the_rest() {
        let arguments = SettingsArguments {
            container: true,
            overrides: vec!["http.listeners=".to_owned()],
            ..SettingsArguments::default()
        };
        let config = load(&arguments, &[("KAFKA_LOG_DIRS", b"/data")]).expect("a configuration");
        assert_eq!(config.log_dirs, [Path::new("/data")]);
        assert_eq!(config.http_listeners, []);
        assert_eq!(config.listeners[0].host, "");
        assert_eq!(config.listeners[0].advertised_host, "localhost");
    }
}
