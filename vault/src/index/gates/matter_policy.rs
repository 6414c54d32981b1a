//! The policies of matters, and how many changes were made under each of them in a day.
//!
//! [`crate::index::store::parse`] reads the policies from the matters' notes into the table of matters. A matter that
//! is missing or cannot be read has the strictest policy, because its own is not known. Changes are counted from the
//! audit records, for the matter that a record belongs to now and for the matter that a moved task left. Callers must
//! ask under the lock for live changes, so that no other change is applied in between.

use crate::files::root::VaultRoot;
use crate::index::GatesView;
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

/// The matters of the task or matter that a change concerns, and the matter to move to. An unknown task stands in for
/// its matter, so that there is always one row.
macro_rules! concerned_matters {
    () => {
        "(SELECT COALESCE((SELECT parent FROM tasks WHERE path = ?1), ?1) AS path
            UNION SELECT parent FROM further_parents WHERE task = ?1 UNION SELECT ?2 WHERE ?2 IS NOT NULL) c"
    };
}
pub(crate) use concerned_matters;

/// The policies of those matters. A matter without a policy has no row; a missing one has a row with NULL.
const POLICIES: &str = concat!(
    "SELECT c.path, m.policy FROM ",
    concerned_matters!(),
    " LEFT JOIN matters m ON m.path = c.path WHERE m.path IS NULL OR m.policy IS NOT NULL ORDER BY c.path"
);

/// The same matters, with the hashes that their files had at the last scan.
const KNOWN_HASHES: &str = concat!(
    "SELECT c.path, f.hash FROM ",
    concerned_matters!(),
    " LEFT JOIN files f ON f.path = c.path WHERE f.kind IS NULL OR f.kind = 'matter'"
);

/// Live changes of a matter and its tasks, also of moved ones, without one action.
///
/// A move also counts for the matter that was left; otherwise a flood of moves would be free. Changes that were undone
/// count, and changes that a person confirmed do not.
const CHANGES_UNDER: &str = "
    SELECT COUNT(*) FROM actions a WHERE a.at > ?1 AND a.kind = 'steward-action' AND a.disposition = 'live' AND a.id <> ?2
    AND (a.target = ?3 OR a.moved_from = ?3
        OR EXISTS (SELECT 1 FROM tasks t WHERE t.path = a.target AND t.parent = ?3)
        OR EXISTS (SELECT 1 FROM further_parents p WHERE p.task = a.target AND p.parent = ?3))";

const WITH_POLICY: &str = "
    SELECT f.path FROM files f LEFT JOIN matters m ON m.path = f.path
    WHERE f.kind = 'matter' AND (m.path IS NULL OR m.policy IS NOT NULL OR m.policy_faults IS NOT NULL)
    UNION SELECT t.parent FROM tasks t WHERE NOT EXISTS (SELECT 1 FROM matters m WHERE m.path = t.parent)
    ORDER BY 1";

const CEILINGS: &str =
    "SELECT path, source, ceiling FROM instincts WHERE ceiling IS NOT NULL ORDER BY source, path LIMIT ?1";

/// A ceiling that a person set for a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceCeiling {
    /// The instinct's file, which may have any name.
    pub path: String,
    /// The source's key.
    pub source: String,
    pub ceiling: Ceiling,
}

impl GatesView<'_> {
    /// Lists the matters that a change concerns whose files differ from the tables.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_stale_matters(
        self,
        root: &VaultRoot,
        target: &RecordPath,
        new_parent: Option<&RecordPath>,
    ) -> Result<Vec<RecordPath>, IndexError> {
        let rows: Vec<(String, Option<String>)> = sqlx::query_as(KNOWN_HASHES)
            .bind(target.as_str())
            .bind(new_parent.map(RecordPath::as_str))
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let mut stale = Vec::new();
        for (matter, known_hash) in rows {
            let matter = self.index.parse_path(&matter)?;
            let hash = root.read_file(&matter).ok().map(|content| content.hash);
            if hash.as_ref().map(ContentHash::as_str) != known_hash.as_deref() {
                stale.push(matter);
            }
        }
        Ok(stale)
    }

    /// Lists the policies of the matters that a record is or belongs to, and of the matter to move to. A matter that is
    /// missing or cannot be read has the strictest policy.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_matter_policies(
        self,
        target: &RecordPath,
        new_parent: Option<&RecordPath>,
    ) -> Result<Vec<(RecordPath, MatterPolicy)>, IndexError> {
        let rows: Vec<(String, Option<String>)> = sqlx::query_as(POLICIES)
            .bind(target.as_str())
            .bind(new_parent.map(RecordPath::as_str))
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let decode = |(path, policy): (String, Option<String>)| {
            let policy = policy.map(|policy| self.parse_matter_policy(&policy)).transpose()?;
            Ok((self.index.parse_path(&path)?, policy.unwrap_or_else(MatterPolicy::ask_only)))
        };
        rows.into_iter().map(decode).collect()
    }

    /// Lists the policies that limit a change, with the changes under each so far. The change itself does not count.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_policies_with_spending(
        self,
        draft: &AuditDraft,
        now: DateTime<Utc>,
    ) -> Result<Vec<MatterPolicyUsage>, IndexError> {
        let new_parent = draft.proposal.as_ref().and_then(|p| p.mutation.new_parent());
        let mut usages = Vec::new();
        for (matter, policy) in self.list_matter_policies(&draft.target, new_parent).await? {
            let has_budget = policy.daily_budget.is_some();
            let spent = if has_budget { self.count_changes_under(&matter, Some(&draft.id), now).await? } else { 0 };
            usages.push(MatterPolicyUsage { matter, policy, spent });
        }
        Ok(usages)
    }

    /// Counts the live changes of a matter and its tasks within 24 h, without the action `except`.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn count_changes_under(
        self,
        matter: &RecordPath,
        except: Option<&ActionId>,
        now: DateTime<Utc>,
    ) -> Result<u32, IndexError> {
        sqlx::query_scalar(CHANGES_UNDER)
            .bind(to_micros(now - BUDGET_WINDOW))
            .bind(except.map(ActionId::as_str).unwrap_or_default())
            .bind(matter.as_str())
            .fetch_one(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))
    }

    /// Lists the matters that have a policy or cannot be read, and the missing matters that tasks name, in the order of
    /// paths.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_matters_with_policy(self) -> Result<Vec<RecordPath>, IndexError> {
        let rows: Vec<String> = sqlx::query_scalar(WITH_POLICY)
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        // A file with an invalid name is no matter.
        Ok(rows.iter().filter_map(|path| RecordPath::parse(path).ok()).collect())
    }

    /// Lists the ceilings that people set for sources, at most `limit`, in the order of sources.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_source_ceilings(self, limit: u32) -> Result<Vec<SourceCeiling>, IndexError> {
        let rows: Vec<(String, String, i64)> = sqlx::query_as(CEILINGS)
            .bind(i64::from(limit))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let decode = |(path, source, ceiling): (String, String, i64)| SourceCeiling {
            path,
            source,
            ceiling: crate::index::signals::route::decode_ceiling(Some(ceiling), Ceiling::Act),
        };
        Ok(rows.into_iter().map(decode).collect())
    }

    /// Parses a policy as the tables store it.
    pub(crate) fn parse_matter_policy(self, json: &str) -> Result<MatterPolicy, IndexError> {
        serde_json::from_str(json).map_err(|_| self.index.unknown_value_error(json))
    }
}
