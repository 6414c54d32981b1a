//! Quiet hours: a part of every day in which nothing is changed, by a clock in one zone.
//!
//! `22:00-07:00 Europe/Berlin` begins and ends when clocks in Berlin show these times, in summer as in winter.
//! `22:00-07:00 +01:00` keeps one offset from UTC. Without either the hours are UTC.
//!
//! When the clock is set forward, a time that it skips counts as reached when it jumps. When it is set back, it shows an
//! hour twice: the quiet hours begin at the first and end at the last. So they hold whenever the clock shows them, and
//! must never hold for less.

mod clock_zone;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use clock_zone::ClockZone;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Minutes of a day.
const DAY: u16 = 24 * 60;
/// How many stretches of quiet hours can follow each other without a pause: two, if the clock is set back or forward in
/// the pause.
const MOST_JOINED: usize = 2;

/// A part of every day, from `from` to just before `to`. It crosses midnight if `to` is not after `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuietHours {
    /// Minutes since midnight, 0 to 1439.
    from: u16,
    /// Minutes since midnight, 0 to 1440. Both 0 and 1440 are midnight. Never the same as `from`.
    to: u16,
    #[serde(flatten)]
    zone: ClockZone,
}

/// Why a text is no quiet hours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuietHoursError {
    #[error("is not of the form `HH:MM-HH:MM`, with a zone or an offset after it")]
    Malformed,
    /// As it was written. Untrusted.
    #[error("names the unknown zone `{zone}`")]
    UnknownZone { zone: String },
}

/// The quiet hours that begin on one day.
struct QuietStretch {
    begin: DateTime<Utc>,
    /// The first instant after it.
    end: DateTime<Utc>,
}

impl QuietHours {
    /// Reads `HH:MM-HH:MM`, optionally followed by a space and the name of a zone, `+HH:MM`, `-HH:MM`, `UTC` or `Z`.
    ///
    /// # Errors
    /// [`QuietHoursError`] if the text has another form, or names a zone that is not known.
    pub fn parse(text: &str) -> Result<Self, QuietHoursError> {
        let (hours, zone) = text.trim().split_once(' ').unwrap_or((text.trim(), "Z"));
        let (from, to) = parse_span(hours).ok_or(QuietHoursError::Malformed)?;
        Ok(Self { from, to, zone: ClockZone::parse(zone.trim())? })
    }

    /// The first instant after `now` that is not quiet, if `now` is within the quiet hours. For hours that last the
    /// whole day it is the end of the day, because there is no such instant.
    #[must_use]
    pub fn end_if_active(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let first = self.find_stretch_end(now)?;
        if self.from == 0 && self.to == DAY {
            return Some(first);
        }
        let joined = std::iter::successors(Some(first), |end| self.find_stretch_end(*end));
        joined.take(MOST_JOINED).last()
    }

    /// The end of the stretch that this instant is within.
    fn find_stretch_end(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let today = self.zone.read_clock(now)?.date();
        // A clock that is set back over midnight shows the day before again.
        let days = [today.checked_sub_days(Days::new(1)), Some(today), today.checked_add_days(Days::new(1))];
        let stretches = days.into_iter().flatten().filter_map(|day| self.find_stretch(day));
        stretches.filter(|stretch| stretch.begin <= now && now < stretch.end).map(|stretch| stretch.end).max()
    }

    fn find_stretch(&self, day: NaiveDate) -> Option<QuietStretch> {
        let midnight = day.and_time(NaiveTime::MIN);
        let show = |minutes: u16| midnight.checked_add_signed(TimeDelta::minutes(i64::from(minutes)));
        let to = if self.from < self.to { self.to } else { DAY + self.to };
        let begin = self.zone.find_instants(show(self.from)?)?.first;
        let end = self.zone.find_instants(show(to)?)?.last;
        Some(QuietStretch { begin, end })
    }

    /// Formats the moment as a clock in this zone shows it.
    pub(super) fn format_local_time(&self, now: DateTime<Utc>) -> String {
        let local = self.zone.read_clock(now).unwrap_or(now.naive_utc());
        format!("{} {}", local.format("%H:%M"), self.zone)
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{} {}", format_clock(self.from), format_clock(self.to), self.zone)
    }
}

fn parse_span(text: &str) -> Option<(u16, u16)> {
    let (from, to) = text.split_once('-')?;
    let (from, to) = (parse_minutes(from)?, parse_minutes(to)?);
    (from < DAY && from != to).then_some((from, to))
}

fn parse_minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number =
        |part: &str| (part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse().ok())?;
    let (hours, minutes): (u16, u16) = (number(hours)?, number(minutes)?);
    let total = hours * 60 + minutes;
    (minutes < 60 && total <= DAY).then_some(total)
}

fn format_clock(minutes: u16) -> String {
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests;
