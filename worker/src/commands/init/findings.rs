//! What `steward init` shows: how the vault would be read, and what to do next.
//!
//! Names and values from the vault are untrusted, so they are escaped. This module must not read the vault or write
//! anything.

use super::survey::VaultSurvey;
use super::{InitReport, MATTER_NOTE_HINT};
use crate::cli::output::escape_text;
use std::path::Path;
use steward_domain::record::path::RecordPath;
use steward_domain::record::plain_text::count_noun;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{ExcludedNote, VaultCounts, VaultProblem};

pub(super) fn describe_findings(report: &InitReport, survey: &VaultSurvey) -> String {
    let InitReport { counts, left_out, examples, problems, changes, .. } = report;
    let mut lines = vec![
        describe_counts(counts),
        "(a matter is the note that tasks belong to, such as that of a project)".to_owned(),
    ];
    let total: u64 = left_out.iter().map(|(_, count)| count).sum();
    if total > 0 {
        lines.push(format!("left out: {total}"));
        let line = |note: &ExcludedNote| {
            format!("  {}: {}", escape_text(&note.path), escape_text(&note.exclusion.to_string()))
        };
        lines.extend(examples.iter().map(line));
        let more = total.saturating_sub(examples.len() as u64);
        if more > 0 {
            lines.push(format!("  and {more} more"));
        }
    }
    if report.tasks_without_matter > 0 {
        lines.push(format!("tasks that name no matter, so they are left out: {}", report.tasks_without_matter));
        lines.push(format!("  {MATTER_NOTE_HINT}"));
    }
    if !problems.is_empty() {
        lines.push("without a matter, so they are asked about and never changed:".to_owned());
        let line = |p: &VaultProblem| format!("  {}: {}", escape_text(&p.path), escape_text(&p.message));
        lines.extend(problems.iter().map(line));
    }
    lines.extend(survey.describe_unsupported());
    if !changes.is_empty() {
        lines.push("a change would look like this:".to_owned());
        let line = |change: &super::ExampleChange| {
            let (before, after) = (escape_text(&change.before), escape_text(&change.after));
            format!("  {}: {before}  →  {after}", escape_text(change.note.as_str()))
        };
        lines.extend(changes.iter().map(line));
    }
    lines.join("\n")
}

fn describe_counts(counts: &VaultCounts) -> String {
    format!(
        "{} in {}; closed: {}, {}",
        count_noun(counts.tasks.open, "open task"),
        count_noun(counts.matters.open, "open matter"),
        count_noun(counts.tasks.done + counts.tasks.archived, "task"),
        count_noun(counts.matters.done + counts.matters.archived, "matter")
    )
}

/// What a person should know after a mapping was accepted in place of another one. Mode and ceilings stay as they are.
pub(super) fn describe_acceptance_again(accepted: &VaultCounts) -> String {
    format!("accepted: {}; your configuration stays as it is; start `steward up` again", describe_counts(accepted))
}

/// What a person should know after the mapping was accepted.
///
/// `made` is the matter note that was made, if a person agreed to one.
pub(super) fn describe_next_steps(
    vault: &Path,
    file: &Path,
    accepted: &VaultCounts,
    made: Option<&RecordPath>,
) -> String {
    let root = VaultRoot::open(vault).ok();
    let folder = root.as_ref().and_then(|root| root.steward_folder()).unwrap_or("Steward").to_owned();
    let quoted = vault.to_string_lossy().replace('\'', "'\\''");
    [
        match made {
            Some(note) => format!("accepted: {}; `{note}` was made, and no other note changed", describe_counts(accepted)),
            None => format!("accepted: {}; no note was changed", describe_counts(accepted)),
        },
        format!("  your configuration: {}", file.display()),
        "  It begins in shadow: Steward records what it would change, and changes nothing. Later we recommend that its \
         proposals wait for your yes; the file says how."
            .to_owned(),
        format!("  Obsidian: add `{folder}` to Settings → Files and links → Excluded files"),
        "  A change exchanges the file, so the note gets a new creation time: Obsidian's order by creation and Dataview's \
         `file.ctime` show it."
            .to_owned(),
        format!("  start it: steward up --vault '{quoted}'"),
    ]
    .join("\n")
}
