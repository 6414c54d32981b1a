//! Shares: how much of the caps one stream, one sender or one source may claim.
//!
//! | whose calls | in any | at most |
//! |---|---|---|
//! | the reading of events | minute, hour, day | `extraction_percent` of the tenant's |
//! | of one stream's events | hour, day | `stream_percent`; half of it for senders nobody knows |
//! | of all events of senders nobody knows | hour, day | half of `extraction_percent` |
//! | of one sender's events | hour, day | `sender_percent` |
//! | judging on one source's account | day of a task or matter; hour, day | a half; a quarter |
//! | judging on strangers' account together | day of a task or matter; hour, day | two thirds; two fifths |
//!
//! A judgement goes to the account of every source whose fresh signals it carries, and is refused only
//! when each of them has had its share: so a source that floods a task holds back its own signals and
//! nobody else's. A name costs nothing, so those that were never right before share one account besides: of what
//! may be read, half is kept for known senders, however many streams there are.

use std::collections::BTreeSet;

use chrono::Utc;
use chrono::{DateTime, TimeDelta};
use serde::{Deserialize, Serialize};

use super::CallCaps;
use super::DAY;
use super::GuardCap;
use super::HOUR;
use super::MINUTE;
use super::ReserveRequest;
use super::format_calls;
use crate::signals::signal::source_key;
use crate::steward::clerk::SignalEvidence;

/// Somebody whose words a call carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSource {
    /// The source, as in `mail:billing@vendor.example`; accounts go by its [`source_key`], as trust does.
    pub source: String,
    /// It was right before, as its instinct says.
    pub known: bool,
}

impl CallSource {
    /// The sources of some evidence, each once.
    #[must_use]
    pub fn from_evidence(evidence: &[SignalEvidence]) -> Vec<Self> {
        let mut met = BTreeSet::new();
        let new = evidence.iter().filter(|e| met.insert(source_key(&e.source)));
        new.map(|e| Self { source: e.source.clone(), known: e.observations > 0 }).collect()
    }
}

/// The streams and senders that have had their share for now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExhaustedShares {
    pub streams: BTreeSet<String>,
    /// In all streams only senders that are known have calls left.
    pub all_strangers: bool,
    /// Streams in which only senders that are known have calls left.
    pub to_strangers: BTreeSet<String>,
    /// By their [`source_key`].
    pub senders: BTreeSet<String>,
}

/// What calls are counted under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountKey {
    pub kind: &'static str,
    pub name: String,
}

/// The keys of streams and senders, by which the ledger finds those that have had their share.
pub const STREAM: &str = "stream";
/// See [`STREAM`]; senders nobody knows, of all streams together.
pub const STRANGERS: &str = "strangers";
/// See [`STREAM`].
pub const SENDER: &str = "sender";

/// A window over the calls of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallQuota {
    pub cap: GuardCap,
    pub key: AccountKey,
    pub width: TimeDelta,
    /// At least 1.
    pub limit: u32,
    /// The limit-th newest call of the key, if there are that many: for the ledger to fill in.
    pub edge: Option<DateTime<Utc>>,
    /// What a person is told when it is full.
    pub(super) spent: String,
}

impl CallQuota {
    fn new(cap: GuardCap, (kind, name): (&'static str, &str), (width, limit): (TimeDelta, u32), who: &str) -> Self {
        let window = if width == MINUTE {
            "minute"
        } else if width == HOUR {
            "hour"
        } else {
            "24 hours"
        };
        let spent = format!("{who} had {} of the last {window}, its share", format_calls(limit));
        Self { cap, key: AccountKey { kind, name: name.to_owned() }, width, limit, edge: None, spent }
    }
}

impl CallCaps {
    /// Calls of an hour and of a day that the events of one stream may cost: of all its senders, or of
    /// those that nobody knows.
    #[must_use]
    pub fn stream_limits(&self, known: bool) -> [(TimeDelta, u32); 2] {
        self.hour_and_day_limits(self.stream_percent, if known { 100 } else { 200 })
    }

    /// Calls of an hour and of a day that the events of all senders may cost whom nobody knows.
    #[must_use]
    pub fn unknown_source_limits(&self) -> [(TimeDelta, u32); 2] {
        self.hour_and_day_limits(self.extraction_percent, 200)
    }

