//! Quiet hours: a part of every day in which nothing is changed, at a fixed offset from UTC.
//!
//! `22:00-07:00 +01:00` begins at 22:00 and ends at 07:00, one hour ahead of UTC. Without an offset the hours are UTC.
//! Named zones (`Europe/Berlin`) must not be read: they need a database that changes several times a year. A person
//! with summer time can choose slightly wider hours.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Minutes of a day.
const DAY: u16 = 24 * 60;
/// The largest offset from UTC in minutes: 14 h, as on Kiritimati.
const MAX_OFFSET: i16 = 14 * 60;

/// A part of every day, from `from` to just before `to`. It crosses midnight if `to` is not after `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuietHours {
    /// Minutes since midnight, 0 to 1439.
    from: u16,
    /// Minutes since midnight, 0 to 1440. Both 0 and 1440 are midnight. Never the same as `from`.
    to: u16,
    /// Minutes ahead of UTC, -840 to 840.
    offset: i16,
}

impl QuietHours {
    /// Reads `HH:MM-HH:MM`, optionally followed by a space and `+HH:MM`, `-HH:MM`, `UTC` or `Z`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (hours, zone) = text.trim().split_once(' ').unwrap_or((text.trim(), "Z"));
        let (from, to) = hours.split_once('-')?;
        let hours = Self { from: parse_minutes(from)?, to: parse_minutes(to)?, offset: parse_offset(zone.trim())? };
        (hours.from < DAY && hours.from != hours.to).then_some(hours)
    }

    /// The end of the quiet hours if `now` is within them.
    #[must_use]
    pub fn end_if_active(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let minute = i64::from(self.minute_of_day(now));
        let (from, to) = (i64::from(self.from), i64::from(self.to));
        let is_quiet = if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to };
        let full_minute = DateTime::from_timestamp(now.timestamp().div_euclid(60) * 60, 0)?;
        let left = if minute < to { to - minute } else { i64::from(DAY) - minute + to };
        is_quiet.then_some(full_minute + TimeDelta::minutes(left))
    }

    /// Formats the moment at this offset.
    pub(super) fn format_local_time(&self, now: DateTime<Utc>) -> String {
        format!("{} {}", format_clock(self.minute_of_day(now)), format_zone(self.offset))
    }

    /// Minutes since midnight at this offset.
    fn minute_of_day(&self, now: DateTime<Utc>) -> u16 {
        let minutes = now.timestamp().div_euclid(60) + i64::from(self.offset);
        u16::try_from(minutes.rem_euclid(i64::from(DAY))).unwrap_or_default()
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{} {}", format_clock(self.from), format_clock(self.to), format_zone(self.offset))
    }
}

fn parse_minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number =
        |part: &str| (part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse().ok())?;
    let (hours, minutes): (u16, u16) = (number(hours)?, number(minutes)?);
    let total = hours * 60 + minutes;
    (minutes < 60 && total <= DAY).then_some(total)
}

fn parse_offset(text: &str) -> Option<i16> {
    if text == "Z" || text.eq_ignore_ascii_case("utc") {
        return Some(0);
    }
    let positive = text.strip_prefix('+');
    let size = i16::try_from(parse_minutes(positive.or_else(|| text.strip_prefix('-'))?)?).ok()?;
    (size <= MAX_OFFSET).then_some(if positive.is_some() { size } else { -size })
}

fn format_clock(minutes: u16) -> String {
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

fn format_zone(offset: i16) -> String {
    if offset == 0 {
        return "UTC".to_owned();
    }
    format!("{}{}", if offset > 0 { '+' } else { '-' }, format_clock(offset.unsigned_abs()))
}
