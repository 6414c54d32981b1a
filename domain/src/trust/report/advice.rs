//! Recommends settings from the cases: which mode they support for which classes and sources.
//!
//! Of the cases that a mode would have applied, three things must hold. Enough of them are decided. The lower end of
//! the 95 % interval of those that agreed leaves no more wrong than the reversal budget allows, even if every proposal
//! without an answer for 14 days counts as wrong (the worst case: C. F. Manski, "Partial Identification of Probability
//! Distributions", 2003). The newest cases do not contradict. The recommendation is one mode, the classes and sources
//! that may act under it, and `confirm` for all others. Every class from every source in it must be supported or never
//! seen. Among all such choices the one with the most decided cases wins, then the more careful one. It must not be
//! read as certain, because fresh open cases say nothing.

use crate::action::mutation::MutationClass;
use crate::gates::mode::Mode;
use crate::record::plain_text;
use crate::trust::report::newest::NewestTally;
use crate::trust::tally::{ACTING_MODES, ActedTally, CaseTally, SourceTally, TallyCell, TallyTable, class_cell};
use crate::trust::wilson::{RateEstimate, Z_99, least_cases, score_interval};
use serde::Serialize;

/// The fewest decided cases for any budget. The cases that people answer first are not like the rest.
///
/// There is no required share of answered proposals, because nobody could give a reason for its value. The worst case
/// is used instead: people who agree make the change by hand and are seen, but people who disagree often do nothing.
pub const MIN_CASES: u64 = 50;
/// The longest name of a source in a sentence, in characters.
const MAX_NAME_CHARS: usize = 60;

/// The requirements for the support of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EvidenceBar {
    /// The required lower end of the precision's interval, 0 to 1. It is 1 minus the reversal budget.
    pub precision_at_least: f64,
    /// The required number of decided cases, or `None` if no number is enough.
    pub cases_at_least: Option<u64>,
}

/// A requirement that cases do not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortfall {
    /// Fewer than `least` of them are decided.
    TooFew { least: u64 },
    /// The lower end of their precision is below the bar.
    TooImprecise,
    /// It is, if the unanswered ones count as wrong.
    Unanswered,
    /// The newest ones contradict.
    WorseLately,
}

impl EvidenceBar {
    /// The bar for a budget of wrong changes, 0 to 1: at 0.05, 73 cases.
    #[must_use]
    pub fn from_budget(budget: f64) -> Self {
        let precision_at_least = 1.0 - budget.clamp(0.0, 1.0);
        let cases_at_least = least_cases(precision_at_least).map(|cases| cases.max(MIN_CASES));
        Self { precision_at_least, cases_at_least }
    }

    /// Whether these cases clear it.
    #[must_use]
    pub fn is_cleared_by(&self, acted: &ActedTally) -> bool {
        self.find_shortfall(acted).is_none()
    }

    /// The first requirement that these cases do not meet. `None` if they clear the bar.
    #[must_use]
    pub fn find_shortfall(&self, acted: &ActedTally) -> Option<Shortfall> {
        let (tally, needed) = (acted.tally, self.precision_at_least);
        if let Some(least) = self.cases_at_least.filter(|least| tally.decided_count() < *least) {
            return Some(Shortfall::TooFew { least });
        }
        if self.cases_at_least.is_none() || tally.precision().low < needed {
            return Some(Shortfall::TooImprecise);
        }
        if tally.worst_case_precision().low < needed {
            return Some(Shortfall::Unanswered);
        }
        acted.newest.count_wrong().is_surely_below(needed).then_some(Shortfall::WorseLately)
    }

