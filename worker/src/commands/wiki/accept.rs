//! `steward wiki validate --accept`: a person puts the files in force that say how a wiki is written.
//!
//! What changed since the last acceptance is shown first. The answer is read from the terminal, so a program that runs this
//! command cannot accept anything.

use super::requests::{accept_files, print_outcome};
use super::{OpenedWikis, open_vault, show_changed_lines};
use crate::cli::output::{CommandExit, CommandOutput, prompt_yes_no};
use std::path::Path;
use steward_vault::wiki::accept::{find_accepted, read_acceptable};
use steward_vault::wiki::create::list_wikis;

pub(super) async fn run(vault: Option<&Path>, folder: &Path, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let OpenedWikis { config, root } = open_vault(vault)?;
    let real = folder.canonicalize()?;
    let Some((wiki, _)) = list_wikis(&root)?.into_iter().find(|(_, known)| *known == real) else {
        eprintln!(
            "error: {} is not a wiki of the vault {}: --accept needs one",
            folder.display(),
            root.path().display()
        );
        return Ok(CommandExit::Usage);
    };
    let relative = real.strip_prefix(root.path())?.to_string_lossy().into_owned();
    let files = read_acceptable(&root, &relative)?;
    let accepted = find_accepted(&root, &wiki)?;
    let mut changed = String::new();
    for file in &files {
        let known = accepted.as_ref().and_then(|accepted| accepted.files.get(file.file));
        if known != Some(&file.text) {
            let lines = show_changed_lines(known.map_or("", String::as_str), &file.text);
            changed.push_str(&format!("{}\n{lines}", file.file));
        }
    }
    let is_gone = |name: &&String| files.iter().all(|file| file.file != **name);
    for name in accepted.iter().flat_map(|accepted| accepted.files.keys()).filter(is_gone) {
        changed.push_str(&format!("{name}: removed\n"));
    }
    if changed.is_empty() {
        out.print_text(&format!("{wiki}: its files are in force as they are"))?;
        return Ok(CommandExit::Ok);
    }
    out.print_text(&changed)?;
    if !prompt_yes_no("Put these files in force?") {
        out.print_text(&format!(
            "{wiki}: nothing was accepted. Answer `y` in a terminal: `steward wiki validate {wiki} --accept`"
        ))?;
        return Ok(CommandExit::Refused);
    }
    print_outcome(&accept_files(&config, &wiki, &files).await?, &format!("{wiki}: its files are in force"), out)
}
