//! Tests of taking the data directories.

use super::*;

const CLUSTER: &str = "5L6g3nShT-eMCtK--X86sw";
const OTHER_CLUSTER: &str = "h9Gwjcn--cl2dE55KELh3A";

fn properties(cluster_id: &str, node_id: i32) -> Option<MetaProperties> {
    let directory_id = TopicId::random();
    Some(MetaProperties {
        cluster_id: cluster_id.to_owned(),
        node_id,
        directory_id,
    })
}

fn agree_on(found: &[Option<MetaProperties>], asked_for: Option<&str>) -> Result<String, String> {
    let found: Vec<_> = found
        .iter()
        .enumerate()
        .map(|(index, properties)| (PathBuf::from(format!("/d{index}")), properties.clone()))
        .collect();
    agree(&found, 1, asked_for).map_err(|error| error.to_string())
}

#[test]
fn the_cluster_id_is_that_of_the_directories_or_a_new_one() {
    assert_eq!(
        agree_on(&[None, properties(CLUSTER, 1)], None).as_deref(),
        Ok(CLUSTER)
    );
    assert_eq!(agree_on(&[None], Some(CLUSTER)).as_deref(), Ok(CLUSTER));
    assert_eq!(
        agree_on(&[properties(CLUSTER, 1)], Some(CLUSTER)).as_deref(),
        Ok(CLUSTER)
    );
    let new = agree_on(&[None], None).expect("a new id");
    assert_eq!(new.len(), 22);
    assert!(new.parse::<TopicId>().is_ok());
}

#[test]
fn directories_of_others_are_refused() {
    let error = agree_on(&[properties(CLUSTER, 2)], None).expect_err("another node");
    assert_eq!(error, "/d0 belongs to node 2, but node.id is 1");
    let error =
        agree_on(&[properties(CLUSTER, 1)], Some(OTHER_CLUSTER)).expect_err("another cluster");
    assert!(
        error.contains("but the cluster id asked for is of cluster h9Gwjcn--cl2dE55KELh3A"),
        "{error}"
    );
    let two = [properties(CLUSTER, 1), None, properties(OTHER_CLUSTER, 1)];
    let error = agree_on(&two, None).expect_err("two clusters");
    assert_eq!(
        error,
        "/d2 belongs to cluster h9Gwjcn--cl2dE55KELh3A, but /d0 is of cluster 5L6g3nShT-eMCtK--X86sw"
    );
    let copy = properties(CLUSTER, 1);
    let error = agree_on(&[copy.clone(), copy], None).expect_err("a copy");
    assert!(
        error.starts_with("/d0 and /d1 have the same directory.id "),
        "{error}"
    );
    for bad in [
        "",
        "cluster",
        "5L6g3nShT-eMCtK--X86sw=",
        "5L6g3nShT/eMCtK++X86sw",
    ] {
        assert!(
            agree_on(&[None], Some(bad))
                .expect_err("no id")
                .contains("is no cluster id")
        );
    }
}

#[test]
fn a_directory_with_other_files_is_refused_and_a_fresh_mount_is_not() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("lost+found")).expect("made");
    fs::write(dir.path().join(".lock"), "").expect("written");
    refuse_foreign_files(dir.path()).expect("a fresh mount");
    fs::write(dir.path().join("meta.properties.tmp"), "version=").expect("written");
    refuse_foreign_files(dir.path()).expect("an interrupted format");
    fs::write(dir.path().join("letter.txt"), "").expect("written");
    let error = refuse_foreign_files(dir.path())
        .expect_err("a letter")
        .to_string();
    assert!(
        error.contains("(such as letter.txt) but no meta.properties"),
        "{error}"
    );
    fs::write(dir.path().join("meta.properties"), "").expect("written");
    refuse_foreign_files(dir.path()).expect("a data directory");
}

fn open_dirs(log_dirs: Vec<PathBuf>) -> Result<LogDirs, LogDirError> {
    let settings = LogManagerSettings {
        log_dirs,
        ..LogManagerSettings::default()
    };
    open(settings, 1, Some(CLUSTER))
}

#[test]
fn a_node_starts_without_a_directory_whose_disk_has_failed() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let both = || open_dirs(vec![first.clone(), second.clone()]);
    let unusable = |dirs: &LogDirs| {
        let unusable = dirs.manager.unusable_dirs().iter();
        unusable.map(|dir| dir.path.clone()).collect::<Vec<_>>()
    };
    let ids = both().expect("both").directory_ids;
    assert_eq!(ids.len(), 2);
    std::fs::rename(&second, folder.path().join("gone")).expect("renamed");
    std::fs::write(&second, "").expect("a file in its place");
    // Without metadata there is nothing to go on with: they may lie where nothing can be read.
    let error = both().expect_err("no metadata").to_string();
    assert!(error.contains("is a file, not a directory"), "{error}");
    let metadata = first.join("__cluster_metadata-0");
    std::fs::create_dir(&metadata).expect("made");
    std::fs::write(metadata.join("00000000000000000000.log"), "x").expect("written");
    let dirs = both().expect("the first is enough");
    assert_eq!(unusable(&dirs), std::slice::from_ref(&second));
    assert_eq!(dirs.directory_ids, ids[..1]);
    assert!(dirs.formatted.is_empty());
    drop(dirs);
    // So is one of which not even the mark of the last stop can be read.
    let third = folder.path().join("third");
    std::fs::create_dir_all(third.join(".kafka_cleanshutdown")).expect("made");
    let dirs = open_dirs(vec![first.clone(), third.clone()]).expect("the first is enough");
    assert_eq!(unusable(&dirs), [third]);
    drop(dirs);
    // The first one is needed.
    let error = open_dirs(vec![second.clone(), first.clone()]).expect_err("needed");
    assert!(error.to_string().contains("second"), "{error}");
    // Whose it is, is not the disk's fault.
    std::fs::remove_file(&second).expect("removed");
    std::fs::create_dir(&second).expect("made");
    std::fs::write(second.join("notes.txt"), "").expect("written");
    let error = both().expect_err("another's").to_string();
    assert!(error.contains("notes.txt"), "{error}");
    std::fs::remove_dir_all(&second).expect("removed");
    std::fs::rename(folder.path().join("gone"), &second).expect("renamed");
    let dirs = both().expect("both again");
    assert!(unusable(&dirs).is_empty());
    assert_eq!(dirs.directory_ids, ids);
}
