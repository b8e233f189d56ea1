//! A broker from its start to its end.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use super::process::{Running, highwater, stderr};

/// A start on free ports with its data in `dir`.
fn start_in(dir: &Path, overrides: &[&str]) -> Command {
    let mut command = highwater(&["start", "--override", "listeners=PLAINTEXT://127.0.0.1:0"]);
    command
        .arg("--override")
        .arg(format!("log.dirs={}", dir.display()));
    for text in overrides {
        command.args(["--override", text]);
    }
    command
}

fn refused(mut command: Command) -> String {
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    stderr(&output)
}

fn properties(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("meta.properties")).expect("meta.properties");
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

/// ApiVersions v0 with correlation id 7; the answer's correlation id and error code.
fn api_versions(address: &str) -> (i32, i16) {
    let mut stream = TcpStream::connect(address).expect("connected");
    let request: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];
    stream.write_all(&request).expect("sent");
    let mut response = [0; 10];
    stream.read_exact(&mut response).expect("answered");
    let [_, _, _, _, a, b, c, d, e, f] = response;
    (i32::from_be_bytes([a, b, c, d]), i16::from_be_bytes([e, f]))
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("answered");
    response
}

#[test]
fn an_empty_directory_is_formatted_and_opened_again_by_the_same_node_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("deep/data");
    let mut running = Running::start(start_in(&data, &["node.id=3"]));
    assert_eq!(api_versions(&running.address("PLAINTEXT://")), (7, 0));
    let first = properties(&data);
    let keys: Vec<&str> = first
        .iter()
        .map(|line| line.split('=').next().expect("a key"))
        .collect();
    assert_eq!(keys, ["cluster.id", "directory.id", "node.id", "version"]);
    assert!(first.contains(&"node.id=3".to_owned()) && first.contains(&"version=1".to_owned()));
    assert!(
        running
            .ready_line
            .contains(first[0].trim_start_matches("cluster.id="))
    );

    let error = refused(start_in(&data, &["node.id=3"]));
    assert!(error.contains("in use by another broker"), "{error}");
    running.signal("TERM");
    let (status, log) = running.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(data.join(".kafka_cleanshutdown").exists());

    let error = refused(start_in(&data, &["node.id=4"]));
    assert!(
        error.contains("belongs to node 3, but node.id is 4"),
        "{error}"
    );
    let mut other = start_in(&data, &["node.id=3"]);
    other.env("CLUSTER_ID", "5L6g3nShT-eMCtK--X86sw");
    let error = refused(other);
    assert!(
        error.contains("the cluster id asked for is of cluster 5L6g3nShT-eMCtK--X86sw"),
        "{error}"
    );

    let again = Running::start(start_in(&data, &["node.id=3"]));
    assert_eq!(api_versions(&again.address("PLAINTEXT://")), (7, 0));
    assert_eq!(properties(&data), first);
}

#[test]
fn a_cluster_id_may_be_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = start_in(dir.path(), &[]);
    command.args(["--cluster-id", "5L6g3nShT-eMCtK--X86sw"]);
    let running = Running::start(command);
    assert!(
        running
            .ready_line
            .contains("cluster 5L6g3nShT-eMCtK--X86sw"),
        "{}",
        running.ready_line
    );
    assert!(properties(dir.path()).contains(&"cluster.id=5L6g3nShT-eMCtK--X86sw".to_owned()));
}

#[test]
fn a_server_properties_of_apache_kafka_4_starts() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("server.properties");
    fs::write(&file, include_str!("kraft_single_node.properties")).expect("written");
    // Only what a test must change: ports and the directory.
    let mut command = highwater(&["start", file.to_str().expect("text")]);
    command.args(["--override", "listeners=PLAINTEXT://:0,CONTROLLER://:0"]);
    command
        .arg("--override")
        .arg(format!("log.dirs={}", dir.path().join("data").display()));
    let mut running = Running::start(command);
    assert!(
        running.ready_line.contains("PLAINTEXT://localhost:"),
        "{}",
        running.ready_line
    );
    running.signal("INT");
    let (status, log) = running.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains(" WARN "), "{log}");
}

