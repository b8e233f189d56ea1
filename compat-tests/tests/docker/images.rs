//! What is in the images, and how a container starts and stops.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::daemon::{Container, DEBIAN, Docker, LIMIT, MINIMAL, docker};

const MEGABYTE: u64 = 1_000_000;

#[test]
fn the_images_are_small_and_start_without_a_shell_and_without_root() {
    let Some(docker) = docker() else { return };
    for (image, limit) in [(DEBIAN, 100 * MEGABYTE), (MINIMAL, 30 * MEGABYTE)] {
        let found = docker.inspect(image);
        let size = found["Size"].as_u64().unwrap();
        assert!(size <= limit, "{image} has {size} bytes");
        let config = &found["Config"];
        assert_eq!(config["User"], "1000:1000");
        assert_eq!(config["Entrypoint"], json!(["/usr/bin/highwater"]));
        assert_eq!(config["Cmd"], json!(["start", "--container"]));
        assert_eq!(config["Healthcheck"]["Test"][0], "CMD");
        assert_eq!(config["Volumes"], json!({"/var/lib/highwater": {}}));
    }
}

#[test]
fn kafkas_tools_are_names_of_the_binary() {
    let Some(docker) = docker() else { return };
    for image in [DEBIAN, MINIMAL] {
        let tool = "/opt/kafka/bin/kafka-delete-records.sh";
        let help = ["run", "--rm", "--entrypoint", tool, image, "--help"];
        let help = docker.run(&help).unwrap();
        assert!(help.contains("--offset-json-file"), "{help}");
    }
    let list = [
        "run",
        "--rm",
        "--entrypoint",
        "ls",
        DEBIAN,
        "/opt/kafka/bin",
    ];
    let listed = docker.run(&list).unwrap();
    let help = docker.run(&["run", "--rm", DEBIAN, "--help"]).unwrap();
    assert!(!listed.is_empty());
    for script in listed.lines() {
        let tool = script.strip_prefix("kafka-").unwrap();
        let tool = tool.strip_suffix(".sh").unwrap();
        assert!(help.contains(&format!("\n  {tool} ")), "{script}: {help}");
    }
}

#[test]
fn a_container_without_settings_is_healthy_and_sigterm_stops_it_cleanly() {
    let Some(docker) = docker() else { return };
    for (image, name) in [(DEBIAN, "plain"), (MINIMAL, "plain-minimal")] {
        let _container = Container::start(docker, name, &[image]);
        docker.until_healthy(name);
        assert_eq!(users(docker, name), ["1000"]);
        let out = String::from_utf8(docker.logs(name).stdout).unwrap();
        assert!(
            out.contains("is ready on PLAINTEXT://localhost:9092"),
            "{out}"
        );

        assert_eq!(stop(docker, name), 0);
        let clean = volume(docker, name).join(".kafka_cleanshutdown");
        assert!(clean.is_file());
        docker.run(&["start", name]).unwrap();
        docker.until_healthy(name);
        assert!(!clean.exists());

        docker.run(&["kill", "--signal", "KILL", name]).unwrap();
        docker.run(&["start", name]).unwrap();
        docker.until_healthy(name);
    }
}

#[test]
fn the_environment_wins_over_a_mounted_file() {
    let Some(docker) = docker() else { return };
    let folder = docker.folder_of_root("mounted");
    fs::write(folder.join("server.properties"), "node.id=7\n").unwrap();
    for place in ["/mnt/shared/config", "/etc/highwater"] {
        let mount = format!("{}:{place}:ro", folder.display());
        let from_file = Container::start(docker, "from-file", &["-v", &mount, DEBIAN]);
        let arguments = ["-v", &mount, "-e", "KAFKA_NODE_ID=8", DEBIAN];
        let from_both = Container::start(docker, "from-both", &arguments);
        for (container, id) in [(from_file, "7"), (from_both, "8")] {
            docker.until_healthy(container.name);
            let log = String::from_utf8(docker.logs(container.name).stdout).unwrap();
            assert!(
                log.contains(&format!("; node {id}, cluster ")),
                "{place}: {log}"
            );
        }
    }
}

/// As the documentation of Apache Kafka's image starts a node that is broker and controller.
#[test]
fn the_variables_of_apache_kafkas_image_start_a_node() {
    let Some(docker) = docker() else { return };
    let mut arguments = Vec::new();
    for variable in [
        "KAFKA_NODE_ID=4",
        "KAFKA_PROCESS_ROLES=broker,controller",
        "KAFKA_LISTENERS=PLAINTEXT://:19092,OUTSIDE://:9092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:19092,OUTSIDE://localhost:9092",
        "KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT",
        "KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "KAFKA_CONTROLLER_QUORUM_VOTERS=4@localhost:9093",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0",
        "KAFKA_NUM_PARTITIONS=3",
        "KAFKA_HEAP_OPTS=-Xmx1g",
        "CLUSTER_ID=Highwater-in-compose-w",
    ] {
        arguments.extend(["-e", variable]);
    }
    arguments.push(MINIMAL);
    let container = Container::start(docker, "of-variables", &arguments);
    docker.until_healthy(container.name);
    let log = docker.logs(container.name);
    let out = String::from_utf8(log.stdout).unwrap();
    let expected =
        "is ready on PLAINTEXT://localhost:19092, OUTSIDE://localhost:9092, CONTROLLER://";
    assert!(out.contains(expected), "{out}");
    let expected = "; node 4, cluster Highwater-in-compose-w, data in /var/lib/highwater)";
    assert!(out.contains(expected), "{out}");
    let log = String::from_utf8(log.stderr).unwrap();
    assert!(!log.contains(" WARN "), "{log}");
}

#[test]
fn the_health_check_fails_where_nothing_answers() {
    let Some(docker) = docker() else { return };
    let mut command = docker.docker(&["run", "--rm", MINIMAL, "health", "--container"]);
    let asked = command.output().unwrap();
    assert_eq!(asked.status.code(), Some(1));
    let text = String::from_utf8(asked.stderr).unwrap();
    assert!(
        text.starts_with("highwater: no good health of 127.0.0.1:9644: Connection refused"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
}

/// The users of a container's processes, by number.
fn users(docker: &Docker, name: &str) -> Vec<String> {
    let listed = docker.run(&["top", name, "-o", "uid,pid"]).unwrap();
    let lines = listed.lines().skip(1);
    lines
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect()
}

/// `docker stop`; gives the exit code of the process.
fn stop(docker: &Docker, name: &str) -> i64 {
    let seconds = LIMIT.as_secs().to_string();
    docker.run(&["stop", "--time", &seconds, name]).unwrap();
    docker.inspect(name)["State"]["ExitCode"].as_i64().unwrap()
}

/// Where a container's data lies.
fn volume(docker: &Docker, name: &str) -> PathBuf {
    let source = docker.inspect(name)["Mounts"][0]["Source"].take();
    Path::new(source.as_str().unwrap()).to_owned()
}
