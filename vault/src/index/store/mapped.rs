//! What a mapping means for the tables: which notes it leaves out, and what ends with an older one.
//!
//! The mapping in force is part of the index, and earlier ones come from the audit records. Nothing here reads a note.

use super::rows::to_json;
use crate::files::root::VaultRoot;
use crate::index::cursors::wake;
use crate::index::store::codec::to_micros;
use crate::index::{Index, IndexError};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::sync::Arc;
use steward_domain::action::audit::AuditRecord;
use steward_domain::record::path::RecordPath;
use steward_domain::record::schema::{NoteExclusion, NoteSchema};

/// The key in the table `meta` of the mapping under which the tables are filled.
const MAPPING_KEY: &str = "mapping";
const ACCEPTANCES: &str = "SELECT a.path FROM actions a JOIN files f ON f.path = a.path
    WHERE a.kind = 'steward-mapping-accepted' AND a.misnamed = 0
        AND (EXISTS (SELECT 1 FROM actions n WHERE n.seq = a.seq + 1 AND n.prev = f.hash)
            OR a.seq = (SELECT MAX(seq) FROM actions))";
/// The signals that the unresolved proposals of other mappings cite.
const ENDED_SIGNALS: &str = "SELECT DISTINCT e.ref FROM actions a JOIN action_evidence e ON e.action = a.path
    WHERE a.ended = 1 AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.resolves = a.id)";
/// Signals that are judged again.
const SEE_AGAIN: &str = "UPDATE first_seen SET at = ?2 WHERE signal IN (SELECT value FROM json_each(?1))";
const LEFT_OUT: &str = "SELECT path, exclusion FROM other_notes INDEXED BY notes_left_out
    WHERE exclusion IS NOT NULL AND exclusion->>'why' <> 'knowledge' AND path > ?1 ORDER BY path LIMIT ?2";
/// A note with several faults counts for the first.
const LEFT_OUT_COUNTS: &str = "SELECT COALESCE(exclusion->'faults'->0->>'why', exclusion->>'why'), COUNT(*)
    FROM other_notes INDEXED BY notes_left_out
    WHERE exclusion IS NOT NULL AND exclusion->>'why' <> 'knowledge' GROUP BY 1 ORDER BY 2 DESC, 1";

/// A note that is left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExcludedNote {
    pub path: String,
    pub exclusion: NoteExclusion,
}

impl Index {
    /// Counts the signals of proposals that ended with an earlier mapping as new.
    pub(super) async fn see_signals_of_ended_proposals_again(&self, now: DateTime<Utc>) -> Result<(), IndexError> {
        let mut tx = self.begin_write().await?;
        let work = async {
            let signals: Vec<String> = sqlx::query_scalar(ENDED_SIGNALS).fetch_all(&mut *tx).await?;
            let at = to_micros(now);
            sqlx::query(SEE_AGAIN).bind(to_json(&signals)).bind(at).execute(&mut *tx).await?;
            wake::mark_matters_of_signals(&mut tx, &signals, at).await?;
            tx.commit().await
        };
        work.await.map_err(|e| self.sql_error(e))
    }

    /// Whether the tables were filled under the mapping in force.
    pub(super) async fn is_filled_under_mapping(&self) -> Result<bool, IndexError> {
        let filled = self.read_meta(MAPPING_KEY).await?.unwrap_or_default();
        Ok(filled == mapping_number(self.note_schema()))
    }

    /// Keeps the mapping under which the tables are filled.
    pub(super) async fn keep_mapping_number(&self) -> Result<(), IndexError> {
        let number = mapping_number(self.note_schema());
        self.write_meta(MAPPING_KEY, number).await
    }

    /// Forgets the notes that only a mapping lists.
    pub(super) async fn forget_other_notes(&self) -> Result<(), IndexError> {
        let gone = sqlx::query("DELETE FROM other_notes").execute(&self.store.writer).await;
        gone.map(drop).map_err(|e| self.sql_error(e))
    }

    /// Reads the mappings that people accepted, so that what was made under them can be undone.
    ///
    /// Only a record that the next one in the chain names counts, or the newest one.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn load_accepted_mappings(&self, root: &VaultRoot) -> Result<(), IndexError> {
        let Some(day_end) = self.note_schema().day_end() else { return Ok(()) };
        let paths: Vec<String> =
            sqlx::query_scalar(ACCEPTANCES).fetch_all(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        let read = |path: &String| {
            let bytes = root.read_file(&RecordPath::parse(path).ok()?).ok()?.bytes;
            let mapping = AuditRecord::parse(&bytes).ok()?.mapping?;
            // Whoever can write into the vault can forge a record, but not the hashes that are kept outside it.
            if !self.notes.was_accepted(&mapping.hash()) || !mapping.find_faults().is_empty() {
                return None;
            }
            Some(Arc::new(NoteSchema::from_mapping(*mapping, day_end)))
        };
        self.notes.keep_accepted(paths.iter().filter_map(read));
        Ok(())
    }

    /// Lists the notes that would be matters or tasks and are left out, in the order of paths after `after`. Notes in
    /// folders of knowledge are not listed, because nobody expects affairs there.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_excluded_notes(&self, after: &str, limit: u32) -> Result<Vec<ExcludedNote>, IndexError> {
        let rows: Vec<(String, String)> = sqlx::query_as(LEFT_OUT)
            .bind(after)
            .bind(limit)
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        let decode = |(path, exclusion): (String, String)| {
            let exclusion = serde_json::from_str(&exclusion).map_err(|_| self.unknown_value_error(&exclusion))?;
            Ok(ExcludedNote { path, exclusion })
        };
        rows.into_iter().map(decode).collect()
    }

    /// Counts the tasks whose due date cannot be read.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn count_unreadable_due_dates(&self) -> Result<u64, IndexError> {
        let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM tasks WHERE has_unreadable_due")
            .fetch_one(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        Ok(count.cast_unsigned())
    }

    /// Why a note is left out; `None` if it is not.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_exclusion(&self, note: &RecordPath) -> Result<Option<NoteExclusion>, IndexError> {
        let exclusion: Option<Option<String>> = sqlx::query_scalar("SELECT exclusion FROM other_notes WHERE path = ?1")
            .bind(note.as_str())
            .fetch_optional(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        let decode = |text: String| serde_json::from_str(&text).map_err(|_| self.unknown_value_error(&text));
        exclusion.flatten().map(decode).transpose()
    }

    /// Counts the notes that are left out, by the reason, the most frequent one first.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn count_excluded_notes(&self) -> Result<Vec<(String, u64)>, IndexError> {
        let rows: Vec<(String, i64)> =
            sqlx::query_as(LEFT_OUT_COUNTS).fetch_all(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        Ok(rows.into_iter().map(|(why, count)| (why, count.cast_unsigned())).collect())
    }
}

/// A number that distinguishes mappings: the first 15 hex digits of the hash, and 0 without a mapping.
fn mapping_number(schema: &NoteSchema) -> i64 {
    let digits = schema.hash().map(|hash| &hash.as_str()[..15]);
    digits.and_then(|digits| i64::from_str_radix(digits, 16).ok()).unwrap_or_default()
}
