//! Instants as people and machines write them in records.
//!
//! Everything inside is UTC. A time without a zone is UTC (S3-21), and a date alone means its first instant.
//! A malformed time is `None`: each caller decides what that means to it.

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, Utc};

/// Reads RFC 3339, `2026-11-21 09:30[:15[.123]]`, the same with `T`, or `2026-11-21`.
#[must_use]
pub fn parse(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.to_utc());
    }
    for format in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"] {
        if let Ok(at) = NaiveDateTime::parse_from_str(text, format) {
            return Some(at.and_utc());
        }
    }
    for format in ["%Y-%m-%d %H:%M:%S%.f %z", "%Y-%m-%dT%H:%M:%S%.f%z", "%Y-%m-%dT%H:%M%z"] {
        if let Ok(at) = DateTime::parse_from_str(text, format) {
            return Some(at.to_utc());
        }
    }
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(|d| d.and_hms_opt(0, 0, 0)).map(|at| at.and_utc())
}

/// Writes an instant as our records hold it: `2026-11-21T09:30:15.123Z`.
#[must_use]
pub fn format_millis(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The instant as records hold it, cut to the millisecond.
#[must_use]
pub fn truncate_to_millis(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.timestamp_millis()).unwrap_or(at)
}

/// Writes an instant as people do, in whole seconds: `2026-11-21T09:30:15Z`.
#[must_use]
pub fn format_seconds(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Formats how long ago a moment was, in one unit that suits the span.
#[must_use]
pub fn format_age(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let seconds = (now - at).num_seconds();
    let span = |seconds: i64| match seconds {
        ..90 => format!("{seconds} s"),
        90..5_400 => format!("{} min", (seconds + 30) / 60),
        5_400..129_600 => format!("{} h", (seconds + 1_800) / 3_600),
        _ => format!("{} days", (seconds + 43_200) / 86_400),
    };
    if seconds < 0 { format!("in {}", span(-seconds)) } else { format!("{} ago", span(seconds)) }
}

/// The instant cut to the second.
#[must_use]
pub fn truncate_to_seconds(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp(at.timestamp(), 0).unwrap_or(at)
}

/// Reads a width of time in whole seconds, as people write it: `20s`, `15min`, `2h`, `1day`, or a unit alone for one of it.
#[must_use]
pub fn parse_width(text: &str) -> Option<u32> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let number: u32 = if number.is_empty() { 1 } else { number.parse().ok()? };
    let unit = match unit.trim() {
        "s" | "sec" => 1,
        "m" | "min" | "minute" => 60,
        "h" | "hour" => 3_600,
        "d" | "day" => 86_400,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// Writes an instant for a file name: `20261121T093015123Z`.
#[must_use]
pub fn format_compact(at: DateTime<Utc>) -> String {
    at.format("%Y%m%dT%H%M%S%3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_shown_in_the_unit_that_a_person_would_use() {
        let now = parse("2026-11-21T09:30:00Z").unwrap();
        let age = |seconds| format_age(now - chrono::TimeDelta::seconds(seconds), now);
        assert_eq!([age(5), age(600), age(7_200), age(172_800)], ["5 s ago", "10 min ago", "2 h ago", "2 days ago"]);
        assert_eq!(age(-600), "in 10 min");
    }

    #[test]
    fn a_time_without_a_zone_is_utc() {
        let expected = parse("2026-11-21T09:30:00Z");
        for text in [
            "2026-11-21 09:30",
            "2026-11-21T09:30",
            "2026-11-21T09:30:00",
            "2026-11-21T10:30:00+01:00",
            "2026-11-21T10:30+0100",
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert_eq!(parse("2026-11-21"), parse("2026-11-21T00:00:00Z"));
    }

    #[test]
    fn a_malformed_time_is_none() {
        for text in ["", "soon", "2026-13-01", "12:30", "2026-11-21T25:00:00Z", "20261121"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn formatted_times_keep_milliseconds() {
        let at = parse("2026-11-21T09:30:15.123Z").unwrap();
        assert_eq!(format_millis(at), "2026-11-21T09:30:15.123Z");
        assert_eq!(format_compact(at), "20261121T093015123Z");
    }
}
