//! What the audit records say of changes that were taken back, and of modes that were lowered for it.
//!
//! It also tells which proposals are still to be compared with what their targets say by now, and which sources
//! were pruned on the record before. The rules are [`steward_domain::trust`]'s; nothing is kept here.

use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::codec::{from_micros, to_micros};
use crate::index::store::rows::to_json;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::FromRow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use steward_domain::action::audit::{AuditDraft, UNDO_WINDOW_DAYS};
use steward_domain::action::plan::ActionId;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::by_hand::WATCHED;
use steward_domain::trust::demotion::{ChangeSupporter, LiveChange, LiveChangeUndo, ModeCap, ModeCaps, WINDOW};
use steward_domain::trust::mark::{TrustSubject, short_source_name};

/// Most proposals that are compared at once for being the newest.
const NEWEST: i64 = 1_000;
/// Most of the others, each in its turn: with the newest a second or two of reading. At a round every 10 minutes it is
/// the turn of 576,000 in a day.
const IN_TURN: i64 = 4_000;
/// Where the turn has come to, in `meta`: those decided at that moment or before are next. Absent at the newest.
const TURN: &str = "compared_to";

/// What is compared at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparisonRound {
    /// The records, newest first.
    pub proposals: Vec<RecordPath>,
    /// When each was decided.
    decided: Vec<i64>,
    /// Where the turn had come to, and where it is after the whole round.
    turn: Option<i64>,
    next: Option<i64>,
}

#[derive(FromRow)]
struct LiveChangeColumns {
    seq: i64,
    at: i64,
    class: String,
    sources: String,
    undo: Option<String>,
    undone_at: Option<i64>,
    undone_seq: Option<i64>,
}

const MADE: &str = "
    SELECT a.seq, a.at, a.class, u.id AS undo, u.at AS undone_at, u.seq AS undone_seq,
        (SELECT json_group_array(json_array(s.source, s.name, COALESCE(
            (SELECT MIN(i.observations) FROM instincts i WHERE i.source = s.source), 0) = 0))
            FROM action_sources s WHERE s.action = a.path AND s.speaks = 1) AS sources
    FROM actions a LEFT JOIN actions u ON u.path = (SELECT b.path FROM actions b WHERE b.answers_of = a.id
        AND b.kind IN ('steward-action-reversed', 'steward-action-opposed') ORDER BY b.seq LIMIT 1)
    WHERE a.at > ?1 AND a.kind = 'steward-action' AND a.landing = 'live' AND a.class IS NOT NULL ORDER BY a.seq";

/// How often each of these sources was right before.
const SEEN: &str =
    "SELECT j.value, COALESCE((SELECT MIN(i.observations) FROM instincts i WHERE i.source = j.value), 0) = 0
    FROM json_each(?1) j";

/// The newest name of a source that spoke.
const NAMED: &str = "SELECT name FROM action_sources WHERE source = ?1 AND speaks = 1 ORDER BY seq DESC LIMIT 1";

const CAPS: &str = "SELECT trust_subject, trust_mode, at, seq FROM actions
    WHERE trust_subject IS NOT NULL AND kind IN ('steward-trust-lowered', 'steward-trust-raised') ORDER BY seq";

const LOWERED: &str = "SELECT id FROM actions WHERE trust_subject = ?1 AND trust_mode IS NOT NULL
    AND kind = 'steward-trust-lowered' ORDER BY seq DESC LIMIT 1";

