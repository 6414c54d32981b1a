//! Every recorded proposal with what became of it, one after the other.
//!
//! One pass over the actions in the order of their names, row by row, so that a million of them need no more memory
//! than a hundred; only ceilings are held, and those by matter and source. One act is one case: of what was proposed
//! again and again, with nothing coming of it in between, each source has one case, its last, and the class has the
//! last of all. What is made of a case is [`steward_domain::trust`]'s. The answers of humans, and what counts as the
//! same again, are read in one place, here, for whoever learns from them.

use crate::index::Index;
use crate::index::IndexError;
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
use steward_domain::gates::mode::Ceiling;
use steward_domain::steward::decide::ClosedGates;
use steward_domain::trust::by_hand::WATCHED;
use steward_domain::trust::case::{CaseSupporter, CitedSource, EarlierProposal, TrustCase};
use steward_domain::trust::outcome::{ProposalFeedback, ProposalHistory};

/// What humans said and did of the action `a` and of its confirmation: kinds, moments, places in the chain and what
/// they were answered together with, all in one text. A confirmation that let something else happen is no
/// confirmation of `a`.
macro_rules! answers {
    () => {
        "(SELECT group_concat(CASE WHEN b.edited THEN 'edited' ELSE b.kind END || ' ' || b.at || ' ' || b.seq
            || ' ' || COALESCE(b.together, '-') || CASE WHEN b.kind = 'steward-action-confirmed' THEN COALESCE(
            (SELECT group_concat(' ' || u.kind || ' ' || u.at || ' ' || u.seq || ' ' || COALESCE(u.together, '-'), '') FROM actions u WHERE u.answers_of = b.id
                AND u.kind IN ('steward-action-reversed', 'steward-action-opposed')), '') ELSE '' END, ' ')
            FROM actions b WHERE b.answers_of = a.id)"
    };
}
pub(crate) use answers;

/// The first thing that humans did by hand about the action `a`, by its place in the chain. What is said again from
/// there on is another act.
macro_rules! settled {
    () => {
        "COALESCE((SELECT MIN(b.seq) FROM actions b WHERE b.answers_of = a.id), 9223372036854775807)"
    };
}
pub(crate) use settled;

/// Whether the action `a` was only proposed, nobody answered it, and the very same was proposed again before a human
/// did anything about it.
macro_rules! made_again {
    () => {
        concat!(
            "(a.landing <> 'live' AND a.proposal IS NOT NULL AND EXISTS (SELECT 1 FROM actions c
                WHERE c.proposal = a.proposal AND c.seq > a.seq AND +c.seq < ",
            $crate::index::trust::cases::settled!(),
            ") AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = a.id
                AND b.kind IN ('steward-action-confirmed', 'steward-action-dismissed', 'steward-action-reversed')))"
        )
    };
}
pub(crate) use made_again;

/// Whether the source `s` of such an action spoke for the same again.
macro_rules! said_again {
    () => {
        concat!(
            "EXISTS (SELECT 1 FROM action_sources c WHERE c.speaks = 1 AND c.source = s.source
                AND c.proposal = a.proposal AND c.seq > a.seq AND +c.seq < ",
            $crate::index::trust::cases::settled!(),
            ")"
        )
    };
}
pub(crate) use said_again;

/// What was proposed before the action `a` of the same act, since anything came of it: the first moment, and the
/// confidence and the closed gates, of more than 20 those of the most confident.
macro_rules! earlier {
    () => {
        "(SELECT json_group_array(json_array(e.first, e.confidence, e.closed)) FROM (
            SELECT MIN(c.at) OVER () AS first, c.confidence, c.closed FROM actions c
            WHERE c.proposal = a.proposal AND c.seq < a.seq AND c.seq > COALESCE((SELECT MAX(x.seq) FROM actions x
                WHERE x.proposal = a.proposal AND x.seq < a.seq AND (x.landing = 'live'
                    OR EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = x.id))), 0)
            ORDER BY c.confidence DESC LIMIT 20) e)"
    };
}

/// How [`answers`] says that something else was let happen: decided otherwise, whatever became of that.
const EDITED: &str = "edited";

macro_rules! cases {
    ($from:literal) => {
        concat!(
            "SELECT a.confidence, json_array(a.seq, a.at, a.class, a.landing, a.closed, a.target, a.moves_to, ",
            answers!(),
            ") AS said, ",
            made_again!(),
            " AS again, ",
            earlier!(),
            " AS earlier, (SELECT json_group_array(json_array(s.source, s.name, s.speaks, s.cited,
                    a.landing <> 'live' AND s.speaks AND ",
            said_again!(),
            ")) FROM action_sources s WHERE s.action = a.path) AS sources ",
            $from
        )
    };
}

