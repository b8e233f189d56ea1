//! Producing: one request at a time, without retries, so that each refusal is seen.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highwater_storage::record_batch::RecordBatchBuilder;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{ProduceRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::console::offsets::error_name;
use crate::network::client::{Client, ClientConfig, ClientError, Connection};

/// How long an append may wait for its in-sync replicas.
pub(super) const PRODUCE_TIMEOUT: Duration = Duration::from_secs(6);
/// More than the broker takes until it answers that the time is over.
const PATIENCE: Duration = Duration::from_secs(8);
/// The newest version of Produce that names topics, not their ids.
const PRODUCE_BY_NAME: i16 = 11;
const CLIENT_ID: &str = "playground";
const HOST: &str = "127.0.0.1";

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Acknowledged; the records begin at this offset.
    Acknowledged(i64),
    /// Sent with acks=0: nobody answers.
    Sent,
    /// Refused with this of Kafka's errors.
    Refused(String),
    /// No answer, or no broker to send to: whether it is written is not known, or it is not.
    Failed(String),
}

/// One request and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Produced {
    /// Number of the request.
    pub(super) number: u64,
    /// First value and how many there are.
    pub(super) first: String,
    pub(super) count: usize,
    /// Whom it was sent to.
    pub(super) broker: Option<i32>,
    /// 0, 1 or -1 for all.
    pub(super) acks: i16,
    pub(super) outcome: Outcome,
    /// How many in-sync replicas there were, as far as was known.
    pub(super) isr: usize,
}

impl Produced {
    /// Whether it was refused with this error.
    pub(super) fn is_refused_with(&self, error: &str) -> bool {
        matches!(&self.outcome, Outcome::Refused(name) if name == error)
    }

    /// Whether it was acknowledged by a broker.
    pub(super) fn is_acknowledged(&self) -> bool {
        matches!(self.outcome, Outcome::Acknowledged(_))
    }

    /// The row of the page.
    pub(super) fn to_row(&self) -> (String, Value) {
        let (kind, text) = match &self.outcome {
            Outcome::Acknowledged(offset) => ("ok", format!("acknowledged at offset {offset}")),
            Outcome::Sent => ("sent", "sent, nobody answers".to_owned()),
            Outcome::Refused(error) => ("refused", error.clone()),
            Outcome::Failed(reason) => ("failed", reason.clone()),
        };
        let row = json!({
            "number": self.number,
            "first": self.first,
            "count": self.count,
            "broker": self.broker,
            "acks": acks_name(self.acks),
            "kind": kind,
            "text": text,
        });
        (format!("produced/{:08}", self.number), row)
    }
}

/// As Kafka's producers write it.
pub(super) fn acks_name(acks: i16) -> String {
    match acks {
        -1 => "all".to_owned(),
        acks => acks.to_string(),
    }
}

/// A client of the playground's own for a broker's port for clients.
pub(super) fn client(port: u16) -> Client {
    Client::new(HOST, port, config())
}

fn config() -> Arc<ClientConfig> {
    Arc::new(ClientConfig {
        request_timeout: PATIENCE,
        connection_setup_timeout: Duration::from_secs(1),
        ..ClientConfig::named(CLIENT_ID)
    })
}

/// Produces these values as one batch to partition 0.
pub(super) async fn produce(
    client: &Client,
    port: u16,
    topic: &str,
    acks: i16,
    values: &[String],
) -> Outcome {
    let request = match request(topic, acks, values) {
        Ok(request) => request,
        Err(reason) => return Outcome::Failed(reason),
    };
    if acks == 0 {
        let sent = timeout(PATIENCE, send_only(port, &request)).await;
        return match sent {
            Ok(Ok(())) => Outcome::Sent,
            Ok(Err(reason)) => Outcome::Failed(reason),
            Err(_) => Outcome::Failed("not sent in time".to_owned()),
        };
    }
    let answer = client.call_within(PRODUCE_BY_NAME..=PRODUCE_BY_NAME, |_| request);
    let answer = match timeout(PATIENCE, answer).await {
        Ok(answer) => answer,
        Err(_) => return Outcome::Failed("no answer in time".to_owned()),
    };
    match answer {
        Ok((_, response)) => {
            let topic = response.responses.first();
            match topic.and_then(|topic| topic.partition_responses.first()) {
                Some(partition) if partition.error_code == 0 => {
                    Outcome::Acknowledged(partition.base_offset)
                }
                Some(partition) => Outcome::Refused(error_name(partition.error_code)),
                None => Outcome::Failed("an empty answer".to_owned()),
            }
        }
        Err(error) => Outcome::Failed(reason(&error)),
    }
}

