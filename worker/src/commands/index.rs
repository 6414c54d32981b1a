//! `steward index rebuild|check`: the index against the files.

use crate::cli;
use crate::config::Config;
use crate::out::{Exit, Out, shown};
use chrono::Utc;

pub(crate) async fn run(config: &Config, what: &cli::Index, out: Out) -> anyhow::Result<Exit> {
    match what {
        cli::Index::Rebuild => {
            let (root, index) = super::look(config).await?;
            let report = index.rebuild(&root, Utc::now()).await?;
            out.value(&report, || format!("{} files read, {} problems", report.read, report.problems.len()))?;
            Ok(Exit::Ok)
        }
        cli::Index::Check => {
            let (root, index) = super::look(config).await?;
            let differences = index.check(&root).await?;
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
