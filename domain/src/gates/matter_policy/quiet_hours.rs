//! Quiet hours: a part of every day, by a clock at a fixed distance from UTC.
//!
//! `22:00-07:00 +01:00` begins at 22:00 and ends at 07:00 of a clock that is one hour ahead of UTC; without the
//! last part the clock is UTC's. Zones by name (`Europe/Berlin`) need a database that changes several times a
//! year and are not read; whoever has summer time chooses the hours a little wider.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Minutes of a day.
const DAY: u16 = 24 * 60;
/// The farthest that a clock is from UTC: 14 h, as on Kiritimati.
const FARTHEST: i16 = 14 * 60;

/// A part of every day: from `from` until before `to`, over midnight if `to` is not after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuietHours {
    /// Minutes since midnight, 0 to 1439.
    from: u16,
    /// Minutes since midnight, 1 to 1440, or 0 for midnight at the end; never `from`.
    to: u16,
    /// Minutes that the clock is ahead of UTC, -840 to 840.
    offset: i16,
}

impl QuietHours {
    /// Reads `HH:MM-HH:MM`, and behind a space `+HH:MM`, `-HH:MM`, `UTC` or `Z`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (hours, zone) = text.trim().split_once(' ').unwrap_or((text.trim(), "Z"));
        let (from, to) = hours.split_once('-')?;
        let hours = Self { from: parse_minutes(from)?, to: parse_minutes(to)?, offset: parse_offset(zone.trim())? };
        (hours.from < DAY && hours.from != hours.to).then_some(hours)
    }

    /// When they end, if they are now.
    #[must_use]
    pub fn end_if_active(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let clock = i64::from(self.minute_of_day(now));
        let (from, to) = (i64::from(self.from), i64::from(self.to));
        let quiet = if from < to { (from..to).contains(&clock) } else { clock >= from || clock < to };
        let whole = DateTime::from_timestamp(now.timestamp().div_euclid(60) * 60, 0)?;
        let left = if clock < to { to - clock } else { i64::from(DAY) - clock + to };
        quiet.then_some(whole + TimeDelta::minutes(left))
    }

    /// The moment by this clock, as it is shown.
    pub(super) fn format_local_time(&self, now: DateTime<Utc>) -> String {
        format!("{} {}", format_clock(self.minute_of_day(now)), format_zone(self.offset))
    }

    /// Minutes since midnight by this clock.
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
    let two = |part: &str| (part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse().ok())?;
    let (hours, minutes): (u16, u16) = (two(hours)?, two(minutes)?);
    let all = hours * 60 + minutes;
    (minutes < 60 && all <= DAY).then_some(all)
}

fn parse_offset(text: &str) -> Option<i16> {
    if text == "Z" || text.eq_ignore_ascii_case("utc") {
        return Some(0);
    }
    let ahead = text.strip_prefix('+');
    let size = i16::try_from(parse_minutes(ahead.or_else(|| text.strip_prefix('-'))?)?).ok()?;
    (size <= FARTHEST).then_some(if ahead.is_some() { size } else { -size })
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
