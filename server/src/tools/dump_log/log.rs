//! Batches and records of a log, of a snapshot of the metadata too.

use std::io::Write;
use std::path::Path;

use highwater_storage::record_batch::{
    BatchHeader, ControlRecord, NO_SEQUENCE, Record, increment_sequence, verify_crc,
};

use super::batches::{Batch, LogFile};
use super::decoder::Decoder;
use super::{Findings, ToolError, absolute, base_offset};
use crate::metadata::SnapshotId;
use crate::tools::records::{Message, Reader, schemas};

/// How much is printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) is_deep: bool,
    pub(super) prints_contents: bool,
    pub(super) skips_record_metadata: bool,
    pub(super) max_bytes: Option<u32>,
}

pub(super) fn dump(
    file: &Path,
    name: &str,
    form: Form,
    decoder: &Decoder,
    findings: &mut Findings,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    writeln!(out, "{}", title(name)?)?;
    let log = LogFile::open(file, form.max_bytes)?;
    let heading = format!("Non-consecutive offsets in {}", absolute(file));
    let mut valid_bytes = 0;
    let mut last_offset = -1;
    for batch in log.batches_from(0) {
        let batch = batch?;
        writeln!(out, "{}", batch_line(&batch))?;
        valid_bytes += batch.bytes.len() as u64;
        if !form.is_deep {
            continue;
        }
        for record in batch.records()? {
            let record = record?;
            if record.offset != last_offset + 1 {
                findings.add(
                    &heading,
                    format!("  {last_offset} is followed by {}", record.offset),
                );
            }
            last_offset = record.offset;
            writeln!(
                out,
                "{}",
                record_line(&batch.header, &record, form, decoder)?
            )?;
        }
    }
    let trailing_bytes = log.size() - valid_bytes;
    if trailing_bytes > 0 && form.max_bytes.is_none() {
        writeln!(
            out,
            "Found {trailing_bytes} invalid bytes at the end of {name}"
        )?;
    }
    Ok(())
}

/// What the file's name says.
fn title(name: &str) -> Result<String, ToolError> {
    if name.ends_with(".log") {
        return Ok(format!("Log starting offset: {}", base_offset(name)?));
    }
    if name == "bootstrap.checkpoint" {
        return Ok("KRaft bootstrap snapshot".to_owned());
    }
    match SnapshotId::parse(name) {
        Some(SnapshotId { end_offset, epoch }) => {
            Ok(format!("Snapshot end offset: {end_offset}, epoch: {epoch}"))
        }
        None => ToolError::refuse(format!(
            "{name} is not the name of a snapshot, which is its end offset and its epoch."
        )),
    }
}

/// A number that may be absent, as Java prints it.
pub(super) fn optional_long(value: Option<i64>) -> String {
    value.map_or_else(
        || "OptionalLong.empty".to_owned(),
        |value| format!("OptionalLong[{value}]"),
    )
}

fn batch_line(batch: &Batch) -> String {
    let header = &batch.header;
    let codec = header
        .compression()
        .map_or_else(|error| error.to_string(), |codec| codec.name().to_owned());
    format!(
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} \
         partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: {} position: {} {}: {} size: {} \
         magic: {} compresscodec: {codec} crc: {} isvalid: {}",
        header.base_offset,
        header.last_offset(),
        header.records_count,
        header.base_sequence,
        header.last_sequence(),
        header.producer_id,
        header.producer_epoch,
        header.partition_leader_epoch,
        header.is_transactional(),
        header.is_control(),
        optional_long(header.delete_horizon_ms()),
        batch.position,
        header.timestamp_type().name(),
        header.max_timestamp,
        batch.bytes.len(),
        header.magic,
        header.crc,
        verify_crc(&batch.bytes).is_ok(),
    )
}

fn record_line(
    header: &BatchHeader,
    record: &Record,
    form: Form,
    decoder: &Decoder,
) -> Result<String, ToolError> {
    let mut line = String::new();
    if !form.skips_record_metadata {
        line.push_str(&metadata(header, record)?);
    }
    if form.prints_contents && !header.is_control() {
        let (key, value) = decoder.decode(record)?;
        let mut prefix = if form.skips_record_metadata {
            "| "
        } else {
            " "
        };
        if let Some(key) = key {
            line.push_str(&format!("{prefix}key: {key}"));
            prefix = " ";
        }
        if let Some(value) = value {
            line.push_str(&format!("{prefix}payload: {value}"));
        }
    }
    Ok(line)
}

fn metadata(header: &BatchHeader, record: &Record) -> Result<String, ToolError> {
    let size = |bytes: &Option<bytes::Bytes>| match bytes {
        Some(bytes) => bytes.len().to_string(),
        None => "-1".to_owned(),
    };
    let sequence = match header.base_sequence {
        NO_SEQUENCE => NO_SEQUENCE,
        base => {
            let delta = record.offset.saturating_sub(header.base_offset);
            increment_sequence(base, i32::try_from(delta).unwrap_or(i32::MAX))
        }
    };
    let keys: Vec<_> = record
        .headers
        .iter()
        .map(|header| String::from_utf8_lossy(&header.key))
        .collect();
    let mut line = format!(
        "| offset: {} {}: {} keySize: {} valueSize: {} sequence: {sequence} headerKeys: [{}]",
        record.offset,
        header.timestamp_type().name(),
        record.timestamp,
        size(&record.key),
        size(&record.value),
        keys.join(","),
    );
    if header.is_control() {
        line.push_str(&control(record)?);
    }
    Ok(line)
}

