//! Overviews of the vault: the registrar's list of matters, counts and problems.
//!
//! Everything is read-only, on the reading connections. A matter that cannot be read is in the registrar's list
//! without a state, so that its schedule is not removed because of a typing error.

use super::page::{ListPage, rows_to_read};
use crate::index::IndexError;
use crate::index::ReadView;
use crate::index::VaultProblem;
use crate::index::actions::waiting::count_waiting_sql;
use crate::index::cursors::observe::twin_problem;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::query::QueryAs;
use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, FromRow, Sqlite};
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteSchema;
use steward_domain::steward::tick::Cadence;

/// A matter in the registrar's list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatterRow {
    pub path: RecordPath,
    pub name: String,
    /// `None` if its file cannot be read; its schedule then stays as it is.
    pub state: Option<RecordState>,
    /// The interval that its schedule should have, in seconds.
    pub interval_seconds: u32,
}

/// The number of records in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StateCounts {
    pub open: u64,
    pub done: u64,
    pub archived: u64,
}

/// The numbers of records of a vault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VaultCounts {
    pub matters: StateCounts,
    pub tasks: StateCounts,
    pub signals: u64,
    /// Signals that count, about open tasks and matters, that no check has seen yet.
    pub fresh_signals: u64,
    pub actions: u64,
    /// Actions that wait for a person's resolution.
    pub pending: u64,
    pub problems: u64,
    /// When the last whole scan ended.
    pub last_sync_at: Option<DateTime<Utc>>,
}

#[derive(FromRow)]
struct VaultCountColumns {
    signals: i64,
    fresh: i64,
    actions: i64,
    pending: i64,
    problems: i64,
}

/// The queries for problems of records. The columns are the path, the kind of problem and its detail.
const PROBLEMS: [&str; 6] = [
    "SELECT path, 'file' AS what, problem AS detail FROM files INDEXED BY files_with_problems WHERE problem IS NOT NULL",
    "SELECT m.path, 'file', j.value FROM matters m INDEXED BY matters_with_faults, json_each(m.policy_faults) j
        WHERE m.policy_faults IS NOT NULL",
    "SELECT t.path, CASE WHEN f.path IS NULL THEN 'orphan' ELSE 'closed' END, t.parent
        FROM (SELECT DISTINCT parent FROM tasks INDEXED BY tasks_by_parent) o
        CROSS JOIN tasks t INDEXED BY tasks_by_parent ON t.parent = o.parent LEFT JOIN files f ON f.path = t.parent
        WHERE NOT EXISTS (SELECT 1 FROM matters m WHERE m.path = o.parent) AND t.parent_fault IS NULL",
    "SELECT path, 'link', parent_fault FROM tasks INDEXED BY tasks_with_fault WHERE parent_fault IS NOT NULL",
    "SELECT task, 'link', fault FROM further_parents INDEXED BY further_parents_with_fault WHERE fault IS NOT NULL",
    "SELECT t.path, 'id:' || t.id, (SELECT group_concat(twins.path, ', ') FROM (
            SELECT path FROM tasks WHERE id = t.id AND path <> t.path ORDER BY path LIMIT 5) twins)
        FROM (SELECT id FROM tasks INDEXED BY tasks_by_id WHERE id IS NOT NULL GROUP BY id HAVING COUNT(*) > 1) i
        CROSS JOIN tasks t INDEXED BY tasks_by_id ON t.id = i.id",
];

/// The first problems: at most ?1 of each query, and at most ?1 of all.
pub(crate) fn first_problems_sql() -> String {
    PROBLEMS.map(|sql| format!("SELECT * FROM ({sql} LIMIT ?1)")).join(" UNION ALL ") + " ORDER BY 1, 2 LIMIT ?1"
}

fn query_as_problems(sql: String) -> QueryAs<'static, Sqlite, (String, String, String), SqliteArguments> {
    sqlx::query_as(AssertSqlSafe(sql))
}

