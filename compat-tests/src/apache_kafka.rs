//! Fetches and starts Apache Kafka 4.4.0, the reference.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::broker::{Broker, BrokerKind, BrokerOptions};
use crate::cache::{client_sources, copy_folder, digest, get_or_install, run};
use crate::node::JvmStart;

/// The version that everything is compared with.
pub const VERSION: &str = "4.4.0";
/// Cluster id of every broker of the tests.
pub(crate) const CLUSTER_ID: &str = "5L6g3nShT-eMCtK--X86sw";
/// Start-up is most of what a short-lived JVM does: take the quick compiler and the simple collector.
const QUICK_START: [&str; 5] = [
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    // That classes are loaded as ever, since the clock or a class path is another, is not told to whoever reads the output.
    "-Xlog:cds*=off",
    "-Xss512k",
];

/// Name of the file with classes that are loaded already.
pub(crate) const LOADED_CLASSES: &str = "classes.jsa";

const LOG4J: &str = "rootLogger.level=WARN
rootLogger.appenderRef.c.ref=c
appender.c.type=Console
appender.c.name=c
appender.c.target=SYSTEM_ERR
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=[%d] %p %m (%c)%n
";

/// The folder with `libs/` (Kafka's jars and what they need) and `conf/`, fetched from Maven on first use.
///
/// # Errors
/// When Maven is missing or cannot fetch.
pub fn home() -> Result<PathBuf> {
    let pom = client_sources("java").join("pom.xml");
    let key = digest([fs::read(&pom)?.as_slice(), LOG4J.as_bytes()]);
    get_or_install(&format!("apache-kafka-{VERSION}-{key}"), |folder| {
        run(Command::new("mvn")
            .args(["-q", "-B", "-f"])
            .arg(&pom)
            .arg("dependency:copy-dependencies")
            .arg(format!(
                "-DoutputDirectory={}",
                folder.join("libs").display()
            ))
            .arg("-Dmdep.useBaseVersion=true"))?;
        fs::create_dir(folder.join("conf"))?;
        fs::write(folder.join("conf/log4j2.properties"), LOG4J)?;
        Ok(())
    })
}

/// The class path of Kafka's jars, then of its settings for logging.
///
/// # Errors
/// As [`home`].
pub fn class_path() -> Result<String> {
    let home = home()?.display().to_string();
    Ok(format!("{home}/libs/*:{home}/conf"))
}

/// `java` with Kafka's class path and `extra` folders after it, set for a quick start.
///
/// # Errors
/// As [`home`], and when the classes that a broker loads cannot be kept ready.
pub fn java(heap_mib: u32, extra_class_path: &[&Path]) -> Result<Command> {
    let mut class_path = class_path()?;
    for folder in extra_class_path {
        class_path = format!("{class_path}:{}", folder.display());
    }
    let mut command = quick_java(heap_mib);
    let archive = loaded_classes()?.display();
    command
        .arg(format!("-XX:SharedArchiveFile={archive}"))
        .arg("-cp")
        .arg(class_path);
    Ok(command)
}

fn quick_java(heap_mib: u32) -> Command {
    let mut command = Command::new("java");
    command.arg(format!("-Xmx{heap_mib}m")).args(QUICK_START);
    command
}

/// The classes that a broker loads as the JVM has them in memory, which halves the time of a start. Made once by a broker
/// that starts and stops; it holds for class paths that begin with the one that it was made with, in which a folder of
/// classes may not be.
fn loaded_classes() -> Result<&'static Path> {
    static ARCHIVE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let archive =
        ARCHIVE.get_or_init(|| make_loaded_classes().map_err(|error| format!("{error:#}")));
    archive.as_deref().map_err(|error| anyhow!("{error}"))
}

fn make_loaded_classes() -> Result<PathBuf> {
    let home = home()?;
    let jvm = Command::new("java").arg("-version").output();
    let jvm = jvm.context("cannot run java: is it installed?")?.stderr;
    let key = digest([home.as_os_str().as_encoded_bytes(), &jvm]);
    let name = format!("apache-kafka-{VERSION}-loaded-{key}");
    let folder = get_or_install(&name, |folder| {
        let options = BrokerOptions::for_its_classes();
        let mut broker = Broker::start(BrokerKind::ApacheKafka, options)?;
        broker.stop()?;
        let loaded = broker.log_dir().with_file_name(LOADED_CLASSES);
        fs::copy(loaded, folder.join(LOADED_CLASSES)).context("the JVM has kept no classes")?;
        Ok(())
    })?;
    Ok(folder.join(LOADED_CLASSES))
}

