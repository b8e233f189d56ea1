//! Environment variables as configuration, the way Apache Kafka's container image maps them.

/// Variables with the prefix that are no configuration keys: they belong to Kafka's scripts and its image.
const NOT_KEYS: [&str; 15] = [
    "KAFKA_CLASSPATH",
    "KAFKA_DEBUG",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_HEAP_OPTS",
    "KAFKA_HOME",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_PORT",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_OPTS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_VERSION",
];

/// What the names of variables that give keys begin with.
pub const VARIABLE_PREFIX: &str = "KAFKA_";

/// The configuration entries in these environment variables, sorted by key.
///
/// `KAFKA_NODE_ID` gives `node.id`: the prefix goes, the rest becomes lower case, `_` becomes `.`, `__` becomes `_`
/// and `___` becomes `-`. Variables that Kafka's own scripts use (`KAFKA_HEAP_OPTS` and the like) are left out.
pub fn environment_properties(
    variables: impl IntoIterator<Item = (String, String)>,
) -> Vec<(String, String)> {
    let mut entries: Vec<(String, String)> = variables
        .into_iter()
        .filter(|(name, _)| !NOT_KEYS.contains(&name.as_str()))
        .filter_map(|(name, value)| Some((key_of(name.strip_prefix(VARIABLE_PREFIX)?), value)))
        .filter(|(key, _)| !key.is_empty())
        .collect();
    entries.sort();
    entries
}

fn key_of(name: &str) -> String {
    name.to_lowercase()
        .replace('_', ".")
        .replace("...", "-")
        .replace("..", "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_become_keys_as_in_kafkas_image() {
        let variables = [
            ("KAFKA_NODE_ID", "3"),
            ("KAFKA_LISTENER_NAME_MY__LISTENER_MAX_CONNECTIONS", "5"),
            ("KAFKA_A___B", "x"),
            ("KAFKA_HEAP_OPTS", "-Xmx1g"),
            ("KAFKA_", "nothing"),
            ("NOT_KAFKA_NODE_ID", "4"),
            ("PATH", "/bin"),
        ];
        let entries = environment_properties(
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let expected = [
            ("a-b", "x"),
            ("listener.name.my_listener.max.connections", "5"),
            ("node.id", "3"),
        ];
        assert_eq!(
            entries,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
    }
}
