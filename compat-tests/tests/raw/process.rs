//! What a broker's process holds, from /proc.

use std::fs;

use compat_tests::broker::Broker;

fn status_bytes(broker: &Broker, name: &str) -> u64 {
    let id = broker.id().expect("the broker runs");
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("a status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .expect("the line");
    let kib: u64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kib * 1024
}

/// Anonymous resident memory.
pub(crate) fn resident_bytes(broker: &Broker) -> u64 {
    status_bytes(broker, "RssAnon:")
}

/// The most that was ever resident, files included.
pub(crate) fn peak_resident_bytes(broker: &Broker) -> u64 {
    status_bytes(broker, "VmHWM:")
}

/// Open file descriptors.
pub(crate) fn descriptors(broker: &Broker) -> usize {
    let id = broker.id().expect("the broker runs");
    fs::read_dir(format!("/proc/{id}/fd"))
        .expect("a list of descriptors")
        .count()
}
