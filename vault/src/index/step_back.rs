//! What the audit records say of changes that were taken back, and of modes that were lowered for it.
//!
//! It also tells which proposals are still to be compared with what their targets say by now, and which sources
//! were pruned on the record before. The rules are [`steward_domain::trust`]'s; nothing is kept here.

use super::codec::{instant, micros};
use super::store::json;
use super::{Index, IndexError};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::FromRow;
use std::collections::HashSet;
use steward_domain::audit::UNDO_WINDOW_DAYS;
use steward_domain::path::RecordPath;
use steward_domain::plan::ActionId;
use steward_domain::trust::by_hand::WATCHED;
use steward_domain::trust::mark::Subject;
use steward_domain::trust::step_back::{Cap, Caps, Made, Undo, WINDOW};

/// Most proposals that are compared at once, the newest: a second or two of reading.
const MAX_COMPARED: i64 = 5_000;

#[derive(FromRow)]
struct MadeRow {
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
        (SELECT json_group_array(s.source) FROM action_sources s WHERE s.action = a.path AND s.contribution > 0) AS sources
    FROM actions a LEFT JOIN actions u ON u.path = (SELECT b.path FROM actions b WHERE b.answers_of = a.id
        AND b.kind IN ('steward-action-reversed', 'steward-action-opposed') ORDER BY b.seq LIMIT 1)
    WHERE a.at > ?1 AND a.kind = 'steward-action' AND a.landing = 'live' AND a.class IS NOT NULL ORDER BY a.seq";

const CAPS: &str = "SELECT trust_subject, trust_mode, at, seq FROM actions
    WHERE trust_subject IS NOT NULL AND kind IN ('steward-trust-lowered', 'steward-trust-raised') ORDER BY seq";

const LOWERED: &str = "SELECT id FROM actions WHERE trust_subject = ?1 AND trust_mode IS NOT NULL
    AND kind = 'steward-trust-lowered' ORDER BY seq DESC LIMIT 1";

/// Proposals without an answer, and changes that can still be undone, whose targets were written to since, and what
/// they change not by a later change of ours.
const TO_COMPARE: &str = "
    SELECT a.path FROM actions a JOIN files f ON f.path = a.target AND f.problem IS NULL
    WHERE a.kind = 'steward-action' AND a.landing IN ('shadow', 'pending', 'live') AND a.at > ?1
    AND (a.landing <> 'live' OR a.at > ?3) AND a.class IS NOT NULL
    AND f.modified_ns / 1000 > a.at
    AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = a.id AND b.kind <> 'steward-action-opposed')
    AND NOT EXISTS (SELECT 1 FROM actions c WHERE c.target = a.target AND c.seq > a.seq
        AND COALESCE(c.changes, (SELECT o.changes FROM actions o WHERE o.id = c.answers_of)) IS a.changes
        AND (c.kind IN ('steward-action-confirmed', 'steward-action-reversed')
            OR (c.kind = 'steward-action' AND c.landing = 'live')))
    ORDER BY a.at DESC LIMIT ?2";

impl Index {
    /// The changes of the last days that were made without asking, with their undos.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn made(&self, now: DateTime<Utc>) -> Result<Vec<Made>, IndexError> {
        let rows: Vec<MadeRow> = sqlx::query_as(MADE)
            .bind(micros(now - WINDOW))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql(e))?;
        let made = |row: MadeRow| {
            let undo =
                |((id, at), seq): ((String, i64), i64)| Some(Undo { seq: seq.cast_unsigned(), at: instant(at)?, id });
            Ok(Made {
                seq: row.seq.cast_unsigned(),
                at: instant(row.at).unwrap_or_default(),
                class: self.word(&row.class)?,
                sources: serde_json::from_str(&row.sources).unwrap_or_default(),
                undone: row.undo.zip(row.undone_at).zip(row.undone_seq).and_then(undo),
            })
        };
        rows.into_iter().map(made).collect()
    }

    /// The newest mark of each source and class, as of what was written last.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn caps(&self) -> Result<Caps, IndexError> {
        let rows: Vec<(String, Option<String>, i64, i64)> =
            sqlx::query_as(CAPS).fetch_all(&self.store.writer).await.map_err(|e| self.sql(e))?;
        let cap = |(subject, mode, at, seq): (String, Option<String>, i64, i64)| {
            let subject = serde_json::from_str(&subject).ok()?;
            let mode = mode.map(|mode| self.word(&mode)).transpose().ok()?;
            Some((subject, Cap { mode, since: instant(at).unwrap_or_default(), seq: seq.cast_unsigned() }))
        };
        Ok(rows.into_iter().filter_map(cap).collect())
    }

    /// The action by which a subject was last lowered; `None` where it never was.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn lowered(&self, subject: &Subject) -> Result<Option<ActionId>, IndexError> {
        let id: Option<String> = sqlx::query_scalar(LOWERED)
            .bind(json(subject))
            .fetch_optional(&self.store.reader)
            .await
            .map_err(|e| self.sql(e))?;
        id.map(|id| self.word(&id)).transpose()
    }

    /// Records of proposals that humans may have carried out, or taken back, by hand, newest first.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn to_compare(&self, now: DateTime<Utc>) -> Result<Vec<RecordPath>, IndexError> {
        let rows: Vec<String> = sqlx::query_scalar(TO_COMPARE)
            .bind(micros(now - WATCHED))
            .bind(MAX_COMPARED)
            .bind(micros(now - TimeDelta::days(UNDO_WINDOW_DAYS)))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql(e))?;
        rows.iter().map(|path| self.path(path)).collect()
    }

    /// The ids of the records that say that a source was pruned.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn prunes(&self) -> Result<HashSet<String>, IndexError> {
        let ids: Vec<String> = sqlx::query_scalar(
            "SELECT id FROM actions WHERE trust_subject IS NOT NULL AND kind = 'steward-source-pruned'",
        )
        .fetch_all(&self.store.reader)
        .await
        .map_err(|e| self.sql(e))?;
        Ok(ids.into_iter().collect())
    }
}
