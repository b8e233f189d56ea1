//! Medians over rounds and the table.

use std::collections::BTreeMap;
use std::fmt::Write;

use compat_tests::broker::BrokerKind;

/// One measured figure.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
}

/// Shorthand.
pub(crate) fn figure(name: &'static str, unit: &'static str, value: f64) -> Figure {
    Figure { name, unit, value }
}

#[derive(Default)]
struct Row {
    unit: &'static str,
    /// By round, so that a ratio is of two measurements made next to each other.
    highwater: BTreeMap<usize, f64>,
    kafka: BTreeMap<usize, f64>,
}

/// All figures of a run.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<((&'static str, &'static str), Row)>,
}

impl Report {
    /// Adds the figures of one round of one workload on one broker.
    pub(crate) fn add(
        &mut self,
        workload: &'static str,
        kind: BrokerKind,
        round: usize,
        figures: Vec<Figure>,
    ) {
        for figure in figures {
            let key = (workload, figure.name);
            let at = self
                .rows
                .iter()
                .position(|(k, _)| *k == key)
                .unwrap_or_else(|| {
                    self.rows.push((
                        key,
                        Row {
                            unit: figure.unit,
                            ..Row::default()
                        },
                    ));
                    self.rows.len() - 1
                });
            let row = &mut self.rows[at].1;
            match kind {
                BrokerKind::Highwater => row.highwater.insert(round, figure.value),
                BrokerKind::ApacheKafka => row.kafka.insert(round, figure.value),
            };
        }
    }

    /// The rows of one workload, or all, as text or as a Markdown table.
    pub(crate) fn table(&self, only: Option<&str>, markdown: bool) -> String {
        let mut out = String::new();
        let mut lines =
            vec![["work", "figure", "Highwater", "Apache Kafka", "ratio"].map(str::to_owned)];
        let mut last = "";
        for ((workload, name), row) in &self.rows {
            if only.is_some_and(|only| only != *workload) {
                continue;
            }
            let shown = if *workload == last { "" } else { workload };
            last = workload;
            let ratios = row.highwater.iter().filter_map(|(round, ours)| {
                row.kafka
                    .get(round)
                    .filter(|theirs| **theirs > 0.0)
                    .map(|theirs| ours / theirs)
            });
            lines.push([
                shown.to_owned(),
                format!("{name}, {}", row.unit),
                number(median(row.highwater.values().copied())),
                number(median(row.kafka.values().copied())),
                number(median(ratios)),
            ]);
        }
        if markdown {
            for (i, line) in lines.iter().enumerate() {
                let _ = writeln!(out, "| {} |", line.join(" | "));
                if i == 0 {
                    out.push_str("|---|---|---:|---:|---:|\n");
                }
            }
            return out;
        }
        let width = |column: usize| {
            lines
                .iter()
                .map(|line| line[column].len())
                .max()
                .unwrap_or(0)
        };
        let widths = [width(0), width(1), width(2), width(3), width(4)];
        for line in &lines {
            let _ = writeln!(
                out,
                "{:<w0$}  {:<w1$}  {:>w2$}  {:>w3$}  {:>w4$}",
                line[0],
                line[1],
                line[2],
                line[3],
                line[4],
                w0 = widths[0],
                w1 = widths[1],
                w2 = widths[2],
                w3 = widths[3],
                w4 = widths[4],
            );
        }
        out
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some((values[last / 2] + values[last.div_ceil(2)]) / 2.0)
}

fn number(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(v) if v.abs() >= 1000.0 => {
            let digits = format!("{v:.0}");
            let (head, tail) = digits.split_at(digits.len() % 3);
            let groups = tail.as_bytes().chunks(3).map(String::from_utf8_lossy);
            let all: Vec<String> = std::iter::once(head.to_owned())
                .filter(|head| !head.is_empty())
                .chain(groups.map(|g| g.into_owned()))
                .collect();
            all.join(",")
        }
        Some(v) if v.abs() >= 100.0 => format!("{v:.0}"),
        Some(v) if v.abs() >= 10.0 => format!("{v:.1}"),
        Some(v) => format!("{v:.2}"),
    }
}
