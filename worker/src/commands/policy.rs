//! The command `steward policy check [<matter>]`: what a steward may do at a matter, and which line sets it.
//!
//! It reads the configuration, the stop file, the index and the matter's note. It asks no clerk and changes nothing.
//! An invalid line of a note is printed with its number and the fix, and the exit code is 4. [`lines`] builds the rows.

mod lines;

use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::style::TextStyle;
use crate::config::StewardConfig;
use crate::temporal::note::VaultHolder;
use anyhow::bail;
use chrono::{DateTime, Utc};
use lines::{MatterPolicyContext, PolicyContext, PolicyLine};
use serde::Serialize;
use steward_domain::gates::matter_policy::read::{self, MatterPolicyFault};
use steward_domain::record::frontmatter::{self, Document};
use steward_domain::record::path::RecordPath;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop;
use steward_vault::index::SourceCeiling;

/// The most sources whose ceilings are printed.
const MAX_SOURCES: usize = 50;

#[derive(Serialize)]
struct PolicyCheckReport {
    matters: Vec<MatterPolicyReport>,
    /// Invalid settings, and the values that apply instead.
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct MatterPolicyReport {
    matter: RecordPath,
    /// Empty if the note cannot be read at all: then no steward acts on the matter.
    lines: Vec<PolicyLine>,
    faults: Vec<PolicyFaultRow>,
}

/// An invalid line of a note.
#[derive(Serialize)]
struct PolicyFaultRow {
    file: RecordPath,
    /// Counted from 1; `None` if the whole file cannot be read.
    line: Option<usize>,
    key: Option<String>,
    message: String,
}

pub(crate) async fn run(
    config: &StewardConfig,
    cli::PolicyCommand::Check { matter }: &cli::PolicyCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let vault = super::open_read_only(config).await?;
    let (root, index) = (&vault.root, &vault.index);
    let named = match matter {
        Some(text) => Some(super::names::find_matter(index, text).await?),
        None => None,
    };
    // The index lists a missing matter too if a task names it.
    let with_policy = index.gates().list_matters_with_policy().await?;
    if let Some(path) = named.as_ref().filter(|path| !root.exists(path) && !with_policy.contains(path)) {
        bail!("{path} is not in the vault: give the path, name or title of an existing matter");
    }
    let matters = named.map_or(with_policy, |matter| vec![matter]);
    let settings = PolicyContext {
        config,
        schema: index.note_schema(),
        running: match VaultHolder::read(root, &config.state_dir()?) {
            VaultHolder::Runs(note) => Some(note),
            VaultHolder::Died(_) | VaultHolder::Silent(_) | VaultHolder::Nobody => None,
        },
        stop: stop::read_stop(root),
        caps: index.trust().read_mode_caps().await?,
        sources: index
            .gates()
            .list_source_ceilings(u32::MAX)
            .await?
            .into_iter()
            .map(|source| locate_ceiling(root, source))
            .collect(),
        now: Utc::now(),
    };
    let mut checked = PolicyCheckReport { matters: Vec::new(), warnings: config.warnings.clone() };
    for matter in matters {
        let spent = index.gates().count_changes_under(&matter, None, settings.now).await?;
        checked.matters.push(explain_matter(&settings, root, matter, spent));
    }
    let faults = checked.matters.iter().any(|matter| !matter.faults.is_empty());
    out.print_value(&checked, || TextStyle::current().wrap_lines(&describe_policies(&checked)))?;
    Ok(if faults { CommandExit::Faults } else { CommandExit::Ok })
}

fn explain_matter(
    settings: &PolicyContext<'_>,
    root: &VaultRoot,
    matter: RecordPath,
    spent: u32,
) -> MatterPolicyReport {
    let read = read_document(root, matter.as_str()).and_then(|document| {
        let entity = settings.schema.read_matter(&matter, document.fields()).map_err(|e| e.to_string())?;
        Ok((document, entity))
    });
    let (document, entity) = match read {
        Ok(read) => read,
        Err(message) => {
            let message = format!("{message}; until this is fixed, nothing is done here without a person");
            let fault = PolicyFaultRow { file: matter.clone(), line: None, key: None, message };
            return MatterPolicyReport { matter, lines: Vec::new(), faults: vec![fault] };
        }
    };
    let (policy, faults) = read::read_matter_policy(&document);
    let note = MatterPolicyContext {
        matter: &matter,
        document: &document,
        state: entity.state,
        top: entity.ceiling,
        policy: policy.as_ref(),
        spent,
    };
    let lines = lines::build_policy_lines(settings, &note);
    let faults = faults.into_iter().map(|fault| build_fault_row(&matter, &fault)).collect();
    MatterPolicyReport { matter, lines, faults }
}

fn build_fault_row(matter: &RecordPath, fault: &MatterPolicyFault) -> PolicyFaultRow {
    PolicyFaultRow {
        file: matter.clone(),
        line: Some(fault.line),
        key: Some(fault.path.join(".")),
        message: format!("{}: {}", fault.wrong, fault.hint),
    }
}

fn read_document(root: &VaultRoot, path: &str) -> Result<Document, String> {
    let path = RecordPath::parse(path).map_err(|e| e.to_string())?;
    let content = root.read_file(&path).map_err(|e| e.to_string())?;
    frontmatter::read_document(&content.bytes).map_err(|e| format!("failed to {e}"))
}

/// Adds the line that sets the ceiling of a source.
fn locate_ceiling(root: &VaultRoot, source: SourceCeiling) -> (SourceCeiling, String) {
    let path = &source.path;
    let line = read_document(root, path).ok().and_then(|document| document.line_of_key(&["ceiling"]));
    let from = line.map_or_else(|| format!("{path}, which cannot be read"), |line| format!("{path}:{line}"));
    (source, from)
}

/// The widest column of policies, in characters.
const MAX_COLUMN: usize = 28;

fn describe_policies(checked: &PolicyCheckReport) -> String {
    let mut lines = Vec::new();
    if checked.matters.is_empty() {
        let hint = "no matter has a `steward:` block, so the same settings apply to all: `steward policy check <matter>` \
                    shows the mode, the thresholds and the ceilings";
        lines.push(hint.to_owned());
    }
    for matter in &checked.matters {
        lines.push(matter.matter.to_string());
        // A long value stands out, so that the others keep their places.
        let width = |column: fn(&PolicyLine) -> &str| {
            let widths = matter.lines.iter().map(|line| column(line).chars().count());
            widths.filter(|width| *width <= MAX_COLUMN).max().unwrap_or_default()
        };
        let (first, second) = (width(|line| &line.what), width(|line| &line.value));
        for PolicyLine { what, value, from } in &matter.lines {
            let (what, value) = (escape_text(what), escape_text(value));
            lines.push(format!("  {what:<first$}  {value:<second$}  {}", escape_text(from)));
        }
        for fault in &matter.faults {
            let line = fault.line.map(|line| format!(":{line}")).unwrap_or_default();
            let key = fault.key.as_deref().map(|key| format!(" `{}`", escape_text(key))).unwrap_or_default();
            lines.push(format!("  WRONG {}{line}:{key} {}", fault.file, escape_text(&fault.message)));
        }
    }
    lines.extend(checked.warnings.iter().map(|warning| escape_text(warning)));
    lines.join("\n")
}

/// Formats a moment to the second.
fn format_time(at: DateTime<Utc>) -> String {
    steward_domain::time::format_seconds(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_block_the_command_that_shows_the_thresholds_is_named() {
        let text = describe_policies(&PolicyCheckReport { matters: Vec::new(), warnings: Vec::new() });
        assert!(text.contains("`steward policy check <matter>` shows the mode, the thresholds"), "{text}");
    }
}
