//! The stores against openraft's own tests of them, and what those do not know of: the metadata log.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use highwater_replication::cluster::MetadataRecord;
use highwater_replication::cluster::records::TopicRecord;
use highwater_storage::{LeaderEpoch, LogManager, LogManagerSettings};
use openraft::entry::{FromAppData, RaftEntry};
use openraft::storage::{RaftLogStorage as _, RaftLogStorageExt, RaftStateMachine};
use openraft::testing::{StoreBuilder, Suite};
use openraft::{CommittedLeaderId, RaftLogReader, RaftSnapshotBuilder};
use parking_lot::Mutex;
use tempfile::TempDir;
use uuid::Uuid;

use super::log_store::{Durability, LogStore};
use super::state_machine::StateMachine;
use super::types::{Entry, LogId, QuorumTypes, StorageError, Vote};
use super::{Applied, MetadataEntry};
use crate::controller::reserve::Reserve;
use crate::metadata::{
    MetadataReplica, data_batch, metadata_log_config, metadata_topic_id, metadata_topic_partition,
};

const CLUSTER_ID: &str = "5L6g3nShT-eMCtK--X86sw";
const NOW_MS: i64 = 1_700_000_000_000;

/// The files of one controller; opened anew they are what a restart finds.
struct Files {
    store: LogStore,
    machine: StateMachine,
    log: Arc<highwater_storage::Log>,
}

impl Files {
    fn open(dir: &Path) -> Self {
        let settings = LogManagerSettings {
            log_dirs: vec![dir.to_owned()],
            ..LogManagerSettings::default()
        };
        let logs = LogManager::open(settings).expect("the directory opens");
        let log = logs
            .get_or_create(
                &metadata_topic_partition(),
                Some(metadata_topic_id()),
                metadata_log_config(),
                NOW_MS,
            )
            .expect("the log opens");
        let replica = MetadataReplica::open(log.clone(), CLUSTER_ID).expect("the log replays");
        let store = LogStore::open(&dir.join("quorum-log"), Durability::Always);
        let store = store.expect("the quorum's log opens");
        let reserve = Arc::new(Mutex::new(Reserve::new(dir)));
        let machine = StateMachine::open(replica, store.clone(), reserve, Box::new(|_, _| {}));
        Self {
            machine: machine.expect("the state machine opens"),
            store,
            log,
        }
    }

    fn topics(&self) -> Vec<String> {
        let image = self.machine.image();
        image.topics().map(|topic| topic.name.to_string()).collect()
    }

    async fn apply(&mut self, entries: &[Entry]) -> Vec<Applied> {
        let applied = self.machine.apply(entries.to_vec()).await;
        applied.expect("applied")
    }
}

struct Builder;

impl StoreBuilder<QuorumTypes, LogStore, StateMachine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore, StateMachine), StorageError> {
        let dir = tempfile::tempdir().expect("a directory");
        let Files { store, machine, .. } = Files::open(dir.path());
        Ok((dir, store, machine))
    }
}

#[test]
fn the_stores_pass_openrafts_own_tests() {
    Suite::test_all(Builder).expect("they pass");
}

fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(CommittedLeaderId::new(term, 0), index)
}

fn blank(term: u64, index: u64) -> Entry {
    Entry::new_blank(log_id(term, index))
}

/// An entry with one batch for each of the names, from `base_offset` on.
fn topics(term: u64, index: u64, base_offset: i64, names: &[&str]) -> Entry {
    let mut batches = Vec::new();
    let mut end_offset = base_offset;
    for name in names {
        let record: MetadataRecord = TopicRecord {
            name: (*name).to_owned(),
            topic_id: Uuid::new_v4(),
        }
        .into();
        let batch = data_batch(&[record], end_offset, term as i32, NOW_MS).expect("a batch");
        batches.extend_from_slice(&batch);
        end_offset += 1;
    }
    let mut entry = Entry::from_app_data(MetadataEntry {
        epoch: term as i32,
        base_offset,
        end_offset,
        batches: Bytes::from(batches),
    });
    entry.log_id = log_id(term, index);
    entry
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(future)
}

