//! What the notes of matters allow, and how much was changed under each of them in a day.
//!
//! The notes are in the table of matters, as [`super::parse`] understood them. A matter that is there and cannot be read
//! allows the strictest: what it would have said is not known. Changes are counted from the audit records, for the
//! matter under which a record lies now, and for the one that a task left by being moved. Whoever lands a change
//! asks while no other change can land.

use super::codec::micros;
use super::{Index, IndexError};
use chrono::{DateTime, Utc};
use serde::Serialize;
use steward_domain::audit::AuditDraft;
use steward_domain::budget::BUDGET_WINDOW;
use steward_domain::mode::Ceiling;
use steward_domain::mutation::Mutation;
use steward_domain::note_policy::{NoteNow, NotePolicy};
use steward_domain::path::RecordPath;
use steward_domain::plan::ActionId;

/// The notes that concern a task or matter, and another matter; one that has nothing to say is none.
const NOTES: &str = "
    SELECT f.path, m.policy FROM files f LEFT JOIN matters m ON m.path = f.path
    WHERE f.path IN (?1, ?2, (SELECT parent FROM tasks WHERE path = ?1)) AND f.kind = 'matter'
        AND (m.path IS NULL OR m.policy IS NOT NULL) ORDER BY f.path";

/// Live changes of a matter and of what lies or lay under it, without one of them.
const SPENT: &str = "
    SELECT COUNT(*) FROM actions a WHERE a.at > ?1 AND a.kind = 'steward-action' AND a.landing = 'live' AND a.id <> ?2
    AND (a.target = ?3 OR a.moved_from = ?3
        OR EXISTS (SELECT 1 FROM tasks t WHERE t.path = a.target AND t.parent = ?3))";

const WITH_NOTES: &str = "
    SELECT f.path FROM files f LEFT JOIN matters m ON m.path = f.path
    WHERE f.kind = 'matter' AND (m.path IS NULL OR m.policy IS NOT NULL OR m.policy_faults IS NOT NULL) ORDER BY f.path";

const CEILINGS: &str =
    "SELECT path, source, ceiling FROM instincts WHERE ceiling IS NOT NULL ORDER BY source, path LIMIT ?1";

/// A ceiling that a human set for a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceCeiling {
    /// The instinct's file, whatever its name.
    pub path: String,
    /// The source, by its key.
    pub source: String,
    pub ceiling: Ceiling,
}

impl Index {
    /// What the notes allow of the matter that a record is or lies under, and of the one that it is to move to.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn notes_of(
        &self,
        target: &RecordPath,
        new_parent: Option<&RecordPath>,
    ) -> Result<Vec<(RecordPath, NotePolicy)>, IndexError> {
        let rows: Vec<(String, Option<String>)> = sqlx::query_as(NOTES)
            .bind(target.as_str())
            .bind(new_parent.map(RecordPath::as_str))
            .fetch_all(&self.store.writer)
            .await
            .map_err(|e| self.sql(e))?;
        let note = |(path, policy): (String, Option<String>)| {
            let policy = policy.map(|policy| self.note_policy(&policy)).transpose()?;
            Ok((self.path(&path)?, policy.unwrap_or_else(NotePolicy::strictest)))
        };
        rows.into_iter().map(note).collect()
    }

    /// The notes that a change meets when it lands, with what was spent under each; the change itself not counted.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn notes_now(&self, draft: &AuditDraft, now: DateTime<Utc>) -> Result<Vec<NoteNow>, IndexError> {
        let new_parent = match draft.proposal.as_ref().map(|p| &p.mutation) {
            Some(Mutation::ParentMatter { to }) => Some(to),
            Some(Mutation::StateChange { .. } | Mutation::ContextEdit { .. } | Mutation::Related { .. }) | None => None,
        };
        let mut notes = Vec::new();
        for (matter, policy) in self.notes_of(&draft.target, new_parent).await? {
            let counts = policy.daily_budget.is_some();
            let spent = if counts { self.spent_under(&matter, Some(&draft.id), now).await? } else { 0 };
            notes.push(NoteNow { matter, policy, spent });
        }
        Ok(notes)
    }

    /// Live changes of a matter and its tasks within 24 h, but for one.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn spent_under(
        &self,
        matter: &RecordPath,
        but: Option<&ActionId>,
        now: DateTime<Utc>,
    ) -> Result<u32, IndexError> {
        sqlx::query_scalar(SPENT)
            .bind(micros(now - BUDGET_WINDOW))
            .bind(but.map(ActionId::as_str).unwrap_or_default())
            .bind(matter.as_str())
            .fetch_one(&self.store.writer)
            .await
            .map_err(|e| self.sql(e))
    }

    /// The matters whose notes say what is allowed, or cannot be read, in the order of paths.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn matters_with_notes(&self) -> Result<Vec<RecordPath>, IndexError> {
        let rows: Vec<String> =
            sqlx::query_scalar(WITH_NOTES).fetch_all(&self.store.reader).await.map_err(|e| self.sql(e))?;
        // What has no usable name is no matter to anybody.
        Ok(rows.iter().filter_map(|path| RecordPath::parse(path).ok()).collect())
    }

    /// The ceilings that humans set for sources, at most `limit`, in the order of sources.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn source_ceilings(&self, limit: u32) -> Result<Vec<SourceCeiling>, IndexError> {
        let rows: Vec<(String, String, i64)> = sqlx::query_as(CEILINGS)
            .bind(i64::from(limit))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql(e))?;
        let one = |(path, source, ceiling): (String, String, i64)| SourceCeiling {
            path,
            source,
            ceiling: super::route::source_ceiling(Some(ceiling), Ceiling::Act),
        };
        Ok(rows.into_iter().map(one).collect())
    }

    /// A note as the tables hold it.
    pub(super) fn note_policy(&self, json: &str) -> Result<NotePolicy, IndexError> {
        serde_json::from_str(json).map_err(|_| self.unknown(json))
    }
}
