//! Proposes a mapping for a vault, and writes it into the vault's `steward.toml` once a person agreed.
//!
//! Folders of templates, and what TaskNotes calls a task, come from the settings of Obsidian and its plugins. Nothing in
//! `.obsidian` is changed.

use super::survey::VaultSurvey;
use crate::config::mapping::to_toml;
use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use steward_domain::record::mapping::VaultMapping;
use steward_domain::record::mapping::propose::{MappingProposal, TaskNotesSettings, VaultSample, propose_mapping};
use toml_edit::{DocumentMut, Item, Table};

/// Settings of Obsidian that name a folder of templates: the file below `.obsidian`, and the key.
const TEMPLATE_SETTINGS: [(&str, &str); 2] =
    [("templates.json", "folder"), ("plugins/templater-obsidian/data.json", "templates_folder")];

/// Some editors begin a file with it.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The settings of TaskNotes below `.obsidian`.
const TASKNOTES_SETTINGS: &str = "plugins/tasknotes/data.json";

/// Proposes a mapping from the notes that were read.
///
/// # Errors
/// The notes do not show what is a task. The message says what is missing.
pub(super) fn propose(vault: &Path, survey: &VaultSurvey) -> anyhow::Result<MappingProposal> {
    let left_out = find_template_folders(vault);
    let tasknotes = read_tasknotes(vault);
    let sample = VaultSample {
        notes: &survey.samples,
        names: &survey.names,
        left_out: &left_out,
        tasknotes: tasknotes.as_ref(),
    };
    match propose_mapping(&sample) {
        Ok(proposal) => Ok(proposal),
        Err(e) => {
            let unsupported = survey.describe_unsupported();
            let gap = if unsupported.is_empty() { "" } else { "\n" };
            bail!(
                "no mapping can be proposed for the {} notes in {}: {e}; or write `[map]` into steward.toml yourself, \
                 docs/your-vault.md shows how{gap}{}",
                survey.notes,
                vault.display(),
                unsupported.join("\n")
            )
        }
    }
}

/// The settings of TaskNotes; `None` if the vault does not use it. Unreadable settings are named, and the proposal rests
/// on the notes.
fn read_tasknotes(vault: &Path) -> Option<TaskNotesSettings> {
    let file = vault.join(".obsidian").join(TASKNOTES_SETTINGS);
    let text = std::fs::read_to_string(&file).ok()?;
    let settings = serde_json::from_str(&text);
    if let Err(e) = &settings {
        eprintln!("{}: {e}; the proposal rests on the notes alone", file.display());
    }
    settings.ok()
}

fn find_template_folders(vault: &Path) -> Vec<String> {
    let read = |(file, key): &(&str, &str)| {
        let text = std::fs::read_to_string(vault.join(".obsidian").join(file)).ok()?;
        let folder = serde_json::from_str::<Value>(&text).ok()?.get(*key)?.as_str()?.trim_matches('/').to_owned();
        (!folder.is_empty()).then_some(folder)
    };
    let mut folders: Vec<String> = TEMPLATE_SETTINGS.iter().filter_map(read).collect();
    folders.dedup();
    folders
}

/// The proposal as it is written into `steward.toml`, each line with what it rests on.
pub(super) fn render_proposal(proposal: &MappingProposal) -> anyhow::Result<String> {
    render_mapping(&proposal.mapping, &proposal.reasons)
}

/// A mapping as it is written into `steward.toml`, with what its lines rest on.
pub(super) fn render_mapping(mapping: &VaultMapping, reasons: &BTreeMap<String, String>) -> anyhow::Result<String> {
    let mut document = DocumentMut::new();
    let mut map = Table::new();
    map.set_implicit(true);
    for (kind, roles) in serde_json::to_value(mapping)?.as_object().into_iter().flatten() {
        let mut table = Table::new();
        for (role, value) in roles.as_object().into_iter().flatten() {
            table.insert(role, Item::Value(to_toml(value)));
            if let (Some(reason), Some(mut key)) = (reasons.get(&format!("{kind}.{role}")), table.key_mut(role)) {
                key.leaf_decor_mut().set_prefix(format!("# {}\n", reason.replace(['\n', '\r'], " ")));
            }
        }
        map.insert(kind, Item::Table(table));
    }
    document.insert("map", Item::Table(map));
    Ok(document.to_string())
}

/// Names the matter of tasks without one in the `[map]` that stands in the vault's `steward.toml`. Everything else in the
/// file stays.
///
/// # Errors
/// The file cannot be read or written, or it does not read back as expected.
pub(super) fn write_default_matter(vault: &Path, link: &str, expected: &VaultMapping) -> anyhow::Result<()> {
    let file = find_plain_file(vault)?;
    let failed = || format!("failed to write {}", file.display());
    let text = std::fs::read_to_string(&file).with_context(failed)?;
    let plain = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
    let mut document: DocumentMut = plain.parse().with_context(failed)?;
    document["map"]["task"]["parent"]["default"] = toml_edit::value(link);
    let mut edited = document.to_string();
    if plain.contains("\r\n") {
        edited = edited.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    let mark = if plain.len() < text.len() { BYTE_ORDER_MARK } else { "" };
    replace_file(&file, &format!("{mark}{edited}")).with_context(failed)?;
    check_written(vault, expected)
}

/// Adds the text of a proposal to the vault's `steward.toml`, which has no `[map]` yet.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_proposal(vault: &Path, text: &str, expected: &VaultMapping) -> anyhow::Result<()> {
    let file = find_plain_file(vault)?;
    let mut out = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .with_context(|| format!("failed to write {}", file.display()))?;
    let gap = if out.metadata()?.len() > 0 { "\n" } else { "" };
    out.write_all(format!("{gap}{text}").as_bytes())?;
    out.sync_all()?;
    check_written(vault, expected)
}

