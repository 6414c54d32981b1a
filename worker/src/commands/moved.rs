//! The command `steward moved`: says where a note is that was renamed, or that it was deleted.
//!
//! Most renames are noticed without it. It lists the notes that were not found again. It changes no note: the process
//! that holds the vault records what the person said, and everything that is kept about the note follows.

use crate::cli::MovedArgs;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::config::StewardConfig;
use crate::runtime::engine::OpenedVault;
use anyhow::bail;
use serde_json::json;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::time::format_seconds;
use steward_server::views::parse_typed_path;
use steward_vault::action::writer::VaultWriter;
use steward_vault::index::{Index, LostNote};

pub(crate) async fn run(config: &StewardConfig, moved: &MovedArgs, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let (root, index) = super::open_vault(config).await?;
    super::settle_moves_if_unserved(config, &root, &index).await?;
    let lost = index.list_lost_notes().await?;
    let Some(old) = &moved.old else {
        out.print_value(&lost, || describe_lost(&lost))?;
        return Ok(CommandExit::Ok);
    };
    let old = parse_typed_path(old)?;
    if moved.deleted {
        if !index.forget_lost_note(&old).await? {
            bail!("{old}: Steward misses no such note: `steward moved` lists those that are gone");
        }
        let text = || format!("{old} counts as deleted; a note that comes is a new one");
        out.print_value(&json!({"old": &old, "deleted": true}), text)?;
        return Ok(CommandExit::Ok);
    }
    let Some(new) = &moved.new else {
        bail!("give the note's new path as well, or `--deleted`");
    };
    let new = find_note(&index, new).await?;
    index.say_moved(&root, &old, &new, &config.operator).await??;
    if VaultWriter::is_locked(&root) {
        if !index.wait_for_said_move(&old).await? {
            bail!(
                "{old}: the process that holds the vault has not recorded yet that it is {new}; it will with its next scan"
            );
        }
    } else {
        // Opening the vault records it.
        OpenedVault::open(config).await?;
    }
    let left = index.count_tasks_linking_to(&old).await?;
    let text = || {
        let links = match left {
            0 => String::new(),
            left => format!("\ntasks that still link to the old name: {left}; change their links to the new one"),
        };
        format!("{old} is {new} now; what Steward keeps about it follows{links}")
    };
    out.print_value(&json!({"old": &old, "new": &new, "old_links": left}), text)?;
    Ok(CommandExit::Ok)
}

/// A note by its path or, as in a link, by its name alone.
async fn find_note(index: &Index, typed: &str) -> anyhow::Result<RecordPath> {
    let path = parse_typed_path(typed)?;
    if index.is_known_note(&path).await? {
        return Ok(path);
    }
    Ok(index.read_note_names().await?.resolve(RecordKind::Matter, typed, &path).unwrap_or(path))
}

/// The notes that are gone, and what could be each.
pub(crate) fn describe_lost(lost: &[LostNote]) -> String {
    if lost.is_empty() {
        return "no note is missed".into();
    }
    lost.iter().map(describe_lost_note).collect::<Vec<_>>().join("\n")
}

/// One note that is gone, and what to do about it.
pub(crate) fn describe_lost_note(note: &LostNote) -> String {
    let since = note.gone_at.map(|at| format!(" since {}", format_seconds(at))).unwrap_or_default();
    let could = match note.candidates.as_slice() {
        [] => "no note looks like it".to_owned(),
        some => {
            let some: Vec<String> = some.iter().map(|path| format!("`{}`", escape_text(path))).collect();
            format!("it could be {}, so Steward only asks there", some.join(" or "))
        }
    };
    let quoted = steward_server::views::quote_argument(&note.path);
    format!(
        "{} is gone{since}; {could}. Say it with `steward moved {quoted} <new path>` or `steward moved --deleted {quoted}`",
        escape_text(&note.path)
    )
}
