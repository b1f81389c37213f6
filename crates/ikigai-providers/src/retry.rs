//! Retry decisions: after which failures, and with which pause. Pure.

#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime};

use crate::answer::{FailureKind, ProviderError};

/// Number of attempts and pauses between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Largest number of attempts.
    pub tries: u32,
    /// Pause after the first attempt; it doubles with each further one.
    pub first_pause: Duration,
    /// Longest pause without a request of the provider.
    pub longest_pause: Duration,
    /// Longest pause that a provider may ask for.
    pub longest_delay: Duration,
}

impl Policy {
    /// Six attempts, the last about 15 seconds after the first.
    ///
    /// This is long enough for a hiccup and short enough for a watching user. A pause of more than
    /// a minute is left to the user.
    pub const DEFAULT: Self = Self {
        tries: 6,
        first_pause: Duration::from_millis(500),
        longest_pause: Duration::from_secs(8),
        longest_delay: Duration::from_mins(1),
    };
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Decides about a failed attempt: the pause before a retry, or none if it is final.
///
/// `attempt` is the number of the failed attempt, from 1; `random` spreads the pauses of many
/// clients. A pause that the provider asks for is used unless it is zero, which would cause a storm
/// of requests.
pub fn decide(
    error: &ProviderError,
    attempt: u32,
    policy: &Policy,
    random: u64,
) -> Option<Duration> {
    if attempt >= policy.tries || !may_help(error) {
        return None;
    }
    match error.retry_after.filter(|delay| !delay.is_zero()) {
        Some(delay) => (delay <= policy.longest_delay).then_some(delay),
        None => Some(own_pause(attempt, policy, random)),
    }
}

/// Returns the pause that the provider asks for, if its length makes a failure final.
pub fn excessive_delay(error: &ProviderError, policy: &Policy) -> Option<Duration> {
    error
        .retry_after
        .filter(|delay| *delay > policy.longest_delay && may_help(error))
}

/// Returns true if the same request can succeed later.
fn may_help(error: &ProviderError) -> bool {
    error.should_retry.unwrap_or(match error.kind {
        FailureKind::Connection
        | FailureKind::Timeout
        | FailureKind::RateLimited
        | FailureKind::Unavailable
        | FailureKind::CutOff => true,
        FailureKind::Quota
        | FailureKind::Unauthorized
        | FailureKind::Forbidden
        | FailureKind::NotFound
        | FailureKind::TooLong
        | FailureKind::BadRequest
        | FailureKind::Malformed => false,
    })
}

/// Returns a random pause between three quarters and the whole of the doubled pause.
fn own_pause(attempt: u32, policy: &Policy, random: u64) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let whole = policy
        .first_pause
        .saturating_mul(1 << doublings)
        .min(policy.longest_pause);
    let share = u32::try_from(scatter(random, attempt) >> 48).unwrap_or(0);
    whole.saturating_sub((whole / 4) * share / (1 << 16))
}

/// Derives a random number for each attempt from one (the finalizer of splitmix64).
fn scatter(random: u64, attempt: u32) -> u64 {
    let mut mixed = random.wrapping_add(u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Returns the type of failure of an HTTP status, before the body is read.
pub fn kind_of_status(status: u16) -> FailureKind {
    match status {
        401 => FailureKind::Unauthorized,
        402 => FailureKind::Quota,
        403 => FailureKind::Forbidden,
        // Redirects are not followed: a key must not go to an address that the user did not choose.
        300..=399 | 404 | 405 | 410 => FailureKind::NotFound,
        408 => FailureKind::Timeout,
        413 => FailureKind::TooLong,
        429 => FailureKind::RateLimited,
        400..=499 if status != 409 => FailureKind::BadRequest,
        // The server is unable to do this, and a retry does not change it.
        501 | 505 => FailureKind::BadRequest,
        409 | 500..=599 => FailureKind::Unavailable,
        _ => FailureKind::Malformed,
    }
}

/// Retry headers of a refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryHeaders {
    /// Time to wait.
    pub retry_after: Option<Duration>,
    /// The server's statement on retries.
    pub should_retry: Option<bool>,
}

/// Reads `retry-after-ms`, else `retry-after`, and `x-should-retry`.
///
/// An unreadable header counts as absent. `now` is needed for a date, unless the server sends its
/// own clock.
pub fn retry_headers<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    now: SystemTime,
) -> RetryHeaders {
    let milliseconds = header("retry-after-ms").and_then(|value| seconds(value, 1000.0));
    let retry_after = milliseconds.or_else(|| {
        let value = header("retry-after")?.trim();
        seconds(value, 1.0).or_else(|| {
            let parse = |text: &str| httpdate::parse_http_date(text.trim()).ok();
            let now = header("date").and_then(parse).unwrap_or(now);
            parse(value)?.duration_since(now).ok()
        })
    });
    let should_retry = match header("x-should-retry").map(str::trim) {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    RetryHeaders {
        retry_after,
        should_retry,
    }
}

fn seconds(value: &str, units_per_second: f64) -> Option<Duration> {
    let number: f64 = value.trim().parse().ok()?;
    Duration::try_from_secs_f64(number / units_per_second).ok()
}
