//! What the cases support, and what a person may set because of it.
//!
//! A mode is supported for a class, a source or a class from a source if, of the cases that it would have acted upon,
//! enough are decided and even the lower end of the 95 % interval of those that agreed leaves no more wrong than
//! the reversal budget allows. The highest such mode is named. What is to be set follows from that: one mode for all,
//! the classes and sources that may act under it, and everything else held at `confirm`. Of all choices in
//! which every class from every source that may act is supported, or was never seen, the one with the most
//! decided cases is taken; of several the more careful. It must not be taken for certain: open cases say nothing.

use crate::mode::Mode;
use crate::mutation::MutationClass;
use crate::plain;
use crate::trust::tally::{Cell, OfSource, STEPS, Tallies, Tally, cell_of};
use crate::trust::wilson::least_cases;
use serde::Serialize;

/// Never fewer decided cases than this, however generous the budget: what people answer first is not like the rest.
pub const MIN_CASES: u64 = 50;
/// Longest name of a source in a sentence, in characters.
const MAX_NAME_CHARS: usize = 60;

/// What a mode needs to be supported.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// The lower end of the interval of the precision, 0 to 1: what the reversal budget leaves.
    pub precision_at_least: f64,
    /// Decided cases; `None` where no number is enough.
    pub cases_at_least: Option<u64>,
}

impl Bar {
    /// The bar for a budget of wrong changes, 0 to 1: at 0.05, 73 cases.
    #[must_use]
    pub fn of(budget: f64) -> Self {
        let precision_at_least = 1.0 - budget.clamp(0.0, 1.0);
        let cases_at_least = least_cases(precision_at_least).map(|cases| cases.max(MIN_CASES));
        Self { precision_at_least, cases_at_least }
    }

    /// Whether these cases clear it.
    #[must_use]
    pub fn is_cleared_by(&self, acted: Tally) -> bool {
        let enough = self.cases_at_least.is_some_and(|least| acted.decided() >= least);
        enough && acted.precision().low >= self.precision_at_least
    }

    /// The highest mode that these cases support.
    #[must_use]
    pub fn supports(&self, cell: &Cell) -> Option<Mode> {
        let cleared = |step: &usize| self.is_cleared_by(cell.through[*step]);
        (0..STEPS.len()).rev().find(cleared).map(|step| STEPS[step])
    }

    /// The same in a sentence about something of this name.
    #[must_use]
    pub fn says(&self, what: &str, cell: &Cell) -> String {
        let supported = self.supports(cell);
        let step = supported.and_then(|mode| STEPS.iter().position(|s| *s == mode)).unwrap_or(0);
        let acted = cell.through[step];
        let (decided, open) = (acted.decided(), acted.open);
        let agreed = format!("{} of {decided} agreed, precision {}", acted.agreed, percent(acted));
        let open = if open == 0 { String::new() } else { format!("; {open} open") };
        match (supported, self.cases_at_least) {
            (Some(mode), _) => format!("{} is supported for {what}: {agreed}{open}", mode.word()),
            (None, _) if acted.actions() == 0 => {
                let all = cell.all.actions();
                format!("{what} is not supported: none of its {all} proposals would be acted upon")
            }
            (None, Some(least)) if decided < least => {
                format!("{what} is not supported: {decided} decided cases, at least {least} are needed{open}")
            }
            (None, _) => {
                let needed = self.precision_at_least * 100.0;
                format!("{what} is not supported: {agreed}, whose lower end must reach {needed:.1} %{open}")
            }
        }
    }
}

/// The precision and its interval, as in `97.8 % [95.9, 98.8]`.
#[must_use]
pub fn percent(tally: Tally) -> String {
    let precision = tally.precision();
    match precision.share {
        None => "unknown".into(),
        Some(share) => {
            format!("{:.1} % [{:.1}, {:.1}]", share * 100.0, precision.low * 100.0, precision.high * 100.0)
        }
    }
}

/// A source's name in a sentence: on one line, and not too long.
#[must_use]
pub fn label(key: &str, source: &OfSource) -> String {
    let name = plain::one_line(&source.name);
    if name.is_empty() {
        return key.to_owned();
    }
    let mut short: String = name.chars().take(MAX_NAME_CHARS).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short
}

/// What may be set: everything that is not named stays with a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    pub mode: Mode,
    /// The classes that may act, the others are to be held.
    pub classes: Vec<MutationClass>,
    /// The keys of the sources that may act, the others are to be held.
    pub sources: Vec<String>,
}

/// The choice that the cases support; `None` where they support none.
#[must_use]
pub fn choose(tallies: &Tallies, bar: &Bar) -> Option<Choice> {
    let mut best: Option<(u64, Choice)> = None;
    for (step, mode) in STEPS.into_iter().enumerate() {
        let mut masks: Vec<u8> = (1..1 << MutationClass::ALL.len()).collect();
        masks.sort_by_key(|mask| mask.count_ones());
        for mask in masks {
            let is_in = |class: &MutationClass| mask & (1 << *class as u8) != 0;
            let classes: Vec<MutationClass> = MutationClass::ALL.into_iter().filter(is_in).collect();
            let cases = |source: &OfSource| cases_behind(source, &classes, (step, bar));
            let fit: Vec<(&String, u64)> =
                tallies.sources.iter().filter_map(|(key, source)| Some((key, cases(source)?))).collect();
            let behind: u64 = fit.iter().map(|(_, cases)| cases).sum();
            if behind > best.as_ref().map_or(0, |(most, _)| *most) {
                let sources = fit.into_iter().map(|(key, _)| key.clone()).collect();
                best = Some((behind, Choice { mode, classes, sources }));
            }
        }
    }
    best.map(|(_, choice)| choice)
}

/// The decided cases that support a source for these classes; `None` where one of them is not supported.
fn cases_behind(source: &OfSource, classes: &[MutationClass], (step, bar): (usize, &Bar)) -> Option<u64> {
    let mut behind = 0;
    for class in classes {
        let acted = cell_of(source, *class).through[step];
        if acted.actions() > 0 {
            behind += bar.is_cleared_by(acted).then(|| acted.decided())?;
        }
    }
    (behind > 0).then_some(behind)
}

#[cfg(test)]
mod tests;
