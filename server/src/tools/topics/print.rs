//! A topic as text, line for line as Kafka's tool prints it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use highwater_storage::types::TopicId;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;

use super::{Reassignment, TopicsArguments};
use crate::tools::client::{DEFAULT_SOURCE, PartitionInfo, TopicDescription, TopicPartition};
use crate::tools::java_order::{DEFAULT_CAPACITY, hash_map_order};
use crate::tools::lists::joined;

/// What is shown of topics and partitions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Filter {
    under_replicated: bool,
    unavailable: bool,
    under_min_isr: bool,
    at_min_isr: bool,
    overridden: bool,
}

impl Filter {
    /// What the options ask for.
    pub(super) fn of(arguments: &TopicsArguments) -> Self {
        Filter {
            under_replicated: arguments.under_replicated_partitions,
            unavailable: arguments.unavailable_partitions,
            under_min_isr: arguments.under_min_isr_partitions,
            at_min_isr: arguments.at_min_isr_partitions,
            overridden: arguments.topics_with_overrides,
        }
    }

    /// Whether topics get a line: not where single partitions are looked for.
    fn shows_topics(self) -> bool {
        !(self.under_replicated || self.unavailable || self.under_min_isr || self.at_min_isr)
    }
}

/// A setting of a topic.
pub(super) struct Setting {
    name: String,
    value: String,
    is_default: bool,
}

/// The settings in the order in which Kafka's client keeps them.
pub(super) fn settings(entries: Vec<DescribeConfigsResourceResult>) -> Vec<Setting> {
    let settings = entries.into_iter().map(|entry| Setting {
        name: entry.name.to_string(),
        value: entry
            .value
            .map_or("null".to_owned(), |value| value.to_string()),
        is_default: entry.config_source == DEFAULT_SOURCE,
    });
    let mut settings: Vec<_> = settings.collect();
    hash_map_order(&mut settings, DEFAULT_CAPACITY, |setting| &setting.name);
    settings
}

/// A topic and all that its lines need.
pub(super) struct TopicView<'a> {
    pub(super) topic: &'a TopicDescription,
    pub(super) configs: Vec<Setting>,
    pub(super) reassignments: &'a BTreeMap<TopicPartition, Reassignment>,
    pub(super) live_brokers: &'a BTreeSet<i32>,
}

