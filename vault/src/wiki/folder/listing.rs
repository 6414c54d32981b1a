//! Lists the files of a wiki. Hidden ones are left out, and no folder is opened twice.
//!
//! Links are not followed: a link to a folder is listed as a file that cannot be read. How a file is now is asked of the folder in
//! which it was found, while that is open: one call of the system for each file, and one open folder at a time.

use super::watched::FolderWatch;
use super::{FileStat, WikiFolder, report};
use crate::files::read_cache::FileStamp;
use std::io;
use steward_domain::wiki::finding::{FindingCode, WikiFinding};
use steward_domain::wiki::page::may_be_page;

/// The deepest folder that is searched.
const MAX_DEPTH: usize = 16;

/// A file as it was when it was listed.
#[derive(Debug)]
pub(super) struct ListedFile {
    /// Relative to the wiki.
    pub(super) path: String,
    /// `None` if it was not asked for, or the file has gone meanwhile.
    pub(super) stamp: Option<FileStamp>,
    /// No link, and nothing that could wait.
    is_regular: bool,
}

impl ListedFile {
    pub(super) fn is_file(&self) -> bool {
        self.is_regular
    }

    pub(super) fn stat(&self) -> Option<FileStat> {
        self.stamp.map(FileStamp::to_stat)
    }
}

/// What is asked of each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListingDepth {
    Names,
    /// Also its size, times and inode.
    Metadata,
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
    /// All files but hidden ones, sorted.
    #[must_use]
    pub fn list_all_files(&self) -> Vec<String> {
        self.list_entries(ListingDepth::Names, &mut Vec::new()).0.into_iter().map(|file| file.path).collect()
    }

    /// The files that may be pages, sorted.
    pub(crate) fn list_page_files(&self) -> Vec<String> {
        let mut files = self.list_all_files();
        files.retain(|file| may_be_page(file));
        files
    }

    /// All files but hidden ones, sorted by their paths, and why a folder could not be listed.
    pub(super) fn list_entries(
        &self,
        depth: ListingDepth,
        findings: &mut Vec<WikiFinding>,
    ) -> (Vec<ListedFile>, Option<io::Error>) {
        self.list_watched(depth, findings, None)
    }

    /// As [`Self::list_entries`], and each folder is watched before it is listed.
    pub(super) fn list_watched(
        &self,
        depth: ListingDepth,
        findings: &mut Vec<WikiFinding>,
        watch: Option<&FolderWatch>,
    ) -> (Vec<ListedFile>, Option<io::Error>) {
        let (mut files, mut waiting, mut fault) = (Vec::new(), vec![String::new()], None);
        while let Some(folder) = waiting.pop() {
            if let Some(watch) = watch {
                watch.add(self, &folder);
            }
            match self.list_folder(&folder, depth) {
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
                // It went since the folder above it was listed, and its files with it.
                Err(e) if e.kind() == io::ErrorKind::NotFound && !folder.is_empty() => {}
                Err(e) => {
                    findings.push(report(&folder, FindingCode::EntryInvalid, &e.to_string(), "make it readable"));
                    fault = Some(e);
                }
            }
        }
        files.sort_by(|a: &ListedFile, b| a.path.cmp(&b.path));
        (files, fault)
    }

    fn list_folder(&self, folder: &str, depth: ListingDepth) -> io::Result<FolderContents> {
        let mut found = FolderContents::default();
        let dir = if folder.is_empty() { self.dir.try_clone()? } else { self.dir.open_dir(folder)? };
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
                let meta = (depth == ListingDepth::Metadata).then(|| dir.symlink_metadata(&name).ok()).flatten();
                let stamp = meta.as_ref().map(FileStamp::new);
                found.files.push(ListedFile { path, stamp, is_regular: meta.is_some_and(|meta| meta.is_file()) });
            }
        }
        Ok(found)
    }
}
