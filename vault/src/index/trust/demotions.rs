//! Live changes with their undos, and the demotions that followed, read from the audit records.
//!
//! This module also selects the proposals that must still be compared with the current content of their targets, and
//! lists the records of pruned sources. The rules are in [`steward_domain::trust`]; only the cursor of the comparison
//! is stored.

use crate::index::IndexError;
use crate::index::TrustView;
use crate::index::store::codec::{from_micros, to_micros};
use crate::index::store::rows::to_json;
use crate::index::trust::cases::{is_by_agent_alone, last_outcome_seq};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::FromRow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use steward_domain::action::audit::{AuditDraft, UNDO_WINDOW_DAYS};
use steward_domain::action::plan::ActionId;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::by_hand::ANSWER_WINDOW;
use steward_domain::trust::demotion::{ChangeSupporter, LiveChange, LiveChangeUndo, ModeCap, ModeCaps, WINDOW};
use steward_domain::trust::mark::{TrustSubject, short_source_name};

/// The most proposals of a round that are compared because they are the newest.
const NEWEST_PER_ROUND: i64 = 1_000;
/// The most other proposals of a round, in order of age. With the newest they take a second or two to read. A round
/// every 10 minutes reaches 576,000 in a day.
const OTHERS_PER_ROUND: i64 = 4_000;
/// The cursor in `meta`: proposals that were decided at this moment or before come next. Absent at the newest.
const CURSOR: &str = "compared_to";

/// One round of proposals to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparisonRound {
    /// The records, newest first.
    pub proposals: Vec<RecordPath>,
    /// When each was decided, in microseconds.
    decided_at: Vec<i64>,
    /// The cursor before the round.
    cursor: Option<i64>,
    /// The cursor after the whole round.
    next_cursor: Option<i64>,
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