#[test]
fn unknown_and_unsupported_keys_are_warned_of() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = start_in(
        dir.path(),
        &["zookeeper.connect=x:2181", "quota.window.num=5"],
    );
    command
        .env("KAFKA_NUM_IO_THREADS", "16")
        .env("HIGHWATER_LOG_FORMAT", "json");
    let mut running = Running::start(command);
    running.signal("TERM");
    let (status, log) = running.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    for part in [
        "unknown configuration key zookeeper.connect",
        "quota.window.num is not supported yet and has no effect",
        "num.io.threads has no effect here",
    ] {
        assert!(log.contains(part), "{part} is missing: {log}");
    }
    assert!(
        log.lines()
            .all(|line| line.starts_with('{') && line.ends_with('}')),
        "{log}"
    );
}

/// Everything below `dir` with the time of its last change.
fn files_and_times(dir: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let mut found = BTreeMap::new();
    let mut to_look_at = vec![dir.to_owned()];
    while let Some(path) = to_look_at.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory");
            to_look_at.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
        let changed = fs::metadata(&path).and_then(|metadata| metadata.modified());
        found.insert(path, changed.expect("a time"));
    }
    found
}

#[test]
fn a_port_in_use_is_named_and_leaves_the_directory_usable() {
    let dir = tempfile::tempdir().expect("a directory");
    let taken = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = taken.local_addr().expect("an address").to_string();
    let data = dir.path().join("data");
    for setting in ["listeners=PLAINTEXT://", "http.listeners="] {
        let error = refused(start_in(&data, &[&format!("{setting}{address}")]));
        assert!(error.contains(&address), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(!data.exists(), "a start that failed made its directory");
    }
    // A data directory that was closed cleanly is so afterwards too.
    Running::start(start_in(dir.path(), &[])).stop();
    let before = files_and_times(dir.path());
    let refusals = [
        format!("listeners=PLAINTEXT://{address}"),
        format!("listeners=PLAINTEXT://127.0.0.1:0,OTHER://{address}"),
    ];
    for listeners in refusals {
        let protocols = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT";
        let error = refused(start_in(dir.path(), &[&listeners, protocols]));
        assert!(error.contains(&address), "{error}");
    }
    let http = format!("http.listeners={address}");
    let error = refused(start_in(dir.path(), &[&http]));
    assert!(error.contains(&address), "{error}");
    assert_eq!(files_and_times(dir.path()), before);
    assert!(dir.path().join(".kafka_cleanshutdown").exists());
    Running::start(start_in(dir.path(), &[]));
}

#[test]
fn records_without_the_metadata_log_are_refused_and_left_as_they_are() {
    let dir = tempfile::tempdir().expect("a directory");
    Running::start(start_in(dir.path(), &[])).stop();
    let metadata = dir.path().join("__cluster_metadata-0");
    let elsewhere = dir.path().join("elsewhere");
    fs::rename(&metadata, &elsewhere).expect("moved");
    let partition = dir.path().join("t-0");
    fs::create_dir(&partition).expect("made");
    let log = partition.join("00000000000000000000.log");
    fs::write(&log, "records").expect("written");
    let refused_start = || {
        let error = refused(start_in(dir.path(), &[]));
        assert!(
            error.contains("/t-0 holds records, but __cluster_metadata-0,"),
            "{error}"
        );
        assert_eq!(fs::read(&log).expect("read"), b"records");
        assert!(dir.path().join(".kafka_cleanshutdown").exists());
    };
    refused_start();
    fs::create_dir(&metadata).expect("made");
    fs::write(metadata.join("00000000000000000000.log"), "").expect("written");
    refused_start();
    fs::remove_dir_all(&metadata).expect("removed");
    fs::rename(&elsewhere, &metadata).expect("moved back");
    Running::start(start_in(dir.path(), &[])).stop();
}

#[test]
fn console_metrics_and_health_are_served_when_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut running = Running::start(start_in(dir.path(), &["http.listeners=127.0.0.1:0"]));
    let line = running.line();
    let (_, http) = line.trim().rsplit_once("http://").expect("an address");
    let http = http.trim_end_matches("/metrics");
    assert!(
        line.starts_with(&format!("Console on http://{http}/, metrics on ")),
        "{line}"
    );
    assert_eq!(api_versions(&running.address("PLAINTEXT://")), (7, 0));
    assert!(get(http, "/health").starts_with("HTTP/1.1 200 "));
    assert!(get(http, "/ready").starts_with("HTTP/1.1 200 "));
    let console = get(http, "/");
    assert!(
        console.starts_with("HTTP/1.1 200 ") && console.ends_with("</html>\n"),
        "{console}"
    );
    let metrics = get(http, "/metrics");
    for line in [
        "kafka_network_requestmetrics_requests_total{request=\"ApiVersions\"} 1",
        "kafka_server_kafkaserver_brokerstate 3",
        "kafka_controller_kafkacontroller_activebrokercount 1",
        "kafka_server_replicamanager_offlinereplicacount 0",
        "# EOF",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line} is missing: {metrics}"
        );
    }
    // It asks the broker over the wire, so that the counts above come first.
    let mut watcher = TcpStream::connect(http).expect("connected");
    watcher
        .write_all(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        .expect("sent");
    let mut events = BufReader::new(watcher).lines().map_while(Result::ok);
    let first = events.find(|line| line.starts_with("data: "));
    let first = first.expect("an event");
    assert!(
        first.contains(r#""broker/00000001""#) && first.contains(r#""state":"active""#),
        "{first}"
    );
}

#[test]
fn what_was_killed_starts_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut running = Running::start(start_in(dir.path(), &[]));
    running.signal("KILL");
    running.wait();
    assert!(!dir.path().join(".kafka_cleanshutdown").exists());
    let again = Running::start(start_in(dir.path(), &[]));
    assert_eq!(api_versions(&again.address("PLAINTEXT://")), (7, 0));
}

