//! Records of the metadata log that this release keeps but cannot act on: access control lists, client quotas, SCRAM
//! credentials and delegation tokens. A broker under Apache Kafka's controllers meets them. They stay as they were
//! written, in the image and in snapshots, so that a later release finds them; nothing looks into them but to tell
//! which of them replaces or removes which.

use std::collections::BTreeSet;

use super::codec::{Field, Reader, RecordError};
use super::image::ClusterImage;

const DELEGATION_TOKEN: i16 = 10;
const USER_SCRAM_CREDENTIAL: i16 = 11;
const CLIENT_QUOTA: i16 = 14;
const ACCESS_CONTROL_ENTRY: i16 = 18;
const REMOVE_ACCESS_CONTROL_ENTRY: i16 = 19;
const REMOVE_USER_SCRAM_CREDENTIAL: i16 = 22;
const REMOVE_DELEGATION_TOKEN: i16 = 26;

/// What is kept and not acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InertKind {
    /// Who may do what. Not to act on it is to allow everything to everybody.
    AccessControlEntry,
    /// How much of the cluster a client may use.
    ClientQuota,
    /// Passwords for SASL/SCRAM.
    UserScramCredential,
    /// Delegation tokens.
    DelegationToken,
}

/// What an inert record is about. A later record with the same key replaces an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InertKey {
    kind: InertKind,
    /// The part of the record that names its subject.
    subject: Vec<u8>,
}

impl InertKind {
    const ALL: [Self; 4] = [
        Self::AccessControlEntry,
        Self::ClientQuota,
        Self::UserScramCredential,
        Self::DelegationToken,
    ];
}

impl InertKey {
    /// What kind of thing it is about.
    pub fn kind(&self) -> InertKind {
        self.kind
    }
}

/// One such record, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InertRecord {
    api_key: i16,
    version: i16,
    key: InertKey,
    /// Whether it ends what an earlier one began.
    removes: bool,
    body: Vec<u8>,
}

impl InertRecord {
    /// Kafka's id of this type of record.
    pub fn api_key(&self) -> i16 {
        self.api_key
    }

    /// The version that it was written in.
    pub fn version(&self) -> i16 {
        self.version
    }

    /// What it is about.
    pub fn key(&self) -> &InertKey {
        &self.key
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.body);
    }

    /// Takes a record that no other type of record claims.
    pub(super) fn decode(
        api_key: u32,
        version: u32,
        reader: &mut Reader<'_>,
    ) -> Result<Self, RecordError> {
        let unknown = RecordError::UnknownType(api_key);
        let api_key = i16::try_from(api_key).map_err(|_| unknown.clone())?;
        let (kind, removes) = match api_key {
            ACCESS_CONTROL_ENTRY => (InertKind::AccessControlEntry, false),
            REMOVE_ACCESS_CONTROL_ENTRY => (InertKind::AccessControlEntry, true),
            CLIENT_QUOTA => (InertKind::ClientQuota, false),
            USER_SCRAM_CREDENTIAL => (InertKind::UserScramCredential, false),
            REMOVE_USER_SCRAM_CREDENTIAL => (InertKind::UserScramCredential, true),
            DELEGATION_TOKEN => (InertKind::DelegationToken, false),
            REMOVE_DELEGATION_TOKEN => (InertKind::DelegationToken, true),
            _ => return Err(unknown),
        };
        if version > 0 {
            return Err(RecordError::UnknownVersion { api_key, version });
        }
        let body = reader.take(reader.remaining_bytes())?;
        let mut fields = Reader::new(body);
        let before = fields.remaining_bytes();
        if api_key == DELEGATION_TOKEN {
            skip_to_token_id(&mut fields)?;
        }
        let begins = before - fields.remaining_bytes();
        match kind {
            InertKind::AccessControlEntry => {
                fields.take(16)?;
            }
            InertKind::ClientQuota => skip_quota_key(&mut fields)?,
            InertKind::UserScramCredential => {
                String::decode(0, &mut fields)?;
                fields.take(1)?;
            }
            InertKind::DelegationToken => {
                String::decode(0, &mut fields)?;
            }
        }
        let ends = before - fields.remaining_bytes();
        let removes = match kind {
            // After the value comes whether it is to be removed.
            InertKind::ClientQuota => {
                fields.take(8)?;
                bool::decode(0, &mut fields)?
            }
            _ => removes,
        };
        Ok(Self {
            api_key,
            version: 0,
            key: InertKey {
                kind,
                subject: body[begins..ends].to_vec(),
            },
            removes,
            body: body.to_vec(),
        })
    }
}

/// Owner, requester, renewers and three points in time.
fn skip_to_token_id(fields: &mut Reader<'_>) -> Result<(), RecordError> {
    String::decode(0, fields)?;
    String::decode(0, fields)?;
    Vec::<String>::decode(0, fields)?;
    fields.take(3 * 8)?;
    Ok(())
}

/// The entity, which is an array of types and names, and the name of the quota.
fn skip_quota_key(fields: &mut Reader<'_>) -> Result<(), RecordError> {
    Vec::<QuotaEntity>::decode(0, fields)?;
    String::decode(0, fields)?;
    Ok(())
}

/// One part of whom a quota is for; its content does not matter here.
struct QuotaEntity;

impl Field for QuotaEntity {
    fn encode(&self, _version: i16, _out: &mut Vec<u8>) {
        // Never written by itself: a record is written as it was read.
    }

    fn decode(version: i16, reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        String::decode(version, reader)?;
        Option::<String>::decode(version, reader)?;
        reader.tagged_fields(|_, _| Ok(false))?;
        Ok(Self)
    }
}

impl ClusterImage {
    /// The kinds of records that are kept and not acted on.
    pub fn inert_kinds(&self) -> BTreeSet<InertKind> {
        let is_there = |kind: &InertKind| {
            let first = InertKey {
                kind: *kind,
                subject: Vec::new(),
            };
            let next = self.inert.range(first..).next();
            next.is_some_and(|(key, _)| key.kind == *kind)
        };
        InertKind::ALL.into_iter().filter(is_there).collect()
    }

    pub(super) fn apply_inert(&mut self, record: &InertRecord) {
        let inert = std::sync::Arc::make_mut(&mut self.inert);
        match record.removes {
            true => inert.remove(&record.key),
            false => inert.insert(record.key.clone(), record.clone()),
        };
    }
}
