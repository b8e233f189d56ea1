//! What is kept and not acted on.

use super::super::inert::InertKind;
use super::*;

fn text(text: &str) -> Vec<u8> {
    let mut bytes = vec![text.len() as u8 + 1];
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn record(api_key: u8, fields: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![1, api_key, 0];
    bytes.extend(fields.concat());
    bytes.push(0);
    bytes
}

fn quota(user: &str, value: f64, remove: bool) -> Vec<u8> {
    let entity = [&[2][..], &text("user"), &text(user), &[0]].concat();
    let key = text("producer_byte_rate");
    record(
        14,
        &[&entity, &key, &value.to_be_bytes(), &[u8::from(remove)]],
    )
}

fn acl(id: u8) -> Vec<u8> {
    let [name, principal, host] = ["t", "User:a", "*"].map(text);
    record(
        18,
        &[&[id; 16], &[2], &name, &[3], &principal, &host, &[3, 3]],
    )
}

fn token(id: &str, expires: i64) -> Vec<u8> {
    let [owner, requester, id] = ["User:a", "User:b", id].map(text);
    let renewers = [&[2][..], &text("User:c")].concat();
    let times = [1_i64, 9, expires].map(i64::to_be_bytes).concat();
    record(10, &[&owner, &requester, &renewers, &times, &id])
}

fn scram(user: &str, mechanism: u8, iterations: i32) -> Vec<u8> {
    let secret = [3, 0xaa, 0xbb];
    let fields: [&[u8]; 6] = [
        &text(user),
        &[mechanism],
        &secret,
        &secret,
        &secret,
        &iterations.to_be_bytes(),
    ];
    record(11, &fields)
}

/// What a snapshot of these records holds beside what everything else needs.
fn kept(written: &[Vec<u8>]) -> (ClusterImage, Vec<Vec<u8>>) {
    let records: Vec<MetadataRecord> = written
        .iter()
        .map(|bytes| MetadataRecord::decode(bytes).expect("it is kept"))
        .collect();
    for (record, bytes) in records.iter().zip(written) {
        assert_eq!(&record.encode(), bytes, "as it was written");
    }
    let image = apply(&ClusterImage::empty("c"), &records);
    let snapshot = image.to_records().into_iter().map(|record| record.encode());
    (image.clone(), snapshot.collect())
}

#[test]
fn what_cannot_be_acted_on_is_kept_as_it_was_written() {
    let written = [
        acl(7),
        acl(8),
        quota("a", 1000.0, false),
        scram("a", 1, 4096),
        scram("a", 2, 8192),
        token("one", 5),
    ];
    let (image, snapshot) = kept(&written);
    assert_eq!(snapshot, written);
    use InertKind::*;
    let kinds = [
        AccessControlEntry,
        ClientQuota,
        UserScramCredential,
        DelegationToken,
    ];
    assert!(image.inert_kinds().into_iter().eq(kinds));
}

#[test]
fn a_later_record_replaces_or_removes_what_it_is_about_and_nothing_else() {
    let (image, snapshot) = kept(&[
        acl(7),
        acl(8),
        record(19, &[&[7; 16]]),
        quota("a", 1000.0, false),
        quota("a", 2000.0, false),
        quota("b", 5.0, false),
        quota("b", 0.0, true),
        scram("a", 1, 4096),
        scram("a", 2, 8192),
        record(22, &[&text("a"), &[1]]),
        token("one", 5),
        token("one", 6),
        token("two", 6),
        record(26, &[&text("two")]),
    ]);
    assert_eq!(
        snapshot,
        [
            acl(8),
            quota("a", 2000.0, false),
            scram("a", 2, 8192),
            token("one", 6)
        ]
    );
    let gone = [
        record(19, &[&[8; 16]]),
        quota("a", 0.0, true),
        record(22, &[&text("a"), &[2]]),
        record(26, &[&text("one")]),
    ];
    let gone = gone.map(|bytes| MetadataRecord::decode(&bytes).expect("it is kept"));
    let image = apply(&image, &gone);
    assert_eq!(image.inert_kinds().len(), 0);
    assert_eq!(image.to_records(), []);
}

#[test]
fn what_is_cut_off_or_of_a_later_version_is_an_error() {
    for whole in [
        acl(7),
        quota("a", 1.0, false),
        scram("a", 1, 1),
        token("x", 1),
    ] {
        // Past the subject nothing is looked at.
        for cut in 3..6 {
            assert!(MetadataRecord::decode(&whole[..cut]).is_err(), "{cut}");
        }
        let mut later = whole.clone();
        later[2] = 1;
        assert!(MetadataRecord::decode(&later).is_err());
    }
}
