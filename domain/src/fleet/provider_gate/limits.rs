//! The limits of a provider's account, as an operator writes them: `60/min`, `10000/day`, `12/20s`.
//!
//! A bucket has one window for each width, with a limit of calls, of tokens, or of both. The database keeps the windows as
//! JSON.

use super::RESERVATION_LIFETIME;
use crate::fleet::{MAX_NAME, is_fleet_name};
use crate::time::parse_width;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The longest window: a day, in seconds. The ledgers of a fleet remember calls for that long.
const MAX_SECONDS: u32 = 86_400;

/// The text is not the name of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not the name of a bucket: use 1 to {MAX_NAME} lower-case letters, digits and hyphens, and begin with a letter",
    .0.escape_debug()
)]
pub struct InvalidBucketName(String);

/// Checks the name of a bucket, which looks like a tenant's id.
///
/// # Errors
/// [`InvalidBucketName`].
pub fn parse_bucket_name(text: &str) -> Result<String, InvalidBucketName> {
    if is_fleet_name(text) { Ok(text.to_owned()) } else { Err(InvalidBucketName(text.to_owned())) }
}

/// A number of calls or tokens in any window of a width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// At least 1.
    pub count: u64,
    /// 1 s to a day.
    pub seconds: u32,
}

/// The text is no rate limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a rate limit: write a number and a window up to a day, as in 60/min, 10000/day or 12/20s", .0.escape_debug())]
pub struct InvalidRateLimit(String);

impl FromStr for RateLimit {
    type Err = InvalidRateLimit;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (count, window) = text.split_once('/')?;
            let count: u64 = count.trim().parse().ok().filter(|count| (1..=u64::from(u32::MAX)).contains(count))?;
            let seconds = parse_width(window).filter(|seconds| (1..=MAX_SECONDS).contains(seconds))?;
            Some(Self { count, seconds })
        };
        parse().ok_or_else(|| InvalidRateLimit(text.to_owned()))
    }
}

/// One window of a bucket and its limits. At least one of them is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketWindow {
    /// The width, 1 to 86,400 s.
    pub seconds: u32,
    /// Calls of all tenants in any window of that width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    /// Tokens of all tenants, as calls reserve them until the provider reports what they used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl BucketWindow {
    /// The width for which the gate counts a call.
    #[must_use]
    pub fn counted_width(&self) -> TimeDelta {
        TimeDelta::seconds(i64::from(self.seconds)) + RESERVATION_LIFETIME
    }
}

/// `in a minute`, `in 20 s`.
impl fmt::Display for BucketWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds {
            60 => f.write_str("in a minute"),
            3_600 => f.write_str("in an hour"),
            MAX_SECONDS => f.write_str("in a day"),
            seconds => write!(f, "in {seconds} s"),
        }
    }
}

/// Two limits of the same kind for one window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are two limits of {what} {window}: give one")]
pub struct RepeatedLimit {
    what: &'static str,
    window: BucketWindow,
}

/// Joins the limits of calls and of tokens by their windows, the shortest first.
///
/// # Errors
/// [`RepeatedLimit`].
pub fn merge_limits(calls: &[RateLimit], tokens: &[RateLimit]) -> Result<Vec<BucketWindow>, RepeatedLimit> {
    let mut windows: BTreeMap<u32, BucketWindow> = BTreeMap::new();
    let empty = |seconds| BucketWindow { seconds, calls: None, tokens: None };
    for RateLimit { count, seconds } in calls.iter().copied() {
        let window = windows.entry(seconds).or_insert_with(|| empty(seconds));
        if window.calls.replace(u32::try_from(count).unwrap_or(u32::MAX)).is_some() {
            return Err(RepeatedLimit { what: "calls", window: *window });
        }
    }
    for RateLimit { count, seconds } in tokens.iter().copied() {
        let window = windows.entry(seconds).or_insert_with(|| empty(seconds));
        if window.tokens.replace(count).is_some() {
            return Err(RepeatedLimit { what: "tokens", window: *window });
        }
    }
    Ok(windows.into_values().collect())
}
