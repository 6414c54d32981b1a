//! The cases of a measurement: those of the program, of a folder, or of the records of the vault.
//!
//! Nothing is asked here. A file that cannot be used is named with its line, and nothing of it is taken.

use crate::cli::clerk::EvalArgs;
use crate::cli::output::CommandError;
use crate::config::StewardConfig;
use anyhow::Context;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::record::path::RecordPath;
use steward_domain::steward::eval::cases::{EvalCase, MAX_FILE_BYTES, read_cases, read_shipped_cases};
use steward_domain::steward::eval::records::make_case;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{ActionFilter, Index};
use steward_vault::wiki::folder::read_bounded;

/// The most cases that are made of records, the newest first.
const MAX_RECORDS: usize = 1_000;
/// How many actions are listed at once.
const PAGE: u32 = 200;

pub(super) async fn choose_cases(config: &StewardConfig, eval: &EvalArgs) -> anyhow::Result<Vec<EvalCase>> {
    let cases = match &eval.cases {
        Some(folder) => read_folder(folder)?,
        None if eval.from_records => read_records(config).await?,
        None => read_shipped_cases()?,
    };
    let mut seen = BTreeSet::new();
    if let Some(twice) = cases.iter().find(|case| !seen.insert(case.id.as_str())) {
        let message = format!("the case `{}` is in two files: each case has an id of its own", twice.id);
        return Err(CommandError::Usage(message).into());
    }
    match cases.is_empty() {
        true if eval.from_records => {
            let message = "nobody has answered a proposal of this vault yet, so there is nothing to measure by";
            Err(CommandError::Refused(message.to_owned()).into())
        }
        true => Err(CommandError::Usage("the folder has no file that ends in .yaml".to_owned()).into()),
        false => Ok(cases),
    }
}

/// Reads the YAML files of a folder, in the order of their names. Each is a group.
fn read_folder(folder: &Path) -> anyhow::Result<Vec<EvalCase>> {
    let listed = std::fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
    let mut files: Vec<PathBuf> = listed.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|end| end == "yaml" || end == "yml"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let bytes =
            read_bounded(&file, MAX_FILE_BYTES).with_context(|| format!("failed to read {}", file.display()))?;
        let text = String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8 text", file.display()))?;
        let group = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let read = read_cases(&file.display().to_string(), &group, &text);
        cases.extend(read.map_err(|e| CommandError::Usage(e.to_string()))?);
    }
    Ok(cases)
}

/// Makes cases of the newest proposals that a person confirmed, dismissed, undid, or called right or wrong.
async fn read_records(config: &StewardConfig) -> anyhow::Result<Vec<EvalCase>> {
    let root = VaultRoot::open(config.vault_folder()?)?;
    let index = Index::open(&config.state_dir()?).await.context("failed to open the index: start `steward up` once")?;
    let filter = ActionFilter { kinds: vec![ActionKind::Action], ..ActionFilter::default() };
    let (mut cases, mut before) = (Vec::new(), None);
    loop {
        let page = index.actions().actions_page(&filter, before.as_ref(), PAGE).await?;
        for row in page.rows {
            let (Some(kind), Some(resolution)) = (row.resolution, row.resolved_by) else { continue };
            let Some(is_right) = find_answer(kind) else { continue };
            let resolution = index.actions().find_action(resolution.as_str()).await?;
            let answer = match resolution {
                steward_vault::index::ActionLookup::One(path) => read_record(&root, &path),
                _ => None,
            };
            let is_persons = answer
                .and_then(|answer| answer.draft.resolution)
                .is_some_and(|it| it.resolved_by.is_human() && !it.edited);
            if is_persons && let Some(record) = read_record(&root, &row.path) {
                cases.extend(make_case(&record, is_right));
            }
            if cases.len() >= MAX_RECORDS {
                return Ok(cases);
            }
        }
        before = page.next;
        if before.is_none() {
            return Ok(cases);
        }
    }
}

/// Whether an answer says that a proposal was right; `None` if it says nothing about that.
fn find_answer(kind: ActionKind) -> Option<bool> {
    match kind {
        ActionKind::Confirmed | ActionKind::Right | ActionKind::DoneAnyway => Some(true),
        ActionKind::Dismissed | ActionKind::Reversed | ActionKind::Wrong => Some(false),
        _ => None,
    }
}

fn read_record(root: &VaultRoot, path: &RecordPath) -> Option<AuditRecord> {
    AuditRecord::parse(&root.read_file(path).ok()?.bytes).ok()
}