const CASES: &str = cases!("FROM actions a WHERE a.kind = 'steward-action' AND a.class IS NOT NULL ORDER BY a.path");
pub(crate) const CASES_SINCE: &str = cases!(
    "FROM actions a INDEXED BY actions_by_time WHERE a.at >= ?1 AND a.kind = 'steward-action' AND a.class IS NOT NULL"
);
/// By the matter's own line and by its `steward:` block.
const NARROW: &str = "
    WITH narrow AS (SELECT path, ceiling FROM matters WHERE ceiling <> 'act'
        UNION ALL SELECT path, policy->>'ceiling' FROM matters WHERE policy->>'ceiling' <> 'act')
    SELECT path, ceiling FROM narrow
    UNION ALL SELECT t.path, n.ceiling FROM tasks t JOIN narrow n ON n.path = t.parent";

/// Few columns, because each costs more than its content: a confidence, which JSON would round, and two texts.
#[derive(FromRow)]
struct CaseColumns {
    confidence: f64,
    said: String,
    again: bool,
    earlier: String,
    sources: String,
}

/// Place in the chain, moment, class, landing, closed gates, target, the matter to move to, answers.
type PackedCase<'a> = (u64, i64, &'a str, &'a str, &'a str, Cow<'a, str>, Option<Cow<'a, str>>, Option<&'a str>);

/// The ceilings that humans have set by now.
struct CeilingTable {
    /// By source; one that is not here has none.
    sources: BTreeMap<String, Ceiling>,
    /// By matter and task, those below `act`.
    records: BTreeMap<String, Ceiling>,
}

impl CeilingTable {
    fn record_ceiling(&self, path: &str) -> Ceiling {
        self.records.get(path).copied().unwrap_or_default()
    }
}

impl Index {
    /// Hands over every recorded proposal of a change with what became of it by now, always in the same order; what
    /// those who spoke for it all said again is none.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn for_each_case(&self, now: DateTime<Utc>, each: impl FnMut(&TrustCase)) -> Result<(), IndexError> {
        self.visit_cases(sqlx::query_as(CASES).fetch(&self.store.reader), now, each).await
    }

    /// The same of those that were recorded from a moment on, in the order of moments.
    pub(crate) async fn for_each_case_since(
        &self,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
        each: impl FnMut(&TrustCase),
    ) -> Result<(), IndexError> {
        self.visit_cases(sqlx::query_as(CASES_SINCE).bind(to_micros(since)).fetch(&self.store.reader), now, each).await
    }

    async fn visit_cases(
        &self,
        mut rows: BoxStream<'_, sqlx::Result<CaseColumns>>,
        now: DateTime<Utc>,
        mut each: impl FnMut(&TrustCase),
    ) -> Result<(), IndexError> {
        let (ceilings, together) = (self.read_ceilings().await?, self.read_batch_feedback(now).await?);
        while let Some(row) = rows.try_next().await.map_err(|e| self.sql_error(e))? {
            let case = self.decode_case(&row, (&ceilings, &together), now)?;
            if !case.again || !case.voices.is_empty() {
                each(&case);
            }
        }
        Ok(())
    }

    async fn read_ceilings(&self) -> Result<CeilingTable, IndexError> {
        let sources: Vec<(String, i64)> =
            sqlx::query_as("SELECT source, MIN(ceiling) FROM instincts WHERE ceiling IS NOT NULL GROUP BY source")
                .fetch_all(&self.store.reader)
                .await
                .map_err(|e| self.sql_error(e))?;
        let records: Vec<(String, String)> =
            sqlx::query_as(NARROW).fetch_all(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        let mut lowest: BTreeMap<String, Ceiling> = BTreeMap::new();
        for (path, ceiling) in records {
            let ceiling: Ceiling = self.parse_enum(&ceiling)?;
            let known = lowest.entry(path).or_default();
            *known = ceiling.min(*known);
        }
        Ok(CeilingTable {
            sources: sources.into_iter().map(|(key, set)| (key, decode_ceiling(Some(set), Ceiling::Act))).collect(),
            records: lowest,
        })
    }

    fn decode_case(
        &self,
        row: &CaseColumns,
        (ceilings, together): (&CeilingTable, &BatchFeedback),
        now: DateTime<Utc>,
    ) -> Result<TrustCase, IndexError> {
        let said: PackedCase<'_> = serde_json::from_str(&row.said).map_err(|_| self.unknown_value_error(&row.said))?;
        let (seq, at, class, word, closed, target, moves_to, answers) = said;
        let at = from_micros(at).unwrap_or_default();
        let landing = parse_disposition(word).ok_or_else(|| self.unknown_value_error(word))?;
        let known = MutationClass::ALL.into_iter().find(|known| known.as_str() == class);
        let sources: Vec<(String, String, u8, u8, u8)> =
            serde_json::from_str(&row.sources).map_err(|_| self.unknown_value_error(&row.sources))?;
        let earlier: Vec<(i64, f64, String)> =
            serde_json::from_str(&row.earlier).map_err(|_| self.unknown_value_error(&row.earlier))?;
        let since =
            earlier.first().and_then(|(first, ..)| from_micros(*first)).filter(|_| landing != Disposition::Live);
        let since = since.map_or(at, |first| first.min(at));
        let before = |(_, confidence, closed): (i64, f64, String)| {
            Ok(EarlierProposal {
                confidence,
                closed: ClosedGates::parse_names(&closed).ok_or_else(|| self.unknown_value_error(&closed))?,
            })
        };
        let (fate, with) = parse_proposal_history(answers, landing, at);
        let lesson = fate.feedback_at(now);
        let group = with.map(|with| (with, lesson.0, class.to_owned()));
        let moves_to = moves_to.map_or(Ceiling::Act, |matter| ceilings.record_ceiling(&matter));
        let mut case = TrustCase {
            seq,
            at,
            class: known.ok_or_else(|| self.unknown_value_error(class))?,
            since,
            earlier: earlier.into_iter().map(before).collect::<Result<_, IndexError>>()?,
            confidence: row.confidence,
            landing,
            closed: ClosedGates::parse_names(closed).ok_or_else(|| self.unknown_value_error(closed))?,
            ceiling: ceilings.record_ceiling(&target).min(moves_to),
            cited: Vec::new(),
            voices: Vec::new(),
            again: row.again || together.is_class_counted_elsewhere(seq, group.as_ref()),
            lesson: discard_late_feedback(lesson, since),
        };
        for (key, name, speaks, cited, again) in sources {
            if cited != 0 {
                case.cited.push(CitedSource { ceiling: ceilings.sources.get(&key).copied(), key: key.clone() });
            }
            let elsewhere =
                (row.again && again != 0) || together.is_source_counted_elsewhere(&key, seq, group.as_ref());
            if speaks != 0 && !elsewhere {
                case.voices.push(CaseSupporter { key, name });
            }
        }
        Ok(case)
    }
}

