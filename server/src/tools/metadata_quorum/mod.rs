//! `metadata-quorum`: the controllers, and how far each is.

mod change;
mod print;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use highwater_replication::cluster::topic_name::CLUSTER_METADATA_TOPIC;
use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::{
    DescribeClusterRequest, DescribeQuorumRequest, DescribeQuorumResponse,
};

use super::client::{Cluster, KafkaError, topic_name};
use super::{EitherBootstrap, ToolError};
use crate::broker::now_ms;

/// Options of the tool.
#[derive(Debug, Args)]
pub(crate) struct MetadataQuorumArguments {
    #[command(flatten)]
    bootstrap: EitherBootstrap,

    /// Properties file of the client; for add-controller, of the controller to add
    #[arg(long, value_name = "FILE")]
    command_config: Option<PathBuf>,

    #[command(subcommand)]
    command: QuorumCommand,
}

#[derive(Debug, Subcommand)]
enum QuorumCommand {
    /// Print the state of the quorum
    Describe {
        /// The leader, its epoch, the high watermark and the voters
        #[arg(long)]
        status: bool,

        /// A line for each voter and observer
        #[arg(long)]
        replication: bool,

        /// Times as how long ago, with --replication
        #[arg(long)]
        human_readable: bool,
    },
    /// Make a controller a voter
    AddController {
        /// Only tell what would be done
        #[arg(long)]
        dry_run: bool,
    },
    /// Take a controller out of the voters
    RemoveController {
        /// Id of the controller
        #[arg(long, short = 'i', value_name = "ID")]
        controller_id: i32,

        /// Id of its directory
        #[arg(long, short = 'd', value_name = "ID")]
        controller_directory_id: String,

        /// Only tell what would be done
        #[arg(long)]
        dry_run: bool,
    },
}

/// Runs the tool.
pub(super) async fn run(
    arguments: MetadataQuorumArguments,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let command_config = arguments.command_config.as_deref();
    if let Some(file) = command_config.filter(|file| !file.exists()) {
        let file = file.display();
        let text = format!("Properties file {file} does not exists!");
        return Err(ToolError::failed(text));
    }
    let cluster = arguments.bootstrap.cluster(command_config)?;
    match arguments.command {
        QuorumCommand::Describe {
            status,
            replication,
            human_readable,
        } => match (status, replication) {
            (true, true) => Err(ToolError::failed(
                "Only one of --status or --replication should be specified with describe sub-command",
            )),
            (false, false) => Err(ToolError::failed(
                "One of --status or --replication must be specified with describe sub-command",
            )),
            (true, false) if human_readable => Err(ToolError::failed(
                "The option --human-readable is only supported along with --replication",
            )),
            (true, false) => {
                let quorum = quorum(&cluster).await?;
                let cluster_id = cluster_id(&cluster).await?;
                Ok(print::status(&cluster_id, &quorum, out)?)
            }
            (false, true) => {
                let quorum = quorum(&cluster).await?;
                let now_ms = human_readable.then(now_ms);
                Ok(print::replication(&quorum, now_ms, out)?)
            }
        },
        QuorumCommand::AddController { dry_run } => {
            change::add(&cluster, command_config, dry_run, out).await
        }
        QuorumCommand::RemoveController {
            controller_id,
            controller_directory_id,
            dry_run,
        } => {
            let directory_id = &controller_directory_id;
            change::remove(&cluster, controller_id, directory_id, dry_run, out).await
        }
    }
}

async fn quorum(cluster: &Cluster) -> Result<print::Quorum, KafkaError> {
    let partition = PartitionData::default().with_partition_index(0);
    let topic = TopicData::default()
        .with_topic_name(topic_name(CLUSTER_METADATA_TOPIC))
        .with_partitions(vec![partition]);
    let request = DescribeQuorumRequest::default().with_topics(vec![topic]);
    let response: DescribeQuorumResponse = cluster
        .call_controller("describeMetadataQuorum", &request)
        .await?;
    KafkaError::check(response.error_code, response.error_message.as_deref())?;
    print::Quorum::new(response)
}

async fn cluster_id(cluster: &Cluster) -> Result<String, KafkaError> {
    let request = DescribeClusterRequest::default().with_endpoint_type(cluster.endpoint_type());
    let response = cluster.call_any("describeCluster", &request).await?;
    KafkaError::check(response.error_code, response.error_message.as_deref())?;
    Ok(response.cluster_id.to_string())
}
