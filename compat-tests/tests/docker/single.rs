//! One node of `compose.single.yaml`.

use std::fs;

use compat_tests::cache::run;
use compat_tests::clients::Client;

use crate::daemon::{MINIMAL, Project, docker};

#[test]
fn one_node_is_reached_from_the_host_and_from_containers_and_leaves_nothing() {
    let Some(docker) = docker() else { return };
    let _ports = docker.ports();
    let project = Project::up(docker, "compose.single.yaml");
    docker.until_healthy("kafka");

    let program = Client::ConfluentKafka.command().unwrap();
    let client = |arguments: &[&str]| {
        let mut command = docker.command(program.get_program());
        run(command.args(program.get_args()).args(arguments)).unwrap()
    };
    let at = "localhost:9092";
    let topic = "greetings";
    client(&[
        "produce", at, topic, "0", "none", "all", "0", "10", "20", "0",
    ]);
    assert_eq!(client(&["consume", at, topic, "10"]).lines().count(), 10);

    // From a container of the same network, with a tool of the image.
    let folder = docker.folder_of_root("offsets");
    let offsets =
        r#"{"version": 1, "partitions": [{"topic": "greetings", "partition": 0, "offset": 4}]}"#;
    fs::write(folder.join("offsets.json"), offsets).unwrap();
    let mount = format!("{}:/offsets", folder.display());
    let deleted = docker.run(&[
        "run",
        "--rm",
        "--network=highwater_default",
        "--entrypoint=/opt/kafka/bin/kafka-delete-records.sh",
        "-v",
        &mount,
        MINIMAL,
        "--bootstrap-server=kafka:19092",
        "--offset-json-file=/offsets/offsets.json",
    ]);
    let deleted = deleted.unwrap();
    assert!(deleted.contains("low_watermark: 4"), "{deleted}");

    // The data outlives the container.
    project.compose(&["down"]).unwrap();
    project.compose(&["up", "--detach"]).unwrap();
    docker.until_healthy("kafka");
    assert_eq!(client(&["consume", at, topic, "6"]).lines().count(), 6);
    project.down();
}
