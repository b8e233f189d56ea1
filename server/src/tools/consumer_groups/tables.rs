//! The tables of `consumer-groups`, column by column as Kafka's tool pads them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::client::{TopicPartition, by_topic};
use super::super::lists::joined;
use super::groups::{Description, Listed, Member};
use super::offsets::Row;

/// What stands for no value.
pub(super) const MISSING: &str = "-";

/// A line of cells padded to their widths; a width of 0 pads nothing.
fn line(cells: &[(&str, usize)]) -> String {
    let cells: Vec<_> = cells
        .iter()
        .map(|(text, width)| format!("{text:<width$}"))
        .collect();
    cells.join(" ")
}

fn widest<'a>(least: usize, texts: impl Iterator<Item = &'a str>) -> usize {
    texts
        .map(|text| text.chars().count())
        .fold(least, usize::max)
}

fn or_missing<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| MISSING.to_owned(), |value| value.to_string())
}

pub(super) fn listing(groups: &[Listed], with_type: bool, with_state: bool) -> String {
    let width = widest(15, groups.iter().map(|group| group.id.as_str())) + 10;
    let mut text = String::new();
    let mut add = |id: &str, type_: &str, state: &str| {
        let mut cells = vec![(id, width)];
        if with_type {
            cells.push((type_, 20));
        }
        if with_state {
            cells.push((state, 20));
        }
        let _ = writeln!(text, "{}", line(&cells));
    };
    add("GROUP", "TYPE", "STATE");
    for group in groups {
        add(&group.id, &group.type_, &group.state);
    }
    text
}

pub(super) fn offsets(rows: &[Row], is_verbose: bool) -> String {
    let group = widest(15, rows.iter().map(|row| row.group.as_str()));
    let topic = widest(15, rows.iter().map(|row| row.partition.topic.as_str()));
    let consumer = widest(15, rows.iter().map(|row| row.consumer_id.as_str()));
    let host = widest(15, rows.iter().map(|row| row.host.as_str()));
    let mut text = String::new();
    let mut add = |cells: [&str; 10]| {
        let widths = [group, topic, 10, 15, 15, 15, 15, consumer, host, 0];
        let cells: Vec<_> = cells
            .into_iter()
            .zip(widths)
            .enumerate()
            .filter(|(column, _)| is_verbose || *column != 3)
            .map(|(_, cell)| cell)
            .collect();
        let _ = write!(text, "\n{}", line(&cells));
    };
    add([
        "GROUP",
        "TOPIC",
        "PARTITION",
        "LEADER-EPOCH",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ]);
    for row in rows {
        add([
            &row.group,
            &row.partition.topic,
            &row.partition.partition.to_string(),
            &or_missing(row.leader_epoch),
            &or_missing(row.offset),
            &or_missing(row.log_end_offset),
            &or_missing(row.lag()),
            &row.consumer_id,
            &row.host,
            &row.client_id,
        ]);
    }
    text.push('\n');
    text
}

/// `topic:0,1;other:0`.
fn assignment(partitions: &[TopicPartition]) -> String {
    if partitions.is_empty() {
        return MISSING.to_owned();
    }
    let mut texts: Vec<_> = by_topic(partitions)
        .into_iter()
        .map(|(topic, mut indexes)| {
            indexes.sort_unstable();
            format!("{topic}:{}", joined(&indexes))
        })
        .collect();
    texts.sort();
    texts.join(";")
}

struct MemberWidths {
    group: usize,
    consumer: usize,
    instance: Option<usize>,
    host: usize,
    client: usize,
    current: usize,
    target: usize,
    shows_upgraded: bool,
}

impl MemberWidths {
    fn of(group: &Description) -> Self {
        let members = || group.members.iter();
        let instances = || members().filter_map(|member| member.instance_id.as_deref());
        let current: Vec<_> = members()
            .map(|member| assignment(&member.assignment))
            .collect();
        let target: Vec<_> = members().map(target).collect();
        let has = |upgraded| members().any(|member| member.is_upgraded == Some(upgraded));
        MemberWidths {
            group: widest(15, std::iter::once(group.id.as_str())),
            consumer: widest(15, members().map(|member| member.id.as_str())),
            instance: instances()
                .any(|id| !id.is_empty())
                .then(|| widest(17, instances())),
            host: widest(15, members().map(|member| member.host.as_str())),
            client: widest(15, members().map(|member| member.client_id.as_str())),
            current: widest(20, current.iter().map(String::as_str)),
            target: widest(20, target.iter().map(String::as_str)),
            shows_upgraded: has(true) && has(false),
        }
    }

    /// Those of a table without rows.
    fn least() -> Self {
        MemberWidths {
            group: 15,
            consumer: 15,
            instance: None,
            host: 15,
            client: 15,
            current: 20,
            target: 20,
            shows_upgraded: false,
        }
    }

    fn first(&self, cells: [&str; 6]) -> String {
        let [group, consumer, instance, host, client, partitions] = cells;
        let mut row = vec![(group, self.group), (consumer, self.consumer)];
        row.extend(self.instance.map(|width| (instance, width)));
        row.extend([(host, self.host), (client, self.client), (partitions, 15)]);
        format!("{} ", line(&row))
    }

    fn second(&self, cells: [&str; 5]) -> String {
        let [epoch, current, target_epoch, target, upgraded] = cells;
        let mut row = vec![
            (epoch, 15),
            (current, self.current),
            (target_epoch, 15),
            (target, self.target),
        ];
        if self.shows_upgraded {
            row.push((upgraded, 0));
        }
        line(&row)
    }
}

