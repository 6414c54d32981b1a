//! What the cases support, and what a person may set because of it.
//!
//! A mode is supported for a class, a source or a class from a source if, of the cases that it would have acted upon,
//! enough are decided, even the lower end of the 95 % interval of those that agreed leaves no more wrong than
//! the reversal budget allows, also when every proposal that nobody answered in its 14 days is counted as wrong (the
//! worst case: C. F. Manski, "Partial Identification of Probability Distributions", 2003), and the newest cases do
//! not contradict. The highest such mode is named. What is to be set follows from that: one mode for all,
//! the classes and sources that may act under it, and everything else held at `confirm`. Of all choices in
//! which every class from every source that may act is supported, or was never seen, the one with the most
//! decided cases is taken; of several the more careful. It must not be taken for certain: fresh open cases say nothing.

use crate::action::mutation::MutationClass;
use crate::gates::mode::Mode;
use crate::record::plain_text;
use crate::trust::report::newest::NewestTally;
use crate::trust::tally::{ActedTally, CaseTally, STEPS, SourceTally, TallyCell, TallyTable, class_cell};
use crate::trust::wilson::{RateEstimate, Z_99, least_cases, score_interval};
use serde::Serialize;

/// Never fewer decided cases than this, however generous the budget: what people answer first is not like the rest.
pub const MIN_CASES: u64 = 50;
/// Longest name of a source in a sentence, in characters.
const MAX_NAME_CHARS: usize = 60;

/// What a mode needs to be supported.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EvidenceBar {
    /// The lower end of the interval of the precision, 0 to 1: what the reversal budget leaves.
    pub precision_at_least: f64,
    /// Decided cases; `None` where no number is enough.
    pub cases_at_least: Option<u64>,
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
        self.describe_shortfall(acted).is_none()
    }

    /// What these cases lack to clear it, in words.
    #[must_use]
    pub fn describe_shortfall(&self, acted: &ActedTally) -> Option<String> {
        let (tally, lately) = (acted.tally, acted.newest.count_wrong());
        let (decided, needed) = (tally.decided_count(), self.precision_at_least);
        let reach = format!("whose lower end must reach {:.1} %", needed * 100.0);
        let agreed = format!("{} of {decided} agreed, precision {}", tally.agreed, format_precision(tally));
        if let Some(least) = self.cases_at_least.filter(|least| decided < *least) {
            return Some(format!("{decided} decided cases, at least {least} are needed{}", describe_open(tally)));
        }
        if self.cases_at_least.is_none() || tally.precision().low < needed {
            let precision = format_missed_precision(needed, &tally.precision());
            return Some(format!(
                "{} of {decided} agreed, precision {precision}, {reach}{}",
                tally.agreed,
                describe_open(tally)
            ));
        }
        if tally.worst_case_precision().low < needed {
            let old = format_grouped(tally.unanswered);
            let worst = format_missed_precision(needed, &tally.worst_case_precision());
            return Some(format!(
                "{} of {decided} agreed, but {old} proposed more than 14 days ago got no answer; counted as wrong they leave \
                 {worst}, {reach}",
                tally.agreed
            ));
        }
        let NewestTally { of, wrong } = lately;
        lately
            .is_surely_below(needed)
            .then(|| format!("{agreed}, but it has got worse lately: {wrong} of the {of} newest were wrong"))
    }

    /// Whether these cases, few as they may be, show that what acts upon their like is not good enough: at least two
    /// are wrong or unanswered, and even the upper end of the 99 % interval lies below.
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
        (0..STEPS.len()).rev().find(cleared).map(|step| STEPS[step])
    }

    /// The same in a sentence about something of this name.
    #[must_use]
    pub fn describe_support(&self, what: &str, cell: &TallyCell) -> String {
        if let Some(mode) = self.highest_supported_mode(cell) {
            let step = STEPS.iter().position(|s| *s == mode).unwrap_or(0);
            let acted = cell.through[step].tally;
            let (agreed, decided, open) = (acted.agreed, acted.decided_count(), describe_open(acted));
            let precision = format_precision(acted);
            return format!(
                "{} is supported for {what}: {agreed} of {decided} agreed, precision {precision}{open}",
                mode.as_str()
            );
        }
        // Where nothing would act under the careful mode, the bolder one is what can be told of.
        let acted = cell.through.iter().find(|acted| acted.tally.total_count() > 0);
        let lacking = acted.and_then(|acted| self.describe_shortfall(acted)).unwrap_or_else(|| {
            format!("none of its {} proposals would be acted upon", format_grouped(cell.all.total_count()))
        });
        format!("{what} is not supported: {lacking}")
    }
}

