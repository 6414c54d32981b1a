//! `read`: the text of files, of parts of them, and of documents that are no text themselves.
//!
//! Each file has a line with its path, hash and size, and then its words in a fence. What exceeds the tokens that were asked for is left out, and
//! the line says where it goes on.

mod images;

use super::write::{RunChoice, open_run, refuse_change};
use crate::mcp::error::{ToolError, ToolErrorCode, shorten_outside};
use crate::mcp::headings::{Heading, list_headings};
use crate::mcp::paths::{to_file, to_path};
use crate::mcp::schema::describe_arguments;
use crate::mcp::tokens::cut_to_tokens;
use crate::mcp::tool::{AnswerImage, ToolAnswer, ToolCall, ToolDefinition, ToolKind, check_range};
use crate::mcp::workspace::{Workspace, read_glob};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use std::collections::BTreeMap;
use steward_domain::wiki::MAX_SOURCE_BYTES;
use steward_domain::wiki::registry::hash_content;
use steward_domain::wiki::source_text::find_format;
use steward_vault::wiki::folder::ReadFault;
use steward_vault::wiki::quotes::read_text;

/// The most files of one call.
const MAX_FILES: usize = 20;
/// The least tokens of a file, so that its first lines are seen.
const LEAST_TOKENS: u64 = 100;
const MAX_TOKENS: u64 = 20_000;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "read",
    title: "Read files",
    description: "Reads pages and documents as text; of PDF and HTML the text that was taken out of them. Give `path` (a file or a glob) or `paths`. \
        Example: read(path=\"raw/rfc-34.pdf\", pages=\"2-3\")",
    kind: ToolKind::READ_WIKI,
    arguments: describe_arguments::<ReadArguments>,
    result: None,
    run: read,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    /// A path, or a glob of at most 20 files.
    #[schemars(length(max = 512))]
    path: Option<String>,
    /// Several paths.
    #[serde(default)]
    #[schemars(length(max = 20), inner(length(max = 512)))]
    paths: Vec<String>,
    /// Pages of a PDF, such as `1-3,7`.
    #[schemars(length(max = 80))]
    pages: Option<String>,
    /// The section below this heading alone.
    #[schemars(length(max = 200))]
    section: Option<String>,
    /// Where to begin, in bytes of the text, as an earlier answer says.
    #[serde(default)]
    #[schemars(range(max = 33_554_432))]
    offset: u64,
    /// The most tokens of all files together.
    #[serde(default = "default_tokens")]
    #[schemars(range(min = 100, max = 20_000))]
    max_tokens: u64,
    /// Your own open run: what it staged stands in place of the pages.
    #[schemars(length(max = 40))]
    run_id: Option<String>,
    /// Show PNG, JPEG, GIF and WebP files as images: at most 4, of 1 MiB each.
    #[serde(default)]
    images: bool,
}

fn default_tokens() -> u64 {
    6_000
}

/// The text of a file.
struct FileText {
    path: String,
    /// Of the file's own bytes.
    sha256: String,
    bytes: usize,
    text: String,
    /// Whether it is what a run staged.
    is_staged: bool,
}

/// What a run of the caller staged, by file; `None` for a page that it removes.
type StagedTexts = BTreeMap<String, Option<String>>;

fn read(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<ReadArguments>()?;
    let max_tokens = check_range("max_tokens", arguments.max_tokens, LEAST_TOKENS, MAX_TOKENS)?;
    let offset = check_range("offset", arguments.offset, 0, MAX_SOURCE_BYTES as u64)?;
    let staged = arguments.run_id.as_deref().map(|run| read_staged(call, &workspace, run)).transpose()?;
    let staged = staged.unwrap_or_default();
    let files = choose_files(&workspace, &arguments, &staged)?;
    let share = max_tokens / files.len().max(1);
    let render = |file: &String| -> Result<String, ToolError> {
        let file = match staged.get(file) {
            Some(text) => describe_staged(file, text.as_deref())?,
            None => read_file(&workspace, file)?,
        };
        let mut text = file.text.as_str();
        if let Some(pages) = &arguments.pages {
            return Ok(render_file(&workspace, &file, &choose_pages(text, pages)?, offset, share));
        }
        if let Some(section) = &arguments.section {
            text = find_section(text, section)?;
        }
        Ok(render_file(&workspace, &file, text, offset, share))
    };
    let mut images: Vec<AnswerImage> = Vec::new();
    let mut show = |file: &String| -> Result<String, ToolError> {
        let image = if arguments.images { images::read_image(&workspace, file, images.len())? } else { None };
        match image {
            Some((line, image)) => {
                images.push(image);
                Ok(line)
            }
            None => render(file),
        }
    };
    // Of several files each has its own answer.
    let is_single = files.len() == 1;
    let mut blocks: Vec<String> = Vec::new();
    for file in &files {
        blocks.push(match show(file) {
            Err(error) if !is_single => {
                let path = to_path(file).as_deref().map(shorten_outside).unwrap_or_default();
                format!("{path}: {}", error.render(&call.vault.fences))
            }
            shown => shown?,
        });
    }
    Ok(if images.is_empty() { ToolAnswer::Text(blocks) } else { ToolAnswer::TextWithImages { blocks, images } })
}

