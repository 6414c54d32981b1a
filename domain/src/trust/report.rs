//! The trust report: how often the steward was right, by class, source, confidence band and gate.
//!
//! It is computed in one pass over the cases. Every rate comes with its 95 % interval and the number of open cases,
//! because only a case with feedback says anything. Scripts read the fields of [`TrustReport`], so their names must not
//! change.

pub mod advice;
pub mod clearance;
pub mod headline;
pub mod newest;
pub mod readiness;
pub mod reliability;
pub mod risk;
pub mod sender;
use crate::action::mutation::MutationClass;
use crate::action::plan::Disposition;
use crate::gates::mode::{DecisionPolicy, Mode};
use crate::gates::result::GateName;
use crate::trust::case::TrustCase;
use crate::trust::report::advice::{EvidenceBar, SettingsChoice, choose_settings, source_label};
use crate::trust::report::newest::NewestTally;
use crate::trust::report::readiness::NearestMode;
use crate::trust::report::reliability::{ReliabilityBins, ReliabilitySummary};
use crate::trust::tally::{ACTING_MODES, ActedTally, CaseTally, SourceTally, TallyCell, TallyTable};
use crate::trust::wilson::RateEstimate;
use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use std::collections::BTreeMap;

/// The lower ends of the confidence bands.
///
/// The limits are the threshold of `live`, that of `live_high_confidence_only`, and the value that an unknown source
/// must reach.
pub const BANDS: [f64; 4] = [0.0, 0.6, 0.85, 0.95];
/// The most days that are reported one by one, the newest: a quarter of a year.
pub const MAX_DAYS: usize = 92;

/// One pass over the cases.
#[derive(Clone, Debug)]
pub struct TrustReportPass {
    tallies: TallyTable,
    bands: [TallyCell; 4],
    bins: ReliabilityBins,
    gates: [GateTally; GateName::ALL.len()],
    days: BTreeMap<NaiveDate, CaseTally>,
    span: Option<RecordSpan>,
    total: TallyCell,
    let_through: CaseTally,
    now: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug, Default)]
struct GateTally {
    held: CaseTally,
    held_alone: CaseTally,
}

/// The records behind a report.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RecordSpan {
    /// The lowest position in the chain.
    pub first_seq: u64,
    /// The highest position in the chain.
    pub last_seq: u64,
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
}

impl RecordSpan {
    /// The span with one more record.
    #[must_use]
    pub fn include_record(span: Option<Self>, seq: u64, at: DateTime<Utc>) -> Self {
        let old = span.unwrap_or(Self { first_seq: seq, last_seq: seq, from: at, to: at });
        Self {
            first_seq: old.first_seq.min(seq),
            last_seq: old.last_seq.max(seq),
            from: old.from.min(at),
            to: old.to.max(at),
        }
    }
}

/// The whole report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrustReport {
    /// `None` without cases.
    pub records: Option<RecordSpan>,
    pub total: TrustReportRow,
    /// The classes with cases, in the order of [`MutationClass::ALL`].
    pub classes: Vec<TrustReportRow>,
    /// The sources, those with the most cases first. A case counts for every source that supported it.
    pub sources: Vec<TrustReportRow>,
    /// The sum of the sources that are not reported one by one.
    pub other_sources: Option<TrustReportRow>,
    pub confidence_bands: Vec<TrustReportRow>,
    /// By class and source, those with the most cases first.
    pub class_sources: Vec<TrustReportRow>,
    pub reliability: ReliabilitySummary,
    /// The gates that were ever closed.
    pub gates: Vec<GateReportRow>,
    /// The cases for which every gate was open, so that they were applied without a confirmation.
    pub let_through: CaseTally,
    /// The newest days with cases, the oldest first.
    pub days: Vec<DayTally>,
    pub bar: EvidenceBar,
    /// The settings that the cases support. `None` if they support no mode that applies changes.
    pub choice: Option<SettingsChoice>,
}

