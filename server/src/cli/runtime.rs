//! The threads and limits of the process.

use std::io;
use std::num::NonZero;
use std::thread::available_parallelism;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};

/// More workers than this gain nothing.
const MAX_WORKERS: usize = 64;
/// Threads for work that blocks: cold reads, forced writes, loading. They end when they are idle.
const MAX_BLOCKING_THREADS: usize = 32;
/// Room for the deepest decoder; only what is touched takes memory.
const STACK_BYTES: usize = 1024 * 1024;

/// The runtime: one worker a core.
pub(super) fn build() -> io::Result<Runtime> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    Builder::new_multi_thread()
        .worker_threads(cores.min(MAX_WORKERS))
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .thread_name("highwater")
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
}

/// Raises the number of open files to what the system allows this process, as the Java runtime does.
pub(super) fn raise_open_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}
