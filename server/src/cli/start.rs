//! `highwater start`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ready::Ready;
use super::signals::StopSignals;
use super::{StartArguments, failed, logging, print, runtime};
use crate::broker::{BoundListeners, BrokerPages, RunningBroker};
use crate::config::{BrokerConfig, ConfigNotice, DynamicConfig};
use crate::log_dirs;
use crate::web::{BrokerSite, WebServer, WebSockets};

/// Variable with the cluster id when the command line has none, as for Apache Kafka's container image.
const CLUSTER_ID_VARIABLE: &str = "CLUSTER_ID";

/// Starts the broker, serves until a signal ends it, and gives the exit code.
pub(super) fn start(arguments: &StartArguments) -> ExitCode {
    let began = Instant::now();
    match run(arguments, began) {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

fn run(arguments: &StartArguments, began: Instant) -> anyhow::Result<ExitCode> {
    let variable = |name: &str| std::env::var(name).ok();
    logging::begin(arguments, variable).map_err(anyhow::Error::msg)?;
    let (config, notices) = arguments.settings.load(std::env::vars_os())?;
    let config = Arc::new(config);
    for notice in &notices {
        tell(notice);
    }
    runtime::raise_open_file_limit();
    let cluster_id = arguments
        .cluster_id
        .clone()
        .or_else(|| variable(CLUSTER_ID_VARIABLE))
        .filter(|id| !id.is_empty());
    let runtime = runtime::build()?;
    let code = runtime.block_on(serve(arguments, config, cluster_id.as_deref(), began))?;
    runtime.shutdown_background();
    Ok(code)
}

fn tell(notice: &ConfigNotice) {
    match notice {
        ConfigNotice::NoCounterpart { .. } => tracing::info!("{notice}"),
        _ => tracing::warn!("{notice}"),
    }
}

/// Takes the addresses, opens the directories, starts the broker, and stops it when a signal asks for it.
async fn serve(
    arguments: &StartArguments,
    config: Arc<DynamicConfig>,
    cluster_id: Option<&str>,
    began: Instant,
) -> anyhow::Result<ExitCode> {
    let mut signals = StopSignals::listen()?;
    if arguments.until_stdin_closes {
        signals.watch_stdin();
    }
    let current = config.current();
    // Before any directory: with an address in use nothing changes on disk.
    let listeners = BoundListeners::bind(&current)?;
    let web = WebSockets::bind(&current.http_listeners)?;
    let dirs = log_dirs::open(current.log_manager(), current.node_id, cluster_id)?;
    if current.quorum.is_quorum_of_one() {
        dirs.refuse_lost_metadata()?;
    }
    for dir in &dirs.formatted {
        tracing::info!(dir = %dir.display(), cluster_id = dirs.cluster_id, "formatted an empty data directory");
    }
    let cluster_id = dirs.cluster_id.clone();
    let running = tokio::select! {
        started = RunningBroker::start(listeners, dirs, config) => started?,
        received = signals.next() => {
            // A broker that the controllers do not let in may wait for long. The next start looks through its logs.
            tracing::info!(signal = received.name, "stopping before the broker has come to run");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let web = match start_web(web, &running) {
        Ok(web) => web,
        Err(error) => {
            running.stop().await?;
            return Err(error.into());
        }
    };
    tell_ready(&current, &running, &web, &cluster_id, began.elapsed());

    let received = tokio::select! {
        received = signals.next() => received,
        reason = running.until_failed() => {
            web.stop();
            running.stop().await?;
            anyhow::bail!("{reason}");
        }
    };
    let stopping_since = tokio::time::Instant::now();
    tracing::info!(signal = received.name, "stopping");
    web.stop();
    tokio::select! {
        stopped = running.stop() => {
            stopped?;
            tracing::info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
        again = signals.next_on_purpose(stopping_since) => {
            tracing::warn!(signal = again.name, "stopping at once, the next start will recover");
            // No destructor runs and no thread is waited for, as if the signal had ended the process.
            std::process::exit(128 + i32::from(again.number))
        }
    }
}

fn start_web(sockets: WebSockets, running: &RunningBroker) -> std::io::Result<WebServer> {
    let pages = BrokerPages::new(Arc::clone(running.broker()));
    WebServer::start(sockets, BrokerSite::new(Arc::new(pages)))
}

/// Tells on stdout that the broker is ready; a reader that has gone away does not matter.
fn tell_ready(
    config: &BrokerConfig,
    running: &RunningBroker,
    web: &WebServer,
    cluster_id: &str,
    took: Duration,
) {
    let logs = running.broker().replicas.logs();
    let used = logs.log_dirs().into_iter().map(|dir| dir.path);
    let unusable = logs.unusable_dirs().iter().map(|dir| dir.path.clone());
    let message = Ready {
        listeners: running.listeners(),
        http: web.addresses(),
        node_id: config.node_id,
        cluster_id,
        log_dirs: used.collect(),
        unusable_log_dirs: unusable.collect(),
        took,
    }
    .message();
    // A reader that has gone away does not matter.
    print(&message);
}
