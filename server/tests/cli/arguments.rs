//! Arguments, configuration files and what is refused before anything is touched.

use std::fs;
use std::process::Command;

use super::process::{highwater, run, stderr};

/// The one line on stderr of a start that failed.
fn refusal(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    let text = stderr(&output);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("highwater: "), "{text}");
    text
}

#[test]
fn version_help_and_documentation_are_printed() {
    let version = run(&["--version"]);
    assert!(version.status.success());
    let expected = format!("highwater {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8_lossy(&version.stdout), expected);
    let help = run(&["--help"]);
    assert!(help.status.success());
    assert!(String::from_utf8_lossy(&help.stdout).contains("config-docs"));
    let docs = run(&["config-docs"]);
    assert!(docs.status.success());
    assert!(
        String::from_utf8_lossy(&docs.stdout).contains("| `log.retention.hours` | int | `168` |")
    );
}

#[test]
fn wrong_arguments_are_told_in_a_sentence_and_end_with_code_2() {
    for (arguments, sentence, help) in [
        (
            &["strat"][..],
            "unrecognized subcommand 'strat'",
            "highwater",
        ),
        (
            &["start", "--nope"],
            "nope is not a recognized option",
            "highwater start",
        ),
        (
            &["start", "a", "b"],
            "unexpected argument 'b' found",
            "highwater start",
        ),
        (
            &["--override"],
            "Option override requires an argument",
            "highwater",
        ),
    ] {
        let output = run(arguments);
        assert_eq!(
            stderr(&output),
            format!("highwater: {sentence}\nTry '{help} --help'.\n")
        );
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_tool_names_what_it_was_called_by() {
    let dir = tempfile::tempdir().expect("a directory");
    let links = dir.path().to_str().expect("text");
    assert!(run(&["link-tools", links]).status.success());
    let called = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(dir.path().join(name));
        command.args(arguments).output().expect("the tool runs")
    };
    let help = called("kafka-topics.sh", &["--help"]);
    assert!(help.status.success());
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.contains("\nUsage: kafka-topics.sh "), "{help}");
    let nothing = called("kafka-topics.sh", &[]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(stderr(&nothing).contains("\nUsage: kafka-topics.sh "));
    let help = called("kafka-metadata-quorum.sh", &["describe", "--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let usage = "\nUsage: kafka-metadata-quorum.sh <";
    assert!(help.contains(usage), "{help}");

    for (output, program) in [
        (called("kafka-topics.sh", &["--nope"]), "kafka-topics.sh"),
        (run(&["topics", "--nope"]), "highwater topics"),
    ] {
        let expected = format!("nope is not a recognized option\nTry '{program} --help'.\n");
        assert_eq!(stderr(&output), expected);
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
    }
    let version = called("kafka-topics.sh", &["--version"]);
    let expected = concat!(env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(String::from_utf8_lossy(&version.stdout), expected);
}

#[test]
fn a_bad_value_is_named_with_its_key_and_what_is_allowed() {
    let error = refusal(&["--override", "num.partitions=none"]);
    assert_eq!(
        error,
        "highwater: invalid value 'none' for num.partitions: a whole number from 1 to 2147483647 is expected\n"
    );
    let error = refusal(&["start", "--override", "listeners=SSL://127.0.0.1:0"]);
    assert!(error.contains("only PLAINTEXT is served"), "{error}");
    let error = refusal(&["start", "--override", "num.partitions"]);
    assert_eq!(
        error,
        "highwater: --override num.partitions: key=value is expected\n"
    );
    let error = refusal(&[
        "start",
        "--cluster-id",
        "nonsense",
        "--override",
        "log.dirs=/proc/none",
    ]);
    assert!(error.contains("/proc/none"), "{error}");
    assert_eq!(error.matches("os error").count(), 1, "{error}");
    assert!(refusal(&["start", "--log", "highwater=loud"]).contains("invalid log filter"));
}

#[test]
fn the_file_and_the_environment_are_judged_alike() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("server.properties");
    fs::write(
        &file,
        "# comment\nnum.partitions = 3\nlog.cleanup.policy=shrink\n",
    )
    .expect("written");
    let file = file.to_str().expect("text");
    let error = refusal(&["start", file]);
    assert!(
        error.contains("invalid value 'shrink' for log.cleanup.policy"),
        "{error}"
    );
    let error = refusal(&["start", "no/such/file.properties"]);
    assert!(
        error.contains("cannot read the configuration file no/such/file.properties"),
        "{error}"
    );
    fs::write(file, "a=\\u12").expect("written");
    assert!(refusal(&["start", file]).contains("server.properties, line 1: "));

    let mut command = highwater(&["start"]);
    command.env("KAFKA_LOG_SEGMENT_BYTES", "many");
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("invalid value 'many' for log.segment.bytes"));
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    fs::write(&file, "").expect("written");
    for path in [file.clone(), file.join("data")] {
        let override_ = format!("log.dirs={}", path.display());
        let error = refusal(&["start", "--override", &override_]);
        let (path, file) = (path.display(), file.display());
        let expected = format!(
            "highwater: cannot use the data directory {path}: {file} is a file, not a directory\n"
        );
        assert_eq!(error, expected);
    }
    let override_ = format!("log.dirs={}", dir.path().display());
    let error = refusal(&["start", "--override", &override_]);
    assert!(error.contains("no meta.properties"), "{error}");
}