/// The pages that an open run of the caller staged.
fn read_staged(call: &ToolCall, workspace: &Workspace<'_>, run: &str) -> Result<StagedTexts, ToolError> {
    let choice = RunChoice { run: Some(run), run_type: None, source: None };
    let (session, _) = open_run(call, workspace, &choice)?;
    let pages = session.list_pages().map_err(refuse_change)?;
    Ok(pages.into_iter().map(|page| (page.file, page.after)).collect())
}

fn describe_staged(file: &str, text: Option<&str>) -> Result<FileText, ToolError> {
    let path = to_path(file).unwrap_or_default();
    let Some(text) = text else {
        let what = format!("the run removes `{}`", shorten_outside(&path));
        return Err(ToolError::new(ToolErrorCode::NotFound, what, "Read it without `run_id` as it is now"));
    };
    let sha256 = hash_content(text.as_bytes()).replacen("sha256:", "", 1);
    Ok(FileText { path, sha256, bytes: text.len(), text: text.to_owned(), is_staged: true })
}

fn choose_files(
    workspace: &Workspace<'_>,
    arguments: &ReadArguments,
    staged: &StagedTexts,
) -> Result<Vec<String>, ToolError> {
    // A page that only the run has cannot be found in the wiki.
    let find = |path: &String| match to_file(path) {
        Ok(file) if staged.contains_key(&file) => Ok(file),
        _ => workspace.find_file(path),
    };
    let bad =
        |what: &str| ToolError::new(ToolErrorCode::BadArguments, what, "Give `path` or `paths`, at most 20 files");
    match (&arguments.path, arguments.paths.as_slice()) {
        (Some(_), [_, ..]) => Err(bad("both `path` and `paths` are given")),
        (None, []) => Err(bad("no file is named")),
        (None, paths) if paths.len() > MAX_FILES => Err(bad("more than 20 files are named")),
        (None, paths) => paths.iter().map(find).collect(),
        (Some(glob), []) if glob.contains(['*', '?']) => {
            let mut found: Vec<String> =
                workspace.list_matching(glob)?.into_iter().map(|file| file.file.path).collect();
            let pattern = read_glob(glob)?;
            let is_meant = |file: &str| to_path(file).is_some_and(|path| pattern.matches(&path));
            found.retain(|file| staged.get(file).is_none_or(Option::is_some));
            found.extend(
                staged.iter().filter(|(file, text)| text.is_some() && is_meant(file)).map(|(file, _)| file.clone()),
            );
            found.sort();
            found.dedup();
            match found.len() {
                0 => Err(ToolError::new(ToolErrorCode::NotFound, "the glob means no file", "`list` shows all paths")),
                count if count > MAX_FILES => Err(bad(&format!("the glob means {count} files"))),
                _ => Ok(found),
            }
        }
        (Some(path), []) => Ok(vec![find(path)?]),
    }
}

/// Reads a file; of a document that is no text itself the text that was taken out of it.
fn read_file(workspace: &Workspace<'_>, file: &str) -> Result<FileText, ToolError> {
    let path = to_path(file).unwrap_or_default();
    let shown = shorten_outside(&path);
    let refuse = |code, what: String, fix: &str| ToolError::new(code, what, fix);
    let bytes = workspace.folder.read_bytes(file, MAX_SOURCE_BYTES).map_err(|fault| match fault {
        ReadFault::Io(e) if e.kind() == std::io::ErrorKind::NotFound => {
            refuse(ToolErrorCode::NotFound, format!("there is no file `{shown}` any more"), "`list` shows all paths")
        }
        fault => refuse(ToolErrorCode::NotText, format!("`{shown}` cannot be read: {fault}"), "Read another file"),
    })?;
    let (sha256, size) = (hash_content(&bytes).replacen("sha256:", "", 1), bytes.len());
    let sources = match path.starts_with("raw/") {
        true => workspace.folder.read_some(&[]).sources,
        false => Default::default(),
    };
    if let Some(source) = sources.values().find(|source| source.path == file && source.text_file.is_some()) {
        let text = read_text(&workspace.folder, source).map_err(|fault| {
            refuse(
                ToolErrorCode::NotText,
                format!("the text of `{shown}` cannot be read: {}", fault.problem),
                "`steward wiki lint` says more",
            )
        })?;
        return Ok(FileText { path, sha256, bytes: size, text: text.as_str().to_owned(), is_staged: false });
    }
    if images::find_format(&bytes).is_some() {
        let what = format!("`{shown}` is an image");
        return Err(refuse(ToolErrorCode::NotText, what, "Read it with `images`"));
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(FileText { path, sha256, bytes: size, text, is_staged: false }),
        _ if find_format(file).is_some_and(|format| format.needs_reader()) => Err(refuse(
            ToolErrorCode::TextPending,
            format!("the text of `{shown}` was not read yet"),
            "It is read when a person adds it by `steward wiki ingest`",
        )),
        _ => Err(refuse(ToolErrorCode::NotText, format!("`{shown}` is no text"), "Read another file")),
    }
}

