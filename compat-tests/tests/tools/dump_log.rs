//! kafka-dump-log.sh, on the files of both brokers.

use std::fs;
use std::path::{Path, PathBuf};

use compat_tests::cluster::{Cluster, for_each_shared_cluster};
use compat_tests::own_tools;

use super::frame::{both_plain, ours};

/// The files of a partition on a node that still writes to it, copied so that both tools see the same.
fn copied(cluster: &Cluster, node: i32, partition: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let folder = find(cluster.data(node).unwrap(), partition)
        .unwrap_or_else(|| panic!("node {node} has {partition}"));
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        // A file may be renamed or deleted meanwhile.
        fs::copy(entry.path(), copy.path().join(entry.file_name())).ok();
    }
    copy
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let direct = folder.join(name);
    if direct.is_dir() {
        return Some(direct);
    }
    let mut folders = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    folders.find_map(|entry| {
        let path = entry.path();
        let is_partition = path.join("partition.metadata").exists();
        (path.is_dir() && !is_partition).then(|| find(&path, name))?
    })
}

/// The files with a suffix, as `--files` takes them; none where there is none.
fn files(folder: &Path, suffix: &str) -> Option<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .filter(|path| path.ends_with(suffix))
        .collect();
    names.sort();
    (!names.is_empty()).then(|| names.join(","))
}

fn dump(folder: &Path, suffix: &str, options: &[&str]) -> String {
    let files = files(folder, suffix).unwrap_or_else(|| panic!("there are {suffix} files"));
    let args = [&["--files", &files], options].concat();
    both_plain("dump-log", &args, b"").same()
}

#[test]
fn the_files_of_a_topic_are_dumped_alike() {
    for_each_shared_cluster(|cluster| {
        // Small segments, so that there are indexes and snapshots of closed ones.
        let configs = [
            ("segment.bytes", "1048576"),
            ("index.interval.bytes", "100"),
        ];
        cluster.create_topic("dump-a", &[&[1, 2]], &configs);
        let bootstrap = cluster.bootstrap();
        let args = ["--bootstrap-server", &bootstrap, "--topic", "dump-a"];
        for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
            let lines: String = (0..300)
                .map(|number| format!("h:1\tk{number}\tv {number}\n"))
                .collect();
            let parsed = [
                "--reader-property",
                "parse.key=true",
                "--reader-property",
                "parse.headers=true",
            ];
            let args = [
                &args[..],
                &parsed,
                &["--compression-codec", codec, "--batch-size", "1000"],
            ]
            .concat();
            let run = own_tools::run("console-producer", &args, lines.as_bytes()).unwrap();
            assert_eq!(run.status, 0, "{run:?}");
        }
        let many = [
            "--topic",
            "dump-a",
            "--num-records",
            "30000",
            "--record-size",
            "100",
        ];
        ours(
            cluster,
            "producer-perf-test",
            &[&many[..], &["--throughput", "-1"]].concat(),
        );
        let copy = copied(cluster, 1, "dump-a-0");
        let folder = copy.path();
        let printed = dump(folder, "00000000000000000000.log", &["--print-data-log"]);
        assert!(printed.contains(" key: k7 "), "{}", &printed[..500]);
        dump(folder, ".log", &[]);
        dump(folder, "00000000000000000000.log", &["--deep-iteration"]);
        let first = [
            "--print-data-log",
            "--skip-record-metadata",
            "--max-bytes",
            "2000",
        ];
        dump(folder, "00000000000000000000.log", &first);
        let index = "00000000000000000000.index";
        let time_index = "00000000000000000000.timeindex";
        for checks in [&[][..], &["--verify-index-only"], &["--index-sanity-check"]] {
            dump(folder, index, checks);
            dump(folder, time_index, checks);
        }
        dump(folder, ".snapshot", &[]);
        dump(folder, "partition.metadata", &[]);
        // Damage is found by both.
        let log = folder.join("00000000000000000000.log");
        let mut bytes = fs::read(&log).unwrap();
        bytes[80] ^= 1;
        bytes.extend([0, 0, 0, 0, 0]);
        fs::write(&log, bytes).unwrap();
        let printed = dump(folder, "00000000000000000000.log", &[]);
        assert!(printed.contains("isvalid: false"), "{}", &printed[..500]);
        assert!(printed.contains("Found 5 invalid bytes"));
    });
}

#[test]
fn the_records_of_kafka_itself_are_dumped_alike() {
    for_each_shared_cluster(|cluster| {
        cluster.create_topic("dump-b", &[&[1]], &[]);
        let args = ["--reset-offsets", "--group", "dump-b", "--topic", "dump-b"];
        ours(
            cluster,
            "consumer-groups",
            &[&args[..], &["--to-latest", "--execute"]].concat(),
        );
        let copy = copied(cluster, 1, "__cluster_metadata-0");
        let printed = dump(copy.path(), ".log", &["--cluster-metadata-decoder"]);
        assert!(printed.contains("\"type\":\"REGISTER_BROKER_RECORD\""));
        assert!(printed.contains("LeaderChange: {") || cluster.is_highwater());
        if let Some(files) = files(copy.path(), ".checkpoint") {
            let args = ["--files", &files, "--cluster-metadata-decoder"];
            both_plain("dump-log", &args, b"").same();
        }
        let mut has_offsets = false;
        for partition in 0..50 {
            let name = format!("__consumer_offsets-{partition}");
            for node in [1, 2, 3] {
                let Some(folder) = find(cluster.data(node).unwrap(), &name) else {
                    continue;
                };
                let log = folder.join("00000000000000000000.log");
                if fs::metadata(&log).is_ok_and(|log| log.len() > 0) && !has_offsets {
                    let copy = copied(cluster, node, &name);
                    let printed = dump(copy.path(), ".log", &["--offsets-decoder"]);
                    has_offsets = printed.contains("\"type\":\"1\"");
                }
            }
        }
        assert!(has_offsets, "an offset was committed");
    });
}

#[test]
fn what_cannot_be_dumped_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("00000000000000000000.log");
    let missing = missing.to_str().unwrap();
    both_plain("dump-log", &["--files", missing], b"").refused_with("Cannot read");
    let args = [
        "--files",
        missing,
        "--value-decoder-class",
        "com.example.Mine",
    ];
    both_plain("dump-log", &args, b"").refused_with("com.example.Mine");
    for (name, length) in [
        ("00000000000000000000.log", 0),
        ("00000000000000000000.index", 0),
        ("none", 9),
    ] {
        let file = folder.path().join(name);
        fs::write(&file, vec![0; length]).unwrap();
        both_plain("dump-log", &["--files", file.to_str().unwrap()], b"").same();
    }
    fs::write(missing, [0; 99]).unwrap();
    both_plain("dump-log", &["--files", missing], b"").refused_with("Found record size 0 smaller");
}
