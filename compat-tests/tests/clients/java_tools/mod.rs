//! Apache Kafka's own command-line tools: what they print, on both brokers.

mod configs;
mod console;
mod consumer_groups;
mod dump_log;
mod load;
mod queries;
mod topics;

use compat_tests::broker::Broker;

/// Replaces what differs from run to run: what follows each `marker` up to the next character that ends a word.
fn blank(text: &str, markers: &[&str]) -> String {
    let mut result = text.to_owned();
    for marker in markers {
        let mut parts = result.split(marker);
        let mut blanked = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part
                .find(['\t', '\n', ' ', ',', '}', ';'])
                .unwrap_or(part.len());
            blanked.push_str(marker);
            blanked.push('*');
            blanked.push_str(&part[end..]);
        }
        result = blanked;
    }
    result
}

/// A tool's table as rows of words.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|row| !row.is_empty())
        .collect()
}

/// The first line of what a failing tool printed to either output that names `wanted`.
#[track_caller]
fn refused(broker: &Broker, tool: &str, args: &[&str], wanted: &str) {
    let run = crate::support::try_tool(broker, tool, args, b"");
    assert_ne!(
        run.status,
        0,
        "{tool} {args:?} on {} was not refused: {}",
        broker.kind(),
        run.out
    );
    let all = format!("{}{}", run.out, run.err);
    assert!(
        all.contains(wanted),
        "{tool} {args:?} on {} said:\n{all}\nand not: {wanted}",
        broker.kind()
    );
}