    /// What these cases lack to clear it, in words. `None` if they clear it.
    #[must_use]
    pub fn describe_shortfall(&self, acted: &ActedTally) -> Option<String> {
        let (tally, needed) = (acted.tally, self.precision_at_least);
        let (agreed, decided) = (tally.agreed, tally.decided_count());
        let reach = format!("whose lower end must reach {:.1} %", needed * 100.0);
        Some(match self.find_shortfall(acted)? {
            Shortfall::TooFew { least } => {
                format!("{decided} decided cases, at least {least} are needed{}", describe_open(tally))
            }
            Shortfall::TooImprecise => {
                let precision = format_missed_precision(needed, &tally.precision());
                format!("{agreed} of {decided} agreed, precision {precision}, {reach}{}", describe_open(tally))
            }
            Shortfall::Unanswered => {
                let unanswered = format_grouped(tally.unanswered);
                let worst = format_missed_precision(needed, &tally.worst_case_precision());
                format!(
                    "{agreed} of {decided} agreed, but {unanswered} proposed more than 14 days ago got no answer; \
                     counted as wrong they leave {worst}, {reach}"
                )
            }
            Shortfall::WorseLately => {
                let NewestTally { of, wrong } = acted.newest.count_wrong();
                let precision = format_precision(tally);
                format!(
                    "{agreed} of {decided} agreed, precision {precision}, but it has got worse lately: {wrong} of the \
                     {of} newest were wrong"
                )
            }
        })
    }

    /// Whether these cases surely miss it, even if they are few.
    ///
    /// That needs at least two wrong or unanswered cases, and an upper end of the 99 % interval below the bar.
    #[must_use]
    pub fn is_missed_by(&self, acted: &ActedTally) -> bool {
        let (needed, RateEstimate { count, of, .. }) = (self.precision_at_least, acted.tally.worst_case_precision());
        let surely = of - count >= 2 && score_interval(count, of, Z_99).1 < needed;
        surely || acted.newest.count_wrong().is_surely_below(needed)
    }

    /// The highest mode that these cases support.
    #[must_use]
    pub fn highest_supported_mode(&self, cell: &TallyCell) -> Option<Mode> {
        let cleared = |step: &usize| self.is_cleared_by(&cell.through[*step]);
        (0..ACTING_MODES.len()).rev().find(cleared).map(|step| ACTING_MODES[step])
    }

    /// The same as a sentence about `what`.
    #[must_use]
    pub fn describe_support(&self, what: &str, cell: &TallyCell) -> String {
        if let Some(mode) = self.highest_supported_mode(cell) {
            let step = ACTING_MODES.iter().position(|s| *s == mode).unwrap_or(0);
            let acted = cell.through[step].tally;
            let (agreed, decided, open) = (acted.agreed, acted.decided_count(), describe_open(acted));
            let precision = format_precision(acted);
            return format!(
                "{} is supported for {what}: {agreed} of {decided} agreed, precision {precision}{open}",
                mode.as_str()
            );
        }
        // The sentence describes the mode that is nearest, or the one that would apply anything.
        let nearest = &cell.through[self.find_nearest_step(cell)];
        let acted = std::iter::once(nearest).chain(&cell.through).find(|acted| acted.tally.total_count() > 0);
        let shortfall =
            acted.and_then(|acted| self.describe_shortfall(acted)).unwrap_or_else(|| match cell.all.total_count() {
                1 => "its one proposal would not be applied".to_owned(),
                many => format!("none of its {} proposals would be applied", format_grouped(many)),
            });
        format!("{what} is not supported: {shortfall}")
    }
}

/// The number of open cases, for the end of a sentence.
fn describe_open(tally: CaseTally) -> String {
    match (tally.open, tally.unanswered) {
        (0, _) => String::new(),
        (open, 0) => format!("; {} open", format_grouped(open)),
        (open, unanswered) => {
            let (open, unanswered) = (format_grouped(open), format_grouped(unanswered));
            format!("; {open} open, {unanswered} of them without an answer for 14 days")
        }
    }
}

/// A number as in `2,000`.
#[must_use]
pub fn format_grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The precision and its interval, as in `97.8 % [95.9, 98.8]`.
#[must_use]
pub fn format_precision(tally: CaseTally) -> String {
    format_estimate(&tally.precision())
}

/// The same for a lower end below the bar. It gets more digits if rounding would make it look as if it reached the bar.
fn format_missed_precision(needed: f64, precision: &RateEstimate) -> String {
    let rounded = |share: f64| format!("{:.1}", share * 100.0);
    match precision.share {
        Some(share) if rounded(precision.low) == rounded(needed) => {
            let [share, low, high] = [share, precision.low, precision.high].map(|share| share * 100.0);
            format!("{share:.1} % [{low:.3}, {high:.1}]")
        }
        Some(_) | None => format_estimate(precision),
    }
}

