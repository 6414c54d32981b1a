//! `steward wiki grep`: finds lines by a regular expression, in pages and sources.
//!
//! It reads the files of any folder and changes nothing.

use super::{OpenedWiki, open_folder};
use crate::cli::output::{CommandError, CommandExit, CommandOutput, escape_text};
use anyhow::bail;
use std::time::Instant;
use steward_domain::record::plain_text::count_noun;
use steward_domain::wiki::grep::{LinePattern, PathGlob, PatternError};
use steward_vault::wiki::grep::{GrepHit, GrepOutcome, GrepRequest, MAX_GREP_TIME, grep_wiki};

/// The arguments of the command.
pub(super) struct GrepArguments {
    pub(super) pattern: String,
    pub(super) path: Option<String>,
    pub(super) fixed: bool,
    pub(super) ignore_case: bool,
    pub(super) context: usize,
    pub(super) limit: usize,
}

pub(super) fn run(wiki: &OpenedWiki, arguments: GrepArguments, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let usage =
        |what: &str, error: PatternError| CommandError::Usage(format!("{what}: {}", escape_text(&error.to_string())));
    let GrepArguments { pattern, path, fixed, ignore_case, context, limit } = arguments;
    let pattern = match LinePattern::new(&pattern, fixed, ignore_case) {
        Ok(pattern) => pattern,
        Err(e) => bail!(usage("PATTERN", e)),
    };
    let path = match path.as_deref().map(PathGlob::new).transpose() {
        Ok(path) => path,
        Err(e) => bail!(usage("--path", e)),
    };
    let folder = open_folder(&wiki.folder)?;
    let mut files = folder.list_all_files();
    files.retain(|file| path.as_ref().is_none_or(|path| path.matches(file)));
    let request = GrepRequest { pattern, context, limit, after: None };
    let outcome = grep_wiki(&folder, files, &request, Instant::now() + MAX_GREP_TIME);
    out.print_value(&outcome, || describe(&outcome, context > 0))?;
    Ok(CommandExit::Ok)
}

fn describe(outcome: &GrepOutcome, with_context: bool) -> String {
    let searched = count_noun(outcome.files as u64, "file");
    if outcome.hits.is_empty() && !outcome.is_cut {
        return format!("No line of {searched} matches.");
    }
    let between = if with_context { "\n--\n" } else { "\n" };
    let mut text = outcome.hits.iter().map(describe_hit).collect::<Vec<_>>().join(between);
    if outcome.is_cut {
        text.push_str(&format!("\nThere may be more: narrow it with --path, or raise --limit ({searched} searched)."));
    }
    text
}

/// The lines of a hit as `grep` prints them: `:` after the number of the line that matches, `-` after those around it.
fn describe_hit(GrepHit { path, hit }: &GrepHit) -> String {
    let first = hit.line - hit.before.len();
    let lines = hit.before.iter().chain([&hit.text]).chain(&hit.after);
    let show = |(number, line): (usize, &String)| {
        let sign = if number == hit.line { ':' } else { '-' };
        format!("{}{sign}{number}{sign} {}", escape_text(path), escape_text(line))
    };
    lines.enumerate().map(|(at, line)| show((first + at, line))).collect::<Vec<_>>().join("\n")
}
