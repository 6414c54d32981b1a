//! The cases that trust learns from: every recorded proposal with its outcome.
//!
//! One pass reads the actions row by row in the order of their names, so a million of them need no more memory than a
//! hundred. Only ceilings (by matter and source) and batches are kept in memory. A proposal that was repeated without
//! any outcome in between is one case: each source has its last repetition, and the class has the last of all.
//!
//! This is the only place that reads the resolutions of people and that decides what counts as a repetition. The rules
//! of trust are in [`steward_domain::trust`].

use crate::index::IndexError;
use crate::index::TrustView;
use crate::index::actions::batches::BatchFeedback;
use crate::index::signals::route::decode_ceiling;
use crate::index::store::codec::{from_micros, to_micros};
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use sqlx::FromRow;
use std::borrow::Cow;
use std::collections::BTreeMap;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::Disposition;
use steward_domain::gates::closed::ClosedGates;
use steward_domain::gates::mode::Ceiling;
use steward_domain::trust::by_hand::ANSWER_WINDOW;
use steward_domain::trust::case::{CaseSupporter, CitedSource, EarlierProposal, TrustCase};
use steward_domain::trust::outcome::{ProposalFeedback, ProposalHistory};

/// The number in the chain of the last outcome before the action `a` of a proposal of the same change. What comes after
/// it is one case with `a`.
macro_rules! last_outcome_seq {
    () => {
        "COALESCE((SELECT MAX(x.seq) FROM actions x
            WHERE x.proposal = a.proposal AND x.seq < a.seq AND (x.disposition = 'live'
                OR EXISTS (SELECT 1 FROM actions b WHERE b.resolves = x.id))), 0)"
    };
}
pub(crate) use last_outcome_seq;

/// Whether a model made this record of an answer, and no person has agreed with it since.
macro_rules! is_by_agent_alone {
    ($row:literal) => {
        concat!(
            "(",
            $row,
            ".by_agent AND NOT EXISTS (SELECT 1 FROM actions g INDEXED BY actions_that_say_right WHERE g.follows = ",
            $row,
            ".id AND g.kind = 'steward-action-right' AND g.taken_back = 0))"
        )
    };
}
pub(crate) use is_by_agent_alone;

/// The history of the action `a` and of its confirmation as one text: the kind, the moment, the number in the chain and
/// the batch of each resolution and of each change by hand. A confirmation with a different change is no confirmation
/// of `a`. What a model did is `by-agent`, whatever it was, until a person agrees. A proposal that a person called right stays open, so that holds for its repetitions too.
macro_rules! resolutions_text {
    () => {
        concat!(
            "(SELECT group_concat(CASE WHEN ",
            $crate::index::trust::cases::is_by_agent_alone!("h"),
            " THEN 'by-agent' WHEN h.edited THEN 'edited' ELSE h.kind END || ' ' || h.at || ' ' || h.seq
            || ' ' || COALESCE(h.batch_id, '-') || CASE WHEN h.kind = 'steward-action-confirmed' THEN COALESCE(
            (SELECT group_concat(' ' || CASE WHEN ",
            $crate::index::trust::cases::is_by_agent_alone!("u"),
            " THEN 'by-agent' ELSE u.kind END || ' ' || u.at || ' ' || u.seq || ' ' || COALESCE(u.batch_id, '-'), '') FROM actions u WHERE u.resolves = h.id
                AND u.kind IN ('steward-action-reversed', 'steward-action-opposed')), '') ELSE '' END, ' ')
            FROM (SELECT r.id, r.kind, r.at, r.seq, r.batch_id, r.edited, r.by_agent FROM actions r WHERE r.resolves = a.id
                UNION ALL SELECT r.id, r.kind, r.at, r.seq, r.batch_id, r.edited, r.by_agent
                FROM actions c CROSS JOIN actions r INDEXED BY actions_that_say_right ON r.follows = c.id
                    AND r.kind = 'steward-action-right' AND r.resolves IS NULL AND r.taken_back = 0
                WHERE c.proposal = a.proposal AND c.seq <= a.seq AND c.seq > ",
            $crate::index::trust::cases::last_outcome_seq!(),
            ") h)"
        )
    };
}
pub(crate) use resolutions_text;

/// The number in the chain of the first resolution of the action `a`. A repetition after it is a new case.
macro_rules! first_resolution_seq {
    () => {
        "COALESCE((SELECT MIN(b.seq) FROM actions b WHERE b.resolves = a.id), 9223372036854775807)"
    };
}
pub(crate) use first_resolution_seq;

/// Whether the action `a` is a proposal that nobody resolved, and the same was proposed again before a person did
/// anything about it.
macro_rules! is_repeated {
    () => {
        concat!(
            "(a.disposition <> 'live' AND a.proposal IS NOT NULL AND EXISTS (SELECT 1 FROM actions c
                WHERE c.proposal = a.proposal AND c.seq > a.seq AND +c.seq < ",
            $crate::index::trust::cases::first_resolution_seq!(),
            ") AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.resolves = a.id
                AND b.kind IN ('steward-action-confirmed', 'steward-action-dismissed', 'steward-action-reversed',
                    'steward-action-right', 'steward-action-wrong')))"
        )
    };
}
pub(crate) use is_repeated;

