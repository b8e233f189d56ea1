//! Controllers that become voters or cease to be.

use std::io::Write;
use std::path::Path;

use highwater_storage::types::TopicId;
use kafka_protocol::messages::add_raft_voter_request::Listener;
use kafka_protocol::messages::{AddRaftVoterRequest, RemoveRaftVoterRequest};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::print::bracketed;
use crate::tools::ToolError;
use crate::tools::client::{ClientProperties, Cluster, KafkaError};

/// How long the quorum may take.
const TIMEOUT_MS: i32 = 60_000;
/// Where a node keeps its directory's id.
const META_PROPERTIES: &str = "meta.properties";

/// Makes the controller whose properties these are a voter.
pub(super) async fn add(
    cluster: &Cluster,
    properties: Option<&Path>,
    dry_run: bool,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    if properties.is_none() {
        return Err(ToolError::failed(
            "You must supply the configuration file of the controller you are adding when using add-controller.",
        ));
    }
    let properties = ClientProperties::load(properties)?;
    let id = controller_id(&properties)?;
    let directory_id = directory_id(metadata_directory(&properties)?)?;
    let endpoints = endpoints(&properties)?;
    if !dry_run {
        let listeners = endpoints.iter().map(|(name, host, port)| {
            Listener::default()
                .with_name(StrBytes::from_string(name.clone()))
                .with_host(StrBytes::from_string(host.clone()))
                .with_port(*port)
        });
        let request = AddRaftVoterRequest::default()
            .with_cluster_id(None)
            .with_timeout_ms(TIMEOUT_MS)
            .with_voter_id(id)
            .with_voter_directory_id(directory_id)
            .with_listeners(listeners.collect());
        let response = cluster.call_controller("addRaftVoter", &request).await?;
        KafkaError::check(response.error_code, response.error_message.as_deref())?;
    }
    let endpoints: Vec<_> = endpoints
        .iter()
        .map(|(name, host, port)| format!("{name}://{}:{port}", bracketed(host)))
        .collect();
    writeln!(
        out,
        "{} controller {id} with directory id {} and endpoints: {}",
        if dry_run {
            "DRY RUN of adding"
        } else {
            "Added"
        },
        TopicId(directory_id),
        endpoints.join(", ")
    )?;
    Ok(())
}

/// Takes the controller out of the voters.
pub(super) async fn remove(
    cluster: &Cluster,
    id: i32,
    directory_id: &str,
    dry_run: bool,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    if id < 0 {
        let text = format!("Invalid negative --controller-id: {id}");
        return Err(ToolError::failed(text));
    }
    let directory: TopicId = directory_id.trim().parse().map_err(|_| {
        ToolError::failed(format!(
            "Failed to parse --controller-directory-id: {directory_id} is not 16 bytes in URL-safe base64"
        ))
    })?;
    if !dry_run {
        let request = RemoveRaftVoterRequest::default()
            .with_cluster_id(None)
            .with_voter_id(id)
            .with_voter_directory_id(directory.0);
        let response = cluster.call_controller("removeRaftVoter", &request).await?;
        KafkaError::check(response.error_code, response.error_message.as_deref())?;
    }
    writeln!(
        out,
        "{} KRaft controller {id} with directory id {directory}",
        if dry_run {
            "DRY RUN of removing"
        } else {
            "Removed"
        }
    )?;
    Ok(())
}

fn invalid(what: &str) -> ToolError {
    ToolError::failed(format!(
        "{what}. Is this a valid controller configuration file?"
    ))
}

fn controller_id(properties: &ClientProperties) -> Result<i32, ToolError> {
    let id = properties
        .get("node.id")
        .ok_or_else(|| invalid("node.id not found in configuration file"))?;
    let id: i32 = id
        .parse()
        .map_err(|_| invalid("node.id was no number in configuration file"))?;
    if id < 0 {
        return Err(invalid("node.id was negative in configuration file"));
    }
    let roles = properties.get("process.roles").unwrap_or_default();
    match roles.split(',').any(|role| role.trim() == "controller") {
        true => Ok(id),
        false => Err(invalid(
            "process.roles did not contain 'controller' in configuration file",
        )),
    }
}

fn metadata_directory(properties: &ClientProperties) -> Result<&Path, ToolError> {
    let dir = properties.get("metadata.log.dir").or_else(|| {
        let dirs = properties.get("log.dirs")?;
        dirs.split(',').next().map(str::trim)
    });
    dir.filter(|dir| !dir.is_empty())
        .map(Path::new)
        .ok_or_else(|| invalid("Neither metadata.log.dir nor log.dirs were found"))
}

