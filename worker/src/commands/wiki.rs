//! The commands `steward wiki …`.
//!
//! `validate`, `resolve`, `search`, `grep`, `why` and `lint` work on any folder, without a vault or a server, and change nothing.

mod accept;
mod eval;
mod gold;
mod grep;
mod ingest;
mod lint;
mod preview;
mod query;
mod requests;
mod resolve;
mod review;
mod runs;
mod search;
mod settle;
mod sources;
mod status;
mod validate;
mod why;

pub(crate) use runs::resolve_run;

use crate::cli::output::{CommandError, CommandExit, CommandOutput, escape_text};
use crate::cli::wiki::WikiCommand;
use crate::commands::wiki::grep::GrepArguments;
use crate::commands::wiki::ingest::IngestOptions;
use crate::commands::wiki::lint::LintChanges;
use crate::commands::wiki::why::WhyPeriod;
use crate::config::StewardConfig;
use anyhow::{Context, bail};
use chrono::Utc;
use rustix::fs::{Access, access};
use serde_json::json;
use std::path::{Path, PathBuf};
use steward_domain::record::plain_text::count_noun;
use steward_domain::wiki::finding::{FindingCode, Severity, WikiFinding};
use steward_domain::wiki::merge::{DiffLine, list_diff_lines};
use steward_domain::wiki::plan::AcceptedFile;
use steward_domain::wiki::search::PageFilter;
use steward_domain::wiki::standard::is_slug;
use steward_domain::wiki::template::{NewFile, render_wiki};
use steward_domain::wiki::writer::budget::RunLimits;
use steward_domain::wiki::{GUIDE_FILE, MANIFEST_FILE};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{FILE as INDEX_FILE, Index};
use steward_vault::wiki::accept::{find_accepted, read_acceptable};
use steward_vault::wiki::create::{WIKIS_FOLDER, create_wiki, list_wikis};
use steward_workflows::WikiRunOutput;

pub(crate) async fn run(command: WikiCommand, vault: Option<&Path>, out: CommandOutput) -> anyhow::Result<CommandExit> {
    match command {
        WikiCommand::Init { name } => init(vault, &name, out).await,
        WikiCommand::Validate { paths, accept } => {
            let paths: Vec<PathBuf> = paths.into_iter().map(|path| find_named(vault, path)).collect();
            match paths.as_slice() {
                paths if !accept => validate::run(paths, out),
                [folder] => accept::run(vault, folder, out).await,
                _ => bail!(CommandError::Usage("--accept needs exactly one wiki".to_owned())),
            }
        }
        WikiCommand::Ingest { wiki, documents, draft, dry_run, no_verify, budget, supersedes } => {
            let mut limits = RunLimits::default();
            for limit in &budget {
                if let Err(reason) = limits.set(limit) {
                    bail!(CommandError::Usage(format!("--budget: {}", escape_text(&reason))));
                }
            }
            let options = IngestOptions { dry_run, draft, unverified: no_verify, limits, supersedes };
            ingest::run(vault, &wiki, &documents, options, out).await
        }
        WikiCommand::Eval(command) => eval::run(vault, command, out).await,
        WikiCommand::Runs(command) => runs::run(vault, command, out).await,
        WikiCommand::Resolve { manifest, root } => resolve::run(&manifest, root.as_deref(), out),
        WikiCommand::Lint { wiki, fix, deep, confirm } => {
            lint::run(&open_wiki(vault, &wiki)?, LintChanges { fix, deep, confirm }, out).await
        }
        WikiCommand::Review { wiki, pages } => review::run(vault, &wiki, pages, out).await,
        WikiCommand::Settle { wiki, claim, keep } => settle::run(vault, &wiki, &claim, &keep, out).await,
        WikiCommand::Search { wiki, words, log: true, after, .. } => {
            search::search_log(&open_wiki(vault, &wiki)?, &words.join(" "), after, out)
        }
        WikiCommand::Search { wiki, words, kind, tag, path, .. } => {
            let filter = PageFilter { kind, tag, path };
            search::run(&open_wiki(vault, &wiki)?, &words.join(" "), &filter, out).await
        }
        WikiCommand::Grep { wiki, pattern, path, fixed, ignore_case, context, limit } => {
            let (context, limit) = (usize::from(context), usize::from(limit));
            let arguments = GrepArguments { pattern, path, fixed, ignore_case, context, limit };
            grep::run(&open_wiki(vault, &wiki)?, arguments, out)
        }
        WikiCommand::Query { wiki, question, save } => query::ask(vault, &wiki, &question.join(" "), save, out).await,
        WikiCommand::Save { answer, kind } => query::save(vault, answer.as_deref(), &kind, out).await,
        WikiCommand::Why { wiki, what, since, until } => {
            why::run(&open_wiki(vault, &wiki)?, &what.join(" "), WhyPeriod { since, until }, out).await
        }
        WikiCommand::Sources { wiki } => sources::run(vault, &wiki, out),
        WikiCommand::Status { wiki } => status::run(&open_vault(vault)?.root, wiki.as_deref(), out),
    }
}