    /// Calls of an hour and of a day that the events of one sender may cost.
    #[must_use]
    pub fn sender_limits(&self) -> [(TimeDelta, u32); 2] {
        self.hour_and_day_limits(self.sender_percent, 100)
    }

    fn hour_and_day_limits(&self, part: u32, whole: u32) -> [(TimeDelta, u32); 2] {
        [(HOUR, compute_share(self.per_hour, (part, whole))), (DAY, compute_share(self.per_day, (part, whole)))]
    }
}

/// A part of a cap; nobody's is less than one call.
fn compute_share(cap: u32, (part, whole): (u32, u32)) -> u32 {
    let part = u64::from(cap) * u64::from(part) / u64::from(whole.max(1));
    u32::try_from(part).unwrap_or(cap).max(1)
}

impl ReserveRequest {
    /// The windows of the accounts that the call goes to. It may go if any account has room in all of
    /// its windows; a call that carries nobody's words goes to no account and is free of this.
    #[must_use]
    pub fn account_quotas(&self, caps: &CallCaps) -> Vec<Vec<CallQuota>> {
        match &self.stream {
            Some(stream) => vec![self.extraction_quotas(stream, caps)],
            None => self.speakers.iter().map(|speaker| self.judgement_quotas(speaker, caps)).collect(),
        }
    }

    fn extraction_quotas(&self, stream: &str, caps: &CallCaps) -> Vec<CallQuota> {
        let percent = (caps.extraction_percent, 100);
        let all = [(MINUTE, caps.per_minute), (HOUR, caps.per_hour), (DAY, caps.per_day)];
        let mut quotas: Vec<CallQuota> = all
            .map(|(width, cap)| {
                let window = (width, compute_share(cap, percent));
                CallQuota::new(GuardCap::Extraction, ("reading", ""), window, "the reading of events")
            })
            .into();
        let known = self.speakers.iter().all(|speaker| speaker.known);
        let who = format!("the stream {stream}{}", if known { "" } else { ", for senders nobody knows," });
        quotas.extend(caps.stream_limits(known).map(|w| CallQuota::new(GuardCap::Stream, (STREAM, stream), w, &who)));
        if !known {
            let who = "senders nobody knows, in all streams,";
            quotas.extend(
                caps.unknown_source_limits().map(|w| CallQuota::new(GuardCap::Stream, (STRANGERS, ""), w, who)),
            );
        }
        for speaker in &self.speakers {
            let slug = source_key(&speaker.source);
            let who = format!("the sender {slug}");
            quotas.extend(caps.sender_limits().map(|w| CallQuota::new(GuardCap::Sender, (SENDER, &slug), w, &who)));
        }
        quotas
    }

    fn judgement_quotas(&self, speaker: &CallSource, caps: &CallCaps) -> Vec<CallQuota> {
        let slug = source_key(&speaker.source);
        let mut quotas = self.source_quotas(&slug, ((1, 2), (1, 4)), caps, &format!("the source {slug}"));
        if !speaker.known {
            quotas.extend(self.source_quotas("", ((2, 3), (2, 5)), caps, "sources that nobody knows"));
        }
        quotas
    }

    fn source_quotas(
        &self,
        name: &str,
        (of_one, of_all): (Fraction, Fraction),
        caps: &CallCaps,
        who: &str,
    ) -> Vec<CallQuota> {
        let about = [("task", &self.task, caps.per_task_day), ("matter", &self.matter, caps.per_matter_day)];
        let mut quotas: Vec<CallQuota> = Vec::new();
        for (kind, path, cap) in about {
            let Some(path) = path else { continue };
            let (key, who) = (format!("{path}\n{name}"), format!("{who}, about {path},"));
            quotas.push(CallQuota::new(GuardCap::Source, (kind, &key), (DAY, compute_share(cap, of_one)), &who));
        }
        let all = self::CallCaps::hour_and_day_limits(caps, of_all.0, of_all.1);
        quotas.extend(all.map(|window| CallQuota::new(GuardCap::Source, ("source", name), window, who)));
        quotas
    }
}

/// Numerator and denominator.
type Fraction = (u32, u32);
