//! Numbers as databases store them.

/// A number as it is stored. What does not fit is larger than any that is stored.
pub(crate) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How many rows to read at most.
pub(crate) fn stored_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
