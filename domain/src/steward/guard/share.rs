//! Shares: how much of the caps one stream, one sender or one source may claim.
//!
//! | whose calls | in any | at most |
//! |---|---|---|
//! | extraction, all events | minute, hour, day | `extraction_percent` of the tenant's |
//! | extraction, events of one stream | hour, day | `stream_percent`; half of it for unknown senders |
//! | extraction, events of all unknown senders | hour, day | half of `extraction_percent` |
//! | extraction, events of one sender | hour, day | `sender_percent` |
//! | calls of all wikis; tokens of one wiki | hour, day; day | `wiki_percent`; `wiki_tokens_per_day` |
//! | judgements, one source | day of a task or matter; hour, day | a half; a quarter |
//! | judgements, all unknown sources | day of a task or matter; hour, day | two thirds; two fifths |
//!
//! A judgement counts for every source of its fresh signals. It is refused only if each of them has used its share,
//! so a source that floods a task delays only its own signals. A new name costs nothing. So sources that were never
//! right share one account as well, and half of the extraction is reserved for known senders.

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

/// A source whose words a call carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSource {
    /// The source, as in `mail:billing@vendor.example`. Accounts use its [`source_key`], as trust does.
    pub source: String,
    /// Whether its instinct says that it was right before.
    pub known: bool,
}

impl CallSource {
    /// The sources of some evidence, each once.
    #[must_use]
    pub fn from_evidence(evidence: &[SignalEvidence]) -> Vec<Self> {
        let mut seen = BTreeSet::new();
        let new = evidence.iter().filter(|e| seen.insert(source_key(&e.source)));
        new.map(|e| Self { source: e.source.clone(), known: e.observations > 0 }).collect()
    }
}

/// The streams and senders that have used their shares for now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExhaustedShares {
    pub streams: BTreeSet<String>,
    /// In all streams, only known senders have calls left.
    pub all_unknown_senders: bool,
    /// The streams in which only known senders have calls left.
    pub unknown_senders_of: BTreeSet<String>,
    /// By their [`source_key`].
    pub senders: BTreeSet<String>,
}

/// The account on which calls are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountKey {
    pub kind: &'static str,
    pub name: String,
}

/// The kind of a stream's account. The ledger finds exhausted shares by it.
pub const STREAM: &str = "stream";
/// The kind of the account that unknown senders of all streams share.
pub const UNKNOWN_SENDERS: &str = "unknown_senders";
/// The kind of the account of one wiki, on which its tokens are counted.
pub const WIKI_TOKENS: &str = "wiki_tokens";
/// The kind of a sender's account.
pub const SENDER: &str = "sender";

/// A window over the calls of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallQuota {
    pub cap: GuardCap,
    pub key: AccountKey,
    pub width: TimeDelta,
    /// At least 1.
    pub limit: u32,
    /// The limit-th newest call of the key, if there are that many. The ledger fills it in.
    pub edge: Option<DateTime<Utc>>,
    /// The reason of a refusal, for a person.
    pub(super) reason: String,
}

impl CallQuota {
    fn new(cap: GuardCap, kind: &'static str, name: &str, width: TimeDelta, limit: u32, who: &str) -> Self {
        let window = if width == MINUTE {
            "minute"
        } else if width == HOUR {
            "hour"
        } else {
            "24 hours"
        };
        let reason = format!("the share of {who} is used up: {} in the last {window}", format_calls(limit));
        Self { cap, key: AccountKey { kind, name: name.to_owned() }, width, limit, edge: None, reason }
    }
}

impl CallCaps {
    /// The calls in an hour and in a day for the events of one stream, of all its senders or of its unknown ones.
    #[must_use]
    pub fn stream_limits(&self, known: bool) -> [(TimeDelta, u32); 2] {
        self.hour_and_day_limits(Fraction { part: self.stream_percent, whole: if known { 100 } else { 200 } })
    }

    /// The calls in an hour and in a day for the events of all unknown senders.
    #[must_use]
    pub fn unknown_source_limits(&self) -> [(TimeDelta, u32); 2] {
        self.hour_and_day_limits(Fraction { part: self.extraction_percent, whole: 200 })
    }

    /// The calls in an hour and in a day for the events of one sender.
    #[must_use]
    pub fn sender_limits(&self) -> [(TimeDelta, u32); 2] {
        self.hour_and_day_limits(Fraction { part: self.sender_percent, whole: 100 })
    }

    fn hour_and_day_limits(&self, fraction: Fraction) -> [(TimeDelta, u32); 2] {
        [(HOUR, fraction.compute_share(self.per_hour)), (DAY, fraction.compute_share(self.per_day))]
    }
}

