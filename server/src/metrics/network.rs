//! Requests, errors, bytes and connections.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use kafka_protocol::messages::ApiKey;

use super::families::Families;
use crate::api::{API_KEYS, CloseReason};
use crate::kafka_names;
use crate::network::{ApiCounters, NetworkMetrics};

/// Upper bound of a bucket of request times, in milliseconds.
fn bucket_bound_ms(index: usize, buckets: usize) -> f64 {
    if index + 1 == buckets {
        f64::MAX
    } else {
        (1_u64 << index) as f64 / 1_000.0
    }
}

pub(super) fn encode(families: &mut Families<'_>, metrics: &NetworkMetrics) -> fmt::Result {
    let apis = || {
        (0..API_KEYS).filter_map(|key| {
            let key = i16::try_from(key).ok()?;
            let counters = metrics.api(key)?;
            let used = counters.requests.load(Relaxed) > 0;
            Some((api_name(key)?, counters)).filter(|_| used)
        })
    };
    let names: Vec<(String, &ApiCounters)> = apis().collect();
    families.counters(
        "kafka_network_requestmetrics_requests",
        "Requests, by API.",
        names
            .iter()
            .map(|(name, api)| ([("request", name.as_str())], api.requests.load(Relaxed))),
    )?;
    families.histograms(
        "kafka_network_requestmetrics_totaltimems",
        "Milliseconds from a request's arrival to its response being handed to the socket, by API.",
        names.iter().map(|(name, api)| {
            let buckets = api.time_buckets.len();
            let counts = api.time_buckets.iter().enumerate();
            let counts = counts
                .map(|(index, count)| (bucket_bound_ms(index, buckets), count.load(Relaxed)))
                .collect();
            (
                [("request", name.as_str())],
                api.total_time_us.load(Relaxed) as f64 / 1_000.0,
                counts,
            )
        }),
    )?;
    let errors: Vec<(String, String, u64)> = metrics
        .errors()
        .filter_map(|(key, code, count)| Some((api_name(key)?, error_name(code), count)))
        .collect();
    families.counters(
        "kafka_network_requestmetrics_errors",
        "Errors in responses, by API and error.",
        errors.iter().map(|(request, error, count)| {
            (
                [("request", request.as_str()), ("error", error.as_str())],
                *count,
            )
        }),
    )?;
    families.counters(
        "highwater_network_refused",
        "Connections that the broker ended, by reason.",
        CloseReason::ALL.map(|reason| ([("reason", reason.as_str())], metrics.refused(reason))),
    )?;
    families.counter(
        "kafka_server_socket_server_metrics_incoming_byte",
        "Bytes of requests received.",
        metrics.bytes_in.load(Relaxed),
    )?;
    families.counter(
        "kafka_server_socket_server_metrics_outgoing_byte",
        "Bytes of responses sent.",
        metrics.bytes_out.load(Relaxed),
    )?;
    families.gauge(
        "kafka_server_socket_server_metrics_connection_count",
        "Connections that are open.",
        metrics.connections.load(Relaxed),
    )?;
    families.counter(
        "kafka_server_socket_server_metrics_connection_creation",
        "Connections accepted.",
        metrics.connections_accepted.load(Relaxed),
    )
}

fn api_name(key: i16) -> Option<String> {
    ApiKey::try_from(key).ok().map(|key| format!("{key:?}"))
}

/// Kafka's name of an error, `UNKNOWN_TOPIC_OR_PARTITION`; of one that has none, its number.
fn error_name(code: i16) -> String {
    kafka_names::error_name(code).unwrap_or_else(|| code.to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::{DescriptorEncoder, text};
    use prometheus_client::registry::Registry;

    use super::*;

    #[derive(Debug)]
    struct NetworkCollector(NetworkMetrics);

    impl Collector for NetworkCollector {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            super::encode(&mut Families(encoder), &self.0)
        }
    }

    #[test]
    fn errors_have_kafkas_names() {
        assert_eq!(error_name(3), "UNKNOWN_TOPIC_OR_PARTITION");
        assert_eq!(error_name(-1), "UNKNOWN_SERVER_ERROR");
        assert_eq!(error_name(12_345), "12345");
    }

    #[test]
    fn counts_are_written_by_api_error_and_reason() {
        let metrics = NetworkMetrics::default();
        metrics.count_request(0);
        metrics.count_request(0);
        metrics.record_request_time(0, Duration::from_micros(3));
        metrics.record_request_time(0, Duration::from_secs(100));
        metrics.count_error(0, 3);
        metrics.count_refused(CloseReason::UnknownApi);
        metrics.bytes_in.fetch_add(7, Relaxed);
        let mut registry = Registry::default();
        registry.register_collector(Box::new(NetworkCollector(metrics)));
        let mut page = String::new();
        text::encode(&mut page, &registry).expect("encoded");
        for line in [
            "kafka_network_requestmetrics_requests_total{request=\"Produce\"} 2",
            "kafka_network_requestmetrics_errors_total{request=\"Produce\",error=\"UNKNOWN_TOPIC_OR_PARTITION\"} 1",
            "highwater_network_refused_total{reason=\"unknown_api\"} 1",
            "highwater_network_refused_total{reason=\"idle\"} 0",
            "kafka_server_socket_server_metrics_incoming_byte_total 7",
            "kafka_network_requestmetrics_totaltimems_count{request=\"Produce\"} 2",
            "kafka_network_requestmetrics_totaltimems_bucket{le=\"0.002\",request=\"Produce\"} 0",
            "kafka_network_requestmetrics_totaltimems_bucket{le=\"0.004\",request=\"Produce\"} 1",
            "kafka_network_requestmetrics_totaltimems_bucket{le=\"+Inf\",request=\"Produce\"} 2",
            "# EOF",
        ] {
            assert!(
                page.lines().any(|found| found == line),
                "{line} is missing:\n{page}"
            );
        }
        assert!(
            !page.contains("Fetch"),
            "what was never asked for is left out"
        );
    }
}
