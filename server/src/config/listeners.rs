//! `listeners`, `advertised.listeners` and the protocol of each.

use std::collections::BTreeMap;
use std::fmt;

use super::{ConfigError, ProcessRoles};

/// Kafka's security protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecurityProtocol {
    /// Neither encrypted nor authenticated.
    Plaintext,
    /// TLS.
    Ssl,
    /// SASL over plain text.
    SaslPlaintext,
    /// SASL over TLS.
    SaslSsl,
}

impl SecurityProtocol {
    /// The protocol of this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::Plaintext,
            Self::Ssl,
            Self::SaslPlaintext,
            Self::SaslSsl,
        ]
        .into_iter()
        .find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }

    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            SecurityProtocol::Plaintext => "PLAINTEXT",
            SecurityProtocol::Ssl => "SSL",
            SecurityProtocol::SaslPlaintext => "SASL_PLAINTEXT",
            SecurityProtocol::SaslSsl => "SASL_SSL",
        }
    }

    /// Kafka's number, as registration records carry it.
    pub fn id(self) -> i16 {
        match self {
            SecurityProtocol::Plaintext => 0,
            SecurityProtocol::Ssl => 1,
            SecurityProtocol::SaslPlaintext => 2,
            SecurityProtocol::SaslSsl => 3,
        }
    }
}

impl fmt::Display for SecurityProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One listener: where it listens and what clients are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Name, in upper case.
    pub name: String,
    /// Protocol spoken on it.
    pub protocol: SecurityProtocol,
    /// Host or address to bind; empty for every interface.
    pub host: String,
    /// Port to bind; 0 for a free one.
    pub port: u16,
    /// Host that clients are told.
    pub advertised_host: String,
    /// Port that clients are told; 0 for the one that was bound.
    pub advertised_port: u16,
}

/// The listeners of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listeners {
    /// Those for clients and other brokers, in the order of `listeners`.
    pub(super) broker: Vec<ListenerConfig>,
    /// Those of the controller, in the order of `controller.listener.names`.
    pub(super) controller: Vec<ListenerConfig>,
    /// The one that brokers reach each other by; empty without the broker role.
    pub(super) inter_broker_name: String,
}

/// What the keys about listeners say.
#[derive(Debug)]
pub(super) struct ListenerKeys<'a> {
    pub(super) roles: ProcessRoles,
    /// Whether this node is the only controller, which then may do without a listener for others.
    pub(super) is_quorum_of_one: bool,
    pub(super) listeners: &'a [String],
    pub(super) advertised_listeners: Option<&'a [String]>,
    pub(super) protocol_map: &'a str,
    pub(super) controller_listener_names: &'a [String],
    pub(super) inter_broker_listener_name: Option<&'a str>,
    pub(super) inter_broker_protocol: &'a str,
}

#[derive(Debug, PartialEq, Eq, Clone)]
struct EndPoint {
    name: String,
    host: String,
    port: u16,
}

const LISTENERS: &str = "listeners";
const ADVERTISED: &str = "advertised.listeners";
const PROTOCOL_MAP: &str = "listener.security.protocol.map";
const CONTROLLER_NAMES: &str = "controller.listener.names";