/// Whether the source `s` of such an action supported the repetition too.
macro_rules! is_repeated_by_source {
    () => {
        concat!(
            "EXISTS (SELECT 1 FROM action_sources c WHERE c.supports = 1 AND c.source = s.source
                AND c.proposal = a.proposal AND c.seq > a.seq AND +c.seq < ",
            $crate::index::trust::cases::first_resolution_seq!(),
            ")"
        )
    };
}
pub(crate) use is_repeated_by_source;

/// The earlier proposals of the same change as the action `a`, since its last outcome: the first moment, and the
/// confidence and the closed gates of each. Of more than 20 the most confident ones stay.
macro_rules! earlier_proposals {
    () => {
        concat!(
            "(SELECT json_group_array(json_array(e.first, e.confidence, e.closed)) FROM (
            SELECT MIN(c.at) OVER () AS first, c.confidence, c.closed FROM actions c
            WHERE c.proposal = a.proposal AND c.seq < a.seq AND c.seq > ",
            $crate::index::trust::cases::last_outcome_seq!(),
            " ORDER BY c.confidence DESC LIMIT 20) e)"
        )
    };
}

/// How [`resolutions_text`] spells what a model did.
const BY_AGENT: &str = "by-agent";

/// The kinds in [`resolutions_text`], and as what each counts. To call a proposal right or wrong is in Watch what a
/// confirmation and a dismissal are later. A confirmation with a different change (`edited`) counts as opposed.
const ANSWERS: [(&str, ActionKind); 8] = [
    ("steward-action-confirmed", ActionKind::Confirmed),
    ("steward-action-right", ActionKind::Confirmed),
    ("steward-action-dismissed", ActionKind::Dismissed),
    ("steward-action-wrong", ActionKind::Dismissed),
    ("steward-action-reversed", ActionKind::Reversed),
    ("steward-action-done-anyway", ActionKind::DoneAnyway),
    ("steward-action-opposed", ActionKind::Opposed),
    ("edited", ActionKind::Opposed),
];

/// The query for cases from the given rows.
macro_rules! case_query {
    ($from:literal) => {
        concat!(
            "SELECT a.confidence, json_array(a.seq, a.at, a.class, a.disposition, a.closed, a.target, a.moves_to, ",
            resolutions_text!(),
            ") AS said, ",
            is_repeated!(),
            " AS again, ",
            earlier_proposals!(),
            " AS earlier, (SELECT json_group_array(json_array(s.source, s.name, s.supports, s.cited,
                    a.disposition <> 'live' AND s.supports AND ",
            is_repeated_by_source!(),
            ")) FROM action_sources s WHERE s.action = a.path) AS sources ",
            $from
        )
    };
}

const CASES: &str =
    case_query!("FROM actions a WHERE a.kind = 'steward-action' AND a.class IS NOT NULL ORDER BY a.path");
pub(crate) const CASES_SINCE: &str = case_query!(
    "FROM actions a INDEXED BY actions_by_time WHERE a.at >= ?1 AND a.kind = 'steward-action' AND a.class IS NOT NULL"
);
/// Ceilings below `act` of matters, from their own field and their `steward:` block, and the same for their tasks.
const NARROW_CEILINGS: &str = "
    WITH narrow AS (SELECT path, ceiling FROM matters WHERE ceiling <> 'act'
        UNION ALL SELECT path, policy->>'ceiling' FROM matters WHERE policy->>'ceiling' <> 'act')
    SELECT path, ceiling FROM narrow
    UNION ALL SELECT t.path, n.ceiling FROM tasks t JOIN narrow n ON n.path = t.parent
    UNION ALL SELECT p.task, n.ceiling FROM further_parents p JOIN narrow n ON n.path = p.parent";

