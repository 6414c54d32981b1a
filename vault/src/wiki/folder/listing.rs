//! Lists the files of a wiki. Hidden ones are left out, and no folder is opened twice.
//!
//! Links are not followed: a link to a folder is listed as a file that cannot be read. How a file is now is asked of the folder in
//! which it was found, which takes one call of the system for each file.

use super::{FileStat, WikiFile, WikiFolder, report};
use crate::wiki::threads::map_in_threads;
use cap_std::fs::{Dir, Metadata};
use std::io;
use std::sync::Arc;
use steward_domain::wiki::finding::{FindingCode, WikiFinding};
use steward_domain::wiki::page::may_be_page;

/// The deepest folder that is searched.
const MAX_DEPTH: usize = 16;

/// A file, and the folder in which it was found.
#[derive(Debug)]
pub(super) struct ListedFile {
    /// Relative to the wiki.
    pub(super) path: String,
    folder: Arc<Dir>,
}

impl ListedFile {
    /// How the file is now; `None` if it is gone.
    pub(super) fn read_metadata(&self) -> Option<Metadata> {
        self.folder.symlink_metadata(self.path.rsplit('/').next()?).ok()
    }
}

/// What a folder holds, as paths relative to the wiki.
#[derive(Default)]
struct FolderContents {
    files: Vec<ListedFile>,
    folders: Vec<String>,
    /// Names that cannot be used.
    unusable: Vec<String>,
}

impl WikiFolder {
    /// All files but hidden ones and links, sorted, each with its size and when it changed.
    #[must_use]
    pub fn list_files_with_times(&self) -> Vec<WikiFile> {
        let files = self.list_entries(&mut Vec::new());
        let stats = map_in_threads(&files, |file| file.read_metadata().filter(Metadata::is_file));
        let described = files.into_iter().zip(stats).filter_map(|(file, meta)| {
            let stat = FileStat::new(&meta?);
            Some(WikiFile { path: file.path, bytes: stat.size, modified_ms: stat.modified_ms() })
        });
        described.collect()
    }

    /// All files but hidden ones, sorted.
    pub(crate) fn list_all_files(&self) -> Vec<String> {
        self.list_entries(&mut Vec::new()).into_iter().map(|file| file.path).collect()
    }

    /// The files that may be pages, sorted.
    pub(crate) fn list_page_files(&self) -> Vec<String> {
        let mut files = self.list_all_files();
        files.retain(|file| may_be_page(file));
        files
    }

    /// All files but hidden ones, sorted, each with what it is taken as unchanged by. What went meanwhile is left out.
    pub(crate) fn list_stats(&self) -> Vec<(String, FileStat)> {
        let files = self.list_entries(&mut Vec::new());
        let stats = map_in_threads(&files, |file| file.read_metadata().map(|meta| FileStat::new(&meta)));
        files.into_iter().zip(stats).filter_map(|(file, stat)| Some((file.path, stat?))).collect()
    }

    /// All files but hidden ones, sorted by their paths.
    pub(super) fn list_entries(&self, findings: &mut Vec<WikiFinding>) -> Vec<ListedFile> {
        let (mut files, mut waiting) = (Vec::new(), vec![String::new()]);
        while let Some(folder) = waiting.pop() {
            match self.list_folder(&folder) {
                Ok(found) => {
                    files.extend(found.files);
                    let (near, far): (Vec<_>, Vec<_>) =
                        found.folders.into_iter().partition(|folder| folder.matches('/').count() < MAX_DEPTH);
                    waiting.extend(near);
                    findings.extend(far.iter().map(|folder| {
                        let problem = format!("a folder more than {MAX_DEPTH} levels deep is not searched");
                        report(folder, FindingCode::EntryInvalid, &problem, "move it up")
                    }));
                    findings.extend(found.unusable.iter().map(|name| {
                        let problem = "its name is not text on one line, or begins with a hyphen";
                        report(name, FindingCode::EntryInvalid, problem, "rename it")
                    }));
                }
                Err(e) => findings.push(report(&folder, FindingCode::EntryInvalid, &e.to_string(), "make it readable")),
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    }

    fn list_folder(&self, folder: &str) -> io::Result<FolderContents> {
        let mut found = FolderContents::default();
        let dir = Arc::new(if folder.is_empty() { self.dir.try_clone()? } else { self.dir.open_dir(folder)? });
        for entry in dir.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            let (shown, kind) = (name.to_string_lossy(), entry.file_type()?);
            if shown.starts_with('.') {
                continue;
            }
            let path = if folder.is_empty() { shown.clone().into_owned() } else { format!("{folder}/{shown}") };
            if name.to_str().is_none() || shown.contains(char::is_control) || shown.starts_with('-') {
                found.unusable.push(path);
            } else if kind.is_dir() {
                found.folders.push(path);
            } else {
                found.files.push(ListedFile { path, folder: Arc::clone(&dir) });
            }
        }
        Ok(found)
    }
}
