//! Counts for charts: what was filed day by day, and whether stated confidence meant what it said.
//!
//! Whether a proposal was right is told by the one rule of [`crate::index::trust::cases`], by which the trust report goes too. Days are
//! those of UTC.

use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::codec::to_micros;
use crate::index::trust::cases::parse_disposition;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::Disposition;
use steward_domain::trust::report::reliability::{BINS, bin_index};

/// How many records of a day say the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DailyActionCount {
    pub day: NaiveDate,
    /// Of a decision how it landed: `recorded`, `shadow`, `pending`, `live`; of any other record what it is:
    /// `reversed`, `confirmed`, `dismissed`, `tracked`, `track_failed`, `done_anyway`, `opposed`, `pruned`, `lowered`,
    /// `raised`.
    pub what: &'static str,
    pub count: u64,
}

/// What became of the proposals whose stated confidence lies between two tenths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfidenceBin {
    /// Lower end; of the last bin the upper end, 1, is in it.
    pub from: f64,
    pub to: f64,
    pub right: u64,
    pub wrong: u64,
    /// Nobody can tell yet.
    pub open: u64,
}

/// Told from the index of moments alone.
pub(crate) const PER_DAY: &str =
    "SELECT at / 86400000000 AS day, kind, CASE kind WHEN 'steward-action' THEN landing END, COUNT(*)
    FROM actions INDEXED BY actions_by_time WHERE at >= ?1 GROUP BY 1, 2, 3";

impl Index {
    /// Records of each day from a moment on, by what they say, in the order of days and words.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn actions_per_day(&self, since: DateTime<Utc>) -> Result<Vec<DailyActionCount>, IndexError> {
        let rows: Vec<(i64, String, Option<String>, i64)> = sqlx::query_as(PER_DAY)
            .bind(to_micros(since))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        let mut days = Vec::with_capacity(rows.len());
        for (day, kind, landed, count) in rows {
            let landed = landed
                .map(|word| parse_disposition(&word).ok_or_else(|| self.unknown_value_error(&word)))
                .transpose()?;
            let what = action_label(self.parse_enum(&kind)?, landed.unwrap_or(Disposition::Recorded));
            let day = NaiveDate::default() + TimeDelta::days(day);
            days.push(DailyActionCount { day, what, count: count.cast_unsigned() });
        }
        days.sort_by(|a, b| (a.day, a.what).cmp(&(b.day, b.what)));
        Ok(days)
    }

    /// What became by now of the proposals made from a moment on, in ten bins by the confidence that was stated.
    ///
    /// It folds over all of those cases: some tens of microseconds for each, so whoever shows it keeps it for a while.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn confidence_vs_outcome(
        &self,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Vec<ConfidenceBin>, IndexError> {
        let mut bins: Vec<ConfidenceBin> = (0..BINS).map(empty_bin).collect();
        let count = |case: &steward_domain::trust::case::TrustCase| {
            // One act is one case, as in the report.
            if case.again {
                return;
            }
            let bin = &mut bins[bin_index(case.confidence)];
            match case.lesson.is_agreement() {
                Some(true) => bin.right += 1,
                Some(false) => bin.wrong += 1,
                None => bin.open += 1,
            }
        };
        self.for_each_case_since(since, now, count).await?;
        Ok(bins)
    }
}

fn empty_bin(bin: usize) -> ConfidenceBin {
    let tenth = |n: usize| f64::from(u8::try_from(n).unwrap_or(u8::MAX)) / 10.0;
    ConfidenceBin { from: tenth(bin), to: tenth(bin + 1), right: 0, wrong: 0, open: 0 }
}

fn action_label(kind: ActionKind, landing: Disposition) -> &'static str {
    match kind {
        ActionKind::Action => landing.as_str(),
        ActionKind::Reversed => "reversed",
        ActionKind::Confirmed => "confirmed",
        ActionKind::Dismissed => "dismissed",
        ActionKind::Tracked => "tracked",
        ActionKind::TrackFailed => "track_failed",
        ActionKind::DoneAnyway => "done_anyway",
        ActionKind::Opposed => "opposed",
        ActionKind::Pruned => "pruned",
        ActionKind::Lowered => "lowered",
        ActionKind::Raised => "raised",
    }
}