impl ListenerKeys<'_> {
    /// The listeners of this node, if the keys agree with each other and with its roles.
    pub(super) fn resolve(&self, host_name: impl Fn() -> String) -> Result<Listeners, ConfigError> {
        let end_points = parse_all(LISTENERS, self.listeners)?;
        self.check_ports(&end_points)?;
        self.check_controller_names(&end_points)?;
        let advertised = self.advertised(&end_points)?;
        let protocols = parse_protocol_map(self.protocol_map)?;
        for name in self.controller_listener_names {
            self.protocol(&protocols, CONTROLLER_NAMES, name)?;
        }
        let (mut broker, mut controller) = (Vec::new(), Vec::new());
        for end_point in &end_points {
            let protocol = self.protocol(&protocols, LISTENERS, &end_point.name)?;
            let listener = self.advertise(end_point, protocol, &advertised, &host_name)?;
            match self.is_controller(&end_point.name) {
                true => controller.push(listener),
                false => broker.push(listener),
            }
        }
        let place = |listener: &ListenerConfig| {
            let mut names = self.controller_listener_names.iter();
            names.position(|name| name.eq_ignore_ascii_case(&listener.name))
        };
        controller.sort_by_key(place);
        self.check_roles(&broker, &controller)?;
        Ok(Listeners {
            inter_broker_name: self.inter_broker_name(&broker)?,
            broker,
            controller,
        })
    }

    /// The protocol of a listener; that of a controller's is PLAINTEXT unless the map says otherwise.
    fn protocol(
        &self,
        protocols: &BTreeMap<String, SecurityProtocol>,
        key: &str,
        name: &str,
    ) -> Result<SecurityProtocol, ConfigError> {
        let of_controller = self
            .is_controller(name)
            .then_some(SecurityProtocol::Plaintext);
        let mapped = protocols.get(&name.to_ascii_uppercase()).copied();
        let protocol = mapped.or(of_controller).ok_or_else(|| {
            ConfigError::invalid(
                PROTOCOL_MAP,
                self.protocol_map,
                format!("an entry for the listener {name} is expected, as {name}:PLAINTEXT"),
            )
        })?;
        if protocol != SecurityProtocol::Plaintext {
            let names = match key {
                CONTROLLER_NAMES => self.controller_listener_names,
                _ => self.listeners,
            };
            return Err(ConfigError::not_supported(
                key,
                &names.join(","),
                format!(
                    "the listener {name} is mapped to {protocol}, and only PLAINTEXT is served"
                ),
            ));
        }
        Ok(protocol)
    }

    /// Which listeners a node needs and which it must not have, by its roles.
    fn check_roles(
        &self,
        broker: &[ListenerConfig],
        controller: &[ListenerConfig],
    ) -> Result<(), ConfigError> {
        let refuse_listeners = |expected: &str| {
            let listeners = self.listeners.join(",");
            Err(ConfigError::invalid(LISTENERS, &listeners, expected))
        };
        if self.roles.broker && broker.is_empty() {
            return refuse_listeners(
                "at least one listener that is not the controller's is expected",
            );
        }
        if !self.roles.broker && !broker.is_empty() {
            return refuse_listeners(
                "only listeners of controller.listener.names are expected, as process.roles is only controller",
            );
        }
        let needs_listener = self.roles.controller && !(self.roles.broker && self.is_quorum_of_one);
        if needs_listener && controller.is_empty() {
            return Err(ConfigError::invalid(
                CONTROLLER_NAMES,
                &self.controller_listener_names.join(","),
                "a name of `listeners` is expected, as others must reach this controller",
            ));
        }
        Ok(())
    }

    fn is_controller(&self, name: &str) -> bool {
        self.controller_listener_names
            .iter()
            .any(|controller| controller.eq_ignore_ascii_case(name))
    }

    fn check_ports(&self, end_points: &[EndPoint]) -> Result<(), ConfigError> {
        for (index, end_point) in end_points.iter().enumerate() {
            let same_port = |other: &&EndPoint| {
                other.port == end_point.port
                    && other.port != 0
                    && !is_other_family(other, end_point)
            };
            if let Some(other) = end_points[..index].iter().find(same_port) {
                return Err(ConfigError::invalid(
                    LISTENERS,
                    &self.listeners.join(","),
                    format!(
                        "a port of its own is expected for each listener, {} and {} share one",
                        other.name, end_point.name
                    ),
                ));
            }
        }
        Ok(())
    }

    /// A controller listens on all of its listeners; a broker that is none only needs a name for theirs.
    fn check_controller_names(&self, end_points: &[EndPoint]) -> Result<(), ConfigError> {
        let refuse = |expected: &str| {
            let names = self.controller_listener_names.join(",");
            Err(ConfigError::invalid(CONTROLLER_NAMES, &names, expected))
        };
        if !self.roles.controller && self.controller_listener_names.is_empty() {
            return refuse("the name of the controllers' listener is expected");
        }
        for name in self.controller_listener_names {
            let mut names = end_points.iter().map(|end_point| &end_point.name);
            let is_listener = names.any(|listener| listener.eq_ignore_ascii_case(name));
            if self.roles.controller && !is_listener {
                return refuse("names of `listeners` are expected");
            }
            if !self.roles.controller && is_listener {
                return refuse(
                    "no name of `listeners` is expected, as process.roles is only broker",
                );
            }
        }
        Ok(())
    }

    fn advertised(
        &self,
        end_points: &[EndPoint],
    ) -> Result<BTreeMap<String, EndPoint>, ConfigError> {
        let Some(texts) = self.advertised_listeners.filter(|texts| !texts.is_empty()) else {
            return Ok(BTreeMap::new());
        };
        let refuse =
            |expected: String| Err(ConfigError::invalid(ADVERTISED, &texts.join(","), expected));
        let mut advertised = BTreeMap::new();
        for end_point in parse_all(ADVERTISED, texts)? {
            if !end_points
                .iter()
                .any(|listener| listener.name == end_point.name)
            {
                return refuse(format!(
                    "names of `listeners` are expected, {} is none",
                    end_point.name
                ));
            }
            if is_unroutable(&end_point.host) {
                return refuse(format!(
                    "a host that clients can reach is expected, not '{}'",
                    end_point.host
                ));
            }
            advertised.insert(end_point.name.clone(), end_point);
        }
        Ok(advertised)
    }

    fn advertise(
        &self,
        end_point: &EndPoint,
        protocol: SecurityProtocol,
        advertised: &BTreeMap<String, EndPoint>,
        host_name: impl Fn() -> String,
    ) -> Result<ListenerConfig, ConfigError> {
        let (advertised_host, advertised_port) = match advertised.get(&end_point.name) {
            Some(advertised) => (advertised.host.clone(), advertised.port),
            None if end_point.host.is_empty() => (host_name(), end_point.port),
            // Only those of the quorum go there, by controller.quorum.voters.
            None if is_unroutable(&end_point.host) && self.is_controller(&end_point.name) => {
                (host_name(), end_point.port)
            }
            None if is_unroutable(&end_point.host) => {
                return Err(ConfigError::invalid(
                    LISTENERS,
                    &self.listeners.join(","),
                    format!(
                        "advertised.listeners is expected to say which host clients of {} use, since it listens on {}",
                        end_point.name, end_point.host
                    ),
                ));
            }
            None => (end_point.host.clone(), end_point.port),
        };
        Ok(ListenerConfig {
            name: end_point.name.clone(),
            protocol,
            host: end_point.host.clone(),
            port: end_point.port,
            advertised_host,
            advertised_port,
        })
    }

    /// The listener that `inter.broker.listener.name` names; without it the one that is called as the protocol, else
    /// the first.
    fn inter_broker_name(&self, listeners: &[ListenerConfig]) -> Result<String, ConfigError> {
        if self.inter_broker_protocol != SecurityProtocol::Plaintext.name() {
            return Err(ConfigError::not_supported(
                "security.inter.broker.protocol",
                self.inter_broker_protocol,
                "only PLAINTEXT is served",
            ));
        }
        if !self.roles.broker {
            return Ok(String::new());
        }
        let find = |name: &str| {
            let mut names = listeners.iter().map(|listener| &listener.name);
            names.find(|listener| listener.eq_ignore_ascii_case(name))
        };
        let configured = self
            .inter_broker_listener_name
            .filter(|name| !name.is_empty());
        let found = match configured {
            Some(name) => find(name).ok_or_else(|| {
                ConfigError::invalid(
                    "inter.broker.listener.name",
                    name,
                    "a name of `listeners` that is not the controller's is expected",
                )
            })?,
            None => match find(self.inter_broker_protocol) {
                Some(name) => name,
                None => {
                    return Ok(listeners
                        .first()
                        .map_or_else(String::new, |listener| listener.name.clone()));
                }
            },
        };
        Ok(found.clone())
    }
}

