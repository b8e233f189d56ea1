//! Apache Kafka's own command-line tools against a cluster: what they print, the same on both implementations.

mod configs;
mod leader_election;
mod log_dirs;
mod quorum;
mod reassign;
mod topics;

use compat_tests::cluster::Cluster;
use compat_tests::java_tools::{self, ToolRun};

/// Runs a tool with `--bootstrap-server`.
#[track_caller]
fn try_tool(cluster: &Cluster, name: &str, args: &[&str]) -> ToolRun {
    let bootstrap = cluster.bootstrap();
    let all = [&["--bootstrap-server", bootstrap.as_str()], args].concat();
    java_tools::run(name, &all, b"").unwrap_or_else(|error| panic!("{error:#}"))
}

/// As [`try_tool`]; it must exit with 0, and what it printed is given.
#[track_caller]
fn tool(cluster: &Cluster, name: &str, args: &[&str]) -> String {
    let run = try_tool(cluster, name, args);
    let kind = cluster.kind();
    assert_eq!(
        run.status, 0,
        "{name} {args:?} on {kind}:\n{}\n{}",
        run.out, run.err
    );
    run.out
}

/// What a tool that must fail printed to both outputs.
#[track_caller]
fn refused(cluster: &Cluster, name: &str, args: &[&str]) -> String {
    let run = try_tool(cluster, name, args);
    let kind = cluster.kind();
    assert_ne!(
        run.status, 0,
        "{name} {args:?} on {kind} was not refused:\n{}",
        run.out
    );
    format!("{}{}", run.out, run.err)
}

/// A file with this text, for tools that read one.
fn file_of(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}