/// What a model undid counts from the moment at which a person agreed.
const LIVE_CHANGES: &str = concat!(
    "
    SELECT a.seq, a.at, a.class, u.id AS undo,
        COALESCE(g.at, u.at) AS undone_at, COALESCE(g.seq, u.seq) AS undone_seq,
        (SELECT json_group_array(json_array(s.source, s.name, COALESCE(
            (SELECT MIN(i.observations) FROM instincts i WHERE i.source = s.source), 0) = 0))
            FROM action_sources s WHERE s.action = a.path AND s.supports = 1) AS sources
    FROM actions a LEFT JOIN actions u ON u.path = (SELECT b.path FROM actions b WHERE b.resolves = a.id
        AND b.kind IN ('steward-action-reversed', 'steward-action-opposed') AND NOT ",
    is_by_agent_alone!("b"),
    " ORDER BY b.seq LIMIT 1)
    LEFT JOIN actions g ON u.by_agent AND g.path = (SELECT h.path FROM actions h INDEXED BY actions_that_say_right
        WHERE h.follows = u.id AND h.kind = 'steward-action-right' AND h.taken_back = 0 ORDER BY h.seq LIMIT 1)
    WHERE a.at > ?1 AND a.kind = 'steward-action' AND a.disposition = 'live' AND a.class IS NOT NULL ORDER BY a.seq"
);

/// Whether each of these sources was never right before.
const IS_UNKNOWN: &str =
    "SELECT j.value, COALESCE((SELECT MIN(i.observations) FROM instincts i WHERE i.source = j.value), 0) = 0
    FROM json_each(?1) j";

/// The newest name of a supporting source.
const NEWEST_NAME: &str =
    "SELECT name FROM action_sources WHERE source = ?1 AND supports = 1 ORDER BY seq DESC LIMIT 1";

const MODE_CAPS: &str = "SELECT trust_subject, trust_mode, at, seq FROM actions
    WHERE trust_subject IS NOT NULL AND kind IN ('steward-trust-lowered', 'steward-trust-raised') ORDER BY seq";

const LAST_DEMOTION: &str = "SELECT id FROM actions WHERE trust_subject = ?1 AND trust_mode IS NOT NULL
    AND kind = 'steward-trust-lowered' ORDER BY seq DESC LIMIT 1";

/// Proposals without an answer and changes that can still be undone, if their target file was written since and no later
/// change of Steward touched the same field. Of repeated proposals only the last one of each source is compared. `?2`
/// is the newest moment.
pub(crate) const TO_COMPARE: &str = concat!(
    "SELECT a.path, a.at FROM actions a JOIN files f ON f.path = a.target AND f.problem IS NULL
    WHERE a.kind IN ('steward-action', 'steward-action-confirmed') AND a.disposition IN ('shadow', 'pending', 'live')
    AND a.at > ?1 AND a.at <= ?2 AND (a.disposition <> 'live' OR a.at > ?3) AND a.class IS NOT NULL
    AND f.modified_ns / 1000 > a.at
    AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.resolves = a.id
        AND (b.kind <> 'steward-action-opposed' OR a.disposition = 'live'))
    AND (a.disposition = 'live' OR NOT EXISTS (
        SELECT 1 FROM actions c CROSS JOIN actions b INDEXED BY actions_that_say_right ON b.follows = c.id
            AND b.kind = 'steward-action-right' AND b.taken_back = 0
        WHERE c.proposal = a.proposal AND c.seq <= a.seq AND c.seq > ",
    last_outcome_seq!(),
    "))
    AND NOT EXISTS (SELECT 1 FROM actions c WHERE c.target = a.target AND c.seq > a.seq
        AND COALESCE(c.changes, (SELECT o.changes FROM actions o WHERE o.id = c.resolves)) IS a.changes
        AND (c.kind IN ('steward-action-confirmed', 'steward-action-reversed')
            OR (c.kind = 'steward-action' AND c.disposition = 'live')))
    AND (a.disposition = 'live' OR NOT EXISTS (SELECT 1 FROM actions c WHERE c.proposal = a.proposal AND c.seq > a.seq)
        OR EXISTS (SELECT 1 FROM action_sources s WHERE s.action = a.path AND s.supports = 1
            AND NOT EXISTS (SELECT 1 FROM action_sources c WHERE c.supports = 1 AND c.source = s.source
                AND c.proposal = a.proposal AND c.seq > a.seq)))
    ORDER BY a.at DESC LIMIT ?4"
);

impl TrustView<'_> {
    /// Lists the live changes of the last days that needed no confirmation, with their undos.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_recent_live_changes(self, now: DateTime<Utc>) -> Result<Vec<LiveChange>, IndexError> {
        let rows: Vec<LiveChangeColumns> = sqlx::query_as(LIVE_CHANGES)
            .bind(to_micros(now - WINDOW))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let decode = |row: LiveChangeColumns| {
            let undo = |((id, at), seq): ((String, i64), i64)| {
                Some(LiveChangeUndo { seq: seq.cast_unsigned(), at: from_micros(at)?, id })
            };
            Ok(LiveChange {
                seq: row.seq.cast_unsigned(),
                at: from_micros(row.at).unwrap_or_default(),
                class: self.index.parse_enum(&row.class)?,
                sources: self.decode_supporting_sources(&row.sources)?,
                undone: row.undo.zip(row.undone_at).zip(row.undone_seq).and_then(undo),
            })
        };
        rows.into_iter().map(decode).collect()
    }

    /// Reads the newest cap of each source and class, from the writing connection.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read_mode_caps(self) -> Result<ModeCaps, IndexError> {
        let rows: Vec<(String, Option<String>, i64, i64)> =
            sqlx::query_as(MODE_CAPS).fetch_all(&self.index.store.writer).await.map_err(|e| self.index.sql_error(e))?;
        let cap = |(subject, mode, at, seq): (String, Option<String>, i64, i64)| {
            let subject = serde_json::from_str(&subject).ok()?;
            let mode = mode.map(|mode| self.index.parse_enum(&mode)).transpose().ok()?;
            Some((subject, ModeCap { mode, since: from_micros(at).unwrap_or_default(), seq: seq.cast_unsigned() }))
        };
        Ok(rows.into_iter().filter_map(cap).collect())
    }

    /// Finds the action that last demoted a subject; `None` if it never was demoted.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_last_demotion(self, subject: &TrustSubject) -> Result<Option<ActionId>, IndexError> {
        let id: Option<String> = sqlx::query_scalar(LAST_DEMOTION)
            .bind(to_json(subject))
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        id.map(|id| self.index.parse_enum(&id)).transpose()
    }

    /// Lists the sources that support a change, and whether each was never right before.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_supporting_sources(self, draft: &AuditDraft) -> Result<Vec<ChangeSupporter>, IndexError> {
        let supporting = draft.supporting_sources();
        let keys: Vec<&String> = supporting.keys().collect();
        let unknown: BTreeMap<String, bool> = sqlx::query_as(IS_UNKNOWN)
            .bind(to_json(&keys))
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?
            .into_iter()
            .collect();
        let supporter = |(key, name): (String, String)| {
            let is_unknown = unknown.get(&key).copied().unwrap_or(true);
            ChangeSupporter { key, name, is_unknown }
        };
        Ok(supporting.into_iter().map(supporter).collect())
    }

    /// Finds the name of a source in the newest record that it supported, on one line. Untrusted.
    ///
    /// `None` if the name adds nothing to the key, or if the subject is no source.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_subject_name(self, subject: &TrustSubject) -> Result<Option<String>, IndexError> {
        let TrustSubject::Source(key) = subject else { return Ok(None) };
        let name: Option<String> = sqlx::query_scalar(NEWEST_NAME)
            .bind(key)
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        Ok(name.and_then(|name| short_source_name(key, &name)))
    }

    fn decode_supporting_sources(self, sources: &str) -> Result<Vec<ChangeSupporter>, IndexError> {
        let rows: Vec<(String, String, u8)> =
            serde_json::from_str(sources).map_err(|_| self.index.unknown_value_error(sources))?;
        let supporter = |(key, name, is_unknown)| ChangeSupporter { key, name, is_unknown: is_unknown != 0 };
        Ok(rows.into_iter().map(supporter).collect())
    }

    /// Selects proposals that people may have carried out or reverted by hand: the newest, and the next of all others.
    ///
    /// `TrustView::finish_comparison_round` moves the cursor on, so that newer proposals never displace older ones for
    /// good.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn next_comparison_round(self, now: DateTime<Utc>) -> Result<ComparisonRound, IndexError> {
        self.select_comparison_round(now, NEWEST_PER_ROUND, OTHERS_PER_ROUND).await
    }

    pub(crate) async fn select_comparison_round(
        self,
        now: DateTime<Utc>,
        newest: i64,
        others: i64,
    ) -> Result<ComparisonRound, IndexError> {
        let cursor = self.index.read_meta(CURSOR).await?;
        let mut rows = self.list_comparable_proposals(now, cursor.unwrap_or(i64::MAX), others).await?;
        let next_cursor = match (rows.first(), rows.last()) {
            // If more were decided at one moment than fit, the rest of that moment is skipped: the cursor must move.
            (Some((_, first)), Some((_, last))) if rows.len() as i64 == others => {
                Some(if first == last { last - 1 } else { *last })
            }
            (_, _) => None,
        };
        if cursor.is_some() {
            rows.extend(self.list_comparable_proposals(now, i64::MAX, newest).await?);
        }
        let mut seen = HashSet::new();
        rows.retain(|(path, _)| seen.insert(path.clone()));
        rows.sort_by_key(|(_, at)| Reverse(*at));
        let proposals = rows.iter().map(|(path, _)| self.index.parse_path(path)).collect::<Result<_, _>>()?;
        let decided_at = rows.into_iter().map(|(_, at)| at).collect();
        Ok(ComparisonRound { proposals, decided_at, cursor, next_cursor })
    }

    /// Moves the cursor on after the first `compared` proposals of a round were compared.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn finish_comparison_round(self, round: &ComparisonRound, compared: usize) -> Result<(), IndexError> {
        let next = match round.decided_at.get(compared) {
            None => round.next_cursor,
            // Only some of the newest were compared, and the next round selects the newest again.
            Some(at) if round.cursor.is_some_and(|cursor| *at > cursor) => round.cursor,
            Some(at) => Some(*at),
        };
        if next == round.cursor { Ok(()) } else { self.save_comparison_cursor(next).await }
    }

    /// Lists proposals that were decided at the moment `to` or before, newest first, at most `limit`.
    async fn list_comparable_proposals(
        self,
        now: DateTime<Utc>,
        to: i64,
        limit: i64,
    ) -> Result<Vec<(String, i64)>, IndexError> {
        let query = sqlx::query_as(TO_COMPARE).bind(to_micros(now - ANSWER_WINDOW)).bind(to);
        let query = query.bind(to_micros(now - TimeDelta::days(UNDO_WINDOW_DAYS))).bind(limit);
        query.fetch_all(&self.index.store.reader).await.map_err(|e| self.index.sql_error(e))
    }

    async fn save_comparison_cursor(self, next: Option<i64>) -> Result<(), IndexError> {
        let query = match next {
            Some(at) => sqlx::query("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)").bind(CURSOR).bind(at),
            None => sqlx::query("DELETE FROM meta WHERE key = ?1").bind(CURSOR),
        };
        query.execute(&self.index.store.writer).await.map(drop).map_err(|e| self.index.sql_error(e))
    }

    /// Lists the ids of the records of pruned sources.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_prune_records(self) -> Result<HashSet<String>, IndexError> {
        let ids: Vec<String> = sqlx::query_scalar(
            "SELECT id FROM actions WHERE trust_subject IS NOT NULL AND kind = 'steward-source-pruned'",
        )
        .fetch_all(&self.index.store.reader)
        .await
        .map_err(|e| self.index.sql_error(e))?;
        Ok(ids.into_iter().collect())
    }
}
