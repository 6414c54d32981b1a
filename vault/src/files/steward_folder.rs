//! Steward's folder in a vault with a mapping: where its own files lie, and who writes them.
//!
//! `.steward/vault.json` names the folder. It is made once, with everything in it, and never again: a missing folder
//! would drop every sender's ceiling, every demotion and the audit chain. The file `owner` in it names the vault and the
//! machine, because a sync tool may keep the vault on two machines.

use crate::files::durable;
use crate::files::identity::{IdentityError, VaultIdentity};
use crate::files::root::{VaultRoot, VaultRootError};
use crate::signals::inbox;
use serde::{Deserialize, Serialize};
use std::io;
use steward_domain::record::link::fold_name;
use steward_domain::record::path::RecordKind;

/// The name that is proposed for the folder.
const PROPOSED: &str = "Steward";
const OWNER: &str = "owner";

/// The machine that writes Steward's files of a vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StewardOwner {
    /// The id of the vault.
    pub vault: String,
    /// The name of the machine.
    pub machine: String,
}

/// Why Steward's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StewardFolderError {
    #[error(
        "Steward's folder `{folder}` is not in {vault}, or `{missing}` is missing in it: put it back, or name its new \
         place with `steward init --folder <path>`"
    )]
    Missing { vault: String, folder: String, missing: String },
    #[error(
        "{folder}/{OWNER}: another Steward looks after this vault: vault {}, machine `{}`, and here are vault {}, machine \
         `{}`: end that one, then run `steward init --take-over`", .there.vault, .there.machine, .here.vault, .here.machine
    )]
    OtherOwner { folder: String, there: StewardOwner, here: StewardOwner },
    #[error("{folder}/{OWNER}: {reason}: `steward init --take-over` writes it again")]
    UnreadableOwner { folder: String, reason: String },
    #[error(transparent)]
    Root(#[from] VaultRootError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("{path}: {source}: the vault must be writable for Steward's own files")]
    Io { path: String, source: io::Error },
}

/// The folders in Steward's folder.
pub(crate) fn list_inner_folders() -> impl Iterator<Item = &'static str> {
    let kinds = RecordKind::ALL.into_iter().filter(|kind| !kind.is_note()).map(RecordKind::folder);
    kinds.chain([inbox::FOLDER])
}

impl StewardOwner {
    fn from_identity(identity: &VaultIdentity) -> Self {
        Self { vault: identity.id.to_string(), machine: identity.place.host.clone() }
    }

    fn read(root: &VaultRoot, folder: &str) -> Result<Option<Self>, StewardFolderError> {
        let unreadable = |reason: String| StewardFolderError::UnreadableOwner { folder: folder.to_owned(), reason };
        match root.dir().read_to_string(format!("{folder}/{OWNER}")) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|e| unreadable(e.to_string())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(unreadable(e.to_string())),
        }
    }
}

/// Checks that Steward's folder is where it should be and belongs to this vault on this machine. Nothing to check
/// without a mapping.
///
/// # Errors
/// [`StewardFolderError`], which names both places or both owners and the fix.
pub fn check_steward_folder(root: &VaultRoot, identity: &VaultIdentity) -> Result<(), StewardFolderError> {
    let Some(folder) = root.steward_folder() else { return Ok(()) };
    if let Some(missing) = root.find_missing_folder() {
        let (vault, folder) = (root.path().display().to_string(), folder.to_owned());
        return Err(StewardFolderError::Missing { vault, folder, missing });
    }
    check_owner(root, folder, identity)
}

fn check_owner(root: &VaultRoot, folder: &str, identity: &VaultIdentity) -> Result<(), StewardFolderError> {
    let here = StewardOwner::from_identity(identity);
    match StewardOwner::read(root, folder)? {
        Some(there) if there != here => Err(StewardFolderError::OtherOwner { folder: folder.to_owned(), there, here }),
        Some(_) | None => Ok(()),
    }
}

/// Whether a folder of the vault is Steward's: it holds the file that names its owner.
#[must_use]
pub fn is_stewards_folder(root: &VaultRoot, folder: &str) -> bool {
    root.dir().symlink_metadata(format!("{folder}/{OWNER}")).is_ok_and(|meta| meta.is_file())
}

/// A name for Steward's folder that no folder of a person's has. A folder with an owner file is Steward's.
///
/// # Errors
/// [`StewardFolderError::Root`] if the root cannot be listed.
pub fn propose_steward_folder(root: &VaultRoot) -> Result<String, StewardFolderError> {
    let io_error = |source| StewardFolderError::Io { path: "/".into(), source };
    let mut taken = std::collections::BTreeSet::new();
    for entry in root.dir().entries().map_err(io_error)? {
        taken.insert(fold_name(&entry.map_err(io_error)?.file_name().to_string_lossy()));
    }
    let is_free = |name: &String| is_stewards_folder(root, name) || !taken.contains(&fold_name(name));
    let names = std::iter::once(PROPOSED.to_owned()).chain((2..).map(|number: u32| format!("{PROPOSED} {number}")));
    Ok(names.take(1_000).find(is_free).unwrap_or_else(|| format!("{PROPOSED} files")))
}