impl TopicView<'_> {
    /// Prints what the filter leaves.
    pub(super) fn print(&self, filter: Filter, out: &mut dyn Write) -> io::Result<()> {
        let has_overrides = self.configs.iter().any(|setting| !setting.is_default);
        if filter.shows_topics() && (!filter.overridden || has_overrides) {
            self.print_topic(out)?;
        }
        if filter.overridden {
            return Ok(());
        }
        let partitions = self.topic.partitions.iter();
        for partition in partitions.filter(|partition| self.is_shown(partition, filter)) {
            self.print_partition(partition, out)?;
        }
        Ok(())
    }

    fn print_topic(&self, out: &mut dyn Write) -> io::Result<()> {
        let overrides = self.configs.iter().filter(|setting| !setting.is_default);
        let overrides: Vec<_> = overrides
            .map(|setting| format!("{}={}", setting.name, setting.value))
            .collect();
        write!(out, "Topic: {}", self.topic.name)?;
        if !self.topic.id.is_nil() {
            write!(out, "\tTopicId: {}", TopicId(self.topic.id))?;
        }
        let partitions = &self.topic.partitions;
        let replication_factor = partitions.first().map_or(0, |p| self.replication_factor(p));
        writeln!(
            out,
            "\tPartitionCount: {}\tReplicationFactor: {replication_factor}\tConfigs: {}",
            partitions.len(),
            overrides.join(",")
        )
    }

    fn print_partition(&self, partition: &PartitionInfo, out: &mut dyn Write) -> io::Result<()> {
        let leader = partition
            .leader
            .map_or("none".to_owned(), |id| id.to_string());
        write!(
            out,
            "\tTopic: {}\tPartition: {}\tLeader: {leader}\tReplicas: {}\tIsr: {}",
            self.topic.name,
            partition.partition,
            joined(&partition.replicas),
            joined(&partition.isr)
        )?;
        if let Some(reassignment) = self.reassignment(partition) {
            write!(
                out,
                "\tAdding Replicas: {}\tRemoving Replicas: {}",
                joined(&reassignment.adding),
                joined(&reassignment.removing)
            )?;
        }
        let or_not_told = |ids: &Option<Vec<i32>>| ids.as_deref().map_or("N/A".to_owned(), joined);
        writeln!(
            out,
            "\tElr: {}\tLastKnownElr: {}",
            or_not_told(&partition.elr),
            or_not_told(&partition.last_known_elr)
        )
    }

    fn reassignment(&self, partition: &PartitionInfo) -> Option<&Reassignment> {
        let key = TopicPartition::new(&self.topic.name, partition.partition);
        self.reassignments.get(&key)
    }

    /// Replicas that the partition has when it is not being moved.
    fn replication_factor(&self, partition: &PartitionInfo) -> usize {
        let moving = self.reassignment(partition).filter(|reassignment| {
            let mut changing = reassignment.adding.iter().chain(&reassignment.removing);
            changing.any(|id| partition.replicas.contains(id))
        });
        match moving {
            Some(moving) => moving.replicas.len().saturating_sub(moving.adding.len()),
            None => partition.replicas.len(),
        }
    }

    fn is_shown(&self, partition: &PartitionInfo, filter: Filter) -> bool {
        let in_sync = partition.isr.len();
        let min_isr = self.min_isr();
        filter.shows_topics()
            || filter.under_replicated && self.replication_factor(partition) > in_sync
            || filter.unavailable
                && partition
                    .leader
                    .is_none_or(|id| !self.live_brokers.contains(&id))
            || filter.under_min_isr && (partition.leader.is_none() || in_sync < min_isr)
            || filter.at_min_isr && in_sync == min_isr
    }

    fn min_isr(&self) -> usize {
        let mut settings = self.configs.iter();
        let setting = settings.find(|setting| setting.name == "min.insync.replicas");
        setting
            .and_then(|setting| setting.value.parse().ok())
            .unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn partition(index: i32, leader: Option<i32>, isr: &[i32]) -> PartitionInfo {
        PartitionInfo {
            partition: index,
            leader,
            replicas: vec![1, 2, 3],
            isr: isr.to_vec(),
            elr: Some(Vec::new()),
            last_known_elr: None,
        }
    }

    fn printed(filter: Filter, reassignments: &BTreeMap<TopicPartition, Reassignment>) -> String {
        let topic = TopicDescription {
            name: "t".to_owned(),
            id: Uuid::nil(),
            partitions: vec![
                partition(0, Some(1), &[1, 2, 3]),
                partition(1, Some(2), &[2, 1]),
                partition(2, None, &[3]),
                partition(3, Some(9), &[9, 1, 2]),
            ],
        };
        let setting = |name: &str, value: &str, is_default| Setting {
            name: name.to_owned(),
            value: value.to_owned(),
            is_default,
        };
        let view = TopicView {
            topic: &topic,
            configs: vec![
                setting("min.insync.replicas", "2", false),
                setting("a", "b", true),
            ],
            reassignments,
            live_brokers: &BTreeSet::from([1, 2, 3]),
        };
        let mut out = Vec::new();
        view.print(filter, &mut out).expect("written");
        String::from_utf8(out).expect("text")
    }

    fn partitions(filter: Filter) -> Vec<String> {
        let text = printed(filter, &BTreeMap::new());
        let lines = text
            .lines()
            .map(|line| line.split('\t').nth(2).unwrap_or(line).to_owned());
        lines.collect()
    }

    #[test]
    fn a_topic_and_its_partitions_are_lines() {
        let text = printed(Filter::default(), &BTreeMap::new());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "Topic: t\tPartitionCount: 4\tReplicationFactor: 3\tConfigs: min.insync.replicas=2"
        );
        assert_eq!(
            lines[3],
            "\tTopic: t\tPartition: 2\tLeader: none\tReplicas: 1,2,3\tIsr: 3\tElr: \tLastKnownElr: N/A"
        );
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn filters_show_only_the_partitions_that_they_are_for() {
        let none = Filter::default();
        let under_replicated = Filter {
            under_replicated: true,
            ..none
        };
        assert_eq!(
            partitions(under_replicated),
            ["Partition: 1", "Partition: 2"]
        );
        let unavailable = Filter {
            unavailable: true,
            ..none
        };
        assert_eq!(partitions(unavailable), ["Partition: 2", "Partition: 3"]);
        let under_min_isr = Filter {
            under_min_isr: true,
            ..none
        };
        assert_eq!(partitions(under_min_isr), ["Partition: 2"]);
        let at_min_isr = Filter {
            at_min_isr: true,
            ..none
        };
        assert_eq!(partitions(at_min_isr), ["Partition: 1"]);
        let overridden = Filter {
            overridden: true,
            ..none
        };
        assert_eq!(printed(overridden, &BTreeMap::new()).lines().count(), 1);
    }

    #[test]
    fn replicas_that_come_do_not_count() {
        let reassignment = Reassignment {
            replicas: vec![1, 2, 3],
            adding: vec![3],
            removing: vec![1],
        };
        let text = printed(
            Filter::default(),
            &BTreeMap::from([(TopicPartition::new("t", 0), reassignment)]),
        );
        assert!(text.contains("\tReplicationFactor: 2\t"), "{text}");
        assert!(
            text.contains("\tAdding Replicas: 3\tRemoving Replicas: 1\tElr: "),
            "{text}"
        );
    }
}
