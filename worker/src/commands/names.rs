//! Finds tasks and matters by the names that people give: a name, a path, a link or a title.
//!
//! A name comes before a title. The index alone is read, and nothing is guessed: what is only alike is named in the error.

use crate::cli::alike::find_alike;
use crate::cli::output::{CommandError, escape_text};
use anyhow::{Context, bail};
use steward_domain::record::path::{RecordKind, RecordPath, parse_link};
use steward_vault::index::{Index, RecordTitle, SubjectRow};

/// The most notes that an error names.
const MAX_NAMED: usize = 5;
/// The fewest digits of an action's id.
const MIN_DIGITS: usize = 4;

/// Reads a matter as a person names it: by its path, its link or its slug.
pub(crate) fn parse_matter(text: &str) -> anyhow::Result<RecordPath> {
    let bare = text.trim().trim_start_matches("[[").trim_end_matches("]]");
    let folder = bare.split_once('/').map_or("matter", |(folder, _)| folder);
    if folder != "matter" && RecordKind::ALL.iter().any(|kind| kind.folder() == folder) {
        bail!("`{}` is in {folder}/ and not a matter: give `matter/<slug>.md` or the slug", text.escape_debug());
    }
    parse_link(RecordKind::Matter, text)
        .with_context(|| format!("failed to read `{}` as a matter", text.escape_debug()))
}

/// Finds a matter by its name in any case, by its path, its link or its title. What fits no single matter stays the path
/// that it spells.
pub(crate) async fn find_matter(index: &Index, text: &str) -> anyhow::Result<RecordPath> {
    let spelled = parse_matter(text)?;
    let path = index.resolve_link(RecordKind::Matter, text, &spelled).await?.unwrap_or(spelled);
    if text.contains('/') || index.read().find_subject(&path).await?.is_some() {
        return Ok(path);
    }
    let titles = index.read().list_record_titles().await?;
    let found = select_by_title(&titles, Some(RecordKind::Matter), text);
    Ok(if let [one] = found.as_slice() { one.path.clone() } else { path })
}

/// The path that a text spells, and the note there. A bare name is a task's, or else a matter's.
pub(super) async fn find_by_name(index: &Index, text: &str) -> anyhow::Result<(RecordPath, Option<SubjectRow>)> {
    let spelled = parse_record(text)?;
    let kind = spelled.folder_kind().unwrap_or(RecordKind::Task);
    let path = index.resolve_link(kind, text, &spelled).await?.unwrap_or(spelled);
    let found = index.read().find_subject(&path).await?;
    if found.is_none() && !text.contains('/') {
        let spelled = parse_matter(text)?;
        let matter = index.resolve_link(RecordKind::Matter, text, &spelled).await?.unwrap_or(spelled);
        if let Some(subject) = index.read().find_subject(&matter).await? {
            return Ok((matter, Some(subject)));
        }
    }
    Ok((path, found))
}

/// Reads a task or matter as a person names it; a bare name is that of a task.
fn parse_record(text: &str) -> anyhow::Result<RecordPath> {
    let kind = if text.contains("matter/") { RecordKind::Matter } else { RecordKind::Task };
    parse_link(kind, text).with_context(|| format!("failed to read `{}` as a task or matter", text.escape_debug()))
}

