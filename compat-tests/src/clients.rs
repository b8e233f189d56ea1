//! Real clients: installed from their registries on first use, each behind the same four commands
//! (`compat-tests/clients/README.md`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::apache_kafka;
use crate::cache::{client_sources, copy_folder, digest, get_or_install, run};

/// A client program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Client {
    /// confluent-kafka for Python, that is librdkafka.
    ConfluentKafka,
    /// kafka-python.
    KafkaPython,
    /// aiokafka.
    Aiokafka,
    /// franz-go.
    FranzGo,
    /// sarama.
    Sarama,
    /// kafkajs.
    KafkaJs,
    /// Apache Kafka's own Java client.
    Java,
    /// rdkafka for Rust, with the librdkafka that it ships.
    Rdkafka,
}

impl Client {
    /// Every client that has a program.
    pub const ALL: [Self; 8] = [
        Self::ConfluentKafka,
        Self::KafkaPython,
        Self::Aiokafka,
        Self::FranzGo,
        Self::Sarama,
        Self::KafkaJs,
        Self::Java,
        Self::Rdkafka,
    ];

    /// Its folder below `compat-tests/clients`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ConfluentKafka => "confluent-kafka",
            Self::KafkaPython => "kafka-python",
            Self::Aiokafka => "aiokafka",
            Self::FranzGo => "franz-go",
            Self::Sarama => "sarama",
            Self::KafkaJs => "kafkajs",
            Self::Java => "java",
            Self::Rdkafka => "rdkafka",
        }
    }

    /// The codecs that it writes and reads as installed here.
    #[must_use]
    pub fn codecs(self) -> &'static [&'static str] {
        match self {
            // kafkajs ships gzip; snappy comes with its own plug-in, lz4 and zstd need native modules.
            Self::KafkaJs => &["none", "gzip", "snappy"],
            _ => &["none", "gzip", "snappy", "lz4", "zstd"],
        }
    }

    /// The command that runs its program; the caller adds the arguments.
    ///
    /// # Errors
    /// When it cannot be installed: the text says what is missing.
    pub fn command(self) -> Result<Command> {
        let sources = client_sources(self.name());
        Ok(match self {
            Self::ConfluentKafka | Self::KafkaPython | Self::Aiokafka => {
                let mut command = Command::new(python(self.name(), &sources)?);
                command.arg(sources.join("client.py"));
                command
            }
            Self::FranzGo | Self::Sarama => Command::new(go(self.name(), &sources)?),
            Self::KafkaJs => {
                let mut command = Command::new("node");
                command
                    .arg(node(&sources)?.join("client.js"))
                    .env("KAFKAJS_NO_PARTITIONER_WARNING", "1");
                command
            }
            Self::Java => {
                let classes = java_classes()?;
                let mut command = apache_kafka::java(256, &[&classes])?;
                command.arg("Client");
                command
            }
            Self::Rdkafka => Command::new(rust(&sources)?),
        })
    }
}

fn keyed(name: &str, files: &[PathBuf]) -> Result<String> {
    let contents = files
        .iter()
        .map(|file| fs::read(file).with_context(|| format!("cannot read {}", file.display())))
        .collect::<Result<Vec<_>>>()?;
    Ok(format!(
        "{name}-{}",
        digest(contents.iter().map(Vec::as_slice))
    ))
}

/// A virtual environment with what `requirements.txt` pins.
fn python(name: &str, sources: &Path) -> Result<PathBuf> {
    let requirements = sources.join("requirements.txt");
    let key = keyed(name, std::slice::from_ref(&requirements))?;
    let folder = get_or_install(&key, |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        run(Command::new(folder.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--no-input", "-r"])
            .arg(&requirements))?;
        Ok(())
    })?;
    Ok(folder.join("bin/python"))
}

fn go(name: &str, sources: &Path) -> Result<PathBuf> {
    let files = ["main.go", "go.mod", "go.sum"].map(|file| sources.join(file));
    let folder = get_or_install(&keyed(name, &files)?, |folder| {
        run(Command::new("go")
            .args(["build", "-o"])
            .arg(folder.join("client"))
            .arg(".")
            .current_dir(sources))?;
        Ok(())
    })?;
    Ok(folder.join("client"))
}

fn node(sources: &Path) -> Result<PathBuf> {
    let files = ["client.js", "package.json", "package-lock.json"].map(|file| sources.join(file));
    get_or_install(&keyed("kafkajs", &files)?, |folder| {
        for file in &files {
            fs::copy(file, folder.join(file.file_name().context("a file name")?))?;
        }
        run(Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(folder))?;
        Ok(())
    })
}

/// The classes compiled from `clients/java/*.java`.
///
/// # Errors
/// When `javac` is missing or refuses them.
pub fn java_classes() -> Result<PathBuf> {
    let sources = client_sources("java");
    let files = ["Client.java", "Streams.java", "Tools.java"].map(|file| sources.join(file));
    let class_path = apache_kafka::class_path()?;
    get_or_install(&keyed("java", &files)?, |folder| {
        run(Command::new("javac")
            .arg("-cp")
            .arg(&class_path)
            .arg("-d")
            .arg(folder)
            .args(&files))?;
        Ok(())
    })
}

fn rust(sources: &Path) -> Result<PathBuf> {
    let files = ["Cargo.toml", "Cargo.lock", "src/main.rs", "src/workload.rs"]
        .map(|file| sources.join(file));
    // librdkafka takes minutes to build: its build folder stays when only the program changes.
    let build = get_or_install(&keyed("rdkafka-build", &files[1..2])?, |_| Ok(()))?;
    let folder = get_or_install(&keyed("rdkafka", &files)?, |folder| {
        let copy = folder.join("sources");
        copy_folder(sources, &copy)?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        run(Command::new(cargo)
            .args(["build", "--release", "--locked", "--quiet", "--target-dir"])
            .arg(&build)
            .current_dir(&copy))?;
        fs::copy(build.join("release/compat-rdkafka"), folder.join("client"))?;
        Ok(())
    })?;
    Ok(folder.join("client"))
}
