//! Offset and time indexes, compared with the log they belong to.

use std::io::Write;
use std::path::Path;

use highwater_storage::index::{OffsetEntry, TimeEntry, offset_entries, time_entries};
use highwater_storage::record_batch::NO_TIMESTAMP;

use super::batches::{Batch, LogFile};
use super::{Findings, ToolError, absolute, base_offset, read};

/// How much of an index is looked at and printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checks {
    pub(super) is_sanity_only: bool,
    pub(super) is_verify_only: bool,
}

/// The file of the same segment with another suffix.
fn sibling(file: &Path, name: &str, suffix: &str) -> std::path::PathBuf {
    let stem = name.split('.').next().unwrap_or_default();
    file.with_file_name(format!("{stem}.{suffix}"))
}

pub(super) fn dump_offset_index(
    file: &Path,
    name: &str,
    checks: Checks,
    max_message_bytes: u32,
    findings: &mut Findings,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let base_offset = base_offset(name)?;
    let log = LogFile::open(&sibling(file, name, "log"), None)?;
    let bytes = read(file)?;
    let entries: Vec<_> = offset_entries(base_offset, &bytes).collect();
    let Some(last) = entries.last() else {
        writeln!(out, "{} is empty.", file.display())?;
        return Ok(());
    };
    if checks.is_sanity_only {
        let path = absolute(file);
        if last.offset < base_offset {
            return Err(ToolError::failed(format!(
                "Corrupt index found, index file {path} has non-zero size but the last offset is {} which is less \
                 than the base offset {base_offset}",
                last.offset
            )));
        }
        whole("Index", &path, bytes.len(), OffsetEntry::BYTES)?;
        writeln!(out, "{} passed sanity check.", file.display())?;
        return Ok(());
    }
    let heading = format!("Mismatches in :{}", absolute(file));
    let mut mismatches = Vec::new();
    for entry in used(&entries, |entry| entry.offset == base_offset) {
        let batch = log.batch_at(entry.position.into(), max_message_bytes.into())?;
        let Some(batch) = batch else {
            return Err(ToolError::failed(format!(
                "There is no whole batch of at most {max_message_bytes} bytes at position {} of the log.",
                entry.position
            )));
        };
        let found = batch.header.last_offset();
        if found != entry.offset {
            mismatches.push((entry.offset, found));
        }
        if !checks.is_verify_only {
            writeln!(out, "offset: {} position: {}", entry.offset, entry.position)?;
        }
    }
    mismatches.sort_by_key(|(offset, _)| std::cmp::Reverse(*offset));
    for (offset, found) in mismatches {
        let line = format!("  Index offset: {offset}, log offset: {found}");
        findings.add(&heading, line);
    }
    Ok(())
}

pub(super) fn dump_time_index(
    file: &Path,
    name: &str,
    checks: Checks,
    findings: &mut Findings,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let base_offset = base_offset(name)?;
    let log = LogFile::open(&sibling(file, name, "log"), None)?;
    let index = read(&sibling(file, name, "index"))?;
    let index: Vec<_> = offset_entries(base_offset, &index).collect();
    let index: Vec<_> = used(&index, |entry| entry.offset == base_offset)
        .copied()
        .collect();
    let bytes = read(file)?;
    let entries: Vec<_> = time_entries(base_offset, &bytes).collect();
    let path = absolute(file);
    if checks.is_sanity_only {
        if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            let corrupt = format!(
                "Corrupt time index found, time index file ({path}) has non-zero size but the last"
            );
            if last.timestamp < first.timestamp {
                return Err(ToolError::failed(format!(
                    "{corrupt} timestamp is {} which is less than the first timestamp {}",
                    last.timestamp, first.timestamp
                )));
            }
            if last.offset < base_offset {
                return Err(ToolError::failed(format!(
                    "{corrupt} offset is {} which is less than the first offset {base_offset}",
                    last.offset
                )));
            }
        }
        whole("Time index", &path, bytes.len(), TimeEntry::BYTES)?;
        writeln!(out, "{} passed sanity check.", file.display())?;
        return Ok(());
    }
    let mut errors = TimeErrors::default();
    let mut previous = NO_TIMESTAMP;
    for entry in used(&entries, |entry| entry.offset == base_offset) {
        let from = lookup(&index, entry.offset);
        match first_reaching(&log, from, entry.offset)? {
            None => errors.missing.push((entry.offset, -1)),
            Some(batch) if batch.header.last_offset() != entry.offset => {
                errors
                    .missing
                    .push((entry.offset, batch.header.last_offset()));
            }
            Some(batch) => {
                let found = max_timestamp(&batch)?;
                if found != entry.timestamp {
                    errors.mismatches.push((entry.timestamp, found));
                }
                if previous >= entry.timestamp {
                    errors.out_of_order.push((entry.timestamp, previous));
                }
            }
        }
        if !checks.is_verify_only {
            writeln!(
                out,
                "timestamp: {} offset: {}",
                entry.timestamp, entry.offset
            )?;
        }
        previous = entry.timestamp;
    }
    errors.report(&path, findings);
    Ok(())
}