/// A short reason; the address is shown elsewhere.
fn reason(error: &ClientError) -> String {
    match error {
        ClientError::Connect { .. } => "no connection".to_owned(),
        ClientError::Closed { .. } => {
            "the connection broke: written or not, nobody knows".to_owned()
        }
        ClientError::TimedOut { .. } => "no answer: written or not, nobody knows".to_owned(),
        other => other.to_string(),
    }
}

fn request(topic: &str, acks: i16, values: &[String]) -> Result<ProduceRequest, String> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let mut batch = RecordBatchBuilder::new();
    for value in values {
        batch.append(now_ms, None, Some(value.as_bytes()));
    }
    let batch = batch.build().map_err(|error| error.to_string())?;
    let partition = PartitionProduceData::default().with_records(Some(batch));
    let topic = TopicProduceData::default()
        .with_name(TopicName(StrBytes::from_string(topic.to_owned())))
        .with_partition_data(vec![partition]);
    let timeout_ms = i32::try_from(PRODUCE_TIMEOUT.as_millis()).unwrap_or(i32::MAX);
    Ok(ProduceRequest::default()
        .with_acks(acks)
        .with_timeout_ms(timeout_ms)
        .with_topic_data(vec![topic]))
}

/// Sends a request that has no answer, over a connection of its own: a broker that refuses it closes the connection, and
/// nothing is asked before, which a frozen one would not answer.
async fn send_only(port: u16, request: &ProduceRequest) -> Result<(), String> {
    let stream = TcpStream::connect((HOST, port)).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let address = format!("{HOST}:{port}").into();
    let connection = Connection::new(stream, address, config());
    let sent = connection.send_unanswered(request, PRODUCE_BY_NAME).await;
    sent.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn each_outcome_has_its_text() {
        let row = |outcome| {
            let produced = Produced {
                number: 7,
                first: "m7".to_owned(),
                count: 1,
                broker: Some(1),
                acks: -1,
                outcome,
                isr: 1,
            };
            produced.to_row()
        };
        let (key, refused) = row(Outcome::Refused("NOT_ENOUGH_REPLICAS".to_owned()));
        assert_eq!(key, "produced/00000007");
        assert_eq!(
            (&refused["kind"], &refused["acks"]),
            (&json!("refused"), &json!("all"))
        );
        assert_eq!(refused["text"], "NOT_ENOUGH_REPLICAS");
        let (_, acknowledged) = row(Outcome::Acknowledged(3));
        assert_eq!(acknowledged["text"], "acknowledged at offset 3");
    }

    #[tokio::test]
    async fn a_request_without_an_answer_is_a_whole_frame() {
        let request = request("t", 0, &["m0".to_owned()]).expect("a batch");
        let broker = TcpListener::bind((HOST, 0)).await.expect("a port");
        let port = broker.local_addr().expect("an address").port();
        let (sent, received) = tokio::join!(send_only(port, &request), async {
            let (mut stream, _) = broker.accept().await.expect("a connection");
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await.expect("read");
            received
        });
        assert_eq!(sent, Ok(()));
        let frame = received;
        let length = i32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]);
        assert_eq!(length as usize, frame.len() - 4);
        assert_eq!(frame[4..8], [0, 0, 0, 11], "Produce, version 11");
    }
}
