//! `leader-election`: the preferred replica, or any, becomes the leader.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse};

use super::client::{KafkaError, TopicPartition, by_topic, topic_name};
use super::java_order::{DEFAULT_CAPACITY, hash_map_order_by, partition_hash};
use super::{ToolError, json};

/// ELECTION_NOT_NEEDED
const NOT_NEEDED: i16 = 84;
/// How long the controller may take.
const TIMEOUT_MS: i32 = 30_000;

/// Options of the tool.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true).args(["topic", "all_topic_partitions", "path_to_json_file"]))]
pub(crate) struct LeaderElectionArguments {
    /// Brokers to start from; the first that answers names the others
    #[arg(long, value_name = "HOST:PORT,...")]
    bootstrap_server: String,

    /// Properties file of the client
    #[arg(long, value_name = "FILE", alias = "admin.config")]
    command_config: Option<PathBuf>,

    /// preferred: the first replica, if it is in sync; unclean: any replica of a partition without a leader
    #[arg(long, value_name = "TYPE", value_parser = parse_type)]
    election_type: ElectionType,

    /// Topic of the partition
    #[arg(long, value_name = "TOPIC", requires = "partition")]
    topic: Option<String>,

    /// The partition of --topic
    #[arg(long, value_name = "INDEX", requires = "topic")]
    partition: Option<i32>,

    /// All partitions that need it
    #[arg(long)]
    all_topic_partitions: bool,

    /// JSON file with the partitions:
    /// {"partitions": [{"topic": "foo", "partition": 1}, {"topic": "foobar", "partition": 2}]}
    #[arg(long, value_name = "FILE")]
    path_to_json_file: Option<PathBuf>,
}

/// Which replicas may become leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElectionType {
    Preferred,
    Unclean,
}

impl ElectionType {
    fn name(self) -> &'static str {
        match self {
            ElectionType::Preferred => "PREFERRED",
            ElectionType::Unclean => "UNCLEAN",
        }
    }
}

fn parse_type(text: &str) -> Result<ElectionType, String> {
    let types = [ElectionType::Preferred, ElectionType::Unclean];
    let mut types = types.into_iter();
    types
        .find(|election_type| election_type.name().eq_ignore_ascii_case(text))
        .ok_or_else(|| format!("Value [{text}] is not one of [[PREFERRED,UNCLEAN]]"))
}

/// Runs the tool.
pub(super) async fn run(
    arguments: LeaderElectionArguments,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let partitions = wanted(&arguments)?;
    let cluster = super::connect(
        &arguments.bootstrap_server,
        arguments.command_config.as_deref(),
        // As Kafka's tool: half a minute in all, half of it for a request.
        &[
            ("default.api.timeout.ms", "30000"),
            ("request.timeout.ms", "15000"),
        ],
    )?;
    let request = request(arguments.election_type, partitions.as_ref());
    let response = cluster.call_controller("electLeaders", &request).await;
    let response = response
        .and_then(|response| KafkaError::check(response.error_code, None).map(|()| response));
    let response = match response {
        Ok(response) => response,
        Err(error) if error.class == "TimeoutException" => {
            writeln!(out, "Timeout waiting for election results")?;
            return Err(ToolError::failed("Timeout waiting for election results"));
        }
        Err(error) => return Err(error.into()),
    };
    print(arguments.election_type, &response, out)
}

type Wanted = BTreeSet<TopicPartition>;

/// The partitions, or none for all.
fn wanted(arguments: &LeaderElectionArguments) -> Result<Option<Wanted>, ToolError> {
    if let Some(file) = &arguments.path_to_json_file {
        return parse_partitions(&json::read_file(file)?).map(Some);
    }
    let topic = arguments.topic.as_deref();
    Ok(topic
        .zip(arguments.partition)
        .map(|(topic, partition)| BTreeSet::from([TopicPartition::new(topic, partition)])))
}

fn parse_partitions(text: &str) -> Result<Wanted, ToolError> {
    let document = json::parse(text)?;
    if document.get("partitions").is_none() {
        return Err(ToolError::failed(
            "Replica election data is missing \"partitions\" field",
        ));
    }
    let mut partitions = BTreeSet::new();
    let mut duplicates = BTreeSet::new();
    for entry in json::array(&document, "partitions")? {
        let topic = json::text(entry, "topic")?;
        let partition = TopicPartition::new(topic, json::integer(entry, "partition")?);
        if !partitions.insert(partition.clone()) {
            duplicates.insert(partition.to_string());
        }
    }
    match duplicates.is_empty() {
        true => Ok(partitions),
        false => {
            let duplicates: Vec<_> = duplicates.into_iter().collect();
            Err(ToolError::failed(format!(
                "Replica election data contains duplicate partitions: [{}]",
                duplicates.join(", ")
            )))
        }
    }
}