/// A metadata directory as the storage tool formats it with these levels of features: made once, copied for each new
/// broker.
fn formatted(features: &BTreeMap<String, i16>) -> Result<PathBuf> {
    let levels = features
        .iter()
        .map(|(name, level)| format!("{name}={level}"));
    let levels: Vec<String> = levels.collect();
    let suffix: String = levels.iter().map(|level| format!("-{level}")).collect();
    get_or_install(
        &format!("apache-kafka-{VERSION}-formatted{suffix}"),
        |folder| {
            let properties = folder.join("format.properties");
            let text = format!(
                "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:1\n\
             listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:1\ncontroller.listener.names=CONTROLLER\n\
             log.dirs={}\n",
                folder.join("data").display()
            );
            fs::write(&properties, text)?;
            run(quick_java(256)
                .args(["-cp", &class_path()?])
                .args(["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"])
                .arg(&properties)
                .args(levels.iter().flat_map(|level| ["--feature", level])))?;
            Ok(())
        },
    )
}

/// What the storage tool writes for a node and a directory of its own.
fn meta_properties(node_id: &str) -> String {
    // Apache Kafka chooses no id that begins with a dash, since such a one is troublesome on a command line.
    let directory_id = loop {
        let id = URL_SAFE_NO_PAD.encode(uuid::Uuid::new_v4().as_bytes());
        if !id.starts_with('-') {
            break id;
        }
    };
    format!("version=1\nnode.id={node_id}\ncluster.id={CLUSTER_ID}\ndirectory.id={directory_id}\n")
}

/// The command that starts Apache Kafka with `properties`, formatting its log directories when empty.
pub(crate) fn command(
    properties: &BTreeMap<String, String>,
    features: &BTreeMap<String, i16>,
    folder: &Path,
    heap_mib: u32,
    start: JvmStart,
) -> Result<Command> {
    let log_dirs = properties.get("log.dirs").context("log.dirs is not set")?;
    let node_id = properties.get("node.id").context("node.id is not set")?;
    for (number, dir) in log_dirs.split(',').map(Path::new).enumerate() {
        // What is no directory is one that has failed.
        if dir.join("meta.properties").exists() || dir.is_file() {
            continue;
        }
        match number {
            0 => copy_folder(&formatted(features)?.join("data"), dir)?,
            _ => fs::create_dir_all(dir)?,
        }
        fs::write(dir.join("meta.properties"), meta_properties(node_id))?;
    }
    let file = folder.join("server.properties");
    let text: String = properties
        .iter()
        .map(|(key, value)| format!("{key}={value}\n"))
        .collect();
    fs::write(&file, text)?;
    let mut command = match start {
        JvmStart::Quick => java(heap_mib, &[])?,
        JvmStart::LoadClasses => {
            let mut command = quick_java(heap_mib);
            let archive = folder.join(LOADED_CLASSES);
            command.arg(format!("-XX:ArchiveClassesAtExit={}", archive.display()));
            // Only jars may be on the class path.
            let home = home()?.display().to_string();
            command
                .arg(format!(
                    "-Dlog4j2.configurationFile={home}/conf/log4j2.properties"
                ))
                .args(["-cp", &format!("{home}/libs/*")]);
            command
        }
        JvmStart::ByScript => {
            let mut command = Command::new("java");
            command
                .arg(format!("-Xms{heap_mib}m"))
                .arg(format!("-Xmx{heap_mib}m"))
                .args([
                    "-server",
                    "-XX:+UseG1GC",
                    "-XX:MaxGCPauseMillis=20",
                    "-XX:InitiatingHeapOccupancyPercent=35",
                ])
                .arg("-cp")
                .arg(class_path()?);
            command
        }
    };
    command.arg("kafka.Kafka").arg(file);
    Ok(command)
}