/// What came later than an act is watched says nothing of it: who says the same every week is right in the end.
fn discard_late_feedback((lesson, at): (ProposalFeedback, DateTime<Utc>), since: DateTime<Utc>) -> ProposalFeedback {
    if lesson == ProposalFeedback::DoneAnyway && at - since > WATCHED { ProposalFeedback::Open } else { lesson }
}

/// What became of an action that landed so at that moment, by the answers to it; of several of a kind the latest. And
/// what the latest of all was answered together with.
///
/// What came later the chain says: an answer whose clock had gone back counts at the moment of the one before it.
pub(crate) fn parse_proposal_history(
    answers: Option<&str>,
    landing: Disposition,
    at: DateTime<Utc>,
) -> (ProposalHistory, Option<String>) {
    let mut together = None;
    let mut fate = ProposalHistory::from_disposition(landing, at);
    let mut words = answers.unwrap_or_default().split(' ');
    let mut said: Vec<(u64, Option<DateTime<Utc>>, &str, &str)> = Vec::new();
    while let (Some(kind), Some(at), Some(seq), Some(with)) = (words.next(), words.next(), words.next(), words.next()) {
        said.push((seq.parse().unwrap_or_default(), at.parse().ok().and_then(from_micros), kind, with));
    }
    said.sort_unstable();
    let mut latest = None;
    for (_, at, kind, with) in said {
        let at = at.max(latest.map(|latest: DateTime<Utc>| latest + TimeDelta::microseconds(1)));
        latest = at;
        let moment = match kind {
            EDITED => Some(&mut fate.opposed),
            kind => {
                let said = [
                    (ActionKind::Confirmed, &mut fate.confirmed),
                    (ActionKind::Dismissed, &mut fate.dismissed),
                    (ActionKind::Reversed, &mut fate.undone),
                    (ActionKind::DoneAnyway, &mut fate.done_anyway),
                    (ActionKind::Opposed, &mut fate.opposed),
                ];
                said.into_iter().find(|(known, _)| known.as_str() == kind).map(|(_, moment)| moment)
            }
        };
        if let Some(moment) = moment {
            *moment = (*moment).max(at);
            together = (with != "-").then(|| with.to_owned());
        }
    }
    (fate, together)
}

/// A landing by its word.
pub(crate) fn parse_disposition(word: &str) -> Option<Disposition> {
    [Disposition::Recorded, Disposition::Shadow, Disposition::Pending, Disposition::Live]
        .into_iter()
        .find(|l| l.as_str() == word)
}
