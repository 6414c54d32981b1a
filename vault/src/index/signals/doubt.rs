//! Doubt about a signal's proposal, which is then left to a person.
//!
//! There are two reasons: a question about the record is open, or newer signals about the same record make the
//! proposal unclear. Those propose the opposite, or ask for an action while the proposal changes the state. A signal
//! that a person has resolved or ticked off makes nothing unclear.
//!
//! A question that a person dismissed, or answered by an edit, keeps the changes of state that were proposed before it.
//! Nobody is asked about them again.

use crate::index::IndexError;
use crate::index::SignalsView;
use crate::index::read::questions::{is_open_question, was_edited_since};
use crate::index::store::rows::SqlText;
use sqlx::FromRow;
use steward_domain::action::audit::CitedSignal;
use steward_domain::action::plan::ActionId;
use steward_domain::record::path::RecordPath;
use steward_domain::signals::route::{ProposalDoubt, question_id};

/// A person has resolved the signal `o` or ticked it off, so it says nothing about its record any more.
macro_rules! is_signal_settled {
    () => {
        "((o.status = 'skipped' AND (o.reason LIKE 'dismissed:%' OR o.reason LIKE 'undone:%' OR o.reason LIKE 'edited:%'))
        OR EXISTS (SELECT 1 FROM action_evidence oe CROSS JOIN actions oa ON oa.path = oe.action
            CROSS JOIN actions ob ON ob.resolves = oa.id
            WHERE oe.ref = o.path AND oa.target = o.target AND oa.decision <> 'needs_input'))"
    };
}
pub(crate) use is_signal_settled;

/// The signal `o` makes unclear what the signal `s` proposes for the same record.
macro_rules! leaves_unclear {
    () => {
        concat!("((o.class = s.class AND o.changes = s.changes AND o.created >= s.created AND CASE s.class
                WHEN 'related' THEN (o.proposal->'add' IS NULL) <> (s.proposal->'add' IS NULL)
                ELSE o.proposal <> s.proposal END)
            OR (s.class = 'state_change' AND o.effect = 'action' AND o.applied = 0 AND o.created > s.created)) AND NOT ", $crate::index::signals::doubt::is_signal_settled!())
    };
}
pub(crate) use leaves_unclear;

/// The most newer signals that a question cites.
const MAX_NEWER: u32 = 3;

/// The newer signals that make a signal's proposal unclear.
pub(crate) const NEWER: SqlText = concat!(
    "SELECT o.path, o.source, o.note, o.target_confidence, o.effect_confidence
    FROM signals s CROSS JOIN signals o INDEXED BY signals_by_target ON o.target = s.target AND o.created >= s.created
    WHERE s.path = ?1 AND s.target = ?2 AND o.path <> s.path AND ",
    leaves_unclear!(),
    " ORDER BY o.created DESC, o.path LIMIT ?3"
);

/// The open question about the record, and whether the signal is older than it.
pub(crate) const OPEN: SqlText = concat!(
    "SELECT p.id, EXISTS (SELECT 1 FROM signals s JOIN first_seen f ON f.signal = s.path
        WHERE s.path = ?1 AND s.class = 'state_change' AND MIN(s.created, f.at) <= p.at) AS older
    FROM actions p INDEXED BY actions_that_ask_by_target WHERE p.target = ?2 AND p.asks = 1 AND ",
    is_open_question!(),
    " LIMIT 1"
);

/// The newest question about a record, open or ended, and whether a person has answered it and the signal is older
/// than it.
pub(crate) const NEWEST_QUESTION: SqlText = concat!(
    "SELECT p.id, EXISTS (SELECT 1 FROM signals s JOIN first_seen f ON f.signal = s.path
        WHERE s.path = ?1 AND s.class = 'state_change' AND MIN(s.created, f.at) <= p.at)
        AND (EXISTS (SELECT 1 FROM actions b WHERE b.resolves = p.id) OR ",
    was_edited_since!(),
    ") AS answered
    FROM actions p INDEXED BY questions_by_target WHERE p.target = ?2
        AND p.decision = 'needs_input' AND p.kind = 'steward-action' AND p.disposition = 'recorded'
    ORDER BY p.seq DESC LIMIT 1"
);

#[derive(FromRow)]
struct NewerSignalColumns {
    path: String,
    source: String,
    note: String,
    target_confidence: f64,
    effect_confidence: f64,
}

impl SignalsView<'_> {
    /// Finds why this signal's proposal for its target is left to a person; `None` if it is not.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_doubt(
        self,
        signal: &RecordPath,
        target: &RecordPath,
    ) -> Result<Option<ProposalDoubt>, IndexError> {
        let open: Option<(String, bool)> = sqlx::query_as(OPEN)
            .bind(signal.as_str())
            .bind(target.as_str())
            .fetch_optional(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        if let Some((question, true)) = &open {
            return Ok(Some(ProposalDoubt::Asked(self.index.parse_enum(question)?)));
        }
        let last: Option<(String, bool)> = match &open {
            Some(_) => None,
            None => sqlx::query_as(NEWEST_QUESTION)
                .bind(signal.as_str())
                .bind(target.as_str())
                .fetch_optional(&self.index.store.writer)
                .await
                .map_err(|e| self.index.sql_error(e))?,
        };
        if let Some((question, true)) = &last {
            return Ok(Some(ProposalDoubt::Asked(self.index.parse_enum(question)?)));
        }
        let newer: Vec<NewerSignalColumns> = sqlx::query_as(NEWER)
            .bind(signal.as_str())
            .bind(target.as_str())
            .bind(MAX_NEWER)
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let newer = newer.into_iter().map(|row| self.decode_cited(row)).collect::<Result<Vec<_>, _>>()?;
        let Some(newest) = newer.first().map(|cited| cited.reference.clone()) else { return Ok(None) };
        if let Some((question, _)) = &open {
            return Ok(Some(ProposalDoubt::Asked(self.index.parse_enum(question)?)));
        }
        let before: Option<ActionId> = last.map(|(id, _)| self.index.parse_enum(&id)).transpose()?;
        let question = question_id(target, &newest, before.as_ref());
        Ok(Some(ProposalDoubt::Contradicted { question, newer }))
    }

    fn decode_cited(self, row: NewerSignalColumns) -> Result<CitedSignal, IndexError> {
        Ok(CitedSignal {
            reference: self.index.parse_path(&row.path)?,
            source: row.source,
            note: row.note,
            target_confidence: row.target_confidence,
            effect_confidence: row.effect_confidence,
            supports: true,
        })
    }
}