/// Makes Steward's folder and everything in it, writes its owner, and keeps its name in `vault.json`. Files that are
/// there stay.
///
/// # Errors
/// [`StewardFolderError::OtherOwner`] without `take_over`; [`StewardFolderError::Io`] if it cannot be written.
pub fn establish_steward_folder(
    root: &VaultRoot,
    identity: &VaultIdentity,
    folder: &str,
    take_over: bool,
) -> Result<(), StewardFolderError> {
    let failed = |source| StewardFolderError::Io { path: folder.to_owned(), source };
    if !take_over {
        check_owner(root, folder, identity)?;
    }
    root.dir().create_dir_all(folder).map_err(failed)?;
    let dir = root.dir().open_dir(folder).map_err(failed)?;
    for inner in list_inner_folders() {
        dir.create_dir_all(inner).map_err(failed)?;
    }
    let owner = serde_json::to_string(&StewardOwner::from_identity(identity)).unwrap_or_default();
    durable::replace_private_file(&dir, OWNER, format!("{owner}\n").as_bytes()).map_err(failed)?;
    durable::sync_folder(&dir).map_err(failed)?;
    durable::sync_folder(root.dir()).map_err(failed)?;
    Ok(identity.write_steward_folder(root, folder)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::writer::{LockError, VaultWriter};
    use crate::gates::stop;
    use crate::signals::inbox::Inbox;
    use std::path::Path;
    use steward_domain::record::path::RecordPath;

    struct Mapped {
        dir: tempfile::TempDir,
    }

    impl Mapped {
        fn new(folder: &str) -> Self {
            let mapped = Self { dir: tempfile::tempdir().unwrap() };
            let writer = VaultWriter::lock_without_folder(mapped.root()).unwrap();
            establish_steward_folder(writer.root(), writer.identity(), folder, false).unwrap();
            mapped
        }

        fn vault(&self) -> &Path {
            self.dir.path()
        }

        fn root(&self) -> VaultRoot {
            VaultRoot::open(self.vault()).unwrap()
        }

        fn rename(&self, from: &str, to: &str) {
            std::fs::rename(self.vault().join(from), self.vault().join(to)).unwrap();
        }

        fn refusal(&self) -> String {
            match VaultWriter::lock(self.root()) {
                Err(LockError::StewardFolder(e)) => e.to_string(),
                other => panic!("{other:?}"),
            }
        }
    }

    fn signal() -> RecordPath {
        RecordPath::parse("signal/s.md").unwrap()
    }

    #[test]
    fn own_files_lie_in_the_folder_and_a_persons_folders_of_the_same_names_are_theirs() {
        let mapped = Mapped::new("Meta/Steward");
        for file in ["inbox/mine.eml", "signal/s.md", "Meta/Steward/inbox/mail.eml", "Notes/a.md", "inbox/b.md"] {
            std::fs::create_dir_all(mapped.vault().join(file).parent().unwrap()).unwrap();
            std::fs::write(mapped.vault().join(file), "x").unwrap();
        }
        let root = mapped.root();
        assert!(!root.exists(&signal()), "the record lies below our folder");
        let writer = VaultWriter::lock(root.clone()).unwrap();
        writer.create_files(&[(signal(), b"y".to_vec())]).unwrap();
        assert_eq!(std::fs::read(mapped.vault().join("Meta/Steward/signal/s.md")).unwrap(), b"y");
        assert_eq!(root.read_file(&signal()).unwrap().bytes, b"y");
        let waiting = Inbox::open(&root).unwrap().list_waiting_files().unwrap();
        assert_eq!(waiting.iter().map(|file| file.name.to_str().unwrap()).collect::<Vec<_>>(), ["mail.eml"]);
        let notes: Vec<String> = root.list_notes().unwrap().notes.into_iter().map(|entry| entry.name).collect();
        assert_eq!(notes, ["Notes/a.md", "inbox/b.md"]);
        assert_eq!(std::fs::read_to_string(mapped.vault().join("signal/s.md")).unwrap(), "x");
    }

    #[test]
    fn a_folder_that_went_stops_the_vault_is_never_made_anew_and_all_goes_on_with_it() {
        for gone in ["Steward", "Steward/instinct"] {
            let mapped = Mapped::new("Steward");
            let writer = VaultWriter::lock(mapped.root()).unwrap();
            assert!(!stop::is_stopped(writer.root()));
            mapped.rename(gone, "elsewhere");
            let found = stop::read_stop(writer.root()).unwrap();
            assert!(found.reason.is_some_and(|reason| reason.contains(gone)));
            assert!(writer.create_files(&[(signal(), b"y".to_vec())]).is_err() || gone == "Steward/instinct");
            assert!(writer.root().list_files(RecordKind::Instinct).is_err(), "no listing, so nothing is forgotten");
            drop(writer);
            let message = mapped.refusal();
            assert!(message.contains(gone) && message.contains("steward init --folder"), "{message}");
            assert!(!mapped.vault().join(gone).exists());
            mapped.rename("elsewhere", gone);
            assert!(!stop::is_stopped(VaultWriter::lock(mapped.root()).unwrap().root()));
        }
    }

    #[test]
    fn a_second_machine_is_refused_until_it_takes_over() {
        let mapped = Mapped::new("Steward");
        let owner = mapped.vault().join("Steward/owner");
        let ours = std::fs::read_to_string(&owner).unwrap();
        let theirs = ours.replace("\"machine\":\"", "\"machine\":\"other-");
        assert_ne!(theirs, ours);
        std::fs::write(&owner, &theirs).unwrap();
        let message = mapped.refusal();
        assert!(message.contains("other-") && message.contains("--take-over"), "{message}");
        let writer = VaultWriter::lock_without_folder(mapped.root()).unwrap();
        let again = |take_over| establish_steward_folder(writer.root(), writer.identity(), "Steward", take_over);
        assert!(matches!(again(false), Err(StewardFolderError::OtherOwner { .. })));
        assert_eq!(std::fs::read_to_string(&owner).unwrap(), theirs);
        again(true).unwrap();
        assert_eq!(std::fs::read_to_string(&owner).unwrap(), ours);
        drop(writer);
        VaultWriter::lock(mapped.root()).unwrap();
        std::fs::write(&owner, "?").unwrap();
        assert!(mapped.refusal().contains("Steward/owner"));
    }
}