/// One file: a line about it, and its words in a fence.
fn render_file(workspace: &Workspace<'_>, file: &FileText, text: &str, offset: usize, tokens: usize) -> String {
    let begin = (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let rest = &text[begin..];
    let cut = cut_to_tokens(rest, tokens);
    let path = shorten_outside(&file.path);
    let next = match cut.len() < rest.len() {
        true => format!(", goes on at offset {}", begin + cut.len()),
        false => String::new(),
    };
    let state = if file.is_staged { "staged" } else { "live" };
    format!(
        "{path}: sha256 {}, {} bytes, {state}{next}\n{}",
        file.sha256,
        file.bytes,
        workspace.vault.fences.wrap(&path, cut)
    )
}

/// The pages of a text that form feeds divide.
fn choose_pages(text: &str, wanted: &str) -> Result<String, ToolError> {
    let pages: Vec<&str> = text.split('\u{c}').collect();
    let refuse = |what: String| {
        Err(ToolError::new(ToolErrorCode::NoPages, what, format!("The text has {} pages; use 1-3,7", pages.len())))
    };
    if pages.len() == 1 {
        return refuse("the text has no pages".to_owned());
    }
    let mut chosen: Vec<&str> = Vec::new();
    for range in wanted.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>()) else {
            return refuse(format!("`{}` is no range of pages", shorten_outside(range)));
        };
        if first == 0 || first > last || last > pages.len() {
            return refuse(format!("there are no pages {first}-{last}"));
        }
        chosen.extend(&pages[first - 1..last]);
    }
    Ok(chosen.join("\n"))
}

/// The part of a Markdown text from a heading to the next one of its level or above.
fn find_section<'t>(text: &'t str, heading: &str) -> Result<&'t str, ToolError> {
    let wanted = heading.trim().trim_start_matches('#').trim().to_lowercase();
    let headings = list_headings(text);
    let mut from = headings.iter().skip_while(|heading| heading.name.to_lowercase() != wanted);
    if let Some(Heading { at, level, .. }) = from.next() {
        let end = from.find(|heading| heading.level <= *level).map_or(text.len(), |heading| heading.at);
        return Ok(&text[*at..end]);
    }
    let names: Vec<String> = headings.iter().take(10).map(|heading| shorten_outside(heading.name)).collect();
    let fix = match names.is_empty() {
        true => "It has no headings",
        false => "Name a heading of the text; its first ones are below",
    };
    let what = format!("there is no section `{}`", shorten_outside(heading));
    Err(ToolError::new(ToolErrorCode::NoSection, what, fix).with_outside("headings", &names.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::fence::FenceKey;

    #[test]
    fn a_section_ends_at_the_next_heading_of_its_level() {
        let text = "# Plot 12\n\nIntro.\n\n## Water\n\nA stopcock.\n\n### Winter\n\nClose it.\n\n```\n## Code\n```\n\n## Rent\n\n40 pounds.\n";
        assert_eq!(
            find_section(text, "water").unwrap(),
            "## Water\n\nA stopcock.\n\n### Winter\n\nClose it.\n\n```\n## Code\n```\n\n"
        );
        assert_eq!(find_section(text, "## Rent").unwrap(), "## Rent\n\n40 pounds.\n");
        assert_eq!(find_section(text, "Plot 12").unwrap(), text);
        let error = find_section(text, "Code").unwrap_err();
        assert!(error.to_string().contains("no_section") && !error.to_string().contains("Water"), "{error}");
        let shown = error.render(&FenceKey::new("secret"));
        assert!(shown.contains(" headings⟧\nPlot 12\nWater\nWinter\nRent\n⟦end "), "{shown}");
    }

    #[test]
    fn pages_are_chosen_by_ranges() {
        let text = "one\u{c}two\u{c}three\u{c}four";
        assert_eq!(choose_pages(text, "2-3").unwrap(), "two\nthree");
        assert_eq!(choose_pages(text, "4, 1").unwrap(), "four\none");
        for wrong in ["0", "5", "3-2", "x", "", "1-"] {
            assert!(choose_pages(text, wrong).is_err(), "{wrong}");
        }
        assert_eq!(choose_pages("no pages", "1").unwrap_err().code, ToolErrorCode::NoPages);
    }
}
