//! The command `steward init`: proposes how a vault of ordinary notes is read, and accepts it once a person agreed.
//!
//! It reads the whole vault by the mapping and shows what it found. Then it files the audit record of the acceptance and
//! writes the accepted mapping beside the user's configuration. It changes no note. It creates one matter note, for tasks
//! that name none, if a person agrees to that too.

mod findings;
mod folder;
mod proposal;
mod survey;

use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, prompt_yes_no};
use crate::config::StewardConfig;
use crate::config::mapping::{self, AcceptedMapping, MappingStatus};
use crate::config::user_file::UserFile;
use crate::runtime::engine::LEDGER_FILE;
use anyhow::{Context, bail};
use chrono::Utc;
use findings::{describe_acceptance_again, describe_findings, describe_next_steps};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::entity::RecordState;
use steward_domain::record::frontmatter::{self, FieldEdit};
use steward_domain::record::mapping::{MatterNote, VaultMapping};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::{NoteExclusion, NoteSchema};
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::{OWN_FOLDER, VaultRoot};
use steward_vault::index::{ExcludedNote, TaskFilter, VaultCounts, VaultProblem};
use survey::{UnsupportedContent, VaultSurvey};

/// The most changes that are shown.
const SHOWN_CHANGES: usize = 3;
/// The most tasks that are tried for them.
const TRIED_CHANGES: u32 = 100;
/// The most notes that are listed as left out.
const SHOWN_NOTES: u32 = 20;
/// What to do about a vault that Steward looks after at this moment.
const END_FIRST: &str = "Steward runs for this vault: end `steward up`, run `steward init` again, and start it again";
/// How a person gets a matter for tasks that name none.
const MATTER_NOTE_HINT: &str = "`steward init` in a terminal offers one matter note for them; or name a note yourself with \
     `default = \"[[…]]\"` in `parent` of `[map.task]`";

/// What was read by the mapping, and whether it was accepted.
#[derive(Serialize)]
struct InitReport {
    mapping: VaultMapping,
    /// What each line of a proposed mapping rests on; empty if a person wrote it.
    reasons: BTreeMap<String, String>,
    counts: VaultCounts,
    /// The number of notes that are left out, by the reason.
    left_out: Vec<(String, u64)>,
    /// The first of them.
    examples: Vec<ExcludedNote>,
    /// Those of them that are tasks and name no matter.
    tasks_without_matter: u64,
    /// What Steward does not read yet.
    unsupported: UnsupportedContent,
    /// The first tasks whose matter is not found.
    problems: Vec<VaultProblem>,
    /// Lines as Steward would change them.
    changes: Vec<ExampleChange>,
    /// The user's file, beside which the accepted mapping lies; `None` if nothing was accepted.
    accepted: Option<PathBuf>,
}

/// A line of a note, before and after.
#[derive(Serialize)]
struct ExampleChange {
    note: RecordPath,
    before: String,
    after: String,
}

/// The mapping that is shown to the person.
struct ShownMapping {
    mapping: VaultMapping,
    reasons: BTreeMap<String, String>,
    /// The text to write into `steward.toml`; `None` if it stands there.
    text: Option<String>,
    survey: VaultSurvey,
}

impl InitReport {
    /// Whether there are tasks, and no note that could be the matter of one.
    fn has_no_matter(&self) -> bool {
        let VaultCounts { matters, .. } = &self.counts;
        matters.open + matters.done + matters.archived == 0
    }
}

pub(crate) async fn run(
    config: &StewardConfig,
    init: &cli::InitArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let vault = config.vault_folder()?;
    if let (Some(_), Some(accepted)) = (&init.folder, AcceptedMapping::read(&VaultRoot::open(vault)?)?) {
        return move_steward_folder(vault, init, accepted, out).await;
    }
    let is_asked = !init.accept && !init.yes;
    let is_served = VaultWriter::is_locked(&VaultRoot::open(vault)?);
    if is_served && !is_asked {
        bail!("{}: {END_FIRST}", vault.display());
    }
    let mut shown = find_mapping(vault, init.accept).await?;
    let mut report = read_vault(vault, &shown).await?;
    if let (Some(text), false) = (&shown.text, out.json) {
        out.print_text(&format!("proposed for {}\n\n{text}", vault.join("steward.toml").display()))?;
    }
    if is_asked {
        out.print_text(&describe_findings(&report, &shown.survey))?;
    }
    let agreed = !is_asked || (!out.json && !is_served && prompt_yes_no("Accept this mapping?"));
    let Some(agreed) = agreed.then(|| take_matter_note(&mut shown, &report, is_asked)).transpose()? else {
        let how = if is_served { END_FIRST } else { "`steward init --yes` accepts it" };
        out.print_value(&report, || format!("nothing was written: {how}"))?;
        return Ok(CommandExit::Ok);
    };
    let is_first = config.mapping.accepted().is_none();
    let made = agreed.as_ref().map(|note| note.path.clone());
    let file = accept(config, init, &shown, agreed).await?;
    // The commands that follow find the vault read.
    let mut config = config.clone();
    config.mapping = MappingStatus::read(vault);
    let (_, index) = super::open_vault(&config).await?;
    let counts = index.read().count_records(Utc::now()).await?;
    let next_steps = if is_first {
        describe_next_steps(vault, &file, &counts, made.as_ref())
    } else {
        describe_acceptance_again(&counts)
    };
    report.accepted = Some(file);
    out.print_value(&report, || match is_asked {
        true => next_steps,
        false => format!("{}\n{next_steps}", describe_findings(&report, &shown.survey)),
    })?;
    Ok(CommandExit::Ok)
}

