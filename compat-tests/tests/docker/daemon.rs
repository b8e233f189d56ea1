//! A Docker daemon of the tests' own, with the images in it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use compat_tests::cache::{copy_folder, digest, get_or_install, run, workspace_root};
use compat_tests::highwater;
use compat_tests::process::{ManagedProcess, eventually, poll};

/// For what takes a moment.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// The image that the compose files start.
pub(crate) const DEBIAN: &str = "highwater:latest";
/// The image without a distribution.
pub(crate) const MINIMAL: &str = "highwater:minimal";
/// What the images are built from where nothing can be pulled.
const BASE: &str = "debian:bookworm-slim";
/// The binary, in the build context.
const BINARY: &str = "docker/highwater";

/// A running daemon; all that it runs ends with the tests.
pub(crate) struct Docker {
    daemon: ManagedProcess,
    folder: PathBuf,
    ports: Mutex<()>,
}

/// The daemon of this test run, with the images built. `None` where only root could start one, except in CI.
pub(crate) fn docker() -> Option<&'static Docker> {
    static DOCKER: OnceLock<Option<Docker>> = OnceLock::new();
    start_once(&DOCKER)
}

/// A second one, on whose ports and names nobody else runs a cluster.
pub(crate) fn second_docker() -> Option<&'static Docker> {
    static DOCKER: OnceLock<Option<Docker>> = OnceLock::new();
    start_once(&DOCKER)
}

fn start_once(docker: &'static OnceLock<Option<Docker>>) -> Option<&'static Docker> {
    let docker = docker.get_or_init(|| {
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        if !is_root && std::env::var_os("CI").is_none() {
            return None;
        }
        Some(Docker::start().unwrap_or_else(|error| panic!("{error:#}")))
    });
    if docker.is_none() {
        eprintln!("skipped: only root can run a Docker daemon");
    }
    docker.as_ref()
}

impl Docker {
    fn start() -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("highwater-docker-")
            .tempdir()?
            .keep();
        let scripts = workspace_root().join("compat-tests/docker");
        let mut command = Command::new(scripts.join("daemon"));
        command.arg(&folder);
        let log = folder.join("daemon.log");
        let mut docker = Self {
            daemon: ManagedProcess::spawn(command, &log, &folder)?,
            folder,
            ports: Mutex::default(),
        };
        docker.make_context()?;
        docker.wait_for_the_daemon()?;
        docker.wrap_docker()?;
        docker.import_base(&scripts.join("base-image"))?;
        docker.build("debian", DEBIAN)?;
        docker.build("minimal", MINIMAL)?;
        Ok(docker)
    }

    fn wait_for_the_daemon(&mut self) -> Result<()> {
        let socket = self.folder.join("docker.sock");
        let daemon = &mut self.daemon;
        poll(LIMIT, || {
            let ended = daemon.exited().ok().flatten().is_some();
            (ended || socket.exists()).then_some(())
        });
        ensure!(
            self.docker(&["info"]).output()?.status.success(),
            "no Docker daemon runs here:\n{}",
            self.daemon.log()
        );
        Ok(())
    }

    /// What the images are built from: our files, and a binary without debugging information.
    fn make_context(&self) -> Result<()> {
        let context = self.context();
        copy_folder(&workspace_root().join("docker"), &context.join("docker"))?;
        let ignored = ".dockerignore";
        fs::copy(workspace_root().join(ignored), context.join(ignored))?;
        run(Command::new("strip")
            .arg("-o")
            .arg(context.join(BINARY))
            .arg(highwater::binary()?))?;
        Ok(())
    }

    /// Puts a `docker` before the real one that knows `docker compose` where only docker-compose is installed.
    fn wrap_docker(&self) -> Result<()> {
        let real = run(Command::new("sh").args(["-c", "command -v docker"]))?;
        let real = real.trim();
        let has_compose = self.docker(&["compose", "version"]).output()?;
        let compose = match has_compose.status.success() {
            true => format!("exec {real} compose \"$@\""),
            false => "exec docker-compose \"$@\"".to_owned(),
        };
        let script = format!(
            "#!/bin/sh\nif [ \"${{1-}}\" = compose ]; then shift; {compose}; fi\nexec {real} \"$@\"\n"
        );
        let wrapper = self.folder.join("bin/docker");
        fs::create_dir(self.folder.join("bin"))?;
        fs::write(&wrapper, script)?;
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    fn import_base(&self, script: &Path) -> Result<()> {
        let text = fs::read(script)?;
        let key = format!("debian-bookworm-slim-{}", digest([text.as_slice()]));
        let folder = get_or_install(&key, |folder| {
            run(Command::new(script).arg(folder.join("image.tar")))?;
            Ok(())
        })?;
        let image = folder.join("image.tar");
        let image = image.to_str().context("a path that is text")?;
        self.run(&["import", "--change", "CMD [\"bash\"]", image, BASE])?;
        Ok(())
    }

    fn build(&self, target: &str, tag: &str) -> Result<()> {
        let mut command = self.docker(&["build", "-f", "docker/Dockerfile", "--target", target]);
        command.args(["--build-arg", &format!("BUILD_IMAGE={BASE}")]);
        command.args(["--build-arg", &format!("BINARY={BINARY}")]);
        run(command.args(["-t", tag, "."]).current_dir(self.context()))?;
        Ok(())
    }

    fn context(&self) -> PathBuf {
        self.folder.join("context")
    }

    /// Where the compose files are.
    pub(crate) fn compose_folder(&self) -> PathBuf {
        self.context().join("docker")
    }

    /// A new folder for a test, which the containers' user cannot write to.
    pub(crate) fn folder_of_root(&self, name: &str) -> PathBuf {
        let folder = self.folder.join(name);
        fs::create_dir(&folder).unwrap();
        folder
    }

    /// A command that reaches the ports of the containers on localhost, and finds our `docker`.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.daemon.id()));
        command.arg("--").arg(program);
        self.prepare(&mut command);
        command
    }

    /// `docker` with these arguments.
    pub(crate) fn docker(&self, arguments: &[&str]) -> Command {
        let wrapper = self.folder.join("bin/docker");
        let docker = if wrapper.exists() {
            wrapper
        } else {
            "docker".into()
        };
        let mut command = Command::new(docker);
        command.args(arguments);
        self.prepare(&mut command);
        command
    }

    fn prepare(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        let folder = self.folder.display();
        command
            .env("PATH", format!("{folder}/bin:{path}"))
            .env("DOCKER_HOST", format!("unix://{folder}/docker.sock"))
            // Debian has no BuildKit; where it is, the Dockerfile must do without it all the same.
            .env("DOCKER_BUILDKIT", "0")
            .env("HIGHWATER_BUILD_IMAGE", BASE)
            .env("HIGHWATER_BINARY", BINARY);
    }

    /// Runs `docker` to its end and gives what it printed.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        run(&mut self.docker(arguments))
    }

    /// What `docker inspect` says of an image or container.
    pub(crate) fn inspect(&self, what: &str) -> serde_json::Value {
        let text = self.run(&["inspect", what]).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()[0].take()
    }

    /// Waits until a container is healthy.
    pub(crate) fn until_healthy(&self, container: &str) {
        eventually(LIMIT, &format!("{container} is healthy"), || {
            std::thread::sleep(Duration::from_millis(200));
            let state = self.inspect(container)["State"].take();
            assert_eq!(state["Running"], true, "{container} has ended: {state}");
            (state["Health"]["Status"] == "healthy").then_some(())
        });
    }

    /// What a container has written to stdout and stderr.
    pub(crate) fn logs(&self, container: &str) -> Output {
        self.docker(&["logs", container]).output().unwrap()
    }

    /// The ports of the compose files are taken by one test at a time.
    pub(crate) fn ports(&self) -> MutexGuard<'_, ()> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one of our compose files runs; it is removed with its data when this is dropped, should the test have failed.
