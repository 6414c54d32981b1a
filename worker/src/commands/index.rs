//! `steward index rebuild|check`: the index against the files.
//!
//! The files are the truth: a difference is mended in the index, never in them. Neither of the two
//! touches the journal or the rate guard's ledger, which cannot be derived.

use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::config::StewardConfig;
use crate::runtime::reading_progress::show_index_progress;
use chrono::Utc;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;

pub(crate) async fn run(
    config: &StewardConfig,
    what: &cli::IndexCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    match what {
        cli::IndexCommand::Rebuild => {
            let root = VaultRoot::open(config.vault_folder()?)?;
            let (index, aside) = Index::open_or_recreate(&config.state_dir()?).await?;
            let report = show_index_progress(&index, index.rebuild(&root, Utc::now())).await?;
            if let Some(aside) = aside {
                out.print_text(&format!("the old index could not be used; it lies in {}", aside.display()))?;
            }
            out.print_value(&report, || format!("{} files read, {} problems", report.read, report.problems.len()))?;
            Ok(CommandExit::Ok)
        }
        cli::IndexCommand::Check => {
            let look = super::open_read_only(config).await?;
            let differences = look.index.compare_with_files(&look.root).await?;
            out.print_value(&differences, || {
                if differences.is_empty() {
                    return "the index agrees with every file".into();
                }
                let lines: Vec<String> = differences.iter().map(|d| escape_text(&d.to_string())).collect();
                format!("{}\nmend: steward index rebuild", lines.join("\n"))
            })?;
            Ok(if differences.is_empty() { CommandExit::Ok } else { CommandExit::Faults })
        }
    }
}