/// The matter note for tasks that name none, if a person agrees to it now. The mapping then names it.
///
/// # Errors
/// Nothing else in the vault is a matter.
fn take_matter_note(
    shown: &mut ShownMapping,
    report: &InitReport,
    is_asked: bool,
) -> anyhow::Result<Option<MatterNote>> {
    let tasks = report.tasks_without_matter;
    let note = if tasks == 0 { None } else { shown.mapping.propose_matter_note(&shown.survey.names) };
    let question =
        |note: &MatterNote| format!("Make the note `{}` for the tasks that name no matter ({tasks})?", note.path);
    let note = note.filter(|note| is_asked && prompt_yes_no(&question(note)));
    if let Some(note) = &note {
        shown.mapping = shown.mapping.clone().with_default_matter(note);
    } else if report.has_no_matter() {
        bail!("no note is a matter of the tasks ({tasks}): {MATTER_NOTE_HINT}; nothing was accepted");
    }
    Ok(note)
}

/// The mapping in the vault's `steward.toml` or, if there is none, a proposal from the notes.
async fn find_mapping(vault: &Path, must_stand_there: bool) -> anyhow::Result<ShownMapping> {
    let there = mapping::read_proposal(vault)?;
    if there.is_none() && must_stand_there {
        bail!(
            "{} has no `[map]`: `steward init` proposes one from your notes, or write it yourself",
            vault.join("steward.toml").display()
        );
    }
    let (root, with_samples) = (VaultRoot::open(vault)?, there.is_none());
    let survey = tokio::task::spawn_blocking(move || VaultSurvey::read(&root, with_samples)).await??;
    if let Some(mapping) = there {
        return Ok(ShownMapping { mapping, reasons: BTreeMap::new(), text: None, survey });
    }
    let proposal = proposal::propose(vault, &survey)?;
    let faults = proposal.mapping.find_faults();
    if let Some(fault) = faults.first() {
        bail!("the proposal cannot be used: `{}`: {}", fault.keys.join("."), fault.message);
    }
    let text = proposal::render_proposal(&proposal)?;
    let survey = VaultSurvey { samples: Vec::new(), ..survey };
    Ok(ShownMapping { mapping: proposal.mapping, reasons: proposal.reasons, text: Some(text), survey })
}

/// Reads the vault by a mapping into an index of its own. The vault's own index stays as it is until the mapping is
/// accepted.
async fn read_vault(vault: &Path, shown: &ShownMapping) -> anyhow::Result<InitReport> {
    let root = VaultRoot::open(vault)?;
    let schema = mapping::build_schema(shown.mapping.clone());
    let scratch = super::TemporaryIndex::create(schema.clone(), []).await?;
    scratch.read_vault(&root).await?;
    let index = &scratch.index;
    let counts = index.read().count_records(Utc::now()).await?;
    let left_out = index.count_excluded_notes().await?;
    let no_matter = serde_json::to_value(NoteExclusion::NoParent)?;
    let tasks_without_matter = left_out.iter().find(|(why, _)| no_matter["why"] == **why).map_or(0, |found| found.1);
    for (table, found) in [("map.matter", &counts.matters), ("map.task", &counts.tasks)] {
        if found.open + found.done + found.archived + tasks_without_matter == 0 {
            let total = shown.survey.notes;
            bail!("`{table}` fits none of the {total} notes: check its `where` and its values; nothing was accepted");
        }
    }
    let filter = TaskFilter { state: Some(RecordState::Open), ..TaskFilter::default() };
    let mut changes = Vec::new();
    for task in index.read().tasks_page(&filter, None, TRIED_CHANGES).await?.rows {
        let has_matter = index.read().find_note_kind(&task.matter).await? == Some(RecordKind::Matter);
        if has_matter && changes.len() < SHOWN_CHANGES {
            changes.extend(show_change(&root, &schema, &task.path));
        }
    }
    Ok(InitReport {
        mapping: shown.mapping.clone(),
        reasons: shown.reasons.clone(),
        counts,
        left_out,
        tasks_without_matter,
        unsupported: shown.survey.unsupported.clone(),
        examples: index.list_excluded_notes("", SHOWN_NOTES).await?,
        problems: index.read().list_first_problems(SHOWN_NOTES).await?.rows,
        changes,
        accepted: None,
    })
}

