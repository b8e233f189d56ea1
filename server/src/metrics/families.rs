//! Writing metric families.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric as _, MetricEncoder,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Labels of one sample.
pub(super) type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

/// Where the families of one scrape go.
pub(super) struct Families<'a>(pub(super) DescriptorEncoder<'a>);

impl Families<'_> {
    /// A count that only grows, without labels; `_total` is added to its name.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

    /// A value that goes up and down, without labels.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: i64) -> fmt::Result {
        let encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)
    }

    /// As `gauge`, with a fraction.
    pub(super) fn real_gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)
    }

    /// As `counter`, with a fraction.
    pub(super) fn real_counter(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

    /// Facts that do not change; `_info` is added to its name.
    pub(super) fn info<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: Labels<'_, N>,
    ) -> fmt::Result {
        self.0
            .encode_descriptor(name, help, None, MetricType::Info)?
            .encode_info(&labels)
    }

    /// Counts that only grow, one for each set of labels.
    pub(super) fn counters<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l, N>, u64)>,
    ) -> fmt::Result {
        let mut encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in samples {
            ConstCounter::new(value).encode(labelled(&mut encoder, &labels)?)?;
        }
        Ok(())
    }

    /// Values that go up and down, one for each set of labels.
    pub(super) fn gauges<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l, N>, i64)>,
    ) -> fmt::Result {
        let mut encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in samples {
            ConstGauge::new(value).encode(labelled(&mut encoder, &labels)?)?;
        }
        Ok(())
    }

    /// Distributions, one for each set of labels: the sum, and how many fall into each bucket (upper bound, count).
    pub(super) fn histograms<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l, N>, f64, Vec<(f64, u64)>)>,
    ) -> fmt::Result {
        let mut encoder = self
            .0
            .encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, sum, buckets) in samples {
            let count = buckets.iter().map(|(_, count)| count).sum();
            labelled(&mut encoder, &labels)?
                .encode_histogram::<[(&str, &str); 0]>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}

fn labelled<'s, S: EncodeLabelSet>(
    encoder: &'s mut MetricEncoder<'_>,
    labels: &'s S,
) -> Result<MetricEncoder<'s>, fmt::Error> {
    encoder.encode_family(labels)
}
