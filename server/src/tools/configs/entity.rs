//! Whose settings are asked for.

use super::{Action, EntityOptions};
use crate::tools::ToolError;
use crate::tools::client::ResourceType;

/// A kind of resource with settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntityType {
    Topics,
    Brokers,
    BrokerLoggers,
    ClientMetrics,
    Groups,
}

impl EntityType {
    const ALL: [EntityType; 5] = [
        EntityType::Topics,
        EntityType::Brokers,
        EntityType::BrokerLoggers,
        EntityType::ClientMetrics,
        EntityType::Groups,
    ];

    /// As `--entity-type` names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            EntityType::Topics => "topics",
            EntityType::Brokers => "brokers",
            EntityType::BrokerLoggers => "broker-loggers",
            EntityType::ClientMetrics => "client-metrics",
            EntityType::Groups => "groups",
        }
    }

    /// The name without its last letter: one of them.
    pub(super) fn singular(self) -> &'static str {
        let name = self.name();
        &name[..name.len() - 1]
    }

    /// As the protocol numbers it.
    pub(super) fn resource_type(self) -> ResourceType {
        match self {
            EntityType::Topics => ResourceType::Topic,
            EntityType::Brokers => ResourceType::Broker,
            EntityType::BrokerLoggers => ResourceType::BrokerLogger,
            EntityType::ClientMetrics => ResourceType::ClientMetrics,
            EntityType::Groups => ResourceType::Group,
        }
    }
}

/// A kind of resource, and which one: no name is all of them, the empty name what all brokers have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entity {
    pub(super) kind: EntityType,
    pub(super) name: Option<String>,
}

/// Finds whose settings are asked for.
///
/// # Errors
/// In Kafka's words where the options do not say it or contradict each other.
pub(super) fn choose(options: &EntityOptions, action: Action) -> Result<Entity, ToolError> {
    let (kind, name) = chosen(options)?;
    let kind = parse_type(&kind)?;
    let has_name = name.as_deref().is_some_and(|name| !name.is_empty());
    let is_broker = matches!(kind, EntityType::Brokers | EntityType::BrokerLoggers);
    if let Some(name) = name.as_deref().filter(|_| has_name && is_broker)
        && name.parse::<i32>().is_err()
    {
        return Err(ToolError::failed(format!(
            "The entity name for {} must be a valid integer broker id, but it is: {name}",
            kind.name()
        )));
    }
    match action {
        Action::Describe => {
            if kind != EntityType::Brokers && options.entity_default {
                return Err(ToolError::failed(format!(
                    "--entity-default must not be specified with --describe of {}",
                    kind.name()
                )));
            }
            if kind == EntityType::BrokerLoggers && !has_name {
                return Err(ToolError::failed(format!(
                    "An entity name must be specified with --describe of {}",
                    kind.name()
                )));
            }
        }
        Action::Alter if kind == EntityType::Brokers && name.is_none() => {
            return Err(ToolError::failed(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips",
            ));
        }
        Action::Alter if kind != EntityType::Brokers && !has_name => {
            return Err(ToolError::failed(format!(
                "An entity name must be specified with --alter of {}",
                kind.name()
            )));
        }
        Action::Alter => {}
    }
    Ok(Entity { kind, name })
}