fn request(election_type: ElectionType, partitions: Option<&Wanted>) -> ElectLeadersRequest {
    let topics = partitions.map(|partitions| {
        let topics = by_topic(partitions).into_iter().map(|(topic, indexes)| {
            TopicPartitions::default()
                .with_topic(topic_name(topic))
                .with_partitions(indexes)
        });
        topics.collect()
    });
    ElectLeadersRequest::default()
        .with_election_type(election_type as i8)
        .with_topic_partitions(topics)
        .with_timeout_ms(TIMEOUT_MS)
}

fn print(
    election_type: ElectionType,
    response: &ElectLeadersResponse,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let mut elected = Vec::new();
    let mut unneeded = Vec::new();
    let mut failed = Vec::new();
    for topic in &response.replica_election_results {
        for result in &topic.partition_result {
            let partition = TopicPartition::new(topic.topic.0.as_str(), result.partition_id);
            match KafkaError::check(result.error_code, result.error_message.as_deref()) {
                Ok(()) => elected.push(partition),
                Err(error) if error.code == NOT_NEEDED => unneeded.push(partition),
                Err(error) => failed.push((partition, error)),
            }
        }
    }
    let election_type = election_type.name();
    if !elected.is_empty() {
        let partitions = in_javas_order(elected);
        writeln!(
            out,
            "Successfully completed leader election ({election_type}) for partitions {partitions}"
        )?;
    }
    if !unneeded.is_empty() {
        let partitions = in_javas_order(unneeded);
        writeln!(
            out,
            "Valid replica already elected for partitions {partitions}"
        )?;
    }
    if failed.is_empty() {
        return Ok(());
    }
    hash_map_order_by(&mut failed, DEFAULT_CAPACITY, |(partition, _)| {
        partition_hash(partition)
    });
    for (partition, error) in &failed {
        writeln!(
            out,
            "Error completing leader election ({election_type}) for partition: {partition}: {}",
            error.in_full()
        )?;
    }
    let count = failed.len();
    Err(ToolError::failed(format!(
        "{count} replica(s) could not be elected"
    )))
}

fn in_javas_order(mut partitions: Vec<TopicPartition>) -> String {
    hash_map_order_by(&mut partitions, DEFAULT_CAPACITY, partition_hash);
    let partitions: Vec<_> = partitions.iter().map(ToString::to_string).collect();
    partitions.join(", ")
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::elect_leaders_response::{
        PartitionResult, ReplicaElectionResult,
    };

    use super::*;

    #[test]
    fn the_file_names_partitions_once() {
        let parsed = parse_partitions(r#"{"partitions":[{"topic":"a","partition":1}]}"#);
        assert_eq!(
            parsed.expect("parses"),
            BTreeSet::from([TopicPartition::new("a", 1)])
        );
        let entry = r#"{"topic":"a","partition":1}"#;
        let error = parse_partitions(&format!(r#"{{"partitions":[{entry},{entry}]}}"#));
        assert_eq!(
            error.expect_err("twice").to_string(),
            "Replica election data contains duplicate partitions: [a-1]"
        );
        let error = parse_partitions("{}").expect_err("nothing");
        assert_eq!(
            error.to_string(),
            "Replica election data is missing \"partitions\" field"
        );
    }

    #[test]
    fn results_are_told_by_kind() {
        let result = |id, code| {
            PartitionResult::default()
                .with_partition_id(id)
                .with_error_code(code)
                .with_error_message(None)
        };
        let topic = ReplicaElectionResult::default()
            .with_topic(topic_name("t1"))
            .with_partition_result(vec![
                result(0, 84),
                result(1, 84),
                result(2, 0),
                result(3, 80),
            ]);
        let response = ElectLeadersResponse::default().with_replica_election_results(vec![topic]);
        let mut out = Vec::new();
        let error = print(ElectionType::Preferred, &response, &mut out).expect_err("one failed");
        assert_eq!(error.to_string(), "1 replica(s) could not be elected");
        assert_eq!(
            String::from_utf8(out).expect("text"),
            "Successfully completed leader election (PREFERRED) for partitions t1-2\n\
             Valid replica already elected for partitions t1-1, t1-0\n\
             Error completing leader election (PREFERRED) for partition: t1-3: \
             org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: \
             The preferred leader was not available.\n"
        );
    }
}