impl ReadView<'_> {
    /// Lists every matter whose file has a valid name, in the order of paths.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_matters(self, cadence: &Cadence) -> Result<Vec<MatterRow>, IndexError> {
        let rows: Vec<(String, Option<String>, Option<String>, i64)> = sqlx::query_as(
            "SELECT f.path, m.name, m.state, COALESCE(k.streak, 0) FROM files f
             LEFT JOIN matters m ON m.path = f.path LEFT JOIN matter_ticks k ON k.matter = f.path
             WHERE f.kind = 'matter' ORDER BY f.path",
        )
        .fetch_all(&self.index.store.reader)
        .await
        .map_err(|e| self.index.sql_error(e))?;
        let mut matters = Vec::with_capacity(rows.len());
        for (path, name, state, streak) in rows {
            // A file with an invalid name cannot have a schedule.
            let Ok(path) = RecordPath::parse(&path) else { continue };
            let streak = u32::try_from(streak).unwrap_or(u32::MAX);
            matters.push(MatterRow {
                name: name.unwrap_or_else(|| path.slug().to_owned()),
                path,
                state: state.map(|s| self.index.parse_enum(&s)).transpose()?,
                interval_seconds: cadence.matter_interval_seconds(streak),
            });
        }
        Ok(matters)
    }

    /// Reads the interval of a matter's schedule after its last tick, in seconds.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read_matter_interval(self, matter: &RecordPath, cadence: &Cadence) -> Result<u32, IndexError> {
        let streak: Option<i64> = sqlx::query_scalar("SELECT streak FROM matter_ticks WHERE matter = ?1")
            .bind(matter.as_str())
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        Ok(cadence.matter_interval_seconds(streak.map_or(0, |s| u32::try_from(s).unwrap_or(u32::MAX))))
    }

    /// Lists every record that cannot be used or contradicts another, with a hint, in the order of paths.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_problems(self) -> Result<Vec<VaultProblem>, IndexError> {
        let rows: Vec<(String, String, String)> = query_as_problems(PROBLEMS.join(" UNION ALL ") + " ORDER BY 1, 2")
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        Ok(rows
            .into_iter()
            .map(|(path, what, detail)| build_problem(self.index.note_schema(), path, &what, detail))
            .collect())
    }

    /// Lists the first problems of every kind, 1 to 500, and whether there are more.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_first_problems(self, limit: u32) -> Result<ListPage<VaultProblem, ()>, IndexError> {
        let rows: Vec<(String, String, String)> = query_as_problems(first_problems_sql())
            .bind(rows_to_read(limit))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let problems = rows
            .into_iter()
            .map(|(path, what, detail)| build_problem(self.index.note_schema(), path, &what, detail))
            .collect();
        Ok(ListPage::from_rows(problems, limit, |_| ()))
    }

    /// Finds why a file cannot be used; `None` if it can be used or is missing.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_file_problem(self, path: &RecordPath) -> Result<Option<String>, IndexError> {
        let problem: Option<Option<String>> = sqlx::query_scalar("SELECT problem FROM files WHERE path = ?1")
            .bind(path.as_str())
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        Ok(problem.flatten())
    }

    /// Whether a note is a matter or a task. A note that is gone, or that was never read, has the kind of its folder.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_note_kind(self, path: &RecordPath) -> Result<Option<RecordKind>, IndexError> {
        let kind: Option<String> = sqlx::query_scalar("SELECT kind FROM files WHERE path = ?1")
            .bind(path.as_str())
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let known = kind.map(|kind| self.index.parse_enum(&kind)).transpose()?;
        let by_folder = path.scanned_kind().filter(|_| !self.index.note_schema().is_mapped());
        Ok(known.or(by_folder).filter(|kind: &RecordKind| kind.is_note()))
    }

    /// Counts the records of the vault.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn count_records(self, now: DateTime<Utc>) -> Result<VaultCounts, IndexError> {
        let states: Vec<(bool, String, i64)> = sqlx::query_as(
            "SELECT true, state, COUNT(*) FROM matters GROUP BY state
             UNION ALL SELECT false, state, COUNT(*) FROM tasks GROUP BY state",
        )
        .fetch_all(&self.index.store.reader)
        .await
        .map_err(|e| self.index.sql_error(e))?;
        let problems = PROBLEMS.join(" UNION ALL ");
        let totals: VaultCountColumns = sqlx::query_as(AssertSqlSafe(format!(
            "SELECT (SELECT COUNT(*) FROM ({problems})) AS problems, (SELECT COUNT(*) FROM signals) AS signals,
                (SELECT COUNT(*) FROM signals s JOIN (SELECT path, state FROM tasks UNION ALL SELECT path, state FROM matters) t
                 ON t.path = s.target AND t.state = 'open'
                 JOIN first_seen f ON f.signal = s.path LEFT JOIN task_checks c ON c.task = t.path
                 WHERE s.applied = 0 AND s.effect <> 'none' AND (c.last_check_at IS NULL OR f.at > c.last_check_at)
                 AND NOT EXISTS (SELECT 1 FROM action_evidence e JOIN actions a ON a.path = e.action
                     WHERE e.ref = s.path AND a.target = t.path
                        AND (a.disposition = 'live' OR (a.disposition = 'pending' AND a.judged = 0)))) AS fresh,
                (SELECT COUNT(*) FROM actions) AS actions,
                ({}) AS pending",
            count_waiting_sql(now)
        )))
        .fetch_one(&self.index.store.reader)
        .await
        .map_err(|e| self.index.sql_error(e))?;
        let mut counts = VaultCounts {
            signals: totals.signals.cast_unsigned(),
            fresh_signals: totals.fresh.cast_unsigned(),
            actions: totals.actions.cast_unsigned(),
            pending: totals.pending.cast_unsigned(),
            problems: totals.problems.cast_unsigned(),
            last_sync_at: self.index.last_sync_at().await?,
            ..VaultCounts::default()
        };
        for (of_matters, state, count) in states {
            let by_state = if of_matters { &mut counts.matters } else { &mut counts.tasks };
            match self.index.parse_enum(&state)? {
                RecordState::Open => by_state.open = count.cast_unsigned(),
                RecordState::Done => by_state.done = count.cast_unsigned(),
                RecordState::Archived => by_state.archived = count.cast_unsigned(),
            }
        }
        Ok(counts)
    }
}

fn build_problem(schema: &NoteSchema, path: String, what: &str, detail: String) -> VaultProblem {
    let message = match what.strip_prefix("id:") {
        Some(id) => {
            let message = twin_problem(&path, id, &detail);
            message.strip_prefix(&format!("{path}: ")).unwrap_or(&message).to_owned()
        }
        None if what == "orphan" => {
            let property = schema.spell_property(RecordKind::Task, "parent_matter");
            if schema.is_mapped() {
                return VaultProblem {
                    message: format!(
                        "it belongs to {detail}, which is no matter by the mapping: check `where` of `[map.matter]`, or set \
                         `{property}` to a matter"
                    ),
                    path,
                };
            }
            format!("its matter {detail} does not exist: create that file or set `{property}` to one that exists")
        }
        None if what == "closed" => format!("its matter {detail} cannot be read: fix that file first"),
        None => detail,
    };
    VaultProblem { path, message }
}
