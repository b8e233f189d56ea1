//! Kafka's names of the files of a partition.

/// Of a segment's batches.
pub(crate) const LOG_SUFFIX: &str = ".log";
/// Of an offset index.
pub(crate) const INDEX_SUFFIX: &str = ".index";
/// Of a time index.
pub(crate) const TIME_INDEX_SUFFIX: &str = ".timeindex";
/// Of a transaction index.
pub(crate) const TXN_INDEX_SUFFIX: &str = ".txnindex";
/// Added to a file that waits to be unlinked.
pub(crate) const DELETED_SUFFIX: &str = ".deleted";
/// Added to what compaction is writing.
pub(crate) const CLEANED_SUFFIX: &str = ".cleaned";
/// Added to what compaction has written and is putting in place.
pub(crate) const SWAP_SUFFIX: &str = ".swap";

/// The files of one segment, the log first.
pub(crate) const LOG_FIRST: [&str; 4] = [
    LOG_SUFFIX,
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
];
/// The files of one segment, the log last.
pub(crate) const LOG_LAST: [&str; 4] = [
    TXN_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
];

/// The name of the file with `suffix` of the segment at `base_offset`.
pub(crate) fn file_name(base_offset: i64, suffix: &str) -> String {
    format!("{base_offset:020}{suffix}")
}

/// The base offset in a name that ends with `suffix`; None for any other file.
pub(crate) fn base_offset_of(name: &str, suffix: &str) -> Option<i64> {
    let digits = name.strip_suffix(suffix)?;
    (digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kafkas() {
        assert_eq!(file_name(17, LOG_SUFFIX), "00000000000000000017.log");
        assert_eq!(base_offset_of("00000000000000000017.log", ".log"), Some(17));
        assert_eq!(base_offset_of("0000000000000000017.log", ".log"), None);
        assert_eq!(base_offset_of("00000000000000000017.index", ".log"), None);
        assert_eq!(base_offset_of("0000000000000000001x.log", ".log"), None);
        assert_eq!(base_offset_of("99999999999999999999.log", ".log"), None);
    }
}