fn format_estimate(precision: &RateEstimate) -> String {
    match precision.share {
        None => "unknown".into(),
        Some(share) => {
            format!("{:.1} % [{:.1}, {:.1}]", share * 100.0, precision.low * 100.0, precision.high * 100.0)
        }
    }
}

/// A source's name for a sentence, on one line and shortened.
#[must_use]
pub fn source_label(key: &str, source: &SourceTally) -> String {
    let name = plain_text::to_one_line(&source.name);
    if name.is_empty() {
        return key.to_owned();
    }
    let mut short: String = name.chars().take(MAX_NAME_CHARS).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short
}

/// The recommended settings. Everything that is not named needs a confirmation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingsChoice {
    pub mode: Mode,
    /// The classes that may act. All others get the ceiling `confirm`.
    pub classes: Vec<MutationClass>,
    /// The keys of the sources that may act. All others get the ceiling `confirm`.
    pub sources: Vec<String>,
    /// Why this mode and not the other one, as a sentence.
    pub why: String,
}

/// The settings that the cases support, or `None` if they support none.
#[must_use]
pub fn choose_settings(tallies: &TallyTable, bar: &EvidenceBar) -> Option<SettingsChoice> {
    let [careful, bold] = [0, 1].map(|step| find_best_choice(tallies, step, bar));
    let cases_behind = |best: &Option<(u64, SettingsChoice)>| best.as_ref().map_or(0, |(cases, _)| *cases);
    let (at_careful, at_bold) = (cases_behind(&careful), cases_behind(&bold));
    let (_, chosen) = if at_bold > at_careful { bold? } else { careful? };
    let [high, live] = ACTING_MODES.map(Mode::as_str);
    let why = match (at_bold > at_careful, at_careful.min(at_bold)) {
        (true, 0) => format!("{high} is supported for no combination of classes and sources"),
        (true, fewer) => format!("{live} rests on {at_bold} decided cases, {high} on {fewer}"),
        (false, 0) => format!("{live} is supported for no combination of classes and sources"),
        (false, _) if at_bold == at_careful => {
            format!("{live} would rest on the same {at_bold} decided cases, so the more careful mode is recommended")
        }
        (false, fewer) => {
            format!(
                "{high} rests on {at_careful} decided cases, {live} on {fewer}, \
                 because its lower threshold is less supported"
            )
        }
    };
    Some(SettingsChoice { why, ..chosen })
}

/// The choice for one mode that rests on the most decided cases, and their number.
fn find_best_choice(tallies: &TallyTable, step: usize, bar: &EvidenceBar) -> Option<(u64, SettingsChoice)> {
    let mut best: Option<(u64, SettingsChoice)> = None;
    let mut masks: Vec<u8> = (1..1 << MutationClass::ALL.len()).collect();
    masks.sort_by_key(|mask| mask.count_ones());
    for mask in masks {
        let is_in = |class: &MutationClass| mask & (1 << *class as u8) != 0;
        let classes: Vec<MutationClass> = MutationClass::ALL.into_iter().filter(is_in).collect();
        let cases = |source: &SourceTally| count_supporting_cases(source, &classes, step, bar);
        let supported: Vec<(&String, u64)> =
            tallies.sources.iter().filter_map(|(key, source)| Some((key, cases(source)?))).collect();
        let total: u64 = supported.iter().map(|(_, cases)| cases).sum();
        if total > best.as_ref().map_or(0, |(most, _)| *most) {
            let sources = supported.into_iter().map(|(key, _)| key.clone()).collect();
            best = Some((total, SettingsChoice { mode: ACTING_MODES[step], classes, sources, why: String::new() }));
        }
    }
    best
}

/// The number of decided cases that support a source for these classes. `None` if one class is not supported.
fn count_supporting_cases(
    source: &SourceTally,
    classes: &[MutationClass],
    step: usize,
    bar: &EvidenceBar,
) -> Option<u64> {
    let mut count = 0;
    for class in classes {
        let acted = &class_cell(source, *class).through[step];
        if acted.tally.total_count() > 0 {
            count += bar.is_cleared_by(acted).then(|| acted.tally.decided_count())?;
        }
    }
    (count > 0).then_some(count)
}

#[cfg(test)]
mod tests;
