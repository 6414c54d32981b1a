//! The commands `steward index rebuild|check`: compare the index with the files, or rebuild it from them.
//!
//! The files are the truth: a difference is corrected in the index and never in the files. Neither command touches the
//! journal or the rate guard's ledger, because those cannot be derived from the files.

use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::config::StewardConfig;
use crate::runtime::reading_progress::show_index_progress;
use chrono::Utc;
use steward_domain::record::plain_text::count_noun;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;

pub(crate) async fn run(
    config: &StewardConfig,
    command: &cli::IndexCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    match command {
        cli::IndexCommand::Rebuild => {
            let root = VaultRoot::open(config.vault_folder()?)?;
            let schema = config.mapping.note_schema()?;
            let (index, quarantined) = Index::open_or_recreate(&config.state_dir()?).await?;
            let index = index.with_schema(schema, config.mapping.list_accepted());
            let report = show_index_progress(&index, index.rebuild(&root, Utc::now())).await?;
            if let Some(path) = quarantined {
                out.print_text(&format!("The old index could not be used. It was moved to {}.", path.display()))?;
            }
            out.print_value(&report, || {
                format!(
                    "{} read, {}",
                    count_noun(report.read as u64, "file"),
                    count_noun(report.problems.len() as u64, "problem")
                )
            })?;
            Ok(CommandExit::Ok)
        }
        cli::IndexCommand::Check => {
            let vault = super::open_read_only(config).await?;
            let differences = vault.index.compare_with_files(&vault.root).await?;
            out.print_value(&differences, || {
                if differences.is_empty() {
                    return "the index agrees with every file".into();
                }
                let lines: Vec<String> = differences.iter().map(|d| escape_text(&d.to_string())).collect();
                format!("{}\nfix: steward index rebuild", lines.join("\n"))
            })?;
            Ok(if differences.is_empty() { CommandExit::Ok } else { CommandExit::Faults })
        }
    }
}