/// How many are open, at the end of a sentence.
fn describe_open(tally: CaseTally) -> String {
    match (tally.open, tally.unanswered) {
        (0, _) => String::new(),
        (open, 0) => format!("; {} open", format_grouped(open)),
        (open, old) => {
            format!("; {} open, {} of them without an answer for 14 days", format_grouped(open), format_grouped(old))
        }
    }
}

/// A number as in `2,000`.
fn format_grouped(number: u64) -> String {
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

/// The same where the lower end does not reach what is asked: with more digits where it would read as if it did.
fn format_missed_precision(needed: f64, precision: &RateEstimate) -> String {
    let told = |share: f64| format!("{:.1}", share * 100.0);
    match precision.share {
        Some(share) if told(precision.low) == told(needed) => {
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

/// A source's name in a sentence: on one line, and not too long.
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

/// What may be set: everything that is not named stays with a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingsChoice {
    pub mode: Mode,
    /// The classes that may act, the others are to be held.
    pub classes: Vec<MutationClass>,
    /// The keys of the sources that may act, the others are to be held.
    pub sources: Vec<String>,
    /// Why this mode and not the other one that acts, in a sentence.
    pub why: String,
}

/// The choice that the cases support; `None` where they support none.
#[must_use]
pub fn choose_settings(tallies: &TallyTable, bar: &EvidenceBar) -> Option<SettingsChoice> {
    let [careful, bold] = [0, 1].map(|step| find_best_choice(tallies, (step, bar)));
    let behind = |of: &Option<(u64, SettingsChoice)>| of.as_ref().map_or(0, |(cases, _)| *cases);
    let (at_careful, at_bold) = (behind(&careful), behind(&bold));
    let (_, chosen) = if at_bold > at_careful { bold? } else { careful? };
    let [high, live] = STEPS.map(Mode::as_str);
    let why = match (at_bold > at_careful, at_careful.min(at_bold)) {
        (true, 0) => format!("{high} is supported for nothing that may act together"),
        (true, least) => format!("{live} rests on {at_bold} decided cases, {high} on {least}"),
        (false, 0) => format!("{live} is supported for nothing that may act together"),
        (false, _) if at_bold == at_careful => {
            format!(
                "{live} would rest on the same {at_bold} decided cases, and of two modes with as many the more careful is named"
            )
        }
        (false, least) => {
            format!(
                "{high} rests on {at_careful} decided cases, {live} on {least}: with its lower threshold less is supported"
            )
        }
    };
    Some(SettingsChoice { why, ..chosen })
}

/// The choice of one mode with the most decided cases behind it, and how many.
fn find_best_choice(tallies: &TallyTable, (step, bar): (usize, &EvidenceBar)) -> Option<(u64, SettingsChoice)> {
    let mut best: Option<(u64, SettingsChoice)> = None;
    let mut masks: Vec<u8> = (1..1 << MutationClass::ALL.len()).collect();
    masks.sort_by_key(|mask| mask.count_ones());
    for mask in masks {
        let is_in = |class: &MutationClass| mask & (1 << *class as u8) != 0;
        let classes: Vec<MutationClass> = MutationClass::ALL.into_iter().filter(is_in).collect();
        let cases = |source: &SourceTally| count_supporting_cases(source, &classes, (step, bar));
        let fit: Vec<(&String, u64)> =
            tallies.sources.iter().filter_map(|(key, source)| Some((key, cases(source)?))).collect();
        let behind: u64 = fit.iter().map(|(_, cases)| cases).sum();
        if behind > best.as_ref().map_or(0, |(most, _)| *most) {
            let sources = fit.into_iter().map(|(key, _)| key.clone()).collect();
            best = Some((behind, SettingsChoice { mode: STEPS[step], classes, sources, why: String::new() }));
        }
    }
    best
}

/// The decided cases that support a source for these classes; `None` where one of them is not supported.
fn count_supporting_cases(
    source: &SourceTally,
    classes: &[MutationClass],
    (step, bar): (usize, &EvidenceBar),
) -> Option<u64> {
    let mut behind = 0;
    for class in classes {
        let acted = &class_cell(source, *class).through[step];
        if acted.tally.total_count() > 0 {
            behind += bar.is_cleared_by(acted).then(|| acted.tally.decided_count())?;
        }
    }
    (behind > 0).then_some(behind)
}

#[cfg(test)]
mod tests;
