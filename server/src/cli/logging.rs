//! Log lines on stderr.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::SubscriberBuilder;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::{LogFormat, StartArguments};

/// Variable with the filter when the command line has none.
const FILTER_VARIABLE: &str = "HIGHWATER_LOG";
/// Variable with the format when the command line has none.
const FORMAT_VARIABLE: &str = "HIGHWATER_LOG_FORMAT";
const DEFAULT_FILTER: &str = "info";
/// What the consensus says of itself; the controller says what matters of it. A filter that names it is left alone.
const CONSENSUS: &str = "openraft";

/// Begins to log as the command line or the environment asks for.
///
/// # Errors
/// A sentence, when the filter or the format cannot be read.
pub(super) fn begin(
    arguments: &StartArguments,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(), String> {
    let (filter, format) = settings(arguments, variable)?;
    let builder: SubscriberBuilder<_, _, _, fn() -> io::Stderr> = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr as fn() -> io::Stderr);
    let begun = match format {
        LogFormat::Json => builder.json().flatten_event(true).finish().try_init(),
        LogFormat::Text => builder
            .with_ansi(io::stderr().is_terminal())
            .finish()
            .try_init(),
    };
    begun.map_err(|error| format!("cannot begin to log: {error}"))
}

fn settings(
    arguments: &StartArguments,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(EnvFilter, LogFormat), String> {
    let given = |name: &str| variable(name).filter(|text| !text.is_empty());
    let filter = arguments.log.clone().or_else(|| given(FILTER_VARIABLE));
    let filter = filter.as_deref().unwrap_or(DEFAULT_FILTER);
    let directives = match filter.contains(CONSENSUS) {
        true => filter.to_owned(),
        false => format!("{filter},{CONSENSUS}=off"),
    };
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        format!("invalid log filter '{filter}': info or highwater=debug,warn is expected ({error})")
    })?;
    let format = match (arguments.log_format, given(FORMAT_VARIABLE)) {
        (Some(format), _) => format,
        (None, None) => LogFormat::Text,
        (None, Some(text)) => <LogFormat as clap::ValueEnum>::from_str(&text, true)
            .map_err(|_| format!("invalid {FORMAT_VARIABLE} '{text}': text or json is expected"))?,
    };
    Ok((filter, format))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::settings::SettingsArguments;

    fn arguments(log: Option<&str>, log_format: Option<LogFormat>) -> StartArguments {
        StartArguments {
            settings: SettingsArguments::default(),
            cluster_id: None,
            log: log.map(str::to_owned),
            log_format,
            until_stdin_closes: false,
        }
    }

    #[test]
    fn the_command_line_wins_over_the_environment() {
        let variable = |name: &str| match name {
            FILTER_VARIABLE => Some("warn".to_owned()),
            FORMAT_VARIABLE => Some("JSON".to_owned()),
            _ => None,
        };
        let (filter, format) = settings(&arguments(None, None), variable).expect("the environment");
        assert_eq!(
            (filter.to_string().as_str(), format),
            ("openraft=off,warn", LogFormat::Json)
        );
        let given = arguments(Some("debug"), Some(LogFormat::Text));
        let (filter, format) = settings(&given, variable).expect("the command line");
        assert_eq!(
            (filter.to_string().as_str(), format),
            ("openraft=off,debug", LogFormat::Text)
        );
        let (filter, format) = settings(&arguments(None, None), |_| None).expect("the defaults");
        assert_eq!(
            (filter.to_string().as_str(), format),
            ("openraft=off,info", LogFormat::Text)
        );
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        assert!(settings(&arguments(Some("highwater=loud"), None), |_| None).is_err());
        let variable = |name: &str| (name == FORMAT_VARIABLE).then(|| "xml".to_owned());
        let error = settings(&arguments(None, None), variable).expect_err("xml");
        assert_eq!(
            error,
            "invalid HIGHWATER_LOG_FORMAT 'xml': text or json is expected"
        );
    }
}
