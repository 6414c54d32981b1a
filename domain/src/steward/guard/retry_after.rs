//! The meaning of a provider's `Retry-After` header.
//!
//! [`parse_retry_after`] parses the header's text. [`back_off_for`] turns the parsed seconds into the length of the
//! guard's back-off. Between the two, the value travels as seconds in a settlement.
//! This module must not read a clock: a date is compared with the given `now`.

use std::time::Duration;

use chrono::{DateTime, Datelike, Months, NaiveDateTime, TimeDelta, Utc};

/// The back-off after a 429 without a usable time: 60 s.
pub const DEFAULT_BACK_OFF: TimeDelta = TimeDelta::seconds(60);
/// The longest time to wait that is accepted: 7 days. A longer one counts as a mistake.
pub const LONGEST_BACK_OFF: TimeDelta = TimeDelta::days(7);

/// Parses a `Retry-After` header: seconds (also with decimals) or any date format of RFC 9110.
///
/// Returns `None` for a malformed value and for a date that is not after `now`. Long times are returned unchanged,
/// because [`back_off_for`] checks them. The weekday of a date is ignored.
#[must_use]
pub fn parse_retry_after(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    let text = text.trim();
    let is_number =
        text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_number {
        let seconds: f64 = text.parse().ok()?;
        return Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    let date = parse_http_date(text, now)?;
    (date - now).to_std().ok().filter(|wait| !wait.is_zero())
}

fn parse_http_date(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let parsed = |date: &str, format| NaiveDateTime::parse_from_str(date, format).ok();
    let Some((_weekday, date)) = text.split_once(", ") else {
        let (_weekday, date) = text.split_once(' ')?;
        return Some(parsed(date, "%b %e %H:%M:%S %Y")?.and_utc());
    };
    if let Some(date) = parsed(date, "%d %b %Y %H:%M:%S GMT") {
        return Some(date.and_utc());
    }
    let two_digit_year = parsed(date, "%d-%b-%y %H:%M:%S GMT")?.and_utc();
    nearest_century(two_digit_year, now)
}

/// RFC 9110: a two-digit year that seems more than 50 years ahead is the most recent such year in the past.
fn nearest_century(date: DateTime<Utc>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let century = Months::new(1200);
    let date = match date.year() {
        year if year > now.year() + 50 => date.checked_sub_months(century)?,
        year if year + 50 < now.year() => date.checked_add_months(century)?,
        _ => date,
    };
    Some(date)
}

/// The length of the back-off after a 429 that named these seconds, to the microsecond.
///
/// A missing or negative number, a value that is not a number, or more than [`LONGEST_BACK_OFF`] gives
/// [`DEFAULT_BACK_OFF`]. Zero is accepted: then a probe may go at once.
#[must_use]
pub fn back_off_for(retry_after_seconds: Option<f64>) -> TimeDelta {
    match retry_after_seconds {
        Some(seconds) if (0.0..=LONGEST_BACK_OFF.num_seconds() as f64).contains(&seconds) => {
            TimeDelta::microseconds((seconds * 1e6).ceil() as i64)
        }
        Some(_) | None => DEFAULT_BACK_OFF,
    }
}