fn target(member: &Member) -> String {
    assignment(member.target_assignment.as_deref().unwrap_or_default())
}

/// The table of members; its heading stands there for a group without members, too.
pub(super) fn members(group: &Description, is_printed: bool, is_verbose: bool) -> String {
    let widths = match is_printed {
        true => MemberWidths::of(group),
        false => MemberWidths::least(),
    };
    let heading = [
        "GROUP",
        "CONSUMER-ID",
        "GROUP-INSTANCE-ID",
        "HOST",
        "CLIENT-ID",
        "#PARTITIONS",
    ];
    let mut text = format!("\n{}", widths.first(heading));
    if is_verbose {
        text.push_str(&widths.second([
            "CURRENT-EPOCH",
            "CURRENT-ASSIGNMENT",
            "TARGET-EPOCH",
            "TARGET-ASSIGNMENT",
            "UPGRADED",
        ]));
    }
    text.push('\n');
    for member in &group.members {
        text.push_str(&widths.first([
            &group.id,
            &member.id,
            member.instance_id.as_deref().unwrap_or_default(),
            &member.host,
            &member.client_id,
            &member.assignment.len().to_string(),
        ]));
        if is_verbose {
            text.push_str(&widths.second([
                &or_missing(member.epoch),
                &assignment(&member.assignment),
                &or_missing(group.assignment_epoch),
                &target(member),
                &or_missing(member.is_upgraded),
            ]));
        }
        text.push('\n');
    }
    text
}

pub(super) fn state(group: &Description, is_verbose: bool) -> String {
    let node = &group.coordinator;
    let coordinator = format!("{}:{}  ({})", node.host, node.port, node.id);
    let coordinator_width = widest(25, std::iter::once(coordinator.as_str()));
    let group_width = widest(15, std::iter::once(group.id.as_str()));
    let assignor = match group.assignor.as_str() {
        "" => MISSING,
        assignor => assignor,
    };
    let members = group.members.len().to_string();
    let (group_epoch, assignment_epoch) = (
        or_missing(group.group_epoch),
        or_missing(group.assignment_epoch),
    );
    let rows = [
        [
            "GROUP",
            "COORDINATOR (ID)",
            "ASSIGNMENT-STRATEGY",
            "STATE",
            "GROUP-EPOCH",
            "TARGET-ASSIGNMENT-EPOCH",
            "#MEMBERS",
        ],
        [
            &group.id,
            &coordinator,
            assignor,
            &group.state,
            &group_epoch,
            &assignment_epoch,
            &members,
        ],
    ];
    let widths = [group_width, coordinator_width, 20, 20, 15, 25, 0];
    let mut text = String::new();
    for row in rows {
        let cells: Vec<_> = row
            .into_iter()
            .zip(widths)
            .enumerate()
            .filter(|(column, _)| is_verbose || !(4..6).contains(column))
            .map(|(_, cell)| cell)
            .collect();
        let _ = write!(text, "\n{}", line(&cells));
    }
    text.push('\n');
    text
}

/// New offsets, as `--reset-offsets` prints them.
pub(super) fn new_offsets(plans: &BTreeMap<String, BTreeMap<TopicPartition, i64>>) -> String {
    let group_width = widest(15, plans.keys().map(String::as_str));
    let topics = plans.values().flat_map(BTreeMap::keys);
    let topic_width = widest(15, topics.map(|partition| partition.topic.as_str()));
    let mut text = String::new();
    let mut add = |group: &str, topic: &str, partition: &str, offset: &str| {
        let cells = [
            (group, group_width),
            (topic, topic_width),
            (partition, 10),
            (offset, 0),
        ];
        let _ = write!(text, "\n{}", line(&cells));
    };
    if !plans.is_empty() {
        add("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET");
    }
    for (group, offsets) in plans {
        for (partition, offset) in offsets {
            let index = partition.partition.to_string();
            add(group, &partition.topic, &index, &offset.to_string());
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_sorted() {
        let partitions = [("b", 1), ("a", 2), ("b", 0)].map(|(t, p)| TopicPartition::new(t, p));
        assert_eq!(assignment(&partitions), "a:2;b:0,1");
        assert_eq!(assignment(&[]), "-");
    }

    #[test]
    fn a_list_has_the_columns_that_were_asked_for() {
        let group = Listed {
            id: "g1".to_owned(),
            type_: "Classic".to_owned(),
            state: "Empty".to_owned(),
        };
        let text = listing(&[group], false, true);
        assert_eq!(
            text,
            "GROUP                     STATE               \ng1                        Empty               \n"
        );
    }

    #[test]
    fn a_row_without_an_offset_has_dashes() {
        let row = Row {
            group: "g".to_owned(),
            partition: TopicPartition::new("t", 0),
            offset: None,
            leader_epoch: None,
            log_end_offset: Some(7),
            consumer_id: "c".to_owned(),
            host: "/h".to_owned(),
            client_id: "id".to_owned(),
        };
        let text = offsets(&[row], false);
        let rows: Vec<_> = text.lines().collect();
        assert_eq!(rows[0], "");
        assert_eq!(
            rows[2].split_whitespace().collect::<Vec<_>>(),
            ["g", "t", "0", "-", "7", "-", "c", "/h", "id"]
        );
    }
}