/// A case with few columns, because each column costs more than its content. The confidence is separate, because JSON
/// would round it.
#[derive(FromRow)]
struct CaseColumns {
    confidence: f64,
    said: String,
    again: bool,
    earlier: String,
    sources: String,
}

/// Number in the chain, moment, class, disposition, closed gates, target, the matter to move to, history.
type PackedCase<'a> = (u64, i64, &'a str, &'a str, &'a str, Cow<'a, str>, Option<Cow<'a, str>>, Option<&'a str>);

/// The ceilings that people have set.
struct CeilingTable {
    /// By source. A source that is not here has none.
    sources: BTreeMap<String, Ceiling>,
    /// By matter and task, those below `act`.
    records: BTreeMap<String, Ceiling>,
}

impl CeilingTable {
    fn record_ceiling(&self, path: &str) -> Ceiling {
        self.records.get(path).copied().unwrap_or_default()
    }
}

impl TrustView<'_> {
    /// Visits every recorded proposal of a change with its outcome so far, always in the same order.
    ///
    /// A proposal that all its supporting sources repeated is left out.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn for_each_case(self, now: DateTime<Utc>, each: impl FnMut(&TrustCase)) -> Result<(), IndexError> {
        self.visit_cases(sqlx::query_as(CASES).fetch(&self.index.store.reader), now, each).await
    }

    /// Visits the cases that were recorded from a moment on, in the order of time.
    pub(crate) async fn for_each_case_since(
        self,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
        each: impl FnMut(&TrustCase),
    ) -> Result<(), IndexError> {
        self.visit_cases(sqlx::query_as(CASES_SINCE).bind(to_micros(since)).fetch(&self.index.store.reader), now, each)
            .await
    }

    async fn visit_cases(
        self,
        mut rows: BoxStream<'_, sqlx::Result<CaseColumns>>,
        now: DateTime<Utc>,
        mut each: impl FnMut(&TrustCase),
    ) -> Result<(), IndexError> {
        let (ceilings, batches) = (self.read_ceilings().await?, self.index.actions().read_batch_feedback(now).await?);
        while let Some(row) = rows.try_next().await.map_err(|e| self.index.sql_error(e))? {
            let case = self.decode_case(&row, &ceilings, &batches, now)?;
            if !case.is_repeated || !case.supporters.is_empty() {
                each(&case);
            }
        }
        Ok(())
    }

    async fn read_ceilings(self) -> Result<CeilingTable, IndexError> {
        let sources: Vec<(String, i64)> =
            sqlx::query_as("SELECT source, MIN(ceiling) FROM instincts WHERE ceiling IS NOT NULL GROUP BY source")
                .fetch_all(&self.index.store.reader)
                .await
                .map_err(|e| self.index.sql_error(e))?;
        let records: Vec<(String, String)> = sqlx::query_as(NARROW_CEILINGS)
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let mut lowest: BTreeMap<String, Ceiling> = BTreeMap::new();
        for (path, ceiling) in records {
            let ceiling: Ceiling = self.index.parse_enum(&ceiling)?;
            let known = lowest.entry(path).or_default();
            *known = ceiling.min(*known);
        }
        Ok(CeilingTable {
            sources: sources.into_iter().map(|(key, set)| (key, decode_ceiling(Some(set), Ceiling::Act))).collect(),
            records: lowest,
        })
    }

    fn decode_case(
        self,
        row: &CaseColumns,
        ceilings: &CeilingTable,
        batches: &BatchFeedback,
        now: DateTime<Utc>,
    ) -> Result<TrustCase, IndexError> {
        let packed: PackedCase<'_> =
            serde_json::from_str(&row.said).map_err(|_| self.index.unknown_value_error(&row.said))?;
        let (seq, at, class, word, closed, target, moves_to, history) = packed;
        let at = from_micros(at).unwrap_or_default();
        let disposition = parse_disposition(word).ok_or_else(|| self.index.unknown_value_error(word))?;
        let known: Option<MutationClass> = class.parse().ok();
        let sources: Vec<(String, String, u8, u8, u8)> =
            serde_json::from_str(&row.sources).map_err(|_| self.index.unknown_value_error(&row.sources))?;
        let earlier: Vec<(i64, f64, String)> =
            serde_json::from_str(&row.earlier).map_err(|_| self.index.unknown_value_error(&row.earlier))?;
        let since =
            earlier.first().and_then(|(first, ..)| from_micros(*first)).filter(|_| disposition != Disposition::Live);
        let since = since.map_or(at, |first| first.min(at));
        let before = |(_, confidence, closed): (i64, f64, String)| {
            Ok(EarlierProposal {
                confidence,
                closed: ClosedGates::parse_names(&closed).ok_or_else(|| self.index.unknown_value_error(&closed))?,
            })
        };
        let (history, batch) = parse_proposal_history(history, disposition, at);
        let (feedback, feedback_at) = history.feedback_at(now);
        let group = batch.map(|batch| (batch, feedback, class.to_owned()));
        let moves_to = moves_to.map_or(Ceiling::Act, |matter| ceilings.record_ceiling(&matter));
        let mut case = TrustCase {
            seq,
            at,
            class: known.ok_or_else(|| self.index.unknown_value_error(class))?,
            since,
            earlier: earlier.into_iter().map(before).collect::<Result<_, IndexError>>()?,
            confidence: row.confidence,
            disposition,
            closed: ClosedGates::parse_names(closed).ok_or_else(|| self.index.unknown_value_error(closed))?,
            ceiling: ceilings.record_ceiling(&target).min(moves_to),
            cited: Vec::new(),
            supporters: Vec::new(),
            is_repeated: row.again || batches.is_class_counted_elsewhere(seq, group.as_ref()),
            feedback: discard_late_feedback(feedback, feedback_at, since),
        };
        for (key, name, supports, cited, again) in sources {
            if cited != 0 {
                case.cited.push(CitedSource { ceiling: ceilings.sources.get(&key).copied(), key: key.clone() });
            }
            let elsewhere = (row.again && again != 0) || batches.is_source_counted_elsewhere(&key, seq, group.as_ref());
            if supports != 0 && !elsewhere {
                case.supporters.push(CaseSupporter { key, name });
            }
        }
        Ok(case)
    }
}