/// The cases of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TrustReportRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<MutationClass>,
    /// The source's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The source's name, on one line and shortened. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub band: Option<ConfidenceBand>,
    #[serde(flatten)]
    pub tally: CaseTally,
    pub modes: Vec<ModeTally>,
    /// The highest mode that the cases support.
    pub supported: Option<Mode>,
    /// That mode, or the one that needs the fewest further cases.
    pub nearest: NearestMode,
    /// The same in words. It may hold the name of a source.
    pub summary: String,
}

impl TrustReportRow {
    /// The cases that a mode would apply.
    #[must_use]
    pub fn acted_in(&self, mode: Mode) -> CaseTally {
        self.modes.iter().find(|tally| tally.mode == mode).map(|tally| tally.acted).unwrap_or_default()
    }
}

/// A band of stated confidence. The upper end is excluded, except for 1 in the last band.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ConfidenceBand {
    pub from: f64,
    pub to: f64,
}

/// The cases that a mode would apply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModeTally {
    pub mode: Mode,
    pub acted: CaseTally,
    /// The newest of those.
    pub newest: NewestTally,
    /// The share of all cases, also the open ones, that it would apply.
    pub coverage: RateEstimate,
}

/// The cases that one gate held.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GateReportRow {
    pub gate: GateName,
    /// The cases for which it was closed.
    pub held: CaseTally,
    /// Those of them for which no other gate was closed except `mode` and `caller`, which do not judge a case.
    pub held_alone: CaseTally,
}

/// The cases of one day, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DayTally {
    pub day: NaiveDate,
    #[serde(flatten)]
    pub tally: CaseTally,
}

impl TrustReportPass {
    /// An empty pass. `now` is the moment at which feedback is read. Only the policy's thresholds count (see
    /// [`TallyTable::new`]).
    #[must_use]
    pub fn new(policy: &DecisionPolicy, now: DateTime<Utc>) -> Self {
        Self {
            tallies: TallyTable::new(policy, now),
            bands: Default::default(),
            bins: ReliabilityBins::default(),
            gates: Default::default(),
            days: BTreeMap::new(),
            span: None,
            total: TallyCell::default(),
            let_through: CaseTally::default(),
            now,
        }
    }

    /// Counts one case.
    pub fn add_case(&mut self, case: &TrustCase) {
        let acts = self.tallies.add_case(case);
        if case.is_repeated {
            return;
        }
        self.total.add_case(case, acts, self.now);
        let band = BANDS.iter().rposition(|from| case.confidence >= *from).unwrap_or(0);
        self.bands[band].add_case(case, acts, self.now);
        self.bins.add_case(case.confidence, case.feedback);
        self.count_gates(case);
        self.days.entry(case.at.date_naive()).or_default().add_case(case, self.now);
        if self.days.len() > MAX_DAYS {
            self.days.pop_first();
        }
        self.span = Some(RecordSpan::include_record(self.span, case.seq, case.at));
    }

    fn count_gates(&mut self, case: &TrustCase) {
        let case_independent = [GateName::Caller, GateName::Mode];
        for gate in GateName::ALL {
            let tally = &mut self.gates[gate as usize];
            if !case.closed.has_gate(gate) {
                continue;
            }
            tally.held.add_case(case, self.now);
            if case.closed.iter().all(|other| other == gate || case_independent.contains(&other)) {
                tally.held_alone.add_case(case, self.now);
            }
        }
        if case.disposition == Disposition::Live {
            self.let_through.add_case(case, self.now);
        }
    }