/// A vault, and the configuration for it.
struct OpenedWikis {
    config: StewardConfig,
    root: VaultRoot,
}

fn open_vault(vault: Option<&Path>) -> anyhow::Result<OpenedWikis> {
    let config = StewardConfig::load(vault)?;
    super::refuse_root_for_others(&config)?;
    let root = VaultRoot::open(config.vault_folder()?)?;
    Ok(OpenedWikis { config, root })
}

/// A wiki that a command names: one of the vault, or any folder.
struct OpenedWiki {
    folder: PathBuf,
    /// `None` for a folder that is no wiki of the vault.
    vault: Option<VaultWiki>,
}

/// Where a wiki lies in a vault.
struct VaultWiki {
    config: StewardConfig,
    root: VaultRoot,
    name: String,
}

impl OpenedWiki {
    /// The index of the vault, if there is one that this process may write.
    async fn open_index(&self) -> Option<(&VaultWiki, Index)> {
        let vault = self.vault.as_ref()?;
        let state = vault.config.state_dir().ok()?;
        let is_ours = super::refuse_root_for_others(&vault.config).is_ok() && access(&state, Access::WRITE_OK).is_ok();
        if !is_ours || !state.join(INDEX_FILE).exists() {
            return None;
        }
        Index::open_beside(&state).await.ok().map(|index| (vault, index))
    }
}

fn open_wiki(vault: Option<&Path>, wiki: &str) -> anyhow::Result<OpenedWiki> {
    let folder = find_wiki(vault, wiki)?;
    let find = || {
        let config = StewardConfig::load(vault).ok()?;
        let root = VaultRoot::open(config.vault_folder().ok()?).ok()?;
        let folder = folder.canonicalize().ok()?;
        let (name, _) = list_wikis(&root).ok()?.into_iter().find(|(_, known)| *known == folder)?;
        Some(VaultWiki { config, root, name })
    };
    Ok(OpenedWiki { vault: find(), folder })
}

/// The lines that a text loses and gains.
fn show_changed_lines(before: &str, after: &str) -> String {
    list_diff_lines(before, after)
        .into_iter()
        .filter_map(|line| match line {
            DiffLine::Both(_) => None,
            DiffLine::Before(line) => Some(format!("  - {}\n", escape_text(line.trim_end()))),
            DiffLine::After(line) => Some(format!("  + {}\n", escape_text(line.trim_end()))),
        })
        .collect()
}