/// The line of a task as it is, and as it would be when the task is done.
fn show_change(root: &VaultRoot, schema: &NoteSchema, note: &RecordPath) -> Option<ExampleChange> {
    let document = frontmatter::read_document(&root.read_file(note).ok()?.bytes).ok()?;
    // Such a task is only asked about.
    if schema.read_note(RecordKind::Task, note, document.fields()).ceiling == Ceiling::Ask {
        return None;
    }
    let property = schema.property_in(RecordKind::Task, "state", document.fields())?;
    let now = document.fields().get(&property)?;
    let done = Value::from(RecordState::Done.as_str());
    let then = schema.write_value(RecordKind::Task, "state", &done, Some(now))?;
    let edit = FieldEdit { field: property, value: Some(then) };
    let edited = frontmatter::edit_fields(document.as_bytes(), &[edit]).ok()?;
    let edited = String::from_utf8(edited).ok()?;
    let (before, after) = document.as_str().lines().zip(edited.lines()).find(|(before, after)| before != after)?;
    Some(ExampleChange { note: note.clone(), before: before.trim().to_owned(), after: after.trim().to_owned() })
}

/// Moves Steward's folder of a vault whose mapping is accepted. The mapping stays.
async fn move_steward_folder(
    vault: &Path,
    init: &cli::InitArgs,
    accepted: AcceptedMapping,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let writer = folder::open_writer(vault, init).await?;
    let folder = writer.root().steward_folder().context("Steward's folder was not found")?.to_owned();
    let file = AcceptedMapping { folder: folder.clone(), ..accepted }.write(vault)?;
    out.print_value(&json!({"folder": &folder, "accepted": &file}), || {
        format!("Steward's folder is {} now", vault.join(&folder).display())
    })?;
    Ok(CommandExit::Ok)
}

/// Writes what a person agreed to: the matter note, `[map]`, the record of the acceptance, and the mapping outside the
/// vault. Returns the user's file.
async fn accept(
    config: &StewardConfig,
    init: &cli::InitArgs,
    shown: &ShownMapping,
    note: Option<MatterNote>,
) -> anyhow::Result<PathBuf> {
    let (vault, now, mapping) = (config.vault_folder()?, Utc::now(), shown.mapping.clone());
    let link = note.as_ref().map(|note| note.link.clone());
    let writer = folder::open_writer(vault, init).await?;
    let (identity, folder) = (writer.identity().id, writer.root().steward_folder().map(str::to_owned));
    let folder = folder.context("Steward's folder was not made")?;
    let earlier = AcceptedMapping::read(writer.root()).ok().flatten();
    let mut history = earlier.map(|earlier| earlier.history).unwrap_or_default();
    history.push(mapping.hash());
    let (accepted, operator, place) = (mapping.clone(), config.operator.clone(), vault.to_owned());
    let text = match &shown.text {
        Some(_) => Some(proposal::render_mapping(&mapping, &shown.reasons)?),
        None => None,
    };
    tokio::task::spawn_blocking(move || -> anyhow::Result<()> {
        if let Some(note) = &note {
            writer.create_note(&note.path, note.text.as_bytes())?;
        }
        let written = match (text, link) {
            (Some(text), _) => proposal::write_proposal(&place, &text, &accepted),
            (None, Some(link)) => proposal::write_default_matter(&place, &link, &accepted),
            (None, None) => Ok(()),
        };
        if let (Err(_), Some(note)) = (&written, &note) {
            // Nothing names it, and it was made a moment ago.
            let _ = std::fs::remove_file(place.join(note.path.as_str()));
        }
        written?;
        writer.accept_mapping(&accepted, &operator, now)?;
        Ok(())
    })
    .await??;
    AcceptedMapping { vault: identity, accepted_at: now, folder, history, mapping }.write(vault)?;
    move_state(vault, &config.mapped_state_dir()?)?;
    UserFile::create_if_missing(vault, identity)
}

/// Moves the rate guard's ledger of a vault that had no mapping before: its databases lie outside the vault now. The
/// index is filled again from the files.
fn move_state(vault: &Path, state: &Path) -> anyhow::Result<()> {
    let (old, new) = (vault.join(OWN_FOLDER).join(LEDGER_FILE), state.join(LEDGER_FILE));
    if old.exists() && !new.exists() {
        std::fs::create_dir_all(state)?;
        for suffix in ["", "-wal", "-shm"] {
            let name = format!("{LEDGER_FILE}{suffix}");
            let (from, to) = (vault.join(OWN_FOLDER).join(&name), state.join(&name));
            if from.exists() {
                std::fs::copy(&from, &to).with_context(|| format!("failed to move {}", from.display()))?;
                std::fs::remove_file(&from)?;
            }
        }
    }
    Ok(())
}