    /// The report of all counted cases. `budget` is the allowed share of wrong changes, 0 to 1.
    #[must_use]
    pub fn into_report(mut self, budget: f64) -> TrustReport {
        self.tallies.drop_smallest_sources();
        let bar = EvidenceBar::from_budget(budget);
        let bands = BANDS.iter().zip(BANDS.iter().skip(1).chain([&1.0])).zip(&self.bands);
        let gate = |gate: GateName| {
            let GateTally { held, held_alone } = self.gates[gate as usize];
            GateReportRow { gate, held, held_alone }
        };
        let others = self.tallies.others.sum_classes();
        TrustReport {
            records: self.span,
            total: build_row(&self.total, "everything together", &bar),
            classes: MutationClass::ALL
                .into_iter()
                .map(|class| (class, &self.tallies.classes[class as usize]))
                .filter(|(_, cell)| cell.all.total_count() > 0)
                .map(|(class, cell)| TrustReportRow { class: Some(class), ..build_row(cell, class.as_str(), &bar) })
                .collect(),
            sources: sort_by_cases(
                self.tallies.sources.iter().map(|(key, s)| build_source_row(key, s, &bar)).collect(),
            ),
            other_sources: (others.all.total_count() > 0)
                .then(|| build_row(&others, "all other sources together", &bar)),
            confidence_bands: bands
                .map(|((from, to), cell)| {
                    let (from, to) = (*from, *to);
                    let what = format!("confidence {from:.2} to {to:.2}");
                    TrustReportRow { band: Some(ConfidenceBand { from, to }), ..build_row(cell, &what, &bar) }
                })
                .collect(),
            class_sources: sort_by_cases(
                self.tallies.sources.iter().flat_map(|(k, s)| build_class_source_rows(k, s, &bar)).collect(),
            ),
            reliability: self.bins.compute_reliability(),
            gates: GateName::ALL.into_iter().map(gate).filter(|g| g.held.total_count() > 0).collect(),
            let_through: self.let_through,
            days: self.days.iter().map(|(day, tally)| DayTally { day: *day, tally: *tally }).collect(),
            choice: choose_settings(&self.tallies, &bar),
            bar,
        }
    }
}

fn build_row(cell: &TallyCell, what: &str, bar: &EvidenceBar) -> TrustReportRow {
    let mode_tally = |step: usize| {
        let ActedTally { tally, newest } = &cell.through[step];
        ModeTally {
            mode: ACTING_MODES[step],
            acted: *tally,
            newest: newest.count_wrong(),
            coverage: cell.step_coverage(step),
        }
    };
    TrustReportRow {
        tally: cell.all,
        modes: (0..ACTING_MODES.len()).map(mode_tally).collect(),
        supported: bar.highest_supported_mode(cell),
        nearest: bar.find_nearest_mode(cell),
        summary: bar.describe_support(what, cell),
        ..TrustReportRow::default()
    }
}

fn build_source_row(key: &str, source: &SourceTally, bar: &EvidenceBar) -> TrustReportRow {
    let name = source_label(key, source);
    TrustReportRow {
        source: Some(key.to_owned()),
        name: Some(name.clone()),
        ..build_row(&source.sum_classes(), &name, bar)
    }
}

fn build_class_source_rows(key: &str, source: &SourceTally, bar: &EvidenceBar) -> Vec<TrustReportRow> {
    let name = source_label(key, source);
    let seen = MutationClass::ALL.into_iter().zip(&source.classes).filter(|(_, cell)| cell.all.total_count() > 0);
    seen.map(|(class, cell)| {
        let what = format!("{} from {name}", class.as_str());
        let (source, name) = (Some(key.to_owned()), Some(name.clone()));
        TrustReportRow { class: Some(class), source, name, ..build_row(cell, &what, bar) }
    })
    .collect()
}

/// Sorts the rows by their cases, the most first. Equal rows keep their order.
fn sort_by_cases(mut rows: Vec<TrustReportRow>) -> Vec<TrustReportRow> {
    rows.sort_by_key(|row| std::cmp::Reverse((row.tally.total_count(), row.tally.decided_count())));
    rows
}

#[cfg(test)]
pub(crate) mod tests;