fn directory_id(directory: &Path) -> Result<Uuid, ToolError> {
    let file = directory.join(META_PROPERTIES);
    let display = directory.display();
    let text = std::fs::read(&file).map_err(|error| {
        ToolError::failed(format!(
            "Unable to read meta.properties from {display}: {error}"
        ))
    })?;
    let entries = crate::config::parse_properties(&text).map_err(|(line, reason)| {
        ToolError::failed(format!("{}: line {line}: {reason}", file.display()))
    })?;
    let mut entries = entries.into_iter();
    let TopicId(id) = entries
        .find(|(key, _)| key == "directory.id")
        .and_then(|(_, id)| id.trim().parse().ok())
        .ok_or_else(|| ToolError::failed(format!("No directory id found in {display}")))?;
    Ok(id)
}

/// The listeners for controllers: name, host and port, as others are told.
fn endpoints(properties: &ClientProperties) -> Result<Vec<(String, String, u16)>, ToolError> {
    let names = properties
        .get("controller.listener.names")
        .ok_or_else(|| invalid("controller.listener.names was not found"))?;
    let listeners = properties.get("listeners").unwrap_or_default();
    let advertised = properties.get("advertised.listeners").unwrap_or_default();
    // What is advertised counts before what is listened on.
    let all = || advertised.split(',').chain(listeners.split(','));
    let endpoints = names.split(',').map(str::trim).map(|name| {
        let mut found = all().filter_map(|listener| listener.trim().split_once("://"));
        let address = found
            .find(|(listener, _)| listener.eq_ignore_ascii_case(name))
            .and_then(|(_, address)| address.rsplit_once(':'));
        let endpoint = address.and_then(|(host, port)| {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let host = if host.is_empty() { "localhost" } else { host };
            Some((
                name.to_ascii_uppercase(),
                host.to_owned(),
                port.parse().ok()?,
            ))
        });
        endpoint.ok_or_else(|| {
            let text = format!("Cannot find information about controller listener name: {name}");
            ToolError::failed(text)
        })
    });
    endpoints.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(entries: &[(&str, &str)]) -> ClientProperties {
        let mut properties = ClientProperties::default();
        for (key, value) in entries {
            properties.set(key, value);
        }
        properties
    }

    #[test]
    fn the_controller_is_read_from_its_properties() {
        let properties = properties(&[
            ("node.id", "7"),
            ("process.roles", "broker,controller"),
            ("log.dirs", "/a,/b"),
            ("controller.listener.names", "CONTROLLER"),
            ("listeners", "PLAINTEXT://:9092,CONTROLLER://[::1]:9093"),
        ]);
        assert_eq!(controller_id(&properties).expect("an id"), 7);
        assert_eq!(
            metadata_directory(&properties).expect("a dir"),
            Path::new("/a")
        );
        let spaced = self::properties(&[("log.dirs", " /a , /b")]);
        assert_eq!(metadata_directory(&spaced).expect("a dir"), Path::new("/a"));
        let endpoint = ("CONTROLLER".to_owned(), "::1".to_owned(), 9093);
        assert_eq!(endpoints(&properties).expect("endpoints"), [endpoint]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = |entries: &[(&str, &str)]| {
            let error = controller_id(&properties(entries)).expect_err("not a controller");
            error.to_string()
        };
        assert!(error(&[]).starts_with("node.id not found"));
        assert!(error(&[("node.id", "-1")]).starts_with("node.id was negative"));
        assert!(error(&[("node.id", "1")]).starts_with("process.roles did not contain"));
        assert!(metadata_directory(&properties(&[])).is_err());
        let error = endpoints(&properties(&[("controller.listener.names", "C")]));
        assert_eq!(
            error.expect_err("no listener").to_string(),
            "Cannot find information about controller listener name: C"
        );
    }

    #[test]
    fn the_directory_id_is_in_meta_properties() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(META_PROPERTIES);
        std::fs::write(&file, "version=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n").expect("written");
        assert_eq!(
            directory_id(folder.path()).expect("an id"),
            Uuid::from_u128(1)
        );
        std::fs::write(&file, "version=1\n").expect("written");
        assert!(directory_id(folder.path()).is_err());
    }
}
