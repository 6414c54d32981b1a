//! The contents of a folder, to compare with its earlier contents.

use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::io::ErrorKind;
use std::path::Path;
use std::time::SystemTime;

/// Every file below a folder, except Steward's own and git's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files(BTreeMap<String, (SystemTime, Vec<u8>)>);

impl Files {
    /// Reads all files.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        let mut files = BTreeMap::new();
        read(folder, folder, &mut files);
        Self(files)
    }

    /// Every file around a folder: those of its parent folder, except the folder itself.
    #[must_use]
    pub fn around(folder: &Path) -> Self {
        let (parent, mut files) = (folder.parent().unwrap(), BTreeMap::new());
        read(parent, parent, &mut files);
        let inside = format!("{}/", folder.file_name().unwrap().to_string_lossy());
        files.retain(|path, _| !path.starts_with(&inside));
        Self(files)
    }

    /// The files that were added, removed, overwritten or only touched since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (path, (at, bytes)) in &self.0 {
            match before.0.get(path) {
                None => found.push(format!("+ {path}")),
                Some((_, then)) if then != bytes => found.push(format!("~ {path}")),
                Some((then, _)) if then != at => found.push(format!("touched {path}")),
                Some(_) => {}
            }
        }
        found.extend(before.0.keys().filter(|path| !self.0.contains_key(*path)).map(|path| format!("- {path}")));
        found
    }

    /// The changes since `before`, apart from new event records.
    #[must_use]
    pub fn since_but_events(&self, before: &Self) -> Vec<String> {
        self.since(before).into_iter().filter(|line| !line.starts_with("+ event/")).collect()
    }

    /// The paths.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// The names of Steward's own files in a vault; folders end in a slash.
#[must_use]
pub fn own_names(vault: &Path) -> Vec<String> {
    let own = vault.join(".steward");
    let (mut names, mut folders) = (Vec::new(), vec![own.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.path().strip_prefix(&own).unwrap().to_string_lossy().into_owned();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                names.push(format!("{name}/"));
            } else {
                names.push(name);
            }
        }
    }
    names.sort();
    names
}

fn read(root: &Path, folder: &Path, files: &mut BTreeMap<String, (SystemTime, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if name == ".steward" || name == ".git" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            read(root, &entry.path(), files);
        } else if let Some(now) = there(&entry) {
            let path = entry.path().strip_prefix(root).unwrap().to_string_lossy().into_owned();
            files.insert(path, now);
        }
    }
}

/// The time and bytes of a file, or where a link leads; `None` if it was moved away since the folder was listed.
fn there(entry: &DirEntry) -> Option<(SystemTime, Vec<u8>)> {
    let read = || {
        let bytes = match entry.path().is_dir() {
            true => std::fs::read_link(entry.path())?.into_os_string().into_encoded_bytes(),
            false => std::fs::read(entry.path())?,
        };
        std::io::Result::Ok((entry.metadata()?.modified()?, bytes))
    };
    match read() {
        Ok(now) => Some(now),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => panic!("{}: {e}", entry.path().display()),
    }
}
