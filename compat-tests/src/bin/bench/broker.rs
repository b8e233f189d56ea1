//! A broker process that the benchmark starts, stops, kills and starts again on the same data.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use compat_tests::raw::Connection;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, MetadataRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;

/// Which broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Product {
    Highwater,
    Kafka,
}

/// Where the two products' programs are.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    /// The highwater binary, built for release.
    pub(crate) highwater: PathBuf,
    /// Folder of Apache Kafka's jars.
    pub(crate) kafka_jars: PathBuf,
}

/// A running (or stopped) broker with a data directory of its own.
pub(crate) struct Broker {
    pub(crate) product: Product,
    pub(crate) address: SocketAddr,
    programs: Programs,
    dir: tempfile::TempDir,
    child: Option<Child>,
    topics_made: u32,
}

impl Broker {
    /// Makes an empty data directory and starts the broker on it; gives the time until it answered.
    pub(crate) fn start(
        product: Product,
        programs: &Programs,
        data: &Path,
    ) -> Result<(Self, Duration)> {
        fs::create_dir_all(data)?;
        let dir = tempfile::Builder::new().prefix("bench-").tempdir_in(data)?;
        let (port, controller_port) = (free_port()?, free_port()?);
        let mut broker = Self {
            product,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            programs: programs.clone(),
            dir,
            child: None,
            topics_made: 0,
        };
        broker.write_properties(port, controller_port)?;
        if product == Product::Kafka {
            let format = broker
                .java()
                .args([
                    "kafka.tools.StorageTool",
                    "format",
                    "-t",
                    "5L6g3nShT-eMCtK--X86sw",
                    "-c",
                ])
                .arg(broker.properties())
                .stdout(Stdio::null())
                .status()?;
            ensure!(
                format.success(),
                "formatting Apache Kafka's directory failed"
            );
        }
        let ready = broker.launch(&[])?;
        Ok((broker, ready))
    }

    fn properties(&self) -> PathBuf {
        self.dir.path().join("server.properties")
    }

