//! Actions as rows for lists, screens and resolutions, read from the audit records.
//!
//! The rows are derived. The records stay the truth, and a resolution reads the record itself.

use crate::index::ActionsView;
use crate::index::IndexError;
use crate::index::actions::list::{ANSWER_TO_EQUAL, ActionFilter, BY_ID, BY_PATH, CITING, OUTCOME_OF_EQUAL};
use crate::index::read::page::MAX_PAGE;
use crate::index::store::codec::from_micros;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::FromRow;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::gates::mode::Mode;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::clerk::Judgement;

/// One audit record in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionRow {
    pub path: RecordPath,
    pub id: ActionId,
    pub kind: ActionKind,
    pub target: RecordPath,
    pub at: DateTime<Utc>,
    pub decision: Judgement,
    /// 0 to 1.
    pub confidence: f64,
    pub disposition: Disposition,
    pub mode: Mode,
    pub class: Option<MutationClass>,
    pub proposed_state: Option<RecordState>,
    /// It was recorded as pending, to wait for a person; see `answered` and `settled`.
    pub pending: bool,
    /// It was recorded as pending, and neither it nor an equal proposal after it was answered.
    pub waits: bool,
    /// It waits, and an equal proposal after it waits in its place.
    pub is_repeated: bool,
    /// It was recorded as pending, and its target now has the proposed state or matter, so nothing is left to resolve.
    pub settled: bool,
    /// The action that this record resolves.
    pub resolves: Option<ActionId>,
    /// How a person answered this action; the latest answer that was not taken back.
    pub resolution: Option<ActionKind>,
    /// The id of the resolution in `answered`.
    pub resolved_by: Option<ActionId>,
    /// When that answer was given.
    pub resolved_at: Option<DateTime<Utc>>,
    /// A hash of the proposal: two actions that propose the same for the same record have the same hash.
    #[serde(skip)]
    pub proposal: Option<String>,
    /// A confirmation that applied a different change than the proposed one.
    pub edited: bool,
    /// The batch of a resolution: resolutions by one click share it, so that lists can group them.
    pub batch_id: Option<ActionId>,
    /// The number of the record in the chain.
    pub seq: u64,
}

/// The result of a search by the beginning of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionLookup {
    One(RecordPath),
    None,
    /// More than one; a longer beginning distinguishes them.
    Many(Vec<RecordPath>),
}

#[derive(FromRow)]
pub(crate) struct ActionColumns {
    path: String,
    id: String,
    kind: String,
    target: String,
    at: i64,
    decision: String,
    confidence: f64,
    disposition: String,
    mode: String,
    pending: bool,
    waits: bool,
    repeated: bool,
    settled: bool,
    resolves: Option<String>,
    class: Option<String>,
    proposed_state: Option<String>,
    seq: i64,
    edited: bool,
    batch_id: Option<String>,
    resolution: Option<String>,
    resolved_by: Option<String>,
    resolved_at: Option<i64>,
    proposal: Option<String>,
}

/// `g` follows every hex digit, so the range contains all ids with that beginning. Copied files share one id; the
/// file that lies where it was filed is the action.
const BY_ID_PREFIX: &str = "SELECT a.path FROM actions a WHERE a.id >= ?1 AND a.id < ?1 || 'g'
        AND a.path = (SELECT b.path FROM actions b WHERE b.id = a.id ORDER BY b.misnamed, b.seq, b.path LIMIT 1)
    ORDER BY a.at DESC LIMIT 20";

