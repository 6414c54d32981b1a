//! How right the steward is by now: one pass over the cases, told by class, source, band of confidence and gate.
//!
//! Every rate comes with its 95 % interval and with how many are open, because only what a human answered, or left
//! alone for its window, tells anything. The fields of [`Report`] are what scripts read and stay as they are named.

use crate::decide::GateName;
use crate::mode::{DecisionPolicy, Mode};
use crate::mutation::MutationClass;
use crate::plan::Disposition;
use crate::trust::advice::{Bar, Choice, choose, label};
use crate::trust::case::Case;
use crate::trust::newest::Lately;
use crate::trust::reliability::{Bins, Reliability};
use crate::trust::tally::{Acted, Cell, OfSource, STEPS, Tallies, Tally};
use crate::trust::wilson::Share;
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
pub struct Reporting {
    tallies: Tallies,
    bands: [Cell; 4],
    bins: Bins,
    gates: [OfGate; GateName::ALL.len()],
    days: BTreeMap<NaiveDate, Tally>,
    span: Option<Span>,
    total: Cell,
    let_through: Tally,
    now: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfGate {
    held: Tally,
    held_alone: Tally,
}

/// The records that were told from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Lowest place in the chain.
    pub first_seq: u64,
    /// Highest place in the chain.
    pub last_seq: u64,
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
}

impl Span {
    /// The span with one record more.
    #[must_use]
    pub fn with(span: Option<Self>, seq: u64, at: DateTime<Utc>) -> Self {
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
pub struct Report {
    /// `None` of nothing.
    pub records: Option<Span>,
    pub total: Row,
    /// Those with cases, in the order of the contract.
    pub classes: Vec<Row>,
    /// Those with the most cases first; a case counts for every source that spoke for it.
    pub sources: Vec<Row>,
    /// The sources beyond the number that is told one by one.
    pub other_sources: Option<Row>,
    pub confidence_bands: Vec<Row>,
    /// By class and source, those with the most cases first.
    pub class_sources: Vec<Row>,
    pub reliability: Reliability,
    /// Those that were ever closed.
    pub gates: Vec<GateRow>,
    /// The cases that went through every gate and were acted upon without asking.
    pub let_through: Tally,
    /// The newest days with cases, oldest first.
    pub days: Vec<Day>,
    pub bar: Bar,
    /// What the cases support; `None` where they support no mode that acts.
    pub choice: Option<Choice>,
}

/// The cases of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<MutationClass>,
    /// The name by which trust goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// On one line, and cut. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub band: Option<Band>,
    #[serde(flatten)]
    pub tally: Tally,
    pub modes: Vec<OfMode>,
    /// The highest mode that the cases support.
    pub supported: Option<Mode>,
    /// The same in words. Holds the name of a source.
    pub says: String,
}

/// Stated confidence from the lower end on, below the upper one; 1 is in the last band.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Band {
    pub from: f64,
    pub to: f64,
}

/// What a mode would act upon.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OfMode {
    pub mode: Mode,
    pub acted: Tally,
    /// The newest of those.
    pub newest: Lately,
    /// The share of all cases, the open ones too, that it would act upon.
    pub coverage: Share,
}

/// What one gate did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GateRow {
    pub gate: GateName,
    /// The cases that met it closed, whatever else they met.
    pub held: Tally,
    /// Those of them that met no other gate closed but `mode`, `caller` and `brake`, which are no judgement of a case.
    pub held_alone: Tally,
}

/// The cases of one day, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Day {
    pub day: NaiveDate,
    #[serde(flatten)]
    pub tally: Tally,
}

impl Reporting {
    /// Nothing counted yet, as cases stand at that moment. Of the policy the thresholds count: see [`Tallies::new`].
    #[must_use]
    pub fn new(policy: &DecisionPolicy, now: DateTime<Utc>) -> Self {
        Self {
            tallies: Tallies::new(policy, now),
            bands: Default::default(),
            bins: Bins::default(),
            gates: Default::default(),
            days: BTreeMap::new(),
            span: None,
            total: Cell::default(),
            let_through: Tally::default(),
            now,
        }
    }

