//! One call, made with Apache Kafka's tool and with Highwater's, and what both print.
//!
//! A call that changes something cannot be made twice, so both have names of their own: `@` in an argument stands for
//! `viajava` or `viaours`, and is put back in what was printed before that is compared.

use std::io::Write as _;

use compat_tests::cluster::Cluster;
use compat_tests::java_tools::{self, ToolRun};
use compat_tests::own_tools;

/// Who runs, as `@` in a name.
const WHO: [&str; 2] = ["viajava", "viaours"];

/// The same call with both tools.
#[derive(Debug)]
pub(crate) struct Both {
    what: String,
    java: ToolRun,
    ours: ToolRun,
}

/// Runs both tools with `--bootstrap-server` of all brokers.
#[track_caller]
pub(crate) fn both(cluster: &Cluster, tool: &str, args: &[&str]) -> Both {
    both_via(&cluster.bootstrap(), cluster, tool, args)
}

/// As [`both`], with this list of addresses.
#[track_caller]
pub(crate) fn both_via(bootstrap: &str, cluster: &Cluster, tool: &str, args: &[&str]) -> Both {
    let args = [&["--bootstrap-server", bootstrap], args].concat();
    let mut both = both_plain(tool, &args, b"");
    both.what = format!("{} on {}", both.what, cluster.kind());
    both
}

/// As [`both`]; before Highwater's tool runs, `between` waits for the end of what Apache Kafka's has begun.
#[track_caller]
pub(crate) fn both_in_turn(
    cluster: &Cluster,
    tool: &str,
    args: &[&str],
    between: impl Fn(),
) -> Both {
    let bootstrap = cluster.bootstrap();
    let args = [&["--bootstrap-server", bootstrap.as_str()], args].concat();
    run_both(tool, &args, b"", between)
}

/// Runs both tools with these arguments alone.
#[track_caller]
pub(crate) fn both_plain(tool: &str, args: &[&str], input: &[u8]) -> Both {
    run_both(tool, args, input, || {})
}

#[track_caller]
fn run_both(tool: &str, args: &[&str], input: &[u8], between: impl Fn()) -> Both {
    let has_names = args.iter().any(|arg| arg.contains('@'));
    let run = |index: usize| {
        let args: Vec<_> = args
            .iter()
            .map(|arg| arg.replace('@', WHO[index]))
            .collect();
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let run = match index {
            0 => java_tools::run(tool, &args, input),
            _ => own_tools::run(tool, &args, input),
        };
        let run = run.unwrap_or_else(|error| panic!("{error:#}"));
        let back = |text: &str| match has_names {
            true => text.replace(WHO[index], "@"),
            false => text.to_owned(),
        };
        ToolRun {
            status: run.status,
            out: back(&run.out),
            err: back(&run.err),
        }
    };
    let java = run(0);
    between();
    Both {
        what: format!("{tool} {args:?}"),
        java,
        ours: run(1),
    }
}

impl Both {
    /// Both must succeed and print the same, byte for byte. Gives it.
    #[track_caller]
    pub(crate) fn same(self) -> String {
        self.same_after(str::to_owned)
    }

    /// As [`same`](Self::same), in any order of the lines: for what Apache Kafka's tool prints in no order.
    #[track_caller]
    pub(crate) fn same_lines(self) -> Vec<String> {
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines.join("\n")
        };
        let text = self.same_after(sorted);
        text.lines().map(str::to_owned).collect()
    }

    /// As [`same`](Self::same), once `mask` has taken out what differs from run to run.
    #[track_caller]
    pub(crate) fn same_after(self, mask: impl Fn(&str) -> String) -> String {
        assert_eq!((self.java.status, self.ours.status), (0, 0), "{self:#?}");
        let (java, ours) = (mask(&self.java.out), mask(&self.ours.out));
        assert_eq!(ours, java, "left is ours: {}", self.what);
        ours
    }

    /// Both must succeed and print the same, but for numbers, and tell the same failures. Gives those.
    #[track_caller]
    pub(crate) fn same_failures(self, failures: impl Fn(&ToolRun) -> Vec<String>) -> Vec<String> {
        let (java, ours) = (failures(&self.java), failures(&self.ours));
        assert_eq!(ours, java, "left is ours: {self:#?}");
        self.same_after(without_numbers);
        ours
    }

    /// Both must fail with the same exit code and say the same: what Apache Kafka's tool says before its stack traces
    /// and its usage. Gives it.
    #[track_caller]
    pub(crate) fn refused(self) -> String {
        assert_ne!(self.java.status, 0, "{self:#?}");
        assert_eq!(self.ours.status, self.java.status, "{self:#?}");
        let (java, ours) = (said(&self.java), said(&self.ours));
        assert_eq!(ours, java, "left is ours: {self:#?}");
        ours
    }

    /// Both must fail with the same exit code; ours says this, in one line.
    #[track_caller]
    pub(crate) fn refused_with(self, text: &str) {
        assert_ne!(self.java.status, 0, "{self:#?}");
        assert_eq!(self.ours.status, self.java.status, "{self:#?}");
        let first = self.ours.err.lines().next().unwrap_or_default();
        assert!(first.contains(text), "{self:#?}");
    }
}

/// What a tool prints on both outputs up to a stack trace or its usage.
fn said(run: &ToolRun) -> String {
    let is_end = |line: &&str| {
        let is_trace = line.starts_with("\tat ") || line.starts_with("Caused by: ");
        is_trace || line.starts_with("Option  ") || line.starts_with("usage: ")
    };
    let part = |text: &str| {
        let mut lines: Vec<_> = text
            .trim_end()
            .lines()
            .take_while(|line| !is_end(line))
            .collect();
        // A stack trace begins with the exception, which says again what was said.
        let is_exception = |line: &&str| {
            let class = line.split(':').next().unwrap_or_default();
            class.contains('.') && class.ends_with("Exception") && !class.contains(' ')
        };
        if lines.len() > 1 && lines.last().is_some_and(is_exception) {
            lines.pop();
        }
        lines.join("\n").trim_end().to_owned()
    };
    format!("{}\n{}", part(&run.out), part(&run.err))
        .trim()
        .to_owned()
}

/// Runs Highwater's tool, which must succeed, and gives what it prints.
#[track_caller]
pub(crate) fn ours(cluster: &Cluster, tool: &str, args: &[&str]) -> String {
    let bootstrap = cluster.bootstrap();
    let args = [&["--bootstrap-server", bootstrap.as_str()], args].concat();
    let run = own_tools::run(tool, &args, b"").unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(run.status, 0, "{tool} {args:?}: {run:#?}");
    run.out
}

/// A file with this text, for tools that read one.
pub(crate) fn file_of(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// The path of a file as an argument.
pub(crate) fn path(file: &tempfile::NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

/// Creates a topic with both names of `@`, each partition on the brokers given for it, and waits until it has leaders.
#[track_caller]
pub(crate) fn create_both(cluster: &Cluster, name: &str, assignment: &[&[i32]]) {
    for who in WHO {
        cluster.create_topic(&name.replace('@', who), assignment, &[]);
    }
}

/// Replaces all runs of digits by `#`.
pub(crate) fn without_numbers(text: &str) -> String {
    let mut masked = String::new();
    // A rate over less than a millisecond.
    for character in text.replace("Infinity", "0.0").chars() {
        match character {
            '0'..='9' if masked.ends_with('#') => {}
            '0'..='9' => masked.push('#'),
            _ => masked.push(character),
        }
    }
    masked
}
