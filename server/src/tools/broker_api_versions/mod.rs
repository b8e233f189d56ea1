//! `broker-api-versions`: the versions of each API that the brokers serve.

mod apis;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use clap::Args;
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::StrBytes;

use super::client::{KafkaError, NodeInfo};
use super::{ClusterOptions, ToolError};
use apis::APIS;

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct BrokerApiVersionsArguments {
    #[command(flatten)]
    cluster: ClusterOptions,
}

/// Runs the tool.
pub(super) async fn run(
    arguments: BrokerApiVersionsArguments,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let cluster = arguments.cluster.cluster()?;
    let request = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("highwater"))
        .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
    for node in cluster.nodes().await? {
        let answer = cluster.try_node(node.id, &request).await;
        let answer =
            answer.and_then(|answer| KafkaError::check(answer.error_code, None).map(|()| answer));
        match answer {
            Ok(answer) => writeln!(out, "{} -> {}", name(&node), versions(&answer))?,
            Err(error) => writeln!(out, "{} -> ERROR: {}", name(&node), error.in_full())?,
        }
    }
    Ok(())
}

/// A node as Kafka prints it. Brokers that are fenced are not in the metadata.
fn name(node: &NodeInfo) -> String {
    format!(
        "{}:{} (id: {} rack: {} isFenced: false)",
        node.host,
        node.port,
        node.id,
        node.rack.as_deref().unwrap_or("null")
    )
}

fn versions(answer: &ApiVersionsResponse) -> String {
    let served = answer.api_keys.iter();
    let served: BTreeMap<_, _> = served
        .map(|api| (api.api_key, (api.min_version, api.max_version)))
        .collect();
    let known = APIS.iter().map(|&(key, name, min, max)| {
        (key, line(key, name, served.get(&key).copied(), (min, max)))
    });
    let mut lines: BTreeMap<_, _> = known.collect();
    for (&key, &range) in &served {
        let unknown = || format!("UNKNOWN({key}): {}", range_text(range));
        lines.entry(key).or_insert_with(unknown);
    }
    let lines: Vec<_> = lines.into_values().collect();
    format!("(\n\t{}\n)", lines.join(",\n\t"))
}

fn line(key: i16, name: &str, served: Option<(i16, i16)>, known: (i16, i16)) -> String {
    let mut text = format!("{name}({key}): ");
    let Some((min, max)) = served else {
        text.push_str("UNSUPPORTED");
        return text;
    };
    text.push_str(&range_text((min, max)));
    let usable = max.min(known.1);
    // Writing to a text cannot fail.
    let _ = match usable >= min && usable >= known.0 {
        true => write!(text, " [usable: {usable}]"),
        false if max < known.0 => write!(text, " [unusable: node too old]"),
        false => write!(text, " [unusable: node too new]"),
    };
    text
}

fn range_text((min, max): (i16, i16)) -> String {
    match min == max {
        true => min.to_string(),
        false => format!("{min} to {max}"),
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::api_versions_response::ApiVersion;

    use super::*;

    #[test]
    fn each_api_has_its_range_and_what_is_usable() {
        assert_eq!(
            line(1, "Fetch", Some((4, 18)), (4, 18)),
            "Fetch(1): 4 to 18 [usable: 18]"
        );
        assert_eq!(
            line(1, "Fetch", Some((4, 20)), (4, 18)),
            "Fetch(1): 4 to 20 [usable: 18]"
        );
        assert_eq!(line(64, "X", Some((0, 0)), (0, 0)), "X(64): 0 [usable: 0]");
        assert_eq!(line(1, "Fetch", None, (4, 18)), "Fetch(1): UNSUPPORTED");
        assert!(line(1, "Fetch", Some((0, 3)), (4, 18)).ends_with("[unusable: node too old]"));
        assert!(line(1, "Fetch", Some((19, 20)), (4, 18)).ends_with("[unusable: node too new]"));
    }

    #[test]
    fn all_apis_are_lines_by_their_key() {
        assert!(APIS.is_sorted_by_key(|api| api.0));
        let api = |key| ApiVersion::default().with_api_key(key).with_max_version(1);
        let answer = ApiVersionsResponse::default().with_api_keys(vec![api(999), api(3)]);
        let text = versions(&answer);
        assert!(
            text.starts_with("(\n\tProduce(0): UNSUPPORTED,\n\tFetch(1): "),
            "{text}"
        );
        assert!(
            text.contains("\tMetadata(3): 0 to 1 [usable: 1],\n"),
            "{text}"
        );
        assert!(text.ends_with("\tUNKNOWN(999): 0 to 1\n)"), "{text}");
    }
}
