//! How right the steward is by now: one pass over the cases, told by class, source, band of confidence and gate.
//!
//! Every rate comes with its 95 % interval and with how many are open, because only what a human answered, or left
//! alone for its window, tells anything. The fields of [`TrustReport`] are what scripts read and stay as they are named.

pub mod advice;
pub mod clearance;
pub mod newest;
pub mod reliability;
pub mod risk;
use crate::action::mutation::MutationClass;
use crate::action::plan::Disposition;
use crate::gates::mode::{DecisionPolicy, Mode};
use crate::gates::result::GateName;
use crate::trust::case::TrustCase;
use crate::trust::report::advice::{EvidenceBar, SettingsChoice, choose_settings, source_label};
use crate::trust::report::newest::NewestTally;
use crate::trust::report::reliability::{ReliabilityBins, ReliabilitySummary};
use crate::trust::tally::{ActedTally, CaseTally, STEPS, SourceTally, TallyCell, TallyTable};
use crate::trust::wilson::RateEstimate;
use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use std::collections::BTreeMap;

/// Lower ends of the bands of confidence: below what `live` asks for by itself, from there, from what high confidence
/// asks for, and from what a source that nobody knows must reach.
pub const BANDS: [f64; 4] = [0.0, 0.6, 0.85, 0.95];
/// Days that are told one by one, the newest: a quarter of a year.
pub const MAX_DAYS: usize = 92;

/// The pass over the cases.
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

/// The records that were told from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RecordSpan {
    /// Lowest place in the chain.
    pub first_seq: u64,
    /// Highest place in the chain.
    pub last_seq: u64,
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
}

impl RecordSpan {
    /// The span with one record more.
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

/// All that is told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrustReport {
    /// `None` of nothing.
    pub records: Option<RecordSpan>,
    pub total: TrustReportRow,
    /// Those with cases, in the order of the contract.
    pub classes: Vec<TrustReportRow>,
    /// Those with the most cases first; a case counts for every source that spoke for it.
    pub sources: Vec<TrustReportRow>,
    /// The sources beyond the number that is told one by one.
    pub other_sources: Option<TrustReportRow>,
    pub confidence_bands: Vec<TrustReportRow>,
    /// By class and source, those with the most cases first.
    pub class_sources: Vec<TrustReportRow>,
    pub reliability: ReliabilitySummary,
    /// Those that were ever closed.
    pub gates: Vec<GateReportRow>,
    /// The cases that went through every gate and were acted upon without asking.
    pub let_through: CaseTally,
    /// The newest days with cases, oldest first.
    pub days: Vec<DayTally>,
    pub bar: EvidenceBar,
    /// What the cases support; `None` where they support no mode that acts.
    pub choice: Option<SettingsChoice>,
}

/// The cases of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TrustReportRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<MutationClass>,
    /// The name by which trust goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// On one line, and cut. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub band: Option<ConfidenceBand>,
    #[serde(flatten)]
    pub tally: CaseTally,
    pub modes: Vec<ModeTally>,
    /// The highest mode that the cases support.
    pub supported: Option<Mode>,
    /// The same in words. Holds the name of a source.
    pub says: String,
}

/// Stated confidence from the lower end on, below the upper one; 1 is in the last band.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ConfidenceBand {
    pub from: f64,
    pub to: f64,
}

/// What a mode would act upon.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModeTally {
    pub mode: Mode,
    pub acted: CaseTally,
    /// The newest of those.
    pub newest: NewestTally,
    /// The share of all cases, the open ones too, that it would act upon.
    pub coverage: RateEstimate,
}

/// What one gate did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GateReportRow {
    pub gate: GateName,
    /// The cases that met it closed, whatever else they met.
    pub held: CaseTally,
    /// Those of them that met no other gate closed but `mode`, `caller` and `brake`, which are no judgement of a case.
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
    /// Nothing counted yet, as cases stand at that moment. Of the policy the thresholds count: see [`TallyTable::new`].
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
        if case.again {
            return;
        }
        self.total.add_case(case, acts, self.now);
        let band = BANDS.iter().rposition(|from| case.confidence >= *from).unwrap_or(0);
        self.bands[band].add_case(case, acts, self.now);
        self.bins.add_case(case.confidence, case.lesson);
        self.count_gates(case);
        self.days.entry(case.at.date_naive()).or_default().add_case(case, self.now);
        if self.days.len() > MAX_DAYS {
            self.days.pop_first();
        }
        self.span = Some(RecordSpan::include_record(self.span, case.seq, case.at));
    }

    fn count_gates(&mut self, case: &TrustCase) {
        let of_the_moment = [GateName::Caller, GateName::Mode, GateName::Brake];
        for gate in GateName::ALL {
            let one = &mut self.gates[gate as usize];
            if !case.closed.has_gate(gate) {
                continue;
            }
            one.held.add_case(case, self.now);
            if case.closed.iter().all(|other| other == gate || of_the_moment.contains(&other)) {
                one.held_alone.add_case(case, self.now);
            }
        }
        if case.landing == Disposition::Live {
            self.let_through.add_case(case, self.now);
        }
    }

    /// What it comes to; `budget` is the share of wrong changes that may be, 0 to 1.
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
    let of_mode = |step: usize| {
        let ActedTally { tally, newest } = &cell.through[step];
        ModeTally { mode: STEPS[step], acted: *tally, newest: newest.count_wrong(), coverage: cell.step_coverage(step) }
    };
    TrustReportRow {
        tally: cell.all,
        modes: (0..STEPS.len()).map(of_mode).collect(),
        supported: bar.highest_supported_mode(cell),
        says: bar.describe_support(what, cell),
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

/// Those with the most cases first; of as many, in the order in which they come.
fn sort_by_cases(mut rows: Vec<TrustReportRow>) -> Vec<TrustReportRow> {
    rows.sort_by_key(|row| std::cmp::Reverse((row.tally.total_count(), row.tally.decided_count())));
    rows
}

#[cfg(test)]
pub(crate) mod tests;