#[test]
fn log_vote_and_what_was_truncated_and_purged_survive_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("quorum-log");
    let open = || LogStore::open(&path, Durability::Always).expect("opened");
    block_on(async {
        let mut store = open();
        assert!(store.is_empty());
        store.save_vote(&Vote::new(3, 2)).await.expect("saved");
        let entries = [
            blank(1, 0),
            topics(1, 1, 0, &["a", "b"]),
            topics(1, 2, 2, &["c"]),
            blank(1, 3),
            blank(1, 4),
        ];
        store
            .blocking_append(entries.clone())
            .await
            .expect("appended");
        store.truncate(log_id(1, 3)).await.expect("truncated");
        let last = topics(3, 3, 3, &["d"]);
        store
            .blocking_append([last.clone()])
            .await
            .expect("appended");
        store.purge(log_id(1, 0)).await.expect("purged");
        for mut store in [store, open()] {
            assert_eq!(store.vote(), Some(Vote::new(3, 2)));
            let state = store.get_log_state().await.expect("read");
            assert_eq!(state.last_purged_log_id, Some(log_id(1, 0)));
            assert_eq!(state.last_log_id, Some(log_id(3, 3)));
            let read = store.try_get_log_entries(0..10).await.expect("read");
            assert_eq!(read, [entries[1].clone(), entries[2].clone(), last.clone()]);
            assert_eq!((store.end_offset_at(1), store.end_offset_at(3)), (2, 4));
        }
        // Who won the vote must win another after a restart.
        let mut committed = Vote::new_committed(4, 2);
        let mut store = open();
        store.save_vote(&committed).await.expect("saved");
        let store = open();
        store.resign(1);
        assert_eq!(store.vote(), Some(committed), "another node's");
        store.resign(2);
        committed.committed = false;
        assert_eq!(store.vote(), Some(committed));
    });
}

#[test]
fn vote_and_last_entry_are_told_while_the_disk_is_written_and_are_those_of_the_last_change() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("quorum-log");
    let mut store = LogStore::open(&path, Durability::Always).expect("opened");
    // From another thread, as the answer to a pre-vote is: one that waited for the disk would not come.
    let told = |store: &LogStore| {
        let asking = store.clone();
        let (tell, told) = std::sync::mpsc::channel();
        store.while_it_is_written(|| {
            std::thread::spawn(move || {
                tell.send((
                    asking.vote(),
                    asking.last_log_id(),
                    asking.may_lack_entries(),
                ))
            });
            told.recv_timeout(Duration::from_secs(30))
                .expect("it does not wait for the disk")
        })
    };
    block_on(async {
        assert_eq!(told(&store), (None, None, false));
        let vote = Vote::new(1, 2);
        store.begin(blank(0, 0), vote, true).expect("begun");
        assert_eq!(told(&store), (Some(vote), Some(log_id(0, 0)), true));
        store.set_up_to_date().expect("noted");
        assert_eq!(told(&store), (Some(vote), Some(log_id(0, 0)), false));
        let vote = Vote::new(2, 1);
        store.save_vote(&vote).await.expect("saved");
        let entries = [blank(2, 1), blank(2, 2), blank(2, 3)];
        store.blocking_append(entries).await.expect("appended");
        assert_eq!(told(&store), (Some(vote), Some(log_id(2, 3)), false));
        store.truncate(log_id(2, 3)).await.expect("truncated");
        assert_eq!(told(&store), (Some(vote), Some(log_id(2, 2)), false));
        store.purge(log_id(2, 2)).await.expect("purged");
        assert_eq!(told(&store), (Some(vote), Some(log_id(2, 2)), false));
    });
}

#[test]
fn a_long_log_is_written_anew_without_what_is_purged() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("quorum-log");
    block_on(async {
        let mut store = LogStore::open(&path, Durability::WithRequests).expect("opened");
        store.save_vote(&Vote::new(1, 1)).await.expect("saved");
        let name = "x".repeat(200);
        let names = vec![name.as_str(); 100];
        let entry = |index: u64| topics(1, index, index as i64 * 100, &names);
        for index in 0..100 {
            store
                .blocking_append([entry(index)])
                .await
                .expect("appended");
        }
        let size = || std::fs::metadata(&path).expect("there").len();
        let long = size();
        store.purge(log_id(1, 97)).await.expect("purged");
        assert!(size() < long / 10, "{} of {long}", size());
        store
            .blocking_append([blank(2, 100)])
            .await
            .expect("appended");
        let mut again = LogStore::open(&path, Durability::WithRequests).expect("opened");
        assert_eq!(again.vote(), Some(Vote::new(1, 1)));
        for store in [&mut store, &mut again] {
            let read = store.try_get_log_entries(0..).await.expect("read");
            let ids: Vec<_> = read.iter().map(|entry| entry.log_id.index).collect();
            assert_eq!(ids, [98, 99, 100]);
            let limited = store.limited_get_log_entries(98, 101).await.expect("read");
            assert_eq!(limited.len(), 3);
        }
    });
}

