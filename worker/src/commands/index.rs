//! `steward index rebuild|check`: the index against the files.
//!
//! The files are the truth: a difference is mended in the index, never in them. Neither of the two
//! touches the journal or the rate guard's ledger, which cannot be derived.

use crate::cli;
use crate::config::Config;
use crate::out::{Exit, Out, shown};
use crate::reading::watched;
use chrono::Utc;
use steward_vault::index::Index;
use steward_vault::root::VaultRoot;

pub(crate) async fn run(config: &Config, what: &cli::Index, out: Out) -> anyhow::Result<Exit> {
    match what {
        cli::Index::Rebuild => {
            let root = VaultRoot::open(config.vault()?)?;
            let (index, aside) = Index::open_or_recreate(&config.state_dir()?).await?;
            let report = watched(&index, index.rebuild(&root, Utc::now())).await?;
            if let Some(aside) = aside {
                out.say(&format!("the old index could not be used; it lies in {}", aside.display()))?;
            }
            out.value(&report, || format!("{} files read, {} problems", report.read, report.problems.len()))?;
            Ok(Exit::Ok)
        }
        cli::Index::Check => {
            let look = super::look(config).await?;
            let differences = look.index.compare_with_files(&look.root).await?;
            out.value(&differences, || {
                if differences.is_empty() {
                    return "the index agrees with every file".into();
                }
                let lines: Vec<String> = differences.iter().map(|d| shown(&d.to_string())).collect();
                format!("{}\nmend: steward index rebuild", lines.join("\n"))
            })?;
            Ok(if differences.is_empty() { Exit::Ok } else { Exit::Faults })
        }
    }
}