#[derive(Debug, Default)]
struct TimeErrors {
    mismatches: Vec<(i64, i64)>,
    out_of_order: Vec<(i64, i64)>,
    missing: Vec<(i64, i64)>,
}

impl TimeErrors {
    fn report(self, path: &str, findings: &mut Findings) {
        for (index, log) in self.mismatches {
            let line = format!("  Index timestamp: {index}, log timestamp: {log}");
            findings.add(&format!("Found timestamp mismatch in :{path}"), line);
        }
        for (index, previous) in self.out_of_order {
            let line =
                format!("  Index timestamp: {index}, Previously indexed timestamp: {previous}");
            findings.add(&format!("Found out of order timestamp in :{path}"), line);
        }
        for (index, log) in self.missing {
            let line = format!("Indexed offset: {index}, found log offset: {log}");
            findings.add(
                "The following indexed offsets are not found in the log.",
                line,
            );
        }
    }
}

/// The entries before the zeros that fill up the index of a segment which is still written.
fn used<E>(entries: &[E], is_base: impl Fn(&E) -> bool) -> impl Iterator<Item = &E> {
    entries
        .iter()
        .enumerate()
        .take_while(move |(number, entry)| *number == 0 || !is_base(entry))
        .map(|(_, entry)| entry)
}

fn whole(what: &str, path: &str, bytes: usize, entry_bytes: usize) -> Result<(), ToolError> {
    if bytes.is_multiple_of(entry_bytes) {
        return Ok(());
    }
    Err(ToolError::failed(format!(
        "{what} file {path} is corrupt, found {bytes} bytes which is neither positive nor a multiple of {entry_bytes}"
    )))
}

/// Where to look for an offset, by the entries of an offset index that are used.
fn lookup(index: &[OffsetEntry], offset: i64) -> u64 {
    let behind = index.partition_point(|entry| entry.offset <= offset);
    let found = behind.checked_sub(1).and_then(|place| index.get(place));
    found.map_or(0, |entry| entry.position.into())
}

fn first_reaching(log: &LogFile, from: u64, offset: i64) -> Result<Option<Batch>, ToolError> {
    for batch in log.batches_from(from) {
        let batch = batch?;
        if batch.header.last_offset() >= offset {
            return Ok(Some(batch));
        }
    }
    Ok(None)
}

fn max_timestamp(batch: &Batch) -> Result<i64, ToolError> {
    let mut found = NO_TIMESTAMP;
    for record in batch.records()? {
        found = found.max(record?.timestamp);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_up_begins_at_the_last_entry_that_is_not_behind() {
        let index = [(10, 100), (20, 200), (30, 300)];
        let index = index.map(|(offset, position)| OffsetEntry { offset, position });
        for (offset, position) in [(5, 0), (10, 100), (25, 200), (30, 300), (99, 300)] {
            assert_eq!(lookup(&index, offset), position, "{offset}");
        }
        assert_eq!(lookup(&[], 5), 0);
    }
}
