//! The commands `steward completions` and `steward man`: what shells and `man` read about the command line.
//!
//! Both are made of the declarations in `cli`. No vault is opened.

use crate::cli::Cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;

/// Prints the script that completes commands and options in this shell.
pub(crate) fn print_completions(shell: Shell) -> anyhow::Result<CommandExit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "steward", &mut script);
    match io::stdout().lock().write_all(&script) {
        // A reader that went away is not an error.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(CommandExit::Ok),
        other => other.map(|()| CommandExit::Ok).context("failed to write to standard output"),
    }
}

/// Writes a man page for every command into this folder.
pub(crate) fn write_man_pages(folder: &Path, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let name = folder.display().to_string();
    std::fs::create_dir_all(folder).with_context(|| format!("the folder {name} cannot be made"))?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(|| format!("{name} cannot be written"))?;
    out.print_value(&json!({ "folder": name }), || format!("wrote the man pages into {}", escape_text(&name)))?;
    Ok(CommandExit::Ok)
}