/// 0.0.0.0, :: or nothing: fine to listen on, but no address to go to.
fn is_unroutable(host: &str) -> bool {
    host.is_empty()
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_unspecified())
}

/// One an IPv4 address and the other an IPv6 address: they may share a port.
fn is_other_family(one: &EndPoint, other: &EndPoint) -> bool {
    use std::net::IpAddr::{V4, V6};
    matches!(
        (one.host.parse(), other.host.parse()),
        (Ok(V4(_)), Ok(V6(_))) | (Ok(V6(_)), Ok(V4(_)))
    )
}

fn parse_all(key: &str, texts: &[String]) -> Result<Vec<EndPoint>, ConfigError> {
    let refuse = |expected: String| Err(ConfigError::invalid(key, &texts.join(","), expected));
    let mut end_points: Vec<EndPoint> = Vec::new();
    for text in texts {
        let Some(end_point) = parse_end_point(text) else {
            return refuse(format!("NAME://host:port is expected in place of '{text}'"));
        };
        if end_points.iter().any(|other| other.name == end_point.name) {
            return refuse(format!(
                "each name once is expected, {} is there twice",
                end_point.name
            ));
        }
        end_points.push(end_point);
    }
    if end_points.is_empty() {
        return refuse("at least one NAME://host:port is expected".to_owned());
    }
    Ok(end_points)
}

fn parse_end_point(text: &str) -> Option<EndPoint> {
    let (name, address) = text.split_once("://")?;
    let (host, port) = address.rsplit_once(':')?;
    let (host, bracketed) = match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(inner) => (inner, true),
        None => (host, false),
    };
    let name_fits = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let host_fits = host
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-%._:".contains(&byte))
        && (bracketed || !host.contains(':'));
    (name_fits && host_fits && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(())?;
    Some(EndPoint {
        name: name.to_ascii_uppercase(),
        host: host.to_owned(),
        port: port.parse().ok()?,
    })
}

fn parse_protocol_map(text: &str) -> Result<BTreeMap<String, SecurityProtocol>, ConfigError> {
    let mut protocols = BTreeMap::new();
    for entry in text
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
    {
        let parsed = entry.split_once(':').and_then(|(name, protocol)| {
            Some((name.trim(), SecurityProtocol::from_name(protocol.trim())?))
        });
        let Some((name, protocol)) = parsed else {
            return Err(ConfigError::invalid(
                PROTOCOL_MAP,
                text,
                format!(
                    "NAME:PROTOCOL with PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL is expected in place of '{entry}'"
                ),
            ));
        };
        if protocols
            .insert(name.to_ascii_uppercase(), protocol)
            .is_some()
        {
            return Err(ConfigError::invalid(
                PROTOCOL_MAP,
                text,
                format!("each listener once is expected, {name} is there twice"),
            ));
        }
    }
    Ok(protocols)
}

#[cfg(test)]
#[path = "listeners_tests.rs"]
mod tests;
