//! `steward policy check [<matter>]`: what a steward may do at a matter, and which line says so.
//!
//! Reads the configuration, the brake, the index and the note itself, asks nobody and changes nothing. What in a note
//! cannot be understood is told with its line and the mend, and is an exit code of its own; what each line comes to
//! is in [`lines`].

mod lines;

use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::config::StewardConfig;
use crate::temporal::note::VaultHolder;
use anyhow::bail;
use chrono::{DateTime, Utc};
use lines::{MatterPolicyContext, PolicyContext, PolicyLine};
use serde::Serialize;
use steward_domain::gates::matter_policy::read::{self, MatterPolicyFault};
use steward_domain::record::entity::Matter;
use steward_domain::record::frontmatter::{self, Document};
use steward_domain::record::path::RecordPath;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop;
use steward_vault::index::SourceCeiling;

/// Most sources whose ceilings are told.
const SOURCES: usize = 50;

#[derive(Serialize)]
struct PolicyCheckReport {
    matters: Vec<MatterPolicyReport>,
    /// Settings that were not usable and what holds instead.
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct MatterPolicyReport {
    matter: RecordPath,
    /// Empty where the note cannot be read at all: then nothing is done there.
    lines: Vec<PolicyLine>,
    faults: Vec<PolicyFaultRow>,
}

/// Something in a note that cannot be understood.
#[derive(Serialize)]
struct PolicyFaultRow {
    file: RecordPath,
    /// From 1; `None` where the file as a whole cannot be read.
    line: Option<usize>,
    key: Option<String>,
    message: String,
}

pub(crate) async fn run(
    config: &StewardConfig,
    cli::PolicyCommand::Check { matter }: &cli::PolicyCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let look = super::open_read_only(config).await?;
    let (root, index) = (&look.root, &look.index);
    let named = matter.as_deref().map(super::parse_matter).transpose()?;
    // A matter that tasks name and that is missing is one of those.
    let noted = index.list_matters_with_policy().await?;
    if let Some(path) = named.as_ref().filter(|path| !root.exists(path) && !noted.contains(path)) {
        bail!("{path}: not in the vault");
    }
    let matters = named.map_or(noted, |matter| vec![matter]);
    let settings = PolicyContext {
        config,
        running: match VaultHolder::read(root, &config.state_dir()?) {
            VaultHolder::Runs(note) => Some(note),
            VaultHolder::Died(_) | VaultHolder::Silent(_) | VaultHolder::Nobody => None,
        },
        stop: stop::read_stop(root),
        caps: index.read_mode_caps().await?,
        sources: index.list_source_ceilings(u32::MAX).await?.into_iter().map(|one| locate_ceiling(root, one)).collect(),
        now: Utc::now(),
    };
    let mut checked = PolicyCheckReport { matters: Vec::new(), warnings: config.warnings.clone() };
    for matter in matters {
        let spent = index.count_changes_under(&matter, None, settings.now).await?;
        checked.matters.push(explain_matter(&settings, root, (matter, spent)));
    }
    let faults = checked.matters.iter().any(|one| !one.faults.is_empty());
    out.print_value(&checked, || describe_policies(&checked))?;
    Ok(if faults { CommandExit::Faults } else { CommandExit::Ok })
}

fn explain_matter(
    settings: &PolicyContext<'_>,
    root: &VaultRoot,
    (matter, spent): (RecordPath, u32),
) -> MatterPolicyReport {
    let read = read_document(root, matter.as_str()).and_then(|document| {
        let understood = Matter::read(document.fields()).map_err(|e| e.to_string())?;
        Ok((document, understood))
    });
    let (document, understood) = match read {
        Ok(read) => read,
        Err(message) => {
            let mend = format!("{message}; until it is mended nothing is done here without a human");
            let wrong = PolicyFaultRow { file: matter.clone(), line: None, key: None, message: mend };
            return MatterPolicyReport { matter, lines: Vec::new(), faults: vec![wrong] };
        }
    };
    let (policy, faults) = read::read_matter_policy(&document);
    let note = MatterPolicyContext {
        matter: &matter,
        document: &document,
        state: understood.state,
        top: understood.ceiling,
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
        message: format!("{}: {}", fault.wrong, fault.mend),
    }
}

fn read_document(root: &VaultRoot, path: &str) -> Result<Document, String> {
    let path = RecordPath::parse(path).map_err(|e| e.to_string())?;
    let content = root.read_file(&path).map_err(|e| e.to_string())?;
    frontmatter::read_document(&content.bytes).map_err(|e| format!("failed to {e}"))
}

/// A source's ceiling, and the line that says so.
fn locate_ceiling(root: &VaultRoot, one: SourceCeiling) -> (SourceCeiling, String) {
    let line = read_document(root, &one.path).ok().and_then(|document| document.line_of_key(&["ceiling"]));
    let from =
        line.map_or_else(|| format!("{}, which cannot be read", one.path), |line| format!("{}:{line}", one.path));
    (one, from)
}

fn describe_policies(checked: &PolicyCheckReport) -> String {
    let mut lines = Vec::new();
    if checked.matters.is_empty() {
        lines.push("no matter has a `steward:` block: the settings of `steward status` hold everywhere".to_owned());
    }
    for one in &checked.matters {
        lines.push(one.matter.to_string());
        for PolicyLine { what, value, from } in &one.lines {
            lines.push(format!("  {:<30} {:<38} {}", escape_text(what), escape_text(value), escape_text(from)));
        }
        for wrong in &one.faults {
            let line = wrong.line.map(|line| format!(":{line}")).unwrap_or_default();
            let key = wrong.key.as_deref().map(|key| format!(" `{}`", escape_text(key))).unwrap_or_default();
            lines.push(format!("  WRONG {}{line}:{key} {}", wrong.file, escape_text(&wrong.message)));
        }
    }
    lines.extend(checked.warnings.iter().map(|warning| escape_text(warning)));
    lines.join("\n")
}

/// A moment as it is told.
fn format_time(at: DateTime<Utc>) -> String {
    steward_domain::time::format_seconds(at)
}