/// Proposals without an answer, and changes that can still be undone, whose targets were written to since, and what
/// they change not by a later change of ours. Of what was proposed again and again the last is compared for each
/// source. `?2` is the newest moment to look at.
const TO_COMPARE: &str = "
    SELECT a.path, a.at FROM actions a JOIN files f ON f.path = a.target AND f.problem IS NULL
    WHERE a.kind IN ('steward-action', 'steward-action-confirmed') AND a.landing IN ('shadow', 'pending', 'live')
    AND a.at > ?1 AND a.at <= ?2 AND (a.landing <> 'live' OR a.at > ?3) AND a.class IS NOT NULL
    AND f.modified_ns / 1000 > a.at
    AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = a.id
        AND (b.kind <> 'steward-action-opposed' OR a.landing = 'live'))
    AND NOT EXISTS (SELECT 1 FROM actions c WHERE c.target = a.target AND c.seq > a.seq
        AND COALESCE(c.changes, (SELECT o.changes FROM actions o WHERE o.id = c.answers_of)) IS a.changes
        AND (c.kind IN ('steward-action-confirmed', 'steward-action-reversed')
            OR (c.kind = 'steward-action' AND c.landing = 'live')))
    AND (a.landing = 'live' OR NOT EXISTS (SELECT 1 FROM actions c WHERE c.proposal = a.proposal AND c.seq > a.seq)
        OR EXISTS (SELECT 1 FROM action_sources s WHERE s.action = a.path AND s.speaks = 1
            AND NOT EXISTS (SELECT 1 FROM action_sources c WHERE c.speaks = 1 AND c.source = s.source
                AND c.proposal = a.proposal AND c.seq > a.seq)))
    ORDER BY a.at DESC LIMIT ?4";

