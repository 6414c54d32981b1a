//! Finds what `steward why` is asked about: a note by its name, path, link or title, or an action by its id.
//!
//! A name comes before an id, and an id before a title. It reads the index alone and guesses nothing: what is only alike is
//! named in the error.

use super::super::find_matter;
use crate::cli::alike::find_alike;
use crate::cli::output::{CommandError, escape_text};
use anyhow::{Context, bail};
use steward_domain::action::audit::ActionKind;
use steward_domain::record::path::{RecordKind, RecordPath, parse_link};
use steward_server::views::{FactsError, VaultViews};
use steward_vault::index::{ActionRow, Index, SubjectRow};

/// The most notes that an error names.
const MAX_NAMED: usize = 5;
/// The fewest digits of an action's id.
const MIN_DIGITS: usize = 4;

/// A note, and the action of it that is explained.
pub(super) struct WhyTarget {
    pub(super) subject: SubjectRow,
    /// `None` for the newest decision.
    pub(super) action: Option<ActionRow>,
}

/// Finds the note that a text means. A name comes first, then the id of an action, then a title.
///
/// # Errors
/// Nothing or several things are meant. The message names what is like it.
pub(super) async fn find_target(views: &VaultViews, index: &Index, text: &str) -> anyhow::Result<WhyTarget> {
    if text.trim().is_empty() {
        return Err(CommandError::Usage("name a task, a matter or an action".to_owned()).into());
    }
    let (path, subject) = find_by_name(index, text).await?;
    if let Some(subject) = subject {
        return Ok(WhyTarget { subject, action: None });
    }
    if let Some(exclusion) = index.find_exclusion(&path).await? {
        bail!("{path} is left out: {exclusion}");
    }
    let problems = index.read().list_problems().await?;
    if let Some(problem) = problems.iter().find(|problem| problem.path == path.as_str()) {
        bail!("{path} cannot be read: {}", problem.message);
    }
    if is_id(text) {
        match views.find_action_row(text).await {
            Ok(row) => return find_by_action(index, row).await,
            Err(FactsError::Unknown { .. }) => {}
            Err(e) => return Err(e.into()),
        }
    }
    let path = find_by_title(index, text).await?;
    let subject = index.read().find_subject(&path).await?;
    let subject = subject.with_context(|| format!("{path} cannot be read: see `steward status`"))?;
    Ok(WhyTarget { subject, action: None })
}

/// The path that a text spells, and the note there. A bare name is a task's, or else a matter's.
async fn find_by_name(index: &Index, text: &str) -> anyhow::Result<(RecordPath, Option<SubjectRow>)> {
    let spelled = parse_target(text)?;
    let kind = spelled.folder_kind().unwrap_or(RecordKind::Task);
    let path = index.resolve_link(kind, text, &spelled).await?.unwrap_or(spelled);
    let found = index.read().find_subject(&path).await?;
    if found.is_none() && !text.contains('/') {
        let matter = find_matter(index, text).await?;
        if let Some(subject) = index.read().find_subject(&matter).await? {
            return Ok((matter, Some(subject)));
        }
    }
    Ok((path, found))
}

/// Reads a task or matter as a person names it; a bare name is that of a task.
fn parse_target(text: &str) -> anyhow::Result<RecordPath> {
    let kind = if text.contains("matter/") { RecordKind::Matter } else { RecordKind::Task };
    parse_link(kind, text).with_context(|| format!("failed to read `{}` as a task or matter", text.escape_debug()))
}

fn is_id(text: &str) -> bool {
    (MIN_DIGITS..=16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// The note of an action. Of the answer to a decision, the decision is explained.
async fn find_by_action(index: &Index, row: ActionRow) -> anyhow::Result<WhyTarget> {
    let subject = index.read().find_subject(&row.target).await?;
    let subject = subject.with_context(|| format!("{}, which the action is about, is not in the vault", row.target))?;
    if row.kind == ActionKind::Action {
        return Ok(WhyTarget { subject, action: Some(row) });
    }
    let all = index.actions().list_actions(None, Some(&row.target), super::MAX_ACTIONS).await?;
    let action = all.into_iter().find(|action| action.resolved_by.as_ref() == Some(&row.id));
    Ok(WhyTarget { subject, action })
}

/// The only note with this title, or else the only one in whose title or name the text stands.
async fn find_by_title(index: &Index, text: &str) -> anyhow::Result<RecordPath> {
    let titles = index.read().list_record_titles().await?;
    let wanted = text.trim().to_lowercase();
    let words: Vec<&str> = wanted.split_whitespace().collect();
    let called: Vec<_> = titles.iter().filter(|(_, title)| title.to_lowercase() == wanted).collect();
    let holds = |(path, title): &&(RecordPath, String)| {
        let (title, name) = (title.to_lowercase(), path.slug().to_lowercase());
        words.iter().all(|word| title.contains(word) || name.contains(word))
    };
    let found = if called.is_empty() { titles.iter().filter(holds).collect() } else { called };
    let shown = escape_text(text);
    match found.as_slice() {
        [(path, _)] => Ok(path.clone()),
        [] => Err(CommandError::Usage(describe_unknown(text, &titles)).into()),
        several => {
            let named = several.iter().take(MAX_NAMED).map(|(path, title)| format!("{path} ({})", escape_text(title)));
            let named: Vec<String> = named.collect();
            let more = if several.len() > MAX_NAMED {
                format!(" and {} more", several.len() - MAX_NAMED)
            } else {
                String::new()
            };
            let message = format!("`{shown}` may be {}{more}: give the whole path", named.join(", "));
            Err(CommandError::Usage(message).into())
        }
    }
}

/// What to do about a text that nothing is called.
fn describe_unknown(text: &str, titles: &[(RecordPath, String)]) -> String {
    let shown = escape_text(text);
    if is_id(text) {
        return format!(
            "no task, matter or action is called `{shown}`: `steward audit list` shows actions with their ids"
        );
    }
    let (_, name) = text.rsplit_once('/').unwrap_or(("", text));
    let name = name.strip_suffix(".md").unwrap_or(name).to_lowercase();
    let names = titles.iter().flat_map(|(path, title)| [path.slug().to_owned(), title.to_lowercase()]);
    match find_alike(&name, names) {
        Some(meant) => {
            format!("no task, matter or action is called `{shown}`; did you mean `{}`?", escape_text(&meant))
        }
        None => format!("no task, matter or action is called `{shown}`: `steward audit list` shows what was decided"),
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
            assert_eq!(parse_target(text).unwrap().as_str(), path);
        }
        assert!(parse_target("../x").is_err());
    }

    #[test]
    fn the_beginning_of_an_id_is_told_from_a_name() {
        for (text, expected) in
            [("3f9a", true), ("3f9a1c22b07d4e51", true), ("3f9", false), ("pay-rent", false), ("FACE", false)]
        {
            assert_eq!(is_id(text), expected, "{text}");
        }
    }
}
