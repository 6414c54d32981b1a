//! Reads every note of a vault once, for the proposal and for what is not supported.
//!
//! It must not change anything. Hidden folders and links to folders are not read.

use crate::cli::output::{escape_text, print_progress};
use serde::Serialize;
use std::path::{Path, PathBuf};
use steward_domain::record::frontmatter;
use steward_domain::record::link::{LinkScope, NoteNames};
use steward_domain::record::mapping::propose::NoteSample;
use steward_domain::record::path::RecordPath;
use steward_domain::record::unsupported::count_unsupported_lines;
use steward_vault::files::root::{VaultRoot, VaultRootError};

/// Notes after which the progress is shown again.
const PROGRESS_STEP: usize = 5_000;
/// The most links that are named.
const SHOWN_LINKS: usize = 5;

/// What a vault holds.
#[derive(Debug)]
pub(super) struct VaultSurvey {
    pub(super) notes: usize,
    /// All notes that links may name.
    pub(super) names: NoteNames,
    /// Empty if no mapping is to be proposed.
    pub(super) samples: Vec<NoteSample>,
    pub(super) unsupported: UnsupportedContent,
}

/// What Steward does not read yet.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct UnsupportedContent {
    checkbox_lines: u64,
    notes_with_checkboxes: u64,
    inline_fields: u64,
    notes_with_inline_fields: u64,
    org_files: u64,
    is_logseq: bool,
    /// Folders that are links, by their path in the vault.
    linked_folders: Vec<String>,
}

impl VaultSurvey {
    /// Reads the notes. `with_samples` keeps their properties.
    ///
    /// # Errors
    /// The vault cannot be listed.
    pub(super) fn read(root: &VaultRoot, with_samples: bool) -> Result<Self, VaultRootError> {
        let listing = root.list_notes()?;
        let total = listing.notes.len();
        let mut survey = Self {
            notes: total,
            names: NoteNames::new(LinkScope::Vault),
            samples: Vec::new(),
            unsupported: UnsupportedContent::find_files(root.path()),
        };
        for (read, entry) in listing.notes.iter().enumerate() {
            if read > 0 && read % PROGRESS_STEP == 0 {
                print_progress("notes read", read, total);
            }
            let Ok(path) = RecordPath::parse(&entry.name) else { continue };
            survey.names.insert(path.clone());
            let Some(document) = root.read_file(&path).ok().and_then(|file| frontmatter::read_note(&file.bytes).ok())
            else {
                continue;
            };
            survey.unsupported.count_lines(document.body());
            if with_samples {
                survey.samples.push(NoteSample { path, fields: document.into_fields() });
            }
        }
        Ok(survey)
    }

    /// A line for each thing that Steward does not read yet.
    pub(super) fn describe_unsupported(&self) -> Vec<String> {
        let found = &self.unsupported;
        let mut lines = Vec::new();
        let mut add = |count: u64, what: &str, place: String| {
            if count > 0 {
                lines.push(format!("  {what}: {count}{place}"));
            }
        };
        add(
            found.checkbox_lines,
            "lines with a checkbox (`- [ ]`)",
            format!(", in {} notes", found.notes_with_checkboxes),
        );
        add(
            found.inline_fields,
            "inline fields (`key:: value`)",
            format!(", in {} notes", found.notes_with_inline_fields),
        );
        add(found.org_files, "Org files", String::new());
        if found.is_logseq {
            lines.push("  the blocks of Logseq".to_owned());
        }
        let shown: Vec<String> = found.linked_folders.iter().take(SHOWN_LINKS).map(|name| escape_text(name)).collect();
        let more = if found.linked_folders.len() > SHOWN_LINKS { ", and others" } else { "" };
        if !shown.is_empty() {
            lines.push(format!("  folders that are links: {}{more}", shown.join(", ")));
        }
        if !lines.is_empty() {
            lines.insert(0, "not read yet:".to_owned());
        }
        lines
    }
}

impl UnsupportedContent {
    /// Counts what shows without reading a file. A folder that cannot be listed is left out; the listing of notes names it.
    fn find_files(vault: &Path) -> Self {
        let mut found = Self { is_logseq: vault.join("logseq/config.edn").is_file(), ..Self::default() };
        let mut waiting = vec![PathBuf::new()];
        while let Some(folder) = waiting.pop() {
            for entry in std::fs::read_dir(vault.join(&folder)).into_iter().flatten().flatten() {
                let (name, path) = (entry.file_name(), folder.join(entry.file_name()));
                let Ok(kind) = entry.file_type() else { continue };
                if name.as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                if kind.is_dir() {
                    waiting.push(path);
                } else if kind.is_symlink() && vault.join(&path).is_dir() {
                    found.linked_folders.push(path.to_string_lossy().into_owned());
                } else if path.extension().is_some_and(|extension| extension == "org") {
                    found.org_files += 1;
                }
            }
        }
        found.linked_folders.sort();
        found
    }

    fn count_lines(&mut self, text: &str) {
        let found = count_unsupported_lines(text);
        self.checkbox_lines += found.checkboxes;
        self.notes_with_checkboxes += u64::from(found.checkboxes > 0);
        self.inline_fields += found.inline_fields;
        self.notes_with_inline_fields += u64::from(found.inline_fields > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_yet_is_counted_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(path), text).unwrap();
        };
        write("a.md", "---\nx: 1\n---\n- [ ] one\n- [x] two\ndue:: now\n");
        write("b/c.md", "- [ ] three\n");
        write("b/todo.org", "* TODO x");
        write("logseq/config.edn", "{}");
        write(".hidden/d.md", "- [ ] four\n");
        std::os::unix::fs::symlink("/tmp", dir.path().join("b/Shared")).unwrap();
        let survey = VaultSurvey::read(&VaultRoot::open(dir.path()).unwrap(), false).unwrap();
        assert_eq!(
            survey.describe_unsupported().join("\n"),
            "not read yet:\n  lines with a checkbox (`- [ ]`): 3, in 2 notes\n  \
             inline fields (`key:: value`): 1, in 1 notes\n  Org files: 1\n  the blocks of Logseq\n  \
             folders that are links: b/Shared"
        );
        assert!(survey.samples.is_empty());
    }
}