/// Whether a text has the form of an action's id or of its beginning.
pub(super) fn is_id(text: &str) -> bool {
    (MIN_DIGITS..=16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// The only note with this title, or else the only one in whose title or name the text stands. `kind` is `None` for both
/// kinds.
///
/// # Errors
/// No note or several are meant. The message names what is like it.
pub(super) async fn find_by_title(index: &Index, kind: Option<RecordKind>, text: &str) -> anyhow::Result<RecordPath> {
    let titles = index.read().list_record_titles().await?;
    match select_by_title(&titles, kind, text).as_slice() {
        [one] => Ok(one.path.clone()),
        [] => Err(CommandError::Usage(describe_unknown(text, kind, &titles)).into()),
        several => {
            let named =
                several.iter().take(MAX_NAMED).map(|note| format!("{} ({})", note.path, escape_text(&note.title)));
            let named: Vec<String> = named.collect();
            let more = if several.len() > MAX_NAMED {
                format!(" and {} more", several.len() - MAX_NAMED)
            } else {
                String::new()
            };
            let shown = escape_text(text);
            let message = format!("`{shown}` may be {}{more}: give the whole path", named.join(", "));
            Err(CommandError::Usage(message).into())
        }
    }
}

/// The notes with this title, or else those in whose title or name all its words stand.
fn select_by_title<'a>(titles: &'a [RecordTitle], kind: Option<RecordKind>, text: &str) -> Vec<&'a RecordTitle> {
    let wanted = text.trim().to_lowercase();
    let words: Vec<&str> = wanted.split_whitespace().collect();
    let of_kind = || titles.iter().filter(|note| kind.is_none_or(|kind| kind == note.kind));
    let called: Vec<_> = of_kind().filter(|note| note.title.to_lowercase() == wanted).collect();
    if !called.is_empty() || words.is_empty() {
        return called;
    }
    let holds = |note: &&RecordTitle| {
        let (title, name) = (note.title.to_lowercase(), note.path.slug().to_lowercase());
        words.iter().all(|word| title.contains(word) || name.contains(word))
    };
    of_kind().filter(holds).collect()
}

/// What to do about a text that nothing is called.
fn describe_unknown(text: &str, kind: Option<RecordKind>, titles: &[RecordTitle]) -> String {
    let shown = escape_text(text);
    let (what, list) = match kind {
        Some(RecordKind::Matter) => ("matter", "`steward schedules list` shows the matters"),
        Some(_) => ("task", "`steward audit list` shows what was decided"),
        None => ("task, matter or action", "`steward audit list` shows actions with their ids"),
    };
    let (_, name) = text.rsplit_once('/').unwrap_or(("", text));
    let name = name.strip_suffix(".md").unwrap_or(name).to_lowercase();
    let of_kind = titles.iter().filter(|note| kind.is_none_or(|kind| kind == note.kind));
    let names = of_kind.flat_map(|note| [note.path.slug().to_owned(), note.title.to_lowercase()]);
    match find_alike(&name, names).filter(|_| !is_id(text)) {
        Some(meant) => format!("no {what} is called `{shown}`; did you mean `{}`?", escape_text(&meant)),
        None => format!("no {what} is called `{shown}`: {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_named_as_people_do_and_a_matter_by_its_folder() {
        for (text, path) in [
            ("pay", "task/pay.md"),
            ("task/pay.md", "task/pay.md"),
            ("[[task/pay]]", "task/pay.md"),
            ("matter/m", "matter/m.md"),
        ] {
            assert_eq!(parse_record(text).unwrap().as_str(), path);
        }
        assert!(parse_record("../x").is_err());
    }

    #[test]
    fn the_beginning_of_an_id_is_told_from_a_name() {
        for (text, expected) in
            [("3f9a", true), ("3f9a1c22b07d4e51", true), ("3f9", false), ("pay-rent", false), ("FACE", false)]
        {
            assert_eq!(is_id(text), expected, "{text}");
        }
    }

    #[test]
    fn a_record_of_another_kind_is_refused_as_not_a_matter() {
        for text in ["task/foo.md", "task/foo", "[[task/foo]]", "signal/x.md"] {
            let message = format!("{:#}", parse_matter(text).unwrap_err());
            assert!(message.contains("not a matter") && !message.contains("rename"), "{message}");
        }
        for text in ["matter/foo.md", "foo", "[[matter/foo]]"] {
            assert_eq!(parse_matter(text).unwrap().as_str(), "matter/foo.md");
        }
    }
}
