//! The documentation of all keys, as `highwater config-docs` prints it.

use std::fmt::Write as _;

use super::{Allowed, ConfigKey, ConfigType, Support, keys};

/// The documentation in Markdown: one table for each group, and lists of what does not act.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Configuration keys\n\n\
         Keys, types and defaults are those of Apache Kafka 4.4; a default that differs is marked with the original.\n\
         A value comes from `--override key=value`, else from the environment (`KAFKA_NODE_ID` is `node.id`: the prefix\n\
         goes, `_` is `.`, `__` is `_`, `___` is `-`), else from the properties file, else it is the default. Keys that\n\
         are cluster-wide or per-broker can also be changed at run time, with `kafka-configs`; that wins over all others.\n",
    );
    for group in keys::GROUPS {
        let acting: Vec<&ConfigKey> = group
            .keys
            .iter()
            .filter(|key| key.support == Support::Active && !key.internal)
            .collect();
        if acting.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "\n## {}\n\n| key | type | default | allowed | changes | meaning |\n|---|---|---|---|---|---|\n",
            group.title
        );
        for key in acting {
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {} | {} | {} |",
                key.name,
                key.config_type.name(),
                default(key),
                allowed(key),
                key.update_mode.name(),
                cell(key.doc)
            );
        }
    }
    text.push_str(
        "\n## Without effect here\n\nThese tune parts of Apache Kafka that this broker does not have. Any value is accepted.\n\n\
         | key | why |\n|---|---|\n",
    );
    for key in keys::all() {
        if let Support::NoCounterpart(reason) = key.support {
            let _ = writeln!(text, "| `{}` | {} |", key.name, cell(reason));
        }
    }
    list(
        &mut text,
        "Not supported yet",
        "What these govern does not exist yet. Another value than the default is warned of at start and has no effect.",
        Support::NotYet,
    );
    list(
        &mut text,
        "Refused",
        "What these govern does not exist yet, and to overlook it would be dangerous: another value than the default stops the start.",
        Support::Refused,
    );
    text
}

fn list(text: &mut String, title: &str, introduction: &str, support: Support) {
    let _ = write!(
        text,
        "\n## {title}\n\n{introduction}\n\n| key | default | meaning |\n|---|---|---|\n"
    );
    for key in keys::all().filter(|key| key.support == support && !key.internal) {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} |",
            key.name,
            default(key),
            cell(key.doc)
        );
    }
}

fn default(key: &ConfigKey) -> String {
    let shown = |default: Option<&str>| match default {
        None => "none".to_owned(),
        Some("") => "empty".to_owned(),
        Some(text) => format!("`{text}`"),
    };
    if key.default == key.kafka_default {
        shown(key.default)
    } else {
        format!(
            "{} (Kafka: {})",
            shown(key.default),
            shown(key.kafka_default)
        )
    }
}

fn allowed(key: &ConfigKey) -> String {
    match key.allowed {
        Allowed::Any if key.config_type == ConfigType::Boolean => "true, false".to_owned(),
        Allowed::Any => "any".to_owned(),
        Allowed::AtLeast(minimum) => format!("{minimum} or more"),
        Allowed::Between(minimum, maximum) => format!("{minimum} to {maximum}"),
        Allowed::BetweenOrMinusOne(minimum, maximum) => format!("{minimum} to {maximum}, -1"),
        Allowed::BetweenReal(minimum, maximum) => format!("{minimum} to {maximum}"),
        Allowed::OneOf(texts) | Allowed::OneOfIgnoringCase(texts) => texts.join(", "),
        Allowed::ListOf(texts) => format!("some of {}", texts.join(", ")),
        Allowed::NotEmpty => "not empty".to_owned(),
    }
}

/// A text in a table: no bar may end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_is_not_internal_is_documented_once() {
        let text = markdown();
        for key in keys::all() {
            let rows = text.matches(&format!("| `{}` |", key.name)).count();
            let expected =
                usize::from(!key.internal || matches!(key.support, Support::NoCounterpart(_)));
            assert_eq!(rows, expected, "{}", key.name);
        }
        assert!(text.contains(
            "| `listeners` | list | `PLAINTEXT://127.0.0.1:9092` (Kafka: `PLAINTEXT://:9092`) |"
        ));
    }
}
