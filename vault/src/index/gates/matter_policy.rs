//! What the notes of matters allow, and how much was changed under each of them in a day.
//!
//! The notes are in the table of matters, as [`crate::index::store::parse`] understood them. A matter that is missing or cannot be read
//! allows the strictest: what it would have said is not known. Changes are counted from the audit records, for the
//! matter under which a record lies now, and for the one that a task left by being moved. Whoever lands a change
//! asks while no other change can land.

use crate::files::root::VaultRoot;
use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::codec::to_micros;
use chrono::{DateTime, Utc};
use serde::Serialize;
use steward_domain::action::audit::AuditDraft;
use steward_domain::action::plan::{ActionId, ContentHash};
use steward_domain::gates::matter_policy::{MatterPolicy, MatterPolicyUsage};
use steward_domain::gates::mode::Ceiling;
use steward_domain::gates::source_budget::BUDGET_WINDOW;
use steward_domain::record::path::RecordPath;

/// The matters that a change of a task or matter concerns, and the one that it is to move to. A task that is not known
/// stands for its matter, so that there is always one.
macro_rules! concerned {
    () => {
        "(SELECT COALESCE((SELECT parent FROM tasks WHERE path = ?1), ?1) AS path UNION SELECT ?2 WHERE ?2 IS NOT NULL) c"
    };
}
pub(crate) use concerned;

/// The notes of those matters; one that has nothing to say is none, and one that is missing says the strictest.
const NOTES: &str = concat!(
    "SELECT c.path, m.policy FROM ",
    concerned!(),
    " LEFT JOIN matters m ON m.path = c.path WHERE m.path IS NULL OR m.policy IS NOT NULL ORDER BY c.path"
);

/// The same matters, with what their files were when they were read last.
const KNOWN: &str = concat!(
    "SELECT c.path, f.hash FROM ",
    concerned!(),
    " LEFT JOIN files f ON f.path = c.path WHERE c.path LIKE 'matter/%'"
);

/// Live changes of a matter and of what lies or lay under it, without one of them.
const SPENT: &str = "
    SELECT COUNT(*) FROM actions a WHERE a.at > ?1 AND a.kind = 'steward-action' AND a.landing = 'live' AND a.id <> ?2
    AND (a.target = ?3 OR a.moved_from = ?3
        OR EXISTS (SELECT 1 FROM tasks t WHERE t.path = a.target AND t.parent = ?3))";

const WITH_NOTES: &str = "
    SELECT f.path FROM files f LEFT JOIN matters m ON m.path = f.path
    WHERE f.kind = 'matter' AND (m.path IS NULL OR m.policy IS NOT NULL OR m.policy_faults IS NOT NULL)
    UNION SELECT t.parent FROM tasks t WHERE NOT EXISTS (SELECT 1 FROM matters m WHERE m.path = t.parent)
    ORDER BY 1";

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
    /// The matters that a change meets, of those whose files are not as the tables know them.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_stale_matters(
        &self,
        root: &VaultRoot,
        target: &RecordPath,
        new_parent: Option<&RecordPath>,
    ) -> Result<Vec<RecordPath>, IndexError> {
        let rows: Vec<(String, Option<String>)> = sqlx::query_as(KNOWN)
            .bind(target.as_str())
            .bind(new_parent.map(RecordPath::as_str))
            .fetch_all(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        let mut stale = Vec::new();
        for (matter, known) in rows {
            let matter = self.parse_path(&matter)?;
            let now = root.read_file(&matter).ok().map(|content| content.hash);
            if now.as_ref().map(ContentHash::as_str) != known.as_deref() {
                stale.push(matter);
            }
        }
        Ok(stale)
    }

    /// What the notes allow of the matter that a record is or lies under, and of the one that it is to move to; the
    /// strictest of one that is missing or cannot be read.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_matter_policies(
        &self,
        target: &RecordPath,
        new_parent: Option<&RecordPath>,
    ) -> Result<Vec<(RecordPath, MatterPolicy)>, IndexError> {
        let rows: Vec<(String, Option<String>)> = sqlx::query_as(NOTES)
            .bind(target.as_str())
            .bind(new_parent.map(RecordPath::as_str))
            .fetch_all(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        let note = |(path, policy): (String, Option<String>)| {
            let policy = policy.map(|policy| self.parse_matter_policy(&policy)).transpose()?;
            Ok((self.parse_path(&path)?, policy.unwrap_or_else(MatterPolicy::ask_only)))
        };
        rows.into_iter().map(note).collect()
    }

    /// The notes that a change meets when it lands, with what was spent under each; the change itself not counted.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_policies_with_spending(
        &self,
        draft: &AuditDraft,
        now: DateTime<Utc>,
    ) -> Result<Vec<MatterPolicyUsage>, IndexError> {
        let new_parent = draft.proposal.as_ref().and_then(|p| p.mutation.new_parent());
        let mut notes = Vec::new();
        for (matter, policy) in self.list_matter_policies(&draft.target, new_parent).await? {
            let counts = policy.daily_budget.is_some();
            let spent = if counts { self.count_changes_under(&matter, Some(&draft.id), now).await? } else { 0 };
            notes.push(MatterPolicyUsage { matter, policy, spent });
        }
        Ok(notes)
    }

    /// Live changes of a matter and its tasks within 24 h, but for one.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn count_changes_under(
        &self,
        matter: &RecordPath,
        but: Option<&ActionId>,
        now: DateTime<Utc>,
    ) -> Result<u32, IndexError> {
        sqlx::query_scalar(SPENT)
            .bind(to_micros(now - BUDGET_WINDOW))
            .bind(but.map(ActionId::as_str).unwrap_or_default())
            .bind(matter.as_str())
            .fetch_one(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))
    }

    /// The matters whose notes say what is allowed or cannot be read, and those that tasks name and that are missing, in
    /// the order of paths.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_matters_with_policy(&self) -> Result<Vec<RecordPath>, IndexError> {
        let rows: Vec<String> =
            sqlx::query_scalar(WITH_NOTES).fetch_all(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        // What has no usable name is no matter to anybody.
        Ok(rows.iter().filter_map(|path| RecordPath::parse(path).ok()).collect())
    }

    /// The ceilings that humans set for sources, at most `limit`, in the order of sources.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_source_ceilings(&self, limit: u32) -> Result<Vec<SourceCeiling>, IndexError> {
        let rows: Vec<(String, String, i64)> = sqlx::query_as(CEILINGS)
            .bind(i64::from(limit))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        let one = |(path, source, ceiling): (String, String, i64)| SourceCeiling {
            path,
            source,
            ceiling: crate::index::signals::route::decode_ceiling(Some(ceiling), Ceiling::Act),
        };
        Ok(rows.into_iter().map(one).collect())
    }

    /// A note as the tables hold it.
    pub(crate) fn parse_matter_policy(&self, json: &str) -> Result<MatterPolicy, IndexError> {
        serde_json::from_str(json).map_err(|_| self.unknown_value_error(json))
    }
}