    /// The data directory.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn write_properties(&self, port: u16, controller_port: u16) -> Result<()> {
        let mut lines = vec![
            format!("log.dirs={}", self.data_dir().display()),
            "offsets.topic.replication.factor=1".to_owned(),
            "group.initial.rebalance.delay.ms=0".to_owned(),
            "log.segment.delete.delay.ms=0".to_owned(),
            "auto.create.topics.enable=false".to_owned(),
        ];
        match self.product {
            Product::Highwater => lines.push(format!("listeners=PLAINTEXT://127.0.0.1:{port}")),
            Product::Kafka => lines.extend([
                "process.roles=broker,controller".to_owned(),
                "node.id=1".to_owned(),
                format!("controller.quorum.voters=1@127.0.0.1:{controller_port}"),
                format!(
                    "listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
                ),
                "controller.listener.names=CONTROLLER".to_owned(),
                "transaction.state.log.replication.factor=1".to_owned(),
                "transaction.state.log.min.isr=1".to_owned(),
            ]),
        }
        fs::write(self.properties(), lines.join("\n"))?;
        fs::write(self.dir.path().join("log4j2.properties"), LOG4J)?;
        Ok(())
    }

    fn java(&self) -> Command {
        let mut command = Command::new("java");
        let jars = self.programs.kafka_jars.display();
        command.args([
            "-Xms1g",
            "-Xmx1g",
            "-server",
            "-XX:+UseG1GC",
            "-XX:MaxGCPauseMillis=20",
        ]);
        command.arg("-XX:InitiatingHeapOccupancyPercent=35");
        command.args(["-cp", &format!("{jars}/*:{}", self.dir.path().display())]);
        command
    }

    /// Starts the process and waits until every partition of `topics` has a leader.
    fn launch(&mut self, topics: &[String]) -> Result<Duration> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.dir.path().join("broker.log"))?;
        let mut command = match self.product {
            Product::Highwater => {
                let mut command = Command::new(&self.programs.highwater);
                command.arg("start");
                command
            }
            Product::Kafka => {
                let mut command = self.java();
                command.arg("kafka.Kafka");
                command
            }
        };
        command.arg(self.properties()).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        let started = Instant::now();
        self.child = Some(command.spawn().context("start the broker")?);
        while started.elapsed() < Duration::from_secs(300) {
            if self.answers(topics).unwrap_or(false) {
                return Ok(started.elapsed());
            }
            if let Some(child) = &mut self.child
                && let Some(status) = child.try_wait()?
            {
                bail!(
                    "{:?} ended with {status}: {}",
                    self.product,
                    self.log_tail()
                );
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        bail!(
            "{:?} was not ready after 300 s: {}",
            self.product,
            self.log_tail()
        )
    }

    fn answers(&self, topics: &[String]) -> Result<bool> {
        let names = topics
            .iter()
            .map(|name| MetadataRequestTopic::default().with_name(Some(topic_name(name))));
        let request = MetadataRequest::default()
            .with_topics(Some(names.collect()))
            .with_allow_auto_topic_creation(false);
        let reply = Connection::open(self.address)?.call(9, &request)?;
        Ok(!reply.brokers.is_empty()
            && reply.topics.iter().all(|topic| {
                topic.error_code == 0
                    && topic
                        .partitions
                        .iter()
                        .all(|p| p.error_code == 0 && p.leader_id.0 >= 0)
            }))
    }

    fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.dir.path().join("broker.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// The process id.
    pub(crate) fn pid(&self) -> Result<u32> {
        Ok(self
            .child
            .as_ref()
            .context("the broker is not running")?
            .id())
    }

    /// Stops it in an orderly way and waits for its end.
    pub(crate) fn stop(&mut self) -> Result<Duration> {
        let Some(mut child) = self.child.take() else {
            return Ok(Duration::ZERO);
        };
        let began = Instant::now();
        if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        }
        while began.elapsed() < Duration::from_secs(120) {
            if child.try_wait()?.is_some() {
                return Ok(began.elapsed());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill()?;
        child.wait()?;
        bail!("{:?} did not stop within 120 s", self.product)
    }

    /// Kills it as a power cut would, the page cache aside.
    pub(crate) fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Starts it again on the same data; gives the time until `topics` are served.
    pub(crate) fn start_again(&mut self, topics: &[String]) -> Result<Duration> {
        self.launch(topics)
    }

    /// Creates topics with new names and gives the names once they are served.
    pub(crate) fn create_topics(
        &mut self,
        count: usize,
        partitions: i32,
        config: &[(&str, &str)],
    ) -> Result<Vec<String>> {
        let names: Vec<String> = (0..count)
            .map(|i| format!("bench-{}-{i}", self.topics_made))
            .collect();
        self.topics_made += 1;
        for name in &names {
            let configs = config.iter().map(|(key, value)| {
                CreatableTopicConfig::default()
                    .with_name(StrBytes::from_string((*key).to_owned()))
                    .with_value(Some(StrBytes::from_string((*value).to_owned())))
            });
            let topic = CreatableTopic::default()
                .with_name(topic_name(name))
                .with_num_partitions(partitions)
                .with_replication_factor(1)
                .with_configs(configs.collect());
            let request = CreateTopicsRequest::default()
                .with_topics(vec![topic])
                .with_timeout_ms(60_000);
            let reply = Connection::open(self.address)?.call(7, &request)?;
            for topic in &reply.topics {
                ensure!(topic.error_code == 0, "create {name}: {topic:?}");
            }
        }
        let began = Instant::now();
        while !self.answers(&names)? {
            ensure!(
                began.elapsed() < Duration::from_secs(120),
                "topics never got leaders"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(names)
    }

    /// Deletes topics and waits until their directories are gone.
    pub(crate) fn delete_topics(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            let request = DeleteTopicsRequest::default()
                .with_topic_names(vec![topic_name(name)])
                .with_timeout_ms(60_000);
            let reply = Connection::open(self.address)?.call(5, &request)?;
            for topic in &reply.responses {
                ensure!(topic.error_code == 0, "delete {name}: {topic:?}");
            }
        }
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(90) {
            let left = fs::read_dir(self.data_dir())?.flatten().filter(|entry| {
                let dir = entry.file_name();
                let dir = dir.to_string_lossy();
                names
                    .iter()
                    .any(|name| dir.starts_with(&format!("{name}-")))
            });
            if left.count() == 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the directories of deleted topics are still there after 90 s")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("could not end {:?}: {error}", self.product);
        }
    }
}

/// A topic's name as the codec wants it.
pub(crate) fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

const LOG4J: &str = "rootLogger.level=WARN
rootLogger.appenderRef.c.ref=c
appender.c.type=Console
appender.c.name=c
appender.c.target=SYSTEM_ERR
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=[%d] %p %m (%c)%n
";