/// A part of a cap.
#[derive(Clone, Copy)]
struct Fraction {
    part: u32,
    whole: u32,
}

impl Fraction {
    /// The share of a cap. No share is less than one call.
    fn compute_share(self, cap: u32) -> u32 {
        let share = u64::from(cap) * u64::from(self.part) / u64::from(self.whole.max(1));
        u32::try_from(share).unwrap_or(cap).max(1)
    }
}

impl ReserveRequest {
    /// The quotas of each account on which the call counts.
    ///
    /// The call is admitted if one account has room in all of its windows. A call without sources counts on no account
    /// and has no such limit.
    #[must_use]
    pub fn account_quotas(&self, caps: &CallCaps) -> Vec<Vec<CallQuota>> {
        match (&self.stream, &self.wiki) {
            (Some(stream), _) => vec![self.extraction_quotas(stream, caps)],
            (None, Some(_)) => vec![list_wiki_quotas(caps)],
            (None, None) => self.sources.iter().map(|source| self.judgement_quotas(source, caps)).collect(),
        }
    }

    fn extraction_quotas(&self, stream: &str, caps: &CallCaps) -> Vec<CallQuota> {
        let share = Fraction { part: caps.extraction_percent, whole: 100 };
        let windows = [(MINUTE, caps.per_minute), (HOUR, caps.per_hour), (DAY, caps.per_day)];
        let mut quotas: Vec<CallQuota> = windows
            .map(|(width, cap)| {
                let limit = share.compute_share(cap);
                CallQuota::new(GuardCap::Extraction, "reading", "", width, limit, "the extraction of events")
            })
            .into();
        let known = self.sources.iter().all(|source| source.known);
        let who =
            if known { format!("the stream {stream}") } else { format!("unknown senders in the stream {stream}") };
        for (width, limit) in caps.stream_limits(known) {
            quotas.push(CallQuota::new(GuardCap::Stream, STREAM, stream, width, limit, &who));
        }
        if !known {
            for (width, limit) in caps.unknown_source_limits() {
                let who = "unknown senders in all streams";
                quotas.push(CallQuota::new(GuardCap::Stream, UNKNOWN_SENDERS, "", width, limit, who));
            }
        }
        for source in &self.sources {
            let slug = source_key(&source.source);
            let who = format!("the sender {slug}");
            for (width, limit) in caps.sender_limits() {
                quotas.push(CallQuota::new(GuardCap::Sender, SENDER, &slug, width, limit, &who));
            }
        }
        quotas
    }

    fn judgement_quotas(&self, source: &CallSource, caps: &CallCaps) -> Vec<CallQuota> {
        let slug = source_key(&source.source);
        let (half, quarter) = (Fraction { part: 1, whole: 2 }, Fraction { part: 1, whole: 4 });
        let mut quotas = self.source_quotas(&slug, half, quarter, caps, &format!("the source {slug}"));
        if !source.known {
            let (two_thirds, two_fifths) = (Fraction { part: 2, whole: 3 }, Fraction { part: 2, whole: 5 });
            quotas.extend(self.source_quotas("", two_thirds, two_fifths, caps, "unknown sources"));
        }
        quotas
    }

    /// `of_target` is the share of the calls about the task and the matter, `of_tenant` that of the tenant's calls.
    ///
    /// The price: a task whose signals all come from one source gets half of its calls.
    fn source_quotas(
        &self,
        name: &str,
        of_target: Fraction,
        of_tenant: Fraction,
        caps: &CallCaps,
        who: &str,
    ) -> Vec<CallQuota> {
        let targets = [("task", &self.task, caps.per_task_day), ("matter", &self.matter, caps.per_matter_day)];
        let mut quotas: Vec<CallQuota> = Vec::new();
        for (kind, path, cap) in targets {
            let Some(path) = path else { continue };
            let (key, who) = (format!("{path}\n{name}"), format!("{who} about {path}"));
            quotas.push(CallQuota::new(GuardCap::Source, kind, &key, DAY, of_target.compute_share(cap), &who));
        }
        for (width, limit) in caps.hour_and_day_limits(of_tenant) {
            quotas.push(CallQuota::new(GuardCap::Source, "source", name, width, limit, who));
        }
        quotas
    }
}

/// No ingest keeps the stewards from their calls.
fn list_wiki_quotas(caps: &CallCaps) -> Vec<CallQuota> {
    let share = Fraction { part: caps.wiki_percent, whole: 100 };
    let quota = |(width, limit)| CallQuota::new(GuardCap::Wiki, "wiki", "", width, limit, "the wikis");
    caps.hour_and_day_limits(share).map(quota).into()
}
