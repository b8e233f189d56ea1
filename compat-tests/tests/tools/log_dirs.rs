//! kafka-log-dirs.sh.

use compat_tests::cluster::for_each_shared_cluster;

use super::frame::both;

#[test]
fn directories_are_printed_alike() {
    for_each_shared_cluster(|cluster| {
        cluster.create_topic("ldirs-a", &[&[1, 2], &[2, 3], &[3, 1], &[1, 3]], &[]);
        cluster.create_topic("ldirs-b", &[&[1, 2, 3]], &[]);
        let dirs = |args: &[&str]| both(cluster, "log-dirs", args);
        let printed = dirs(&["--describe", "--topic-list", "ldirs-a,ldirs-b"]).same();
        assert!(
            printed
                .contains(r#"{"partition":"ldirs-b-0","size":0,"offsetLag":0,"isFuture":false}"#),
            "{printed}"
        );
        dirs(&[
            "--describe",
            "--broker-list",
            "1,3",
            "--topic-list",
            "ldirs-a",
        ])
        .same();
        dirs(&[
            "--describe",
            "--broker-list",
            "2",
            "--topic-list",
            "nothing",
        ])
        .same();
        dirs(&["--describe", "--broker-list", "1,9"]).refused();
    });
}
