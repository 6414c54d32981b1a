//! The first sentence of the report: what a decision maker can do now.
//!
//! It allows exactly what the recommended settings allow ([`TrustReport::choice`]), with the cases behind each source. It
//! must not promise more than they do. It may hold the names of sources, which are untrusted.

use crate::action::mutation::MutationClass;
use crate::gates::mode::Mode;
use crate::trust::report::advice::{SettingsChoice, format_grouped};
use crate::trust::report::readiness::Readiness;
use crate::trust::report::{RecordSpan, TrustReport, TrustReportRow};
use crate::trust::tally::CaseTally;
use chrono::TimeDelta;

/// The most sources that the sentence names. The report lists all of them.
const MOST_NAMED: usize = 3;

/// Describes what to do now, in a sentence or two.
#[must_use]
pub fn describe_headline(report: &TrustReport) -> String {
    let Some(span) = report.records else {
        return "Let Steward change nothing on its own: no change has been proposed yet.".to_owned();
    };
    let advice = report.choice.as_ref().map_or_else(|| describe_refusal(report), |it| describe_choice(report, it));
    format!("After {}: {advice}", describe_days(span))
}

/// The time from the first record to the last one, in whole days.
fn describe_days(span: RecordSpan) -> String {
    let days = (span.to - span.from + TimeDelta::hours(12)).num_days().max(1);
    if days == 1 { "1 day".to_owned() } else { format!("{} days", format_grouped(days.unsigned_abs())) }
}

fn describe_choice(report: &TrustReport, choice: &SettingsChoice) -> String {
    let classes: Vec<String> = choice.classes.iter().map(|class| describe_class(*class).to_owned()).collect();
    let mut sources: Vec<ChosenSource> =
        choice.sources.iter().map(|key| ChosenSource::count_cases(report, choice, key)).collect();
    sources.sort_by_key(|source| std::cmp::Reverse(source.acted.decided_count()));
    let more = sources.len().saturating_sub(MOST_NAMED);
    let mut named: Vec<String> = sources.iter().take(MOST_NAMED).map(ChosenSource::describe).collect();
    if more > 0 {
        named.push(format!("{} more source{}", format_grouped(more as u64), if more == 1 { "" } else { "s" }));
    }
    let sure = if choice.mode == Mode::LiveHighConfidenceOnly { " at high confidence" } else { "" };
    format!(
        "let Steward {} on its own{sure} for {}. Keep confirming everything else.",
        join_words(&classes),
        join_words(&named)
    )
}

/// A source that may act, and its cases that it would have acted on.
struct ChosenSource<'a> {
    name: &'a str,
    acted: CaseTally,
}

impl<'a> ChosenSource<'a> {
    fn count_cases(report: &'a TrustReport, choice: &SettingsChoice, key: &'a str) -> Self {
        let is_chosen = |row: &&TrustReportRow| {
            row.source.as_deref() == Some(key) && row.class.is_some_and(|class| choice.classes.contains(&class))
        };
        let rows = || report.class_sources.iter().filter(is_chosen);
        let acted = rows().fold(CaseTally::default(), |sum, row| sum.merge(row.acted_in(choice.mode)));
        Self { name: rows().find_map(|row| row.name.as_deref()).unwrap_or(key), acted }
    }

    fn describe(&self) -> String {
        format!("{} ({} right)", self.name, describe_count(self.acted))
    }
}

/// What keeps everything from acting: the kind that is nearest, or that too little is known.
fn describe_refusal(report: &TrustReport) -> String {
    let near = report.class_sources.iter().filter(|row| row.nearest.readiness == Readiness::Nearly);
    let nearest = near.min_by_key(|row| row.nearest.missing_cases);
    let why = match nearest.and_then(|row| Some((row, row.nearest.missing_cases?, row.class?))) {
        Some((row, missing, class)) => {
            let (name, acted) = (row.name.as_deref().unwrap_or_default(), row.acted_in(row.nearest.mode));
            let cases = if missing == 1 { "case is" } else { "cases are" };
            format!(
                "To {} for {name}, {missing} more right {cases} missing ({} right so far)",
                describe_class(class),
                describe_count(acted)
            )
        }
        None if report.total.tally.decided_count() == 0 => {
            let proposed = format_grouped(report.total.tally.total_count());
            format!("Of {proposed} proposed changes none is decided: confirm, dismiss or undo some")
        }
        None => {
            let total = describe_count(report.total.tally);
            format!("{total} decided cases were right, and no source is near what is needed")
        }
    };
    format!("let Steward change nothing on its own yet. {why}.")
}

/// As in `425 of 428`.
fn describe_count(tally: CaseTally) -> String {
    format!("{} of {}", format_grouped(tally.agreed), format_grouped(tally.decided_count()))
}

/// What a steward does to notes by a change of this class.
fn describe_class(class: MutationClass) -> &'static str {
    match class {
        MutationClass::StateChange => "change the state of tasks and matters",
        MutationClass::ContextEdit => "edit summaries, descriptions and owners",
        MutationClass::ParentMatter => "move tasks to other matters",
        MutationClass::Related => "change related links",
    }
}

/// As in `a, b and c`.
fn join_words(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests;