pub(crate) struct Project {
    docker: &'static Docker,
    file: &'static str,
    is_down: bool,
}

impl Project {
    /// Builds and starts it.
    pub(crate) fn up(docker: &'static Docker, file: &'static str) -> Self {
        let project = Self {
            docker,
            file,
            is_down: false,
        };
        project.compose(&["up", "--detach", "--build"]).unwrap();
        project
    }

    /// Runs `docker compose` on it and gives what it printed.
    pub(crate) fn compose(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.docker.docker(&["compose", "-f", self.file]);
        run(command
            .args(arguments)
            .current_dir(self.docker.compose_folder()))
    }

    /// Removes it with its data, and asserts that nothing of it is left.
    pub(crate) fn down(mut self) {
        self.is_down = true;
        self.compose(&["down", "--volumes"]).unwrap();
        let filter = "label=com.docker.compose.project=highwater";
        for list in [&["ps", "--all"][..], &["volume", "ls"], &["network", "ls"]] {
            let mut command = self.docker.docker(list);
            let left = run(command.args(["--quiet", "--filter", filter])).unwrap();
            assert_eq!(left, "", "{list:?}");
        }
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        if !self.is_down
            && let Err(error) = self.compose(&["down", "--volumes"])
        {
            eprintln!("{error:#}");
        }
    }
}

/// A container with a name; it is removed with its volumes when this is dropped.
pub(crate) struct Container {
    docker: &'static Docker,
    /// Its name.
    pub(crate) name: &'static str,
}

impl Container {
    /// `docker run --detach --name NAME` with these arguments.
    pub(crate) fn start(docker: &'static Docker, name: &'static str, arguments: &[&str]) -> Self {
        let mut command = docker.docker(&["run", "--detach", "--name", name]);
        run(command.args(arguments)).unwrap();
        Self { docker, name }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let removed = self.docker.run(&["rm", "--force", "--volumes", self.name]);
        if !std::thread::panicking() {
            removed.unwrap();
        }
    }
}
