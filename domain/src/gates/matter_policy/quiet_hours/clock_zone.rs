//! The zone of a clock: one of the IANA database, or a fixed offset from UTC.
//!
//! The database is part of the program, so that workflows see no environment. Abbreviations such as `CET` must not be
//! read: they do not say whether summer time holds.

use super::{QuietHoursError, format_clock, parse_minutes};
use chrono::{DateTime, FixedOffset, MappedLocalTime, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::{GapInfo, TZ_VARIANTS, Tz};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The largest offset from UTC in minutes: 14 h, as on Kiritimati.
const MAX_OFFSET: i16 = 14 * 60;

/// Where a clock stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum ClockZone {
    Named {
        zone: Tz,
    },
    Fixed {
        /// Minutes ahead of UTC, -840 to 840.
        offset: i16,
    },
}

/// When a clock shows a time. Both are the same, unless the clock is set back over the time. If it is set forward over
/// the time, both are that moment.
pub(super) struct ClockInstants {
    pub(super) first: DateTime<Utc>,
    pub(super) last: DateTime<Utc>,
}

impl ClockZone {
    /// Reads the name of a zone in any case, `+HH:MM`, `-HH:MM`, `UTC` or `Z`.
    pub(super) fn parse(text: &str) -> Result<Self, QuietHoursError> {
        if text == "Z" || text.eq_ignore_ascii_case("utc") {
            return Ok(Self::Fixed { offset: 0 });
        }
        if text.starts_with(['+', '-']) {
            let offset = parse_offset(text).ok_or(QuietHoursError::Malformed)?;
            return Ok(Self::Fixed { offset });
        }
        let is_meant = |zone: &&Tz| zone.name().contains('/') && zone.name().eq_ignore_ascii_case(text);
        let zone = TZ_VARIANTS.iter().find(is_meant).copied();
        zone.map(|zone| Self::Named { zone }).ok_or_else(|| QuietHoursError::UnknownZone { zone: text.to_owned() })
    }

    /// What the clock shows. `None` at the ends of what can be reckoned.
    pub(super) fn read_clock(self, now: DateTime<Utc>) -> Option<NaiveDateTime> {
        let utc = now.naive_utc();
        let offset = match self {
            Self::Named { zone } => zone.offset_from_utc_datetime(&utc).fix(),
            Self::Fixed { offset } => east(offset)?,
        };
        utc.checked_add_offset(offset)
    }

    /// When the clock shows this time, or has passed it.
    pub(super) fn find_instants(self, local: NaiveDateTime) -> Option<ClockInstants> {
        let zone = match self {
            Self::Named { zone } => zone,
            Self::Fixed { offset } => {
                let instant = local.checked_sub_offset(east(offset)?)?.and_utc();
                return Some(ClockInstants { first: instant, last: instant });
            }
        };
        let (first, last) = match zone.from_local_datetime(&local) {
            MappedLocalTime::Single(instant) => (instant, instant),
            MappedLocalTime::Ambiguous(one, other) => (one.min(other), one.max(other)),
            MappedLocalTime::None => {
                let jump = GapInfo::new(&local, &zone)?.end?;
                (jump, jump)
            }
        };
        Some(ClockInstants { first: first.to_utc(), last: last.to_utc() })
    }
}

impl fmt::Display for ClockZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named { zone } => f.write_str(zone.name()),
            Self::Fixed { offset: 0 } => f.write_str("UTC"),
            Self::Fixed { offset } => {
                write!(f, "{}{}", if *offset > 0 { '+' } else { '-' }, format_clock(offset.unsigned_abs()))
            }
        }
    }
}

fn parse_offset(text: &str) -> Option<i16> {
    let positive = text.strip_prefix('+');
    let size = i16::try_from(parse_minutes(positive.or_else(|| text.strip_prefix('-'))?)?).ok()?;
    (size <= MAX_OFFSET).then_some(if positive.is_some() { size } else { -size })
}

fn east(minutes: i16) -> Option<FixedOffset> {
    FixedOffset::east_opt(i32::from(minutes) * 60)
}