#[test]
fn an_entry_changes_the_metadata_once_and_only_where_it_was_judged() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut files = Files::open(dir.path());
    block_on(async {
        let entries = [
            blank(1, 1),
            topics(1, 2, 0, &["a", "b"]),
            topics(1, 3, 2, &["c"]),
            // Judged on an older end of the log, by another controller.
            topics(2, 4, 0, &["d"]),
            topics(2, 5, 3, &["e"]),
        ];
        use Applied::{Appended, Stale};
        let applied = files.apply(&entries).await;
        assert_eq!(applied, [Stale, Appended, Appended, Stale, Appended]);
        assert_eq!(files.topics(), ["a", "b", "c", "e"]);
        // Again, as after a crash that lost how far it was.
        assert_eq!(files.apply(&entries).await, applied);
        assert_eq!(files.topics(), ["a", "b", "c", "e"]);
        assert_eq!(files.log.log_end_offset(), 4);
        // Judged in another epoch than it was agreed on in.
        let mut late = topics(2, 6, 4, &["f"]);
        late.log_id = log_id(3, 6);
        assert_eq!(files.apply(&[late]).await, [Stale]);
    });
}

#[test]
fn wherever_a_crash_cuts_the_metadata_log_the_entries_make_it_whole_again() {
    let entries = [
        topics(1, 1, 0, &["a", "b", "c"]),
        topics(1, 2, 3, &["d", "e"]),
        topics(2, 3, 3, &["stale", "too", "late"]),
        topics(2, 4, 5, &["f"]),
    ];
    for cut in 0..=6 {
        let dir = tempfile::tempdir().expect("a directory");
        block_on(async {
            let mut files = Files::open(dir.path());
            let applied = files.apply(&entries).await;
            let whole = files.topics();
            files.log.truncate_to(cut).expect("cut");
            drop(files);
            let mut files = Files::open(dir.path());
            assert_eq!(files.topics().len(), cut as usize);
            assert_eq!(files.apply(&entries).await, applied, "{cut}");
            assert_eq!(files.topics(), whole, "{cut}");
            assert_eq!(files.log.epoch_for_offset(5), Some(LeaderEpoch(2)));
        });
    }
}

#[test]
fn what_is_applied_is_noted_only_when_the_metadata_log_is_on_disk() {
    let dir = tempfile::tempdir().expect("a directory");
    block_on(async {
        let mut files = Files::open(dir.path());
        files.apply(&[blank(1, 1), topics(1, 2, 0, &["a"])]).await;
        drop(files);
        let mut files = Files::open(dir.path());
        assert_eq!(files.machine.applied_state().await.expect("read").0, None);
        files.apply(&[blank(1, 1), topics(1, 2, 0, &["a"])]).await;
        files.machine.close().expect("closed");
        assert_eq!(files.log.recovery_point(), 1);
        drop(files);
        let mut files = Files::open(dir.path());
        let applied = files.machine.applied_state().await.expect("read").0;
        assert_eq!(applied, Some(log_id(1, 2)));
    });
}

#[test]
fn a_snapshot_brings_another_controller_to_the_same_metadata() {
    let (one_dir, other_dir) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    block_on(async {
        let mut one = Files::open(one_dir.path());
        let entries = [
            topics(1, 1, 0, &["a", "b"]),
            blank(2, 2),
            topics(2, 3, 2, &["c"]),
        ];
        one.apply(&entries).await;
        let built = one.machine.build_snapshot().await.expect("built");
        assert_eq!(built.meta.last_log_id, Some(log_id(2, 3)));

        let mut other = Files::open(other_dir.path());
        other.apply(&entries[..1]).await;
        let current = one.machine.get_current_snapshot().await.expect("read");
        let current = current.expect("there is one");
        assert_eq!(current.meta, built.meta);
        let cut = Box::new(std::io::Cursor::new(vec![1, 2, 3]));
        other
            .machine
            .install_snapshot(&current.meta, cut)
            .await
            .expect_err("no snapshot");
        other
            .machine
            .install_snapshot(&current.meta, current.snapshot)
            .await
            .expect("installed");
        assert_eq!(other.topics(), ["a", "b", "c"]);
        let applied = |files: &mut Files| {
            let mut machine = files.machine.clone();
            async move { machine.applied_state().await.expect("read").0 }
        };
        assert_eq!(applied(&mut other).await, Some(log_id(2, 3)));
        // Nothing was closed; the snapshot says how far it is.
        drop(other);
        let mut other = Files::open(other_dir.path());
        assert_eq!(applied(&mut other).await, Some(log_id(2, 3)));
        assert_eq!(other.topics(), ["a", "b", "c"]);
        let next = topics(2, 4, 3, &["d"]);
        assert_eq!(other.apply(&[next]).await, [Applied::Appended]);
        let again = other.machine.get_current_snapshot().await.expect("read");
        assert_eq!(again.expect("kept").meta, built.meta);
    });
}
