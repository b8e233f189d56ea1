//! What a container refuses: one sentence on stderr, exit code 1, nothing damaged.

use std::fs;

use crate::daemon::{Container, DEBIAN, Docker, docker};

/// Runs a container that must not start; gives the sentence that says why.
#[track_caller]
fn refused(docker: &Docker, arguments: &[&str]) -> String {
    let mut command = docker.docker(&["run", "--rm"]);
    let output = command.args(arguments).arg(DEBIAN).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    // Log lines begin with the year.
    let mut sentences = text.lines().filter(|line| !line.starts_with("20"));
    let sentence = sentences.next().unwrap_or_default();
    assert_eq!(sentences.next(), None, "{arguments:?}: {text}");
    let sentence = sentence.strip_prefix("highwater: ");
    sentence.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn wrong_variables_are_named() {
    let Some(docker) = docker() else { return };
    for (variables, expected) in [
        (
            &["KAFKA_NODE_ID=one"][..],
            "KAFKA_NODE_ID: invalid value 'one' for node.id: ",
        ),
        (
            &["KAFKA_PROCESS_ROLES=broker,kontroller"],
            "KAFKA_PROCESS_ROLES: invalid value 'broker,kontroller' for process.roles: ",
        ),
        (
            &["KAFKA_LISTENERS=9092"],
            "KAFKA_LISTENERS: invalid value '9092' for listeners: ",
        ),
        (
            &["KAFKA_CONTROLLER_QUORUM_VOTERS=1@"],
            "KAFKA_CONTROLLER_QUORUM_VOTERS: invalid value '1@' for controller.quorum.voters: ",
        ),
        (
            &["KAFKA_PROCESS_ROLES=broker", "KAFKA_NODE_ID=1"],
            "process.roles is only broker: controller.quorum.bootstrap.servers or controller.quorum.voters must say",
        ),
        (
            &["KAFKA_AUTHORIZER_CLASS_NAME=org.example.Authorizer"],
            "KAFKA_AUTHORIZER_CLASS_NAME: authorizer.class.name=org.example.Authorizer is not supported yet: ",
        ),
        (&["CLUSTER_ID=mine"], "'mine' is no cluster id: "),
    ] {
        let arguments: Vec<&str> = variables.iter().flat_map(|set| ["-e", *set]).collect();
        let sentence = refused(docker, &arguments);
        assert!(sentence.starts_with(expected), "{sentence}");
    }
}

#[test]
fn a_variable_with_a_misspelt_name_is_told() {
    let Some(docker) = docker() else { return };
    let arguments = ["-e", "KAFKA_NUM_PARTITION=3", DEBIAN];
    let container = Container::start(docker, "misspelt", &arguments);
    docker.until_healthy(container.name);
    let log = String::from_utf8(docker.logs(container.name).stderr).unwrap();
    let expected = "unknown configuration key num.partition, did you mean num.partitions?";
    assert!(log.contains(expected), "{log}");
}

#[test]
fn the_volume_of_another_node_is_left_alone() {
    let Some(docker) = docker() else { return };
    docker.run(&["volume", "create", "of-node-1"]).unwrap();
    let mount = "of-node-1:/var/lib/highwater";
    let first = Container::start(docker, "node-1", &["-v", mount, DEBIAN]);
    docker.until_healthy(first.name);
    let sentence = refused(docker, &["-v", mount]);
    assert!(sentence.contains("/var/lib/highwater"), "{sentence}");
    assert!(sentence.contains("in use"), "{sentence}");
    docker.run(&["stop", first.name]).unwrap();

    let sentence = refused(docker, &["-v", mount, "-e", "KAFKA_NODE_ID=2"]);
    let expected = "/var/lib/highwater belongs to node 1, but node.id is 2";
    assert_eq!(sentence, expected);
    let other = "CLUSTER_ID=Highwater-in-compose-w";
    let sentence = refused(docker, &["-v", mount, "-e", other]);
    let expected = "/var/lib/highwater belongs to cluster ";
    assert!(sentence.starts_with(expected), "{sentence}");

    docker.run(&["start", first.name]).unwrap();
    docker.until_healthy(first.name);
    drop(first);
    docker.run(&["volume", "rm", "of-node-1"]).unwrap();
}

#[test]
fn a_volume_that_cannot_be_written_is_refused() {
    let Some(docker) = docker() else { return };
    let folder = docker.folder_of_root("of-root");
    let mount = format!("{}:/var/lib/highwater", folder.display());
    let sentence = refused(docker, &["-v", &mount]);
    assert!(sentence.contains("/var/lib/highwater"), "{sentence}");
    assert!(sentence.contains("Permission denied"), "{sentence}");
    let sentence = refused(docker, &["-v", &format!("{mount}:ro")]);
    assert!(sentence.contains("/var/lib/highwater"), "{sentence}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_port_in_use_is_told() {
    let Some(docker) = docker() else { return };
    let first = Container::start(docker, "first-on-its-ports", &[DEBIAN]);
    docker.until_healthy(first.name);
    let network = format!("container:{}", first.name);
    let sentence = refused(docker, &["--network", &network]);
    let expected = "listener PLAINTEXT cannot be bound to ";
    assert!(sentence.starts_with(expected), "{sentence}");
    assert!(sentence.contains(":9092: "), "{sentence}");
    let listeners = "KAFKA_LISTENERS=PLAINTEXT://localhost:0";
    let sentence = refused(docker, &["--network", &network, "-e", listeners]);
    let expected = "cannot listen on http.listeners=0.0.0.0:9644: ";
    assert!(sentence.starts_with(expected), "{sentence}");
}

#[test]
fn two_mounted_files_are_refused() {
    let Some(docker) = docker() else { return };
    let folder = docker.folder_of_root("two-files");
    fs::write(folder.join("server.properties"), "node.id=1\n").unwrap();
    let kafkas = format!("{}:/mnt/shared/config", folder.display());
    let ours = format!("{}:/etc/highwater", folder.display());
    let sentence = refused(docker, &["-v", &kafkas, "-v", &ours]);
    assert_eq!(
        sentence,
        "both /mnt/shared/config/server.properties and /etc/highwater/server.properties are there: mount one of them"
    );
}