/// Fills the way to a client that reads nothing, so that the broker cannot finish its answers.
fn stalled_client(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream
        .set_write_timeout(Some(std::time::Duration::from_millis(300)))
        .expect("set");
    let request: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];
    let requests = request.repeat(4096);
    // Ends when the broker reads no more, since nobody takes its answers.
    while stream.write_all(&requests).is_ok() {}
    stream
}

#[test]
fn two_signals_a_moment_apart_are_one_stop() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut running = Running::start(start_in(dir.path(), &[]));
    // Keeps it busy with stopping for seconds.
    let _stalled = stalled_client(&running.address("PLAINTEXT://"));
    // What `timeout` does: one to the process, one to its group.
    running.signal("TERM");
    running.signal("TERM");
    running.signal("INT");
    let (status, log) = running.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("stopping at once"), "{log}");
    assert!(dir.path().join(".kafka_cleanshutdown").exists());
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut running = Running::start(start_in(dir.path(), &[]));
    let _stalled = stalled_client(&running.address("PLAINTEXT://"));
    running.signal("TERM");
    // Sooner it would be taken for a part of the first.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    running.signal("INT");
    let (status, log) = running.wait();
    assert!(matches!(status.code(), Some(130 | 143)), "{status}: {log}");
    assert!(log.contains("stopping at once"), "{log}");
    assert!(!dir.path().join(".kafka_cleanshutdown").exists());
}

#[test]
fn a_client_that_does_not_read_does_not_keep_it_from_stopping() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut running = Running::start(start_in(dir.path(), &[]));
    let _stalled = stalled_client(&running.address("PLAINTEXT://"));
    running.signal("TERM");
    let (status, log) = running.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(dir.path().join(".kafka_cleanshutdown").exists());
}

#[test]
fn the_end_of_stdin_stops_a_broker_that_was_told_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let mut command = start_in(&data, &[]);
    command
        .arg("--until-stdin-closes")
        .stdin(std::process::Stdio::piped());
    let mut running = Running::start(command);
    assert_eq!(api_versions(&running.address("PLAINTEXT://")), (7, 0));
    running.close_stdin();
    let (status, log) = running.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(data.join(".kafka_cleanshutdown").exists());
}

#[test]
fn a_cluster_leaves_the_files_of_nodes_that_run_as_they_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let running = Running::start(start_in(&dir.path().join("broker-2"), &["node.id=2"]));
    let mut command = highwater(&["cluster", "--brokers", "3", "--data-dir"]);
    command.arg(dir.path());
    let error = refused(command);
    assert!(
        error.ends_with("broker-2 is in use by another broker\n"),
        "{error}"
    );
    let files = fs::read_dir(dir.path()).expect("a directory").count();
    assert_eq!(files, 1, "no properties file is written");
    drop(running);
}

#[test]
fn a_cluster_with_a_port_in_use_makes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("cluster");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    // That of the third broker's controller.
    let first = (port - 5).to_string();
    let mut command = highwater(&["cluster", "--brokers", "3", "--port", &first, "--data-dir"]);
    command.arg(&data);
    let error = refused(command);
    // Others may have taken one of the five before it meanwhile.
    assert!(
        error.starts_with("highwater: port ") && error.contains("(choose others with --port)"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(!data.exists());
}
