//! What suits a node in a container, where nothing else is said.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::ConfigError;

/// Where a properties file may be mounted: the place of Apache Kafka's image, and ours.
const FILES: [&str; 2] = [
    "/mnt/shared/config/server.properties",
    "/etc/highwater/server.properties",
];
/// The volume of the image.
const DATA: &str = "/var/lib/highwater";
/// Every interface: which of them is reached from outside is decided where the container is started.
const HTTP: &str = "0.0.0.0:9644";

/// The properties file that is mounted below `root`, if there is one.
///
/// # Errors
/// [`ConfigError::TwoFiles`]: which of them counts is not to be guessed; [`ConfigError::UnreadableFile`] when it cannot
/// be told whether one is there: a node that went on would run without what is mounted for it.
pub fn container_file(root: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let [kafkas, ours] = FILES.map(|file| root.join(file.trim_start_matches('/')));
    match (is_there(&kafkas)?, is_there(&ours)?) {
        (true, true) => Err(ConfigError::TwoFiles {
            first: kafkas,
            second: ours,
        }),
        (true, false) => Ok(Some(kafkas)),
        (false, true) => Ok(Some(ours)),
        (false, false) => Ok(None),
    }
}

/// Whether something is mounted there; a link that leads nowhere counts, so that reading it says so.
fn is_there(file: &Path) -> Result<bool, ConfigError> {
    match file.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err(ConfigError::UnreadableFile {
            path: file.to_owned(),
            reason: error.to_string(),
        }),
    }
}

/// The entries that a container needs besides the given ones: data on the image's volume, and ports that can be reached
/// from outside of it. Without any word on listeners clients reach the broker as `localhost:9092`, as with Apache
/// Kafka's image; a given key is left alone.
pub fn container_defaults(given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_given = |keys: &[&str]| keys.iter().any(|key| given.contains_key(*key));
    let mut defaults = BTreeMap::new();
    let mut add = |key: &str, value: &str| defaults.insert(key.to_owned(), value.to_owned());
    if !is_given(&["log.dirs", "log.dir"]) {
        add("log.dirs", DATA);
    }
    if !is_given(&["http.listeners"]) {
        add("http.listeners", HTTP);
    }
    // A node in a cluster must say how others reach it: no default would be right.
    if !is_given(&["listeners", "process.roles"]) {
        add("listeners", "PLAINTEXT://:9092");
        if !is_given(&["advertised.listeners"]) {
            add("advertised.listeners", "PLAINTEXT://localhost:9092");
        }
    }
    defaults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(given: &[(&str, &str)]) -> Vec<(String, String)> {
        let given = given.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        container_defaults(&given.collect()).into_iter().collect()
    }

    fn entries(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect()
    }

    #[test]
    fn a_container_without_settings_is_one_broker_that_its_host_reaches() {
        assert_eq!(
            defaults(&[]),
            entries(&[
                ("advertised.listeners", "PLAINTEXT://localhost:9092"),
                ("http.listeners", HTTP),
                ("listeners", "PLAINTEXT://:9092"),
                ("log.dirs", DATA),
            ])
        );
    }

    #[test]
    fn what_is_given_is_left_alone() {
        assert_eq!(
            defaults(&[
                ("listeners", "A://:1"),
                ("log.dir", "/d"),
                ("http.listeners", "")
            ]),
            []
        );
        assert_eq!(
            defaults(&[("advertised.listeners", "PLAINTEXT://h:1")]),
            entries(&[
                ("http.listeners", HTTP),
                ("listeners", "PLAINTEXT://:9092"),
                ("log.dirs", DATA)
            ])
        );
        assert_eq!(
            defaults(&[("process.roles", "controller")]),
            entries(&[("http.listeners", HTTP), ("log.dirs", DATA)])
        );
    }

    #[test]
    fn a_file_that_may_not_be_looked_at_is_not_taken_for_none() {
        let root = tempfile::tempdir().expect("a directory");
        // Too long a name fails for root too, whom permissions do not stop.
        let unusable = root.path().join("n".repeat(300));
        let error = container_file(&unusable)
            .expect_err("not known")
            .to_string();
        assert!(
            error.starts_with("cannot read the configuration file "),
            "{error}"
        );
        let link = root.path().join("etc/highwater/server.properties");
        std::fs::create_dir_all(link.parent().expect("a folder")).expect("made");
        std::os::unix::fs::symlink("nowhere", &link).expect("linked");
        assert_eq!(container_file(root.path()), Ok(Some(link)));
    }

    #[test]
    fn a_mounted_file_is_found_and_two_are_refused() {
        let root = tempfile::tempdir().expect("a directory");
        assert_eq!(container_file(root.path()), Ok(None));
        for (index, file) in FILES.iter().enumerate() {
            let path = root.path().join(file.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(&path, "node.id=1\n").expect("written");
            let found = container_file(root.path());
            if index == 0 {
                assert_eq!(found, Ok(Some(path)));
            } else {
                let error = found.expect_err("two files").to_string();
                assert!(error.ends_with("are there: mount one of them"), "{error}");
            }
        }
    }
}
