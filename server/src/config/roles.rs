//! What this node is in its cluster, and where the controllers are: `process.roles` and `controller.quorum.*`.

use std::fmt;

use super::ConfigError;
use super::layers::Layers;

const ROLES: &str = "process.roles";
const VOTERS: &str = "controller.quorum.voters";
const BOOTSTRAP: &str = "controller.quorum.bootstrap.servers";
/// Most controllers that vote: more make every decision slower and none safer.
const MAX_VOTERS: usize = 7;

/// `process.roles`: at least one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessRoles {
    /// Hosts partitions and serves clients.
    pub broker: bool,
    /// Votes in the quorum and may become the active controller.
    pub controller: bool,
}

/// One entry of `controller.quorum.voters`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumVoter {
    /// `node.id` of the controller.
    pub id: i32,
    /// Host of its controller listener, without brackets.
    pub host: String,
    /// Port of its controller listener; 0 only for a quorum of one that opens none.
    pub port: u16,
}

impl fmt::Display for QuorumVoter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.id, self.host, self.port)
    }
}

/// The roles of this node and the controllers of its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumConfig {
    /// `process.roles`.
    pub roles: ProcessRoles,
    /// `controller.quorum.voters`. Empty when this node is the only controller, or when a broker finds the controllers
    /// by the bootstrap servers.
    pub voters: Vec<QuorumVoter>,
    /// `controller.quorum.bootstrap.servers` as host and port.
    pub bootstrap_servers: Vec<(String, u16)>,
}

impl QuorumConfig {
    pub(super) fn from_layers(layers: &Layers<'_>) -> Result<Self, ConfigError> {
        let names = layers.get::<Vec<String>>(ROLES)?;
        let has = |role: &str| names.iter().any(|name| name == role);
        let roles = ProcessRoles {
            broker: has("broker"),
            controller: has("controller"),
        };
        if !roles.broker && !roles.controller {
            return Err(ConfigError::invalid(
                ROLES,
                "",
                "broker, controller or both are expected",
            ));
        }
        let quorum = QuorumConfig {
            roles,
            voters: parse_voters(&layers.get::<Vec<String>>(VOTERS)?)?,
            bootstrap_servers: parse_servers(&layers.get::<Vec<String>>(BOOTSTRAP)?)?,
        };
        quorum.check(layers.get("node.id")?)?;
        Ok(quorum)
    }

    /// Whether this node is the whole quorum.
    pub fn is_quorum_of_one(&self) -> bool {
        self.roles.controller && self.voters.len() <= 1
    }

    fn check(&self, node_id: i32) -> Result<(), ConfigError> {
        let is_voter = self.voters.iter().any(|voter| voter.id == node_id);
        let voters = self
            .voters
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(",");
        if self.roles.controller {
            if !self.voters.is_empty() && !is_voter {
                return Err(ConfigError::invalid(
                    VOTERS,
                    &voters,
                    format!(
                        "an entry for node.id={node_id} is expected, as process.roles contains controller"
                    ),
                ));
            }
            if self.voters.is_empty() && self.bootstrap_servers.len() > 1 {
                let servers = self.bootstrap_servers.iter();
                let servers: Vec<_> = servers
                    .map(|(host, port)| format!("{host}:{port}"))
                    .collect();
                return Err(ConfigError::not_supported(
                    BOOTSTRAP,
                    &servers.join(","),
                    "several controllers are to be listed in controller.quorum.voters",
                ));
            }
            return Ok(());
        }
        if is_voter {
            return Err(ConfigError::invalid(
                VOTERS,
                &voters,
                format!(
                    "no entry for node.id={node_id} is expected, as process.roles is only broker"
                ),
            ));
        }
        if self.voters.is_empty() && self.bootstrap_servers.is_empty() {
            return Err(ConfigError::Conflict(format!(
                "process.roles is only broker: {BOOTSTRAP} or {VOTERS} must say where the controllers are"
            )));
        }
        Ok(())
    }
}

fn parse_voters(texts: &[String]) -> Result<Vec<QuorumVoter>, ConfigError> {
    let refuse = |expected: String| Err(ConfigError::invalid(VOTERS, &texts.join(","), expected));
    let mut voters: Vec<QuorumVoter> = Vec::new();
    for text in texts {
        let parsed = text.split_once('@').and_then(|(id, address)| {
            let id = id.trim().parse().ok().filter(|id: &i32| *id >= 0)?;
            let (host, port) = parse_address(address)?;
            Some(QuorumVoter { id, host, port })
        });
        let Some(voter) = parsed else {
            return refuse(format!("id@host:port is expected in place of '{text}'"));
        };
        if voters.iter().any(|other| other.id == voter.id) {
            return refuse(format!(
                "each id once is expected, {} is there twice",
                voter.id
            ));
        }
        voters.push(voter);
    }
    if voters.len() > MAX_VOTERS {
        return refuse(format!("at most {MAX_VOTERS} controllers are expected"));
    }
    Ok(voters)
}

fn parse_servers(texts: &[String]) -> Result<Vec<(String, u16)>, ConfigError> {
    let parse = |text: &String| {
        parse_address(text).ok_or_else(|| {
            ConfigError::invalid(
                BOOTSTRAP,
                &texts.join(","),
                format!("host:port is expected in place of '{text}'"),
            )
        })
    };
    texts.iter().map(parse).collect()
}

/// `host:port`, the host of an IPv6 address in brackets.
fn parse_address(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.trim().rsplit_once(':')?;
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host = match bracketed {
        Some(inner) => inner,
        None if host.contains(':') => return None,
        None => host,
    };
    let host_fits = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-%._:".contains(&byte));
    let port_fits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (host_fits && port_fits).then_some(())?;
    Some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
#[path = "roles_tests.rs"]
mod tests;
