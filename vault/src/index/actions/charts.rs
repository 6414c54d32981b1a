//! Counts for charts: records per day, and stated confidence against outcome.
//!
//! [`crate::index::trust::cases`] has the one rule that says whether a proposal was right; the trust report uses it
//! too. Days are days of UTC.

use crate::index::ActionsView;
use crate::index::IndexError;
use crate::index::store::codec::to_micros;
use crate::index::trust::cases::parse_disposition;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::Disposition;
use steward_domain::trust::report::reliability::{BINS, bin_index};

/// How many records of a day have the same label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DailyActionCount {
    pub day: NaiveDate,
    /// The disposition of a decision: `recorded`, `shadow`, `pending`, `live`. The kind of any other record:
    /// `reversed`, `confirmed`, `dismissed`, `tracked`, `track_failed`, `done_anyway`, `opposed`, `pruned`,
    /// `lowered`, `raised`.
    pub what: &'static str,
    pub count: u64,
}

/// The outcomes of the proposals whose stated confidence lies between two tenths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfidenceBin {
    /// The lower end. The last bin includes its upper end, 1.
    pub from: f64,
    pub to: f64,
    pub right: u64,
    pub wrong: u64,
    /// Proposals whose outcome is not known yet.
    pub open: u64,
}

/// The index by time alone answers it.
pub(crate) const PER_DAY: &str =
    "SELECT at / 86400000000 AS day, kind, CASE kind WHEN 'steward-action' THEN disposition END, COUNT(*)
    FROM actions INDEXED BY actions_by_time WHERE at >= ?1 GROUP BY 1, 2, 3";

impl ActionsView<'_> {
    /// Counts the records of each day from a moment on by label, in the order of days and labels.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn actions_per_day(self, since: DateTime<Utc>) -> Result<Vec<DailyActionCount>, IndexError> {
        let rows: Vec<(i64, String, Option<String>, i64)> = sqlx::query_as(PER_DAY)
            .bind(to_micros(since))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let mut days = Vec::with_capacity(rows.len());
        for (day, kind, disposition, count) in rows {
            let disposition = disposition
                .map(|word| parse_disposition(&word).ok_or_else(|| self.index.unknown_value_error(&word)))
                .transpose()?;
            let what = action_label(self.index.parse_enum(&kind)?, disposition.unwrap_or(Disposition::Recorded));
            let day = NaiveDate::default() + TimeDelta::days(day);
            days.push(DailyActionCount { day, what, count: count.cast_unsigned() });
        }
        days.sort_by(|a, b| (a.day, a.what).cmp(&(b.day, b.what)));
        Ok(days)
    }

    /// Counts the outcomes so far of the proposals made from a moment on, in ten bins by stated confidence.
    ///
    /// It folds over all of those cases, at some tens of microseconds each, so callers cache the result for a while.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn confidence_vs_outcome(
        self,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Vec<ConfidenceBin>, IndexError> {
        let mut bins: Vec<ConfidenceBin> = (0..BINS).map(empty_bin).collect();
        let count = |case: &steward_domain::trust::case::TrustCase| {
            // A repeated proposal counts once, as in the trust report.
            if case.is_repeated {
                return;
            }
            let bin = &mut bins[bin_index(case.confidence)];
            match case.feedback.is_agreement() {
                Some(true) => bin.right += 1,
                Some(false) => bin.wrong += 1,
                None => bin.open += 1,
            }
        };
        self.index.trust().for_each_case_since(since, now, count).await?;
        Ok(bins)
    }
}

fn empty_bin(bin: usize) -> ConfidenceBin {
    let tenth = |n: usize| f64::from(u8::try_from(n).unwrap_or(u8::MAX)) / 10.0;
    ConfidenceBin { from: tenth(bin), to: tenth(bin + 1), right: 0, wrong: 0, open: 0 }
}

fn action_label(kind: ActionKind, disposition: Disposition) -> &'static str {
    match kind {
        ActionKind::Action => disposition.as_str(),
        ActionKind::Reversed => "reversed",
        ActionKind::Confirmed => "confirmed",
        ActionKind::Dismissed => "dismissed",
        ActionKind::Right => "right",
        ActionKind::Wrong => "wrong",
        ActionKind::Reopened => "reopened",
        ActionKind::Tracked => "tracked",
        ActionKind::TrackFailed => "track_failed",
        ActionKind::DoneAnyway => "done_anyway",
        ActionKind::Opposed => "opposed",
        ActionKind::Pruned => "pruned",
        ActionKind::Lowered => "lowered",
        ActionKind::Raised => "raised",
        ActionKind::CeilingSet => "ceiling_set",
        ActionKind::MappingAccepted => "mapping_accepted",
        ActionKind::NotesMoved => "notes_moved",
        ActionKind::Wiki => "wiki",
        ActionKind::WikiSource => "wiki_source",
        ActionKind::WikiManifest => "wiki_manifest",
        ActionKind::WikiRejected => "wiki_rejected",
    }
}
