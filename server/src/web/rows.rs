//! What a page shows, as rows by key, and what changed from one look to the next: a watcher is sent all rows once and
//! then only those that differ.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The rows of a page: `broker/1`, `partition/orders/0` and so on.
pub type Rows = BTreeMap<String, Value>;

/// All rows, as the first event of a stream.
pub fn all(rows: &Rows) -> Value {
    json!({"reset": true, "set": rows, "remove": []})
}

/// The rows that are new or other than before, and the keys of those that are gone; `None` when nothing changed.
pub fn changes(before: &Rows, now: &Rows) -> Option<Value> {
    let set: BTreeMap<&String, &Value> = now
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value))
        .collect();
    let remove: Vec<&String> = before
        .keys()
        .filter(|key| !now.contains_key(*key))
        .collect();
    (!set.is_empty() || !remove.is_empty()).then(|| json!({"set": set, "remove": remove}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows<const N: usize>(rows: [(&str, i32); N]) -> Rows {
        rows.map(|(key, value)| (key.to_owned(), json!(value)))
            .into()
    }

    #[test]
    fn only_what_differs_is_told() {
        let before = rows([("a", 1), ("b", 2), ("c", 3)]);
        let now = rows([("a", 1), ("b", 5), ("d", 4)]);
        assert_eq!(
            changes(&before, &now),
            Some(json!({"set": {"b": 5, "d": 4}, "remove": ["c"]}))
        );
        assert_eq!(changes(&now, &now), None);
        assert_eq!(
            changes(&before, &rows([("a", 1), ("b", 2)])),
            Some(json!({"set": {}, "remove": ["c"]}))
        );
    }

    #[test]
    fn the_first_event_replaces_everything() {
        let first = all(&rows([("a", 1)]));
        assert_eq!(first, json!({"reset": true, "set": {"a": 1}, "remove": []}));
    }
}