async fn init(vault: Option<&Path>, name: &str, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let OpenedWikis { config, root } = open_vault(vault)?;
    let template = render_wiki(name, Utc::now())?;
    let manifest = root.path().join(WIKIS_FOLDER).join(name).join(MANIFEST_FILE);
    if let Some(accepted) = find_accepted(&root, name)?.filter(|_| manifest.symlink_metadata().is_err())
        && let Some(text) = accepted.files.get(MANIFEST_FILE).cloned()
    {
        create_wiki(&root, name, &[NewFile { name: MANIFEST_FILE, text }])?;
        let restored = format!("{MANIFEST_FILE} is restored as it was accepted last, see {}", accepted.record);
        out.print_value(&json!({"wiki": name, "restored": accepted.record}), || restored)?;
        return Ok(CommandExit::Ok);
    }
    let folder = create_wiki(&root, name, &template)?;
    let relative = folder.strip_prefix(root.path()).unwrap_or(&folder).to_string_lossy().into_owned();
    let files = read_acceptable(&root, &relative)?;
    // A file that stood there before is another one than this command shows.
    let is_new = |file: &AcceptedFile| template.iter().any(|new| new.name == file.file && new.text == file.text);
    let hint = format!("the wiki is made, but not in force yet: `steward wiki validate {name} --accept`");
    let output = match files.iter().find(|file| !is_new(file)) {
        Some(file) => WikiRunOutput::Refused { status: 409, message: format!("{} stood there before", file.file) },
        None => requests::accept_files(&config, name, &files).await.context(hint)?,
    };
    let in_force = match &output {
        WikiRunOutput::Done { .. } => String::new(),
        WikiRunOutput::Refused { message, .. } => {
            format!("\nIts files are not in force ({message}): `steward wiki validate {name} --accept`")
        }
    };
    out.print_value(&json!({"wiki": name, "folder": &folder, "accepted": &output}), || {
        format!(
            "{} is a new wiki.{in_force}\n`steward wiki ingest {name} <file>` makes pages of a document.\n\
             Say in {MANIFEST_FILE} and {GUIDE_FILE} what it is for; `steward wiki validate {name} --accept` puts that in force.",
            folder.display()
        )
    })?;
    Ok(match output {
        WikiRunOutput::Done { .. } => CommandExit::Ok,
        WikiRunOutput::Refused { .. } => CommandExit::Refused,
    })
}

/// A path as it was given, or the folder of the wiki of the vault that is called so.
fn find_named(vault: Option<&Path>, path: PathBuf) -> PathBuf {
    let name = path.to_str().filter(|name| !path.exists() && is_slug(name));
    name.and_then(|name| find_wiki(vault, name).ok()).unwrap_or(path)
}

/// The folder of a wiki: that of a wiki of the vault, or a path.
fn find_wiki(vault: Option<&Path>, wiki: &str) -> anyhow::Result<PathBuf> {
    let path = Path::new(wiki);
    if wiki.contains('/') || wiki.starts_with('.') {
        return Ok(path.to_owned());
    }
    let config = StewardConfig::load(vault)?;
    let known = match config.vault_folder() {
        Ok(folder) => list_wikis(&VaultRoot::open(folder)?)?,
        Err(_) => Vec::new(),
    };
    if let Some((_, folder)) = known.iter().find(|(name, _)| name == wiki) {
        return Ok(folder.clone());
    }
    if path.is_dir() {
        return Ok(path.to_owned());
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    match names.as_slice() {
        [] => bail!("there is no folder `{wiki}`, and no vault with a wiki of that name: give a folder, or --vault"),
        names => bail!("there is no wiki `{wiki}`; the vault has {}", names.join(", ")),
    }
}

/// What a check found, as it is printed.
struct CheckReport {
    findings: Vec<WikiFinding>,
    /// How many files were looked at.
    checked: usize,
}

impl CheckReport {
    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Prints the findings, and returns the exit code that they mean.
    fn print(&self, out: CommandOutput) -> anyhow::Result<CommandExit> {
        let [errors, warnings, notes] = [Severity::Error, Severity::Warn, Severity::Info].map(|it| self.count(it));
        let value = json!({"checked": self.checked, "errors": errors, "warnings": warnings, "infos": notes, "findings": &self.findings});
        out.print_value(&value, || {
            let mut text: String = self.findings.iter().map(|finding| format!("{finding}\n")).collect();
            text.push_str(&format!(
                "{} checked: {}, {}, {}",
                count_noun(self.checked as u64, "file"),
                count_noun(errors as u64, "error"),
                count_noun(warnings as u64, "warning"),
                count_noun(notes as u64, "note")
            ));
            text
        })?;
        Ok(self.exit())
    }

    fn exit(&self) -> CommandExit {
        let is_refused = |finding: &WikiFinding| finding.code == FindingCode::KnowledgeAppliestoUnresolvable;
        match () {
            () if self.findings.iter().any(is_refused) => CommandExit::Refused,
            () if self.count(Severity::Error) > 0 => CommandExit::Faults,
            () => CommandExit::Ok,
        }
    }
}

/// The path of a file in a folder, as findings name it.
fn show_in(folder: &Path, file: &str) -> String {
    folder.join(file).display().to_string()
}

fn open_folder(folder: &Path) -> anyhow::Result<steward_vault::wiki::folder::WikiFolder> {
    let opened = steward_vault::wiki::folder::WikiFolder::open(folder);
    opened.with_context(|| format!("failed to open the folder {}", folder.display()))
}