    /// Counts one case.
    pub fn add(&mut self, case: &Case) {
        let acts = self.tallies.add(case);
        if case.again {
            return;
        }
        self.total.add(case, acts, self.now);
        let band = BANDS.iter().rposition(|from| case.confidence >= *from).unwrap_or(0);
        self.bands[band].add(case, acts, self.now);
        self.bins.add(case.confidence, case.lesson);
        self.count_gates(case);
        self.days.entry(case.at.date_naive()).or_default().add(case, self.now);
        if self.days.len() > MAX_DAYS {
            self.days.pop_first();
        }
        self.span = Some(Span::with(self.span, case.seq, case.at));
    }

    fn count_gates(&mut self, case: &Case) {
        let of_the_moment = [GateName::Caller, GateName::Mode, GateName::Brake];
        for gate in GateName::ALL {
            let one = &mut self.gates[gate as usize];
            if !case.closed.has_gate(gate) {
                continue;
            }
            one.held.add(case, self.now);
            if case.closed.iter().all(|other| other == gate || of_the_moment.contains(&other)) {
                one.held_alone.add(case, self.now);
            }
        }
        if case.landing == Disposition::Live {
            self.let_through.add(case, self.now);
        }
    }

    /// What it comes to; `budget` is the share of wrong changes that may be, 0 to 1.
    #[must_use]
    pub fn report(mut self, budget: f64) -> Report {
        self.tallies.bound();
        let bar = Bar::of(budget);
        let bands = BANDS.iter().zip(BANDS.iter().skip(1).chain([&1.0])).zip(&self.bands);
        let gate = |gate: GateName| {
            let OfGate { held, held_alone } = self.gates[gate as usize];
            GateRow { gate, held, held_alone }
        };
        let others = self.tallies.others.all();
        Report {
            records: self.span,
            total: row(&self.total, "everything together", &bar),
            classes: MutationClass::ALL
                .into_iter()
                .map(|class| (class, &self.tallies.classes[class as usize]))
                .filter(|(_, cell)| cell.all.actions() > 0)
                .map(|(class, cell)| Row { class: Some(class), ..row(cell, class.as_str(), &bar) })
                .collect(),
            sources: most_first(self.tallies.sources.iter().map(|(key, s)| of_source(key, s, &bar)).collect()),
            other_sources: (others.all.actions() > 0).then(|| row(&others, "all other sources together", &bar)),
            confidence_bands: bands
                .map(|((from, to), cell)| {
                    let (from, to) = (*from, *to);
                    let what = format!("confidence {from:.2} to {to:.2}");
                    Row { band: Some(Band { from, to }), ..row(cell, &what, &bar) }
                })
                .collect(),
            class_sources: most_first(self.tallies.sources.iter().flat_map(|(k, s)| pairs(k, s, &bar)).collect()),
            reliability: self.bins.reliability(),
            gates: GateName::ALL.into_iter().map(gate).filter(|g| g.held.actions() > 0).collect(),
            let_through: self.let_through,
            days: self.days.iter().map(|(day, tally)| Day { day: *day, tally: *tally }).collect(),
            choice: choose(&self.tallies, &bar),
            bar,
        }
    }
}

fn row(cell: &Cell, what: &str, bar: &Bar) -> Row {
    let of_mode = |step: usize| {
        let Acted { tally, newest } = &cell.through[step];
        OfMode { mode: STEPS[step], acted: *tally, newest: newest.lately(), coverage: cell.coverage(step) }
    };
    Row {
        tally: cell.all,
        modes: (0..STEPS.len()).map(of_mode).collect(),
        supported: bar.supports(cell),
        says: bar.says(what, cell),
        ..Row::default()
    }
}

fn of_source(key: &str, source: &OfSource, bar: &Bar) -> Row {
    let name = label(key, source);
    Row { source: Some(key.to_owned()), name: Some(name.clone()), ..row(&source.all(), &name, bar) }
}

fn pairs(key: &str, source: &OfSource, bar: &Bar) -> Vec<Row> {
    let name = label(key, source);
    let seen = MutationClass::ALL.into_iter().zip(&source.classes).filter(|(_, cell)| cell.all.actions() > 0);
    seen.map(|(class, cell)| {
        let what = format!("{} from {name}", class.as_str());
        let (source, name) = (Some(key.to_owned()), Some(name.clone()));
        Row { class: Some(class), source, name, ..row(cell, &what, bar) }
    })
    .collect()
}

/// Those with the most cases first; of as many, in the order in which they come.
fn most_first(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| std::cmp::Reverse((row.tally.actions(), row.tally.decided())));
    rows
}

#[cfg(test)]
pub(crate) mod tests;
