//! Starting the playground, and a browser on it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use compat_tests::cache::{digest, get_or_install, run};
use compat_tests::highwater;
use compat_tests::process::{ManagedProcess, eventually};
use tempfile::TempDir;

/// Time for the cluster to come to serve, on a busy machine.
const START: Duration = Duration::from_secs(60);
/// Where to put screenshots; without it there are none.
const SCREENSHOTS: &str = "HIGHWATER_SCREENSHOTS";

/// A running playground.
pub(crate) struct Playground {
    pub(crate) process: ManagedProcess,
    /// Of the page, with its token.
    pub(crate) url: String,
    pub(crate) port: u16,
    pub(crate) token: String,
    /// Where it makes its temporary folder.
    pub(crate) temporary: TempDir,
}

impl Playground {
    /// Starts one on free ports.
    pub(crate) fn start() -> Self {
        let temporary = tempfile::tempdir().expect("a folder");
        let log = temporary.path().join("output");
        let folder = temporary.path().join("tmp");
        std::fs::create_dir(&folder).expect("a folder");
        let mut command = command(&["--port", "0", "--no-open"]);
        command.env("TMPDIR", &folder);
        let mut process = ManagedProcess::spawn(command, &log, temporary.path()).expect("started");
        let url = eventually(START, "the playground's address", || {
            if let Some(status) = process.exited().expect("a child") {
                panic!("it has ended, {status}: {}", process.log());
            }
            let log = process.log();
            let lines = log.lines().map(str::trim);
            let mut urls = lines.filter(|line| line.starts_with("http://"));
            urls.next().map(str::to_owned)
        });
        let (address, token) = url.split_once("/?token=").expect("a token");
        let (_, port) = address.rsplit_once(':').expect("a port");
        Playground {
            port: port.parse().expect("a number"),
            token: token.to_owned(),
            process,
            url,
            temporary,
        }
    }

    /// The console of a broker.
    pub(crate) fn console(&self, broker: u16) -> String {
        format!("http://127.0.0.1:{}/", self.port + 7 + broker)
    }

    /// Its temporary folder with the data, while it is there.
    pub(crate) fn data(&self) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.temporary.path().join("tmp")).expect("a folder");
        let mut entries = entries.map(|entry| entry.expect("an entry").path());
        entries.next()
    }

    /// The answer to a request with these headers.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connected");
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nContent-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("\r\n{body}");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    }

    /// Has an action done.
    pub(crate) fn act(&self, action: &str) {
        let host = format!("127.0.0.1:{}", self.port);
        let headers = [("Host", host.as_str()), ("X-Playground-Token", &self.token)];
        let answer = self.ask("POST", "/control", &headers, action);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{action}: {answer}");
    }
}

/// `highwater playground` with these arguments.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(highwater::binary().expect("highwater builds"));
    command.arg("playground").args(arguments);
    command
}

/// Processes whose command line has this in it.
pub(crate) fn processes_with(text: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc")
        .expect("a system with /proc")
        .flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id: &i32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    })
    .collect()
}

/// Runs a scenario of `drive.js` against the playground.
pub(crate) fn drive(scenario: &str, playground: &Playground) -> Result<()> {
    let program = install()?.join("drive.js");
    let screenshots = std::env::var_os(SCREENSHOTS).unwrap_or_default();
    let output = Command::new("node")
        .arg(program)
        .args([scenario, &playground.url, &playground.console(1)])
        .arg(screenshots)
        .stdin(Stdio::null())
        .output()
        .context("cannot run node: is it installed?")?;
    if !output.status.success() {
        bail!(
            "{scenario}:\n{}\n{}\nthe playground:\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            playground.process.log()
        );
    }
    Ok(())
}

/// `drive.js` with puppeteer-core, in the cache.
fn install() -> Result<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let files = ["drive.js", "package.json", "package-lock.json"].map(|file| sources.join(file));
    let contents = files
        .iter()
        .map(std::fs::read)
        .collect::<std::io::Result<Vec<_>>>()?;
    let digest = digest(contents.iter().map(Vec::as_slice));
    get_or_install(&format!("browser-{digest}"), |folder| {
        for file in &files {
            std::fs::copy(file, folder.join(file.file_name().context("a file name")?))?;
        }
        run(Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(folder))?;
        Ok(())
    })
}