/// The vault's `steward.toml`, existing or not. A link could lead to a file of something else.
fn find_plain_file(vault: &Path) -> anyhow::Result<PathBuf> {
    let file = vault.join("steward.toml");
    if file.is_symlink() {
        bail!("{} is a link, and Steward writes through no link: put a file in its place", file.display());
    }
    Ok(file)
}

/// Replaces a file at once, so that a crash leaves the old text or the new one.
fn replace_file(file: &Path, text: &str) -> std::io::Result<()> {
    let staged = file.with_extension("toml.new");
    let permissions = std::fs::metadata(file)?.permissions();
    let mut out = std::fs::OpenOptions::new().create_new(true).write(true).open(&staged)?;
    let written = out.write_all(text.as_bytes()).and_then(|()| out.set_permissions(permissions));
    let written = written.and_then(|()| out.sync_all()).and_then(|()| std::fs::rename(&staged, file));
    written.inspect_err(|_| drop(std::fs::remove_file(&staged)))
}

fn check_written(vault: &Path, expected: &VaultMapping) -> anyhow::Result<()> {
    match crate::config::mapping::read_proposal(vault)? {
        Some(written) if written == *expected => Ok(()),
        _ => bail!("{}: `[map]` does not read back as it was proposed", vault.join("steward.toml").display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use steward_vault::files::root::VaultRoot;

    fn propose_for(dir: &Path) -> anyhow::Result<MappingProposal> {
        propose(dir, &VaultSurvey::read(&VaultRoot::open(dir).unwrap(), true).unwrap())
    }

    fn vault(notes: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in notes {
            std::fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(path), text).unwrap();
        }
        dir
    }

    #[test]
    fn a_proposal_is_written_with_its_reasons_and_reads_back() {
        let dir = vault(&[
            ("Projects/Roof.md", "x"),
            ("Tasks/Call \"him\".md", "---\ntags: [task]\nstatus: todo\nproject: '[[Roof]]'\ndue: 2026-12-01\n---\n"),
            ("Vorlagen/t.md", "---\ntags: [task]\nstatus: '{{s}}'\nproject: '[[Roof]]'\n---\n"),
            (".obsidian/templates.json", "{\"folder\": \"Vorlagen/\"}"),
            ("steward.toml", "# mine\ntask_queue = \"q\""),
        ]);
        let proposal = propose_for(dir.path()).unwrap();
        let text = render_proposal(&proposal).unwrap();
        assert!(
            text.contains(
                "# `project` links to another note; tasks: 1, matters: 1\nparent = { property = \"project\" }\n"
            ),
            "{text}"
        );
        assert!(text.contains("except = [{ folder = \"Vorlagen\" }]"), "{text}");
        write_proposal(dir.path(), &text, &proposal.mapping).unwrap();
        let written = std::fs::read_to_string(dir.path().join("steward.toml")).unwrap();
        assert!(written.starts_with("# mine\ntask_queue = \"q\"\n[map"), "{written}");
    }

    #[test]
    fn settings_of_tasknotes_count_unless_they_cannot_be_read() {
        let task = "---\ntags: [todo]\nstatus: ready\nprojects: ['[[Roof]]']\n---\n";
        let settings =
            r#"{"taskTag": "todo", "customStatuses": [{"value": "ready"}, {"value": "over", "isCompleted": true}]}"#;
        let dir =
            vault(&[("Projects/Roof.md", "x"), ("a.md", task), (".obsidian/plugins/tasknotes/data.json", settings)]);
        let proposal = propose_for(dir.path()).unwrap();
        let state = proposal.mapping.task.state.unwrap();
        assert_eq!((state.open, state.done), (vec!["ready".into()], vec!["over".into()]));
        std::fs::write(dir.path().join(".obsidian/plugins/tasknotes/data.json"), "{").unwrap();
        let message = propose_for(dir.path()).unwrap_err().to_string();
        assert!(message.contains("`todo`"), "the notes alone show no known word: {message}");
    }

    #[test]
    fn the_matter_of_other_tasks_is_written_into_a_mapping_that_stands_there() {
        for parent in ["parent = { property = \"project\" } # mine\n", "[map.task.parent]\nproperty = \"project\"\n"] {
            let text = format!(
                "# a\n[map.matter]\nwhere = {{ folder = \"P\" }}\n[map.task]\nwhere = {{ tag = \"t\" }}\n\
                 state = {{ property = \"s\", open = [\"o\"], done = [\"d\"] }}\n{parent}"
            );
            let dir = vault(&[("steward.toml", &text)]);
            let mut mapping = crate::config::mapping::read_proposal(dir.path()).unwrap().unwrap();
            mapping.task.parent.as_mut().unwrap().default = Some("[[Other \"tasks\"]]".into());
            write_default_matter(dir.path(), "[[Other \"tasks\"]]", &mapping).unwrap();
            let written = std::fs::read_to_string(dir.path().join("steward.toml")).unwrap();
            assert!(
                written.starts_with("# a\n") && written.contains("# mine") == parent.contains("# mine"),
                "{written}"
            );
        }
    }

    #[test]
    fn a_vault_that_shows_no_tasks_is_told_what_is_missing() {
        let dir = vault(&[("a.md", "---\nmood: fine\n---\n")]);
        let message = propose_for(dir.path()).unwrap_err().to_string();
        assert!(
            message.contains("1 notes") && message.contains("`status`") && message.contains("your-vault.md"),
            "{message}"
        );
    }
}