/// What a control record says.
fn control(record: &Record) -> Result<String, ToolError> {
    let failed = |reason: &dyn std::fmt::Display| {
        ToolError::failed(format!(
            "Cannot read the control record at offset {}: {reason}.",
            record.offset
        ))
    };
    let (key, value) = (record.key.as_deref(), record.value.as_deref());
    let control_type = match ControlRecord::parse(key, value).map_err(|error| failed(&error))? {
        ControlRecord::EndTransaction(marker) => {
            let kind = if marker.is_commit { "COMMIT" } else { "ABORT" };
            let epoch = marker.coordinator_epoch;
            return Ok(format!(" endTxnMarker: {kind} coordinatorEpoch: {epoch}"));
        }
        ControlRecord::Other { control_type } => control_type,
    };
    let (title, schema): (&str, &Message) = match control_type {
        2 => (" LeaderChange: ", &schemas::LEADER_CHANGE),
        3 => (" SnapshotHeader ", &schemas::SNAPSHOT_HEADER),
        4 => (" SnapshotFooter ", &schemas::SNAPSHOT_FOOTER),
        5 => (" KRaftVersion ", &schemas::KRAFT_VERSION),
        6 => (" KRaftVoters ", &schemas::KRAFT_VOTERS),
        other => return Ok(format!(" controlType: UNKNOWN({other})")),
    };
    // Each begins with a field that tells its version; it is a field of the message, too.
    let value = value.ok_or_else(|| failed(&"its value is null"))?;
    let version = Reader::new(value).int16().map_err(|error| failed(&error))?;
    let json = schema
        .read(&mut Reader::new(value), version)
        .map_err(|error| failed(&error))?;
    Ok(format!("{title}{json}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::dump_log::decoder::Class;
    use highwater_storage::record_batch::RecordBatchBuilder;

    const TEXT: Decoder = Decoder::Classes {
        key: Class::String,
        value: Class::String,
    };

    fn lines(form: Form, decoder: &Decoder, bytes: &[u8]) -> (String, Findings) {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("00000000000000000000.log");
        std::fs::write(&file, bytes).expect("written");
        let mut out = Vec::new();
        let mut findings = Findings::default();
        let name = "00000000000000000000.log";
        dump(&file, name, form, decoder, &mut findings, &mut out).expect("dumped");
        (String::from_utf8(out).expect("text"), findings)
    }

    #[test]
    fn a_log_is_printed_in_kafkas_form() {
        let mut builder = RecordBatchBuilder::new().producer(9, 1, 5).leader_epoch(3);
        builder.append(1000, Some(b"k"), Some(b"v"));
        builder.append(1001, None, None);
        let mut bytes = builder.build().expect("a batch").to_vec();
        bytes.extend([0; 5]);
        let form = Form {
            is_deep: true,
            prints_contents: true,
            skips_record_metadata: false,
            max_bytes: None,
        };
        let (text, findings) = lines(form, &TEXT, &bytes);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "Log starting offset: 0");
        assert!(lines[1].starts_with(
            "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: 5 lastSequence: 6 producerId: 9 producerEpoch: 1 \
             partitionLeaderEpoch: 3 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty \
             position: 0 CreateTime: 1001 size: "
        ));
        assert!(lines[1].ends_with(" isvalid: true"));
        assert_eq!(
            lines[2],
            "| offset: 0 CreateTime: 1000 keySize: 1 valueSize: 1 sequence: 5 headerKeys: [] key: k payload: v"
        );
        assert_eq!(
            lines[3],
            "| offset: 1 CreateTime: 1001 keySize: -1 valueSize: -1 sequence: 6 headerKeys: []"
        );
        assert_eq!(
            lines[4],
            "Found 5 invalid bytes at the end of 00000000000000000000.log"
        );
        assert!(findings.0.is_empty());
    }

    #[test]
    fn gaps_between_offsets_are_found() {
        let mut builder = RecordBatchBuilder::new().base_offset(4);
        builder.append(1, Some(b"k"), Some(b"v"));
        let bytes = builder.build().expect("a batch");
        let form = Form {
            is_deep: true,
            prints_contents: true,
            skips_record_metadata: true,
            max_bytes: None,
        };
        let (text, findings) = lines(form, &TEXT, &bytes);
        assert!(text.ends_with("\n| key: k payload: v\n"), "{text}");
        assert_eq!(findings.0[0].1, ["  -1 is followed by 4"]);
    }

    #[test]
    fn names_have_titles() {
        let title = |name| title(name).ok();
        assert_eq!(
            title("00000000000000000009-0000000002.checkpoint").as_deref(),
            Some("Snapshot end offset: 9, epoch: 2")
        );
        assert_eq!(
            title("bootstrap.checkpoint").as_deref(),
            Some("KRaft bootstrap snapshot")
        );
        assert_eq!(title("x.checkpoint"), None);
    }
}