impl Index {
    /// The changes of the last days that were made without asking, with their undos.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_recent_live_changes(&self, now: DateTime<Utc>) -> Result<Vec<LiveChange>, IndexError> {
        let rows: Vec<LiveChangeColumns> = sqlx::query_as(MADE)
            .bind(to_micros(now - WINDOW))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        let made = |row: LiveChangeColumns| {
            let undo = |((id, at), seq): ((String, i64), i64)| {
                Some(LiveChangeUndo { seq: seq.cast_unsigned(), at: from_micros(at)?, id })
            };
            Ok(LiveChange {
                seq: row.seq.cast_unsigned(),
                at: from_micros(row.at).unwrap_or_default(),
                class: self.parse_enum(&row.class)?,
                sources: self.decode_supporting_sources(&row.sources)?,
                undone: row.undo.zip(row.undone_at).zip(row.undone_seq).and_then(undo),
            })
        };
        rows.into_iter().map(made).collect()
    }

    /// The newest mark of each source and class, as of what was written last.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read_mode_caps(&self) -> Result<ModeCaps, IndexError> {
        let rows: Vec<(String, Option<String>, i64, i64)> =
            sqlx::query_as(CAPS).fetch_all(&self.store.writer).await.map_err(|e| self.sql_error(e))?;
        let cap = |(subject, mode, at, seq): (String, Option<String>, i64, i64)| {
            let subject = serde_json::from_str(&subject).ok()?;
            let mode = mode.map(|mode| self.parse_enum(&mode)).transpose().ok()?;
            Some((subject, ModeCap { mode, since: from_micros(at).unwrap_or_default(), seq: seq.cast_unsigned() }))
        };
        Ok(rows.into_iter().filter_map(cap).collect())
    }

    /// The action by which a subject was last lowered; `None` where it never was.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_last_demotion(&self, subject: &TrustSubject) -> Result<Option<ActionId>, IndexError> {
        let id: Option<String> = sqlx::query_scalar(LOWERED)
            .bind(to_json(subject))
            .fetch_optional(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        id.map(|id| self.parse_enum(&id)).transpose()
    }

    /// The sources that speak for a change, and which of them were never right before.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_supporting_sources(&self, draft: &AuditDraft) -> Result<Vec<ChangeSupporter>, IndexError> {
        let speaking = draft.supporting_sources();
        let keys: Vec<&String> = speaking.keys().collect();
        let strangers: BTreeMap<String, bool> = sqlx::query_as(SEEN)
            .bind(to_json(&keys))
            .fetch_all(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?
            .into_iter()
            .collect();
        let speaker = |(key, name): (String, String)| {
            let is_stranger = strangers.get(&key).copied().unwrap_or(true);
            ChangeSupporter { key, name, is_stranger }
        };
        Ok(speaking.into_iter().map(speaker).collect())
    }

    /// A source as the newest record names it in which it spoke, on one line; `None` where that says no more than its
    /// key, and of what is no source. Untrusted.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_subject_name(&self, subject: &TrustSubject) -> Result<Option<String>, IndexError> {
        let TrustSubject::Source(key) = subject else { return Ok(None) };
        let name: Option<String> = sqlx::query_scalar(NAMED)
            .bind(key)
            .fetch_optional(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        Ok(name.and_then(|name| short_source_name(key, &name)))
    }

    fn decode_supporting_sources(&self, sources: &str) -> Result<Vec<ChangeSupporter>, IndexError> {
        let rows: Vec<(String, String, u8)> =
            serde_json::from_str(sources).map_err(|_| self.unknown_value_error(sources))?;
        let speaker = |(key, name, is_stranger)| ChangeSupporter { key, name, is_stranger: is_stranger != 0 };
        Ok(rows.into_iter().map(speaker).collect())
    }

    /// Records of proposals that humans may have carried out, or taken back, by hand: the newest, and of all others
    /// those whose turn it is. The turn goes on with [`Index::finish_comparison_round`], so that none is left behind
    /// by newer ones.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn next_comparison_round(&self, now: DateTime<Utc>) -> Result<ComparisonRound, IndexError> {
        self.select_comparison_round(now, (NEWEST, IN_TURN)).await
    }

    pub(crate) async fn select_comparison_round(
        &self,
        now: DateTime<Utc>,
        (newest, in_turn): (i64, i64),
    ) -> Result<ComparisonRound, IndexError> {
        let turn = self.read_meta(TURN).await?;
        let mut rows = self.list_comparable_proposals(now, (turn.unwrap_or(i64::MAX), in_turn)).await?;
        let next = match (rows.first(), rows.last()) {
            // More that were decided at one moment than fit are passed over together: the turn must go on.
            (Some((_, first)), Some((_, last))) if rows.len() as i64 == in_turn => {
                Some(if first == last { last - 1 } else { *last })
            }
            (_, _) => None,
        };
        if turn.is_some() {
            rows.extend(self.list_comparable_proposals(now, (i64::MAX, newest)).await?);
        }
        let mut seen = HashSet::new();
        rows.retain(|(path, _)| seen.insert(path.clone()));
        rows.sort_by_key(|(_, at)| Reverse(*at));
        let proposals = rows.iter().map(|(path, _)| self.parse_path(path)).collect::<Result<_, _>>()?;
        Ok(ComparisonRound { proposals, decided: rows.into_iter().map(|(_, at)| at).collect(), turn, next })
    }

    /// Takes the turn on after so many of a round's proposals were compared.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn finish_comparison_round(&self, round: &ComparisonRound, compared: usize) -> Result<(), IndexError> {
        let next = match round.decided.get(compared) {
            None => round.next,
            // It came no further than the newest, which are always among the next.
            Some(at) if round.turn.is_some_and(|turn| *at > turn) => round.turn,
            Some(at) => Some(*at),
        };
        if next == round.turn { Ok(()) } else { self.save_comparison_cursor(next).await }
    }

    /// Those decided at that moment or before, newest first, at most so many.
    async fn list_comparable_proposals(
        &self,
        now: DateTime<Utc>,
        (to, limit): (i64, i64),
    ) -> Result<Vec<(String, i64)>, IndexError> {
        let query = sqlx::query_as(TO_COMPARE).bind(to_micros(now - WATCHED)).bind(to);
        let query = query.bind(to_micros(now - TimeDelta::days(UNDO_WINDOW_DAYS))).bind(limit);
        query.fetch_all(&self.store.reader).await.map_err(|e| self.sql_error(e))
    }

    async fn save_comparison_cursor(&self, next: Option<i64>) -> Result<(), IndexError> {
        let query = match next {
            Some(at) => sqlx::query("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)").bind(TURN).bind(at),
            None => sqlx::query("DELETE FROM meta WHERE key = ?1").bind(TURN),
        };
        query.execute(&self.store.writer).await.map(drop).map_err(|e| self.sql_error(e))
    }

    /// The ids of the records that say that a source was pruned.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_prune_records(&self) -> Result<HashSet<String>, IndexError> {
        let ids: Vec<String> = sqlx::query_scalar(
            "SELECT id FROM actions WHERE trust_subject IS NOT NULL AND kind = 'steward-source-pruned'",
        )
        .fetch_all(&self.store.reader)
        .await
        .map_err(|e| self.sql_error(e))?;
        Ok(ids.into_iter().collect())
    }
}
