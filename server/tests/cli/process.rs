//! Running the binary.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;

/// A command for the binary without any of the variables that it reads.
pub(crate) fn highwater(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().into_owned();
        if text.starts_with("KAFKA_") || text.starts_with("HIGHWATER_") || text == "CLUSTER_ID" {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    highwater(arguments).output().expect("the binary runs")
}

/// What it wrote on stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A broker that is ready; it is killed if the test ends before it does.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: Option<JoinHandle<String>>,
    /// The first line that it printed.
    pub(crate) ready_line: String,
}

impl Running {
    /// Starts the broker on free ports of 127.0.0.1 and waits until it says that it is ready.
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut errors = child.stderr.take().expect("piped");
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            text
        });
        let mut ready_line = String::new();
        stdout.read_line(&mut ready_line).expect("stdout is text");
        let mut running = Running {
            child,
            stdout,
            stderr: Some(stderr),
            ready_line,
        };
        if !running.ready_line.contains(" is ready on ") {
            let (status, log) = running.wait();
            panic!("not ready, {status}: {log}");
        }
        running
    }

    /// Process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The address after `scheme` in what it printed so far.
    pub(crate) fn address(&self, scheme: &str) -> String {
        let rest = self
            .ready_line
            .split_once(scheme)
            .expect("the scheme is named")
            .1;
        rest.chars()
            .take_while(|character| !" ,/\n".contains(*character))
            .collect()
    }

    /// The next line on stdout.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("stdout is text");
        line
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.pid().to_string()])
            .status();
        assert!(status.expect("kill runs").success());
    }

    /// Ends its stdin, where that is a pipe.
    pub(crate) fn close_stdin(&mut self) {
        drop(self.child.stdin.take().expect("piped"));
    }

    /// Stops it in order.
    pub(crate) fn stop(mut self) {
        self.signal("TERM");
        let (status, log) = self.wait();
        assert_eq!(status.code(), Some(0), "{log}");
    }

    /// Waits for its end; gives the status and the log.
    pub(crate) fn wait(&mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("waited for");
        let log = self
            .stderr
            .take()
            .map(|reader| reader.join().expect("read"));
        (status, log.unwrap_or_default())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already in most tests.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
