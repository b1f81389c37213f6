//! Dates as HTTP writes them.

use std::time::{Duration, SystemTime};

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Reads a date in any of the three forms that HTTP knows: `Sun, 06 Nov 1994 08:49:37 GMT`,
/// `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`. None before 1970.
pub fn parse_date(text: &str) -> Option<SystemTime> {
    let mut parts = text
        .split([' ', ',', '-'])
        .filter(|part| !part.is_empty())
        .skip(1);
    let (first, second, third, fourth) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let (day, month, year, time) = if let Some(month) = month(first) {
        (second, month, fourth, third)
    } else {
        if parts.next()? != "GMT" {
            return None;
        }
        (first, month(second)?, third, fourth)
    };
    if parts.next().is_some() {
        return None;
    }
    let seconds = days_since_1970(year_number(year)?, month, number(day, 31)?)? * 86_400
        + seconds_of_day(time)?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// From 1.
fn month(name: &str) -> Option<u64> {
    (1..)
        .zip(MONTHS)
        .find(|(_, known)| *known == name)
        .map(|(i, _)| i)
}

fn number(text: &str, most: u64) -> Option<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|number| *number <= most)
}

/// Two digits lie within the years 1970 to 2069.
fn year_number(text: &str) -> Option<u64> {
    let year = number(text, 9999)?;
    match text.len() {
        2 if year < 70 => Some(2000 + year),
        2 => Some(1900 + year),
        4 => Some(year),
        _ => None,
    }
}

/// A leap second counts as the last second of its minute.
fn seconds_of_day(time: &str) -> Option<u64> {
    let mut parts = time.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    Some(number(hours, 23)? * 3600 + number(minutes, 59)? * 60 + number(seconds, 60)?.min(59))
}

/// Counts in years that begin in March, so that a leap day is the last of its year.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 {
        year.checked_sub(1)?
    } else {
        year
    };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day.checked_sub(1)?;
    (year * 365 + year / 4 - year / 100 + year / 400 + day_of_year).checked_sub(719_468)
}