/// Ignores a change by hand that came after the watched period. A source that repeats the same every week would
/// otherwise be right in the end.
fn discard_late_feedback(feedback: ProposalFeedback, at: DateTime<Utc>, since: DateTime<Utc>) -> ProposalFeedback {
    if feedback == ProposalFeedback::DoneAnyway && at - since > ANSWER_WINDOW {
        ProposalFeedback::Open
    } else {
        feedback
    }
}

/// Parses the history of an action with this disposition and moment, and the batch of its latest resolution. Of several
/// resolutions of one kind the latest counts.
///
/// The chain gives the order. A resolution whose clock was set back counts right after the one before it.
pub(crate) fn parse_proposal_history(
    resolutions: Option<&str>,
    disposition: Disposition,
    at: DateTime<Utc>,
) -> (ProposalHistory, Option<String>) {
    let mut batch = None;
    let mut history = ProposalHistory::from_disposition(disposition, at);
    let mut words = resolutions.unwrap_or_default().split(' ');
    let mut entries: Vec<(u64, Option<DateTime<Utc>>, &str, &str)> = Vec::new();
    while let (Some(kind), Some(at), Some(seq), Some(with)) = (words.next(), words.next(), words.next(), words.next()) {
        entries.push((seq.parse().unwrap_or_default(), at.parse().ok().and_then(from_micros), kind, with));
    }
    entries.sort_unstable();
    let mut latest = None;
    for (_, at, kind, with) in entries {
        let at = at.max(latest.map(|latest: DateTime<Utc>| latest + TimeDelta::microseconds(1)));
        latest = at;
        history.resolved_by_agent |= kind == BY_AGENT;
        let moment = match ANSWERS.iter().find(|(known, _)| *known == kind).map(|(_, answer)| answer) {
            Some(ActionKind::Confirmed) => Some(&mut history.confirmed),
            Some(ActionKind::Dismissed) => Some(&mut history.dismissed),
            Some(ActionKind::Reversed) => Some(&mut history.undone),
            Some(ActionKind::DoneAnyway) => Some(&mut history.done_anyway),
            Some(ActionKind::Opposed) => Some(&mut history.opposed),
            Some(_) | None => None,
        };
        if let Some(moment) = moment {
            *moment = (*moment).max(at);
            batch = (with != "-").then(|| with.to_owned());
        }
    }
    (history, batch)
}

/// Parses a disposition from its stored spelling.
pub(crate) fn parse_disposition(word: &str) -> Option<Disposition> {
    [Disposition::Recorded, Disposition::Shadow, Disposition::Pending, Disposition::Live]
        .into_iter()
        .find(|l| l.as_str() == word)
}