/// Type and name, from the general options or those of one type.
fn chosen(options: &EntityOptions) -> Result<(String, Option<String>), ToolError> {
    let named = [
        ("topics", &options.topic),
        ("clients", &options.client),
        ("users", &options.user),
        ("brokers", &options.broker),
        ("broker-loggers", &options.broker_logger),
        ("ips", &options.ip),
        ("client-metrics", &options.client_metrics),
        ("groups", &options.group),
    ];
    let defaults = [
        ("clients", options.client_defaults),
        ("users", options.user_defaults),
        ("brokers", options.broker_defaults),
        ("ips", options.ip_defaults),
    ];
    let named = named
        .into_iter()
        .filter_map(|(kind, name)| Some((kind.to_owned(), Some(name.clone()?))));
    let defaults = defaults.into_iter().filter(|(_, is_set)| *is_set);
    let mut special: Vec<_> = named
        .chain(defaults.map(|(kind, _)| (kind.to_owned(), Some(String::new()))))
        .collect();
    let is_general = !options.entity_type.is_empty()
        || !options.entity_name.is_empty()
        || options.entity_default;
    let mut types = options
        .entity_type
        .iter()
        .chain(special.iter().map(|(kind, _)| kind));
    let mut seen = Vec::new();
    let repeated = types.find(|kind| {
        let is_repeated = seen.contains(kind);
        seen.push(kind);
        is_repeated
    });
    if let Some(repeated) = repeated {
        let text = format!("Duplicate entity type(s) specified: {repeated}");
        return Err(ToolError::failed(text));
    }
    if is_general && !special.is_empty() {
        return Err(ToolError::failed(
            "--entity-{type,name,default} should not be used in conjunction with specific entity flags",
        ));
    }
    let types = options.entity_type.len() + special.len();
    if types > 1 {
        return Err(ToolError::failed(
            "Only 'users' and 'clients' entity types may be specified together, and neither is supported",
        ));
    }
    if let Some(special) = special.pop() {
        return Ok(special);
    }
    let Some(kind) = options.entity_type.first() else {
        return Err(ToolError::failed(
            "At least one entity type must be specified",
        ));
    };
    let name = match (options.entity_name.first(), options.entity_default) {
        (Some(name), _) => Some(name.clone()),
        (None, true) => Some(String::new()),
        (None, false) => None,
    };
    Ok((kind.clone(), name))
}

fn parse_type(name: &str) -> Result<EntityType, ToolError> {
    if ["users", "clients", "ips"].contains(&name) {
        return Err(ToolError::failed(format!(
            "Settings of {name} are not supported: Highwater has neither quotas nor credentials"
        )));
    }
    let mut types = EntityType::ALL.into_iter();
    types.find(|kind| kind.name() == name).ok_or_else(|| {
        ToolError::failed(format!(
            "Invalid entity type {name}, the entity type must be one of broker-loggers, topics, clients, users, \
             brokers, ips, client-metrics, groups with a --bootstrap-server or --bootstrap-controller argument"
        ))
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: EntityOptions,
    }

    fn chosen(line: &str, action: Action) -> Result<(EntityType, Option<String>), String> {
        let words = std::iter::once("x").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).expect("parses");
        let entity = choose(&line.options, action).map_err(|error| error.to_string())?;
        Ok((entity.kind, entity.name))
    }

    #[test]
    fn an_entity_has_a_type_and_perhaps_a_name() {
        use Action::{Alter, Describe};
        use EntityType::{Brokers, Groups, Topics};
        let name = |name: &str| Some(name.to_owned());
        let topic = Ok((Topics, name("t")));
        assert_eq!(chosen("--topic t", Describe), topic);
        assert_eq!(chosen("--entity-type topics --entity-name t", Alter), topic);
        assert_eq!(chosen("--entity-type topics", Describe), Ok((Topics, None)));
        assert_eq!(chosen("--broker-defaults", Alter), Ok((Brokers, name(""))));
        let line = "--entity-type brokers --entity-default";
        assert_eq!(chosen(line, Describe), Ok((Brokers, name(""))));
        assert_eq!(chosen("--group g", Describe), Ok((Groups, name("g"))));
        assert_eq!(Topics.singular(), "topic");
    }

    #[test]
    fn what_contradicts_or_is_missing_is_refused() {
        use Action::{Alter, Describe};
        for (line, action, text) in [
            ("", Describe, "At least one entity type must be specified"),
            (
                "--topic t --broker 1",
                Describe,
                "Only 'users' and 'clients'",
            ),
            (
                "--topic t --entity-type topics",
                Describe,
                "Duplicate entity type(s) specified: topics",
            ),
            (
                "--topic t --entity-default",
                Describe,
                "--entity-{type,name,default} should not",
            ),
            (
                "--broker x",
                Describe,
                "The entity name for brokers must be a valid integer broker id",
            ),
            (
                "--entity-type broker-loggers",
                Describe,
                "An entity name must be specified with --describe",
            ),
            (
                "--entity-type topics --entity-default",
                Describe,
                "--entity-default must not be specified",
            ),
            (
                "--entity-type topics",
                Alter,
                "An entity name must be specified with --alter of topics",
            ),
            (
                "--entity-type brokers",
                Alter,
                "An entity-name or default entity must be specified",
            ),
            ("--entity-type nope", Describe, "Invalid entity type nope"),
            (
                "--client c",
                Describe,
                "Settings of clients are not supported",
            ),
        ] {
            let error = chosen(line, action).expect_err(line);
            assert!(error.starts_with(text), "{line}: {error}");
        }
    }
}