impl ActionsView<'_> {
    /// Finds an action by the beginning of its id: 4 to 16 hex digits in upper or lower case. Copies of its record are
    /// ignored.
    ///
    /// # Errors
    /// [`IndexError::Prefix`] if the text is invalid as a beginning; [`IndexError::Sql`].
    pub async fn find_action(self, prefix: &str) -> Result<ActionLookup, IndexError> {
        let text = prefix.trim().to_ascii_lowercase();
        if !(4..=16).contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(IndexError::Prefix(prefix.chars().take(40).flat_map(char::escape_debug).collect()));
        }
        let paths: Vec<String> = sqlx::query_scalar(BY_ID_PREFIX)
            .bind(text)
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let mut paths = paths.iter().map(|p| self.index.parse_path(p)).collect::<Result<Vec<_>, _>>()?;
        Ok(match paths.len() {
            0 => ActionLookup::None,
            1 => paths.pop().map_or(ActionLookup::None, ActionLookup::One),
            _ => ActionLookup::Many(paths),
        })
    }

    /// Lists actions and resolutions, newest first, at most `limit`. They may be limited to one record and to a start.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_actions(
        self,
        since: Option<DateTime<Utc>>,
        target: Option<&RecordPath>,
        limit: u32,
    ) -> Result<Vec<ActionRow>, IndexError> {
        let filter = ActionFilter { since, target: target.cloned(), ..ActionFilter::default() };
        let (mut rows, mut before) = (Vec::new(), None);
        while rows.len() < limit as usize {
            let left = u32::try_from(limit as usize - rows.len()).unwrap_or(MAX_PAGE);
            let page = self.actions_page(&filter, before.as_ref(), left).await?;
            rows.extend(page.rows);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        Ok(rows)
    }

    /// Finds the record that an action is about; `None` if the action is unknown.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_action_target(self, action: &RecordPath) -> Result<Option<RecordPath>, IndexError> {
        let target: Option<String> = sqlx::query_scalar("SELECT target FROM actions WHERE path = ?1")
            .bind(action.as_str())
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        target.map(|t| self.index.parse_path(&t)).transpose()
    }

    /// Finds the record that a signal is about; `None` if the signal is unknown or has no single target.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_signal_target(self, signal: &RecordPath) -> Result<Option<RecordPath>, IndexError> {
        let target: Option<Option<String>> = sqlx::query_scalar("SELECT target FROM signals WHERE path = ?1")
            .bind(signal.as_str())
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        target.flatten().map(|t| self.index.parse_path(&t)).transpose()
    }

    /// Finds the action at a path; `None` if it is unknown.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn action_by_path(self, path: &RecordPath) -> Result<Option<ActionRow>, IndexError> {
        self.fetch_action(BY_PATH, path.as_str()).await
    }

    /// Finds the newest decision that cites a signal.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn action_citing(self, signal: &RecordPath) -> Result<Option<ActionRow>, IndexError> {
        self.fetch_action(CITING, signal.as_str()).await
    }

    /// Finds the action with an id; `None` if it is unknown. Of several copies, the file that lies where it was
    /// filed counts.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn action_by_id(self, id: &ActionId) -> Result<Option<ActionRow>, IndexError> {
        self.fetch_action(BY_ID, id.as_str()).await
    }

    /// Finds the answer to an equal proposal that also answers this one; `None` if this one waits or has its own answer.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_answer_to_equal(self, action: &RecordPath) -> Result<Option<RecordPath>, IndexError> {
        self.find_record_of_equal(ANSWER_TO_EQUAL, action).await
    }

    /// Finds the outcome of an equal proposal after one that was made in Watch: an answer, or the change itself.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_outcome_of_equal(self, action: &RecordPath) -> Result<Option<RecordPath>, IndexError> {
        self.find_record_of_equal(OUTCOME_OF_EQUAL, action).await
    }

    async fn find_record_of_equal(
        self,
        sql: &'static str,
        action: &RecordPath,
    ) -> Result<Option<RecordPath>, IndexError> {
        let answer: Option<String> = sqlx::query_scalar(sql)
            .bind(action.as_str())
            .fetch_optional(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        answer.map(|path| self.index.parse_path(&path)).transpose()
    }

    async fn fetch_action(self, sql: &'static str, key: &str) -> Result<Option<ActionRow>, IndexError> {
        let row: Option<ActionColumns> = sqlx::query_as(sql)
            .bind(key)
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        row.map(|row| self.decode_action(row)).transpose()
    }

    pub(crate) fn decode_action(self, row: ActionColumns) -> Result<ActionRow, IndexError> {
        Ok(ActionRow {
            path: self.index.parse_path(&row.path)?,
            id: self.index.parse_enum(&row.id)?,
            kind: self.index.parse_enum(&row.kind)?,
            target: self.index.parse_path(&row.target)?,
            at: from_micros(row.at).unwrap_or_default(),
            decision: self.index.parse_enum(&row.decision)?,
            confidence: row.confidence,
            disposition: self.index.parse_enum(&row.disposition)?,
            mode: self.index.parse_enum(&row.mode)?,
            class: row.class.map(|c| self.index.parse_enum(&c)).transpose()?,
            proposed_state: row.proposed_state.map(|s| self.index.parse_enum(&s)).transpose()?,
            pending: row.pending,
            waits: row.waits,
            is_repeated: row.repeated,
            settled: row.settled,
            resolves: row.resolves.map(|id| self.index.parse_enum(&id)).transpose()?,
            resolution: row.resolution.map(|kind| self.index.parse_enum(&kind)).transpose()?,
            resolved_by: row.resolved_by.map(|id| self.index.parse_enum(&id)).transpose()?,
            resolved_at: row.resolved_at.and_then(from_micros),
            proposal: row.proposal,
            edited: row.edited,
            batch_id: row.batch_id.map(|id| self.index.parse_enum(&id)).transpose()?,
            seq: row.seq.cast_unsigned(),
        })
    }
}
