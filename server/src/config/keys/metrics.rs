//! Keys: metrics and the HTTP port.

use crate::config::key::ConfigKey;
use crate::config::key::ConfigType::{Int, List, Long, Text};

pub(super) const KEYS: &[ConfigKey] = &[
    ConfigKey::new("http.listeners", List, Some("")).doc(
        "Addresses of the HTTP port as host:port, with the console, /metrics (Prometheus), \
             /health and /ready. Empty: no HTTP port. Highwater's own key.",
    ),
    ConfigKey::new(
        "metric.reporters",
        List,
        Some("org.apache.kafka.common.metrics.JmxReporter"),
    )
    .cluster_wide()
    .not_supported_yet()
    .doc("Classes that report metrics."),
    ConfigKey::new("metrics.num.samples", Int, Some("2"))
        .at_least(1)
        .no_counterpart("Prometheus does the sampling")
        .doc("Samples kept for a metric."),
    ConfigKey::new("metrics.sample.window.ms", Long, Some("30000"))
        .at_least(1)
        .no_counterpart("Prometheus does the sampling")
        .doc("Length of one sample of a metric."),
    ConfigKey::new("metrics.recording.level", Text, Some("INFO"))
        .no_counterpart("every metric is kept")
        .doc("Least level of the metrics that are kept."),
    ConfigKey::new("kafka.metrics.reporters", List, Some(""))
        .not_supported_yet()
        .doc("Classes that report the older metrics."),
    ConfigKey::new("kafka.metrics.polling.interval.secs", Int, Some("10"))
        .at_least(1)
        .not_supported_yet()
        .doc("How often the older reporters are called."),
    ConfigKey::new("telemetry.max.bytes", Int, Some("1048576"))
        .at_least(1)
        .not_supported_yet()
        .doc("Largest set of metrics a client may push."),
];
