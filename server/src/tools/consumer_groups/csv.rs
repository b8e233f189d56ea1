//! New offsets as CSV: `topic,partition,offset`, with the group in front where there are several.

use std::collections::BTreeMap;

use super::super::client::TopicPartition;
use super::reset::Offsets;

pub(super) fn write(plans: &BTreeMap<String, Offsets>, is_single_group: bool) -> String {
    let mut text = String::new();
    for (group, offsets) in plans {
        for (partition, offset) in offsets {
            if !is_single_group {
                text.push_str(&format!("{},", quoted(group)));
            }
            let (topic, index) = (quoted(&partition.topic), partition.partition);
            text.push_str(&format!("{topic},{index},{offset}\n"));
        }
    }
    text
}

/// A field, in quotes where it would be read otherwise.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// The offsets of each group. Lines of three fields are those of the one group that was named.
///
/// The text of an error is a sentence.
pub(super) fn read(text: &str, single: Option<&str>) -> Result<BTreeMap<String, Offsets>, String> {
    let mut plans: BTreeMap<String, Offsets> = BTreeMap::new();
    let lines = text.lines().enumerate();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = || format!("line {} of the reset plan is wrong: {line}", number + 1);
        let fields = fields(line);
        let (group, topic, partition, offset) = match (&fields[..], single) {
            ([topic, partition, offset], Some(group)) => (group, topic, partition, offset),
            ([group, topic, partition, offset], _) => (group.as_str(), topic, partition, offset),
            _ => return Err(wrong()),
        };
        let partition = partition.trim().parse().map_err(|_| wrong())?;
        let offset = offset.trim().parse().map_err(|_| wrong())?;
        plans
            .entry(group.to_owned())
            .or_default()
            .insert(TopicPartition::new(topic.as_str(), partition), offset);
    }
    Ok(plans)
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                push(&mut fields, '"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            other => push(&mut fields, other),
        }
    }
    fields
}

fn push(fields: &mut [String], character: char) {
    if let Some(field) = fields.last_mut() {
        field.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let offsets = Offsets::from([
            (TopicPartition::new("t", 0), 5),
            (TopicPartition::new("t", 1), 0),
        ]);
        let plans = BTreeMap::from([("a,b\"c".to_owned(), offsets.clone())]);
        assert_eq!(write(&plans, true), "t,0,5\nt,1,0\n");
        assert_eq!(read(&write(&plans, false), None), Ok(plans.clone()));
        assert_eq!(read("t,0,5\nt,1,0\n", Some("a,b\"c")), Ok(plans));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for wrong in ["t,0", "t,x,1", "g,t,0,y"] {
            let error = read(wrong, Some("g")).expect_err(wrong);
            assert!(error.contains("line 1"), "{error}");
        }
        assert!(read("t,0,1", None).is_err());
    }
}
