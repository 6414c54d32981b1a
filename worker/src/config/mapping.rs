//! The mapping of a vault's notes: what stands in the vault, and what a person accepted.
//!
//! Whoever can write into the vault could otherwise decide what may be changed. So the mapping that holds is the one that
//! a person accepted. It lies beside the user's configuration, outside the vault. `[map]` in the vault's `steward.toml` is
//! a proposal until then.

mod proposal;

use super::user_file::{UserFile, find_file_of_moved_vault, locate_user_file, replace_private_file};
use anyhow::{Context, bail};
use chrono::{DateTime, Days, Local, NaiveDate, TimeZone, Utc};
use proposal::PROPOSAL_FILE;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::mapping::VaultMapping;
use steward_domain::record::path::RecordKind;
use steward_domain::record::schema::NoteSchema;
use steward_vault::files::identity::{VaultId, VaultIdentity};
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::create::{WIKIS_FOLDER, list_wikis};

pub(super) use proposal::find_line;
pub(crate) use proposal::{describe_acceptance, describe_differences, describe_mapping, read_proposal, to_toml};

/// The extension of the accepted mapping beside the user's file.
const ACCEPTED: &str = "map.json";
/// The mapping of a vault when the process started.
#[derive(Clone, Debug, Default)]
pub(crate) enum MappingStatus {
    /// The vault has no mapping: matters lie in `matter/` and tasks in `task/`.
    #[default]
    Unmapped,
    InForce(Box<InForceMapping>),
    /// The vault proposes a mapping that nobody accepted.
    NotAccepted(MappingNotAccepted),
    /// The accepted mapping and the vault do not fit, or one of them cannot be read.
    Broken(MappingBroken),
}

/// The mapping that a person accepted.
#[derive(Clone, Debug)]
pub(crate) struct InForceMapping {
    pub(crate) accepted: AcceptedMapping,
    /// The lines in which `[map]` in the vault differs from it, or why it cannot be read.
    pub(crate) differences: Vec<String>,
}

/// An accepted mapping, as its file holds it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AcceptedMapping {
    /// The vault for which it was accepted.
    pub(crate) vault: VaultId,
    pub(crate) accepted_at: DateTime<Utc>,
    /// Steward's folder in the vault.
    pub(crate) folder: String,
    /// The hashes of all mappings that were ever accepted for the vault.
    pub(crate) history: Vec<ContentHash>,
    pub(crate) mapping: VaultMapping,
}

/// The vault proposes a mapping, and nobody accepted one.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "{}: `[map]` proposes how this vault is read, and nobody accepted it{}: `steward init --accept` shows and accepts it",
    .proposal.display(), describe_move(.moved.as_ref())
)]
pub(crate) struct MappingNotAccepted {
    proposal: PathBuf,
    /// The user's file of this vault in another place, and the one that is looked for.
    moved: Option<(PathBuf, PathBuf)>,
}

fn describe_move(moved: Option<&(PathBuf, PathBuf)>) -> String {
    moved.map_or_else(String::new, |(there, here)| {
        format!(
            " in this place. The vault was moved: its configuration is {}, and is looked for in {}. Rename it, and the \
             `.map.json` beside it, and set `vault` in it; or, without its limits",
            there.display(),
            here.display()
        )
    })
}

/// The accepted mapping and the vault do not fit.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct MappingBroken(String);

impl MappingStatus {
    /// Finds the mapping of a vault. What is wrong with it is reported when a command needs it, so that a stop and the
    /// command that repairs it still work.
    pub(crate) fn read(vault: &Path) -> Self {
        Self::read_alone(vault).require_user_file(vault)
    }

    fn read_alone(vault: &Path) -> Self {
        // The command that opens the vault says why it cannot.
        let Ok(root) = VaultRoot::open(vault) else { return Self::Unmapped };
        match AcceptedMapping::read(&root) {
            Err(e) => Self::Broken(MappingBroken(format!("{e:#}"))),
            Ok(Some(accepted)) if root.steward_folder() != Some(&accepted.folder) => {
                let (there, found) = (&accepted.folder, root.steward_folder().unwrap_or("none"));
                Self::Broken(MappingBroken(format!(
                    "{}/.steward/vault.json names the folder `{found}`, and the accepted mapping `{there}`: put the file \
                     back, or accept the mapping again with `steward init --accept`",
                    root.path().display()
                )))
            }
            Ok(Some(accepted)) => {
                let differences = describe_differences(&accepted.mapping, read_proposal(vault));
                Self::InForce(Box::new(InForceMapping { accepted, differences }))
            }
            Ok(None) => match read_proposal(vault) {
                Ok(None) if root.steward_folder().is_none() => Self::Unmapped,
                Ok(_) | Err(_) => {
                    let id = VaultIdentity::read(&root).ok().flatten().map(|identity| identity.id);
                    let there = id.and_then(|id| find_file_of_moved_vault(root.path(), id));
                    let moved = there.zip(locate_user_file(root.path(), "toml"));
                    Self::NotAccepted(MappingNotAccepted { proposal: vault.join(PROPOSAL_FILE), moved })
                }
            },
        }
    }

    /// Refuses a vault of ordinary notes that nobody has mapped. Steward would find no matter in it, and take a folder
    /// `inbox` of a person's for its own.
    ///
    /// # Errors
    /// [`MappingBroken`], which names `steward init`.
    pub(crate) fn refuse_unmapped_notes(&self, root: &VaultRoot) -> Result<(), MappingBroken> {
        let kinds = [RecordKind::Matter, RecordKind::Task, RecordKind::Event];
        let is_ours = || kinds.iter().any(|kind| root.path().join(kind.folder()).is_dir());
        // The pages of a wiki are neither matters nor tasks.
        let wikis =
            || list_wikis(root).unwrap_or_default().into_iter().map(|(name, _)| format!("{WIKIS_FOLDER}/{name}/"));
        let has_notes = || {
            let wikis: Vec<String> = wikis().collect();
            let is_other = |name: &str| !wikis.iter().any(|wiki| name.starts_with(wiki));
            root.list_notes().is_ok_and(|listing| listing.notes.iter().any(|note| is_other(&note.name)))
        };
        if self.is_mapped() || is_ours() || !has_notes() {
            return Ok(());
        }
        Err(MappingBroken(format!(
            "{}: Steward does not know which of these notes are matters and tasks: `steward init` looks at them and \
             proposes it, and changes nothing without your yes",
            root.path().display()
        )))
    }

    /// The mapping in force.
    pub(crate) fn accepted(&self) -> Option<&AcceptedMapping> {
        match self {
            Self::InForce(found) => Some(&found.accepted),
            Self::Unmapped | Self::NotAccepted(_) | Self::Broken(_) => None,
        }
    }

    /// Whether the vault has a mapping, accepted or not.
    pub(crate) fn is_mapped(&self) -> bool {
        !matches!(self, Self::Unmapped)
    }

    /// The user's file cannot be used, or that of a vault with an accepted mapping is missing: its limits must not be lost
    /// without a word. A stop still works.
    fn require_user_file(self, vault: &Path) -> Self {
        match (locate_user_file(vault, "toml"), UserFile::read(vault)) {
            (_, Err(e)) if !matches!(self, Self::Broken(_)) => Self::Broken(MappingBroken(format!("{e:#}"))),
            (Some(file), Ok(None)) if matches!(self, Self::InForce(_)) => Self::Broken(MappingBroken(format!(
                "{}: this vault's configuration is missing: {} must be there. Put it back, or write a new one with \
                 `steward init --accept`",
                vault.display(),
                file.display()
            ))),
            _ => self,
        }
    }

    /// The hashes of all mappings that people accepted for this vault.
    pub(crate) fn list_accepted(&self) -> Vec<ContentHash> {
        match self {
            Self::InForce(found) => found.accepted.history.clone(),
            Self::Unmapped | Self::NotAccepted(_) | Self::Broken(_) => Vec::new(),
        }
    }

    /// How notes are read and written.
    ///
    /// # Errors
    /// [`MappingNotAccepted`], [`MappingBroken`].
    pub(crate) fn note_schema(&self) -> anyhow::Result<NoteSchema> {
        match self {
            Self::Unmapped => Ok(NoteSchema::Folders),
            Self::InForce(found) => Ok(build_schema(found.accepted.mapping.clone())),
            Self::NotAccepted(e) => Err(e.clone().into()),
            Self::Broken(e) => Err(e.clone().into()),
        }
    }
}

/// The schema of a mapping, in the time zone of this machine.
pub(crate) fn build_schema(mapping: VaultMapping) -> NoteSchema {
    NoteSchema::from_mapping(mapping, end_of_local_day)
}

fn end_of_local_day(day: NaiveDate) -> Option<DateTime<Utc>> {
    let midnight = day.checked_add_days(Days::new(1))?.and_hms_opt(0, 0, 0)?;
    // Where the clock changes at midnight, the day ends with the earlier of two, or at the next valid hour.
    let local = Local.from_local_datetime(&midnight).earliest();
    local.map(|end| end.to_utc()).or_else(|| Some(midnight.and_utc()))
}

impl AcceptedMapping {
    /// The accepted mapping of a vault; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, or it was accepted for another vault in the same place.
    pub(crate) fn read(root: &VaultRoot) -> anyhow::Result<Option<Self>> {
        let Some(file) = locate_user_file(root.path(), ACCEPTED) else { return Ok(None) };
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e).with_context(|| format!("failed to read {}", file.display())),
        };
        let accepted: Self = serde_json::from_str(&text)
            .with_context(|| format!("failed to read {}: `steward init --accept` writes it again", file.display()))?;
        let id = VaultIdentity::read(root)?.map(|identity| identity.id);
        if Some(accepted.vault) == id {
            return Ok(Some(accepted));
        }
        bail!(
            "{}: the mapping was accepted for another vault in this place: `steward init --accept` accepts this one's, or \
             put its .steward/vault.json back",
            file.display()
        )
    }

    /// Writes it beside the user's configuration, for its owner alone. Returns the path.
    ///
    /// # Errors
    /// There is no home folder, or the file cannot be written.
    pub(crate) fn write(&self, vault: &Path) -> anyhow::Result<PathBuf> {
        let file = locate_user_file(vault, ACCEPTED).context("set HOME or XDG_CONFIG_HOME: the mapping lies there")?;
        let text = serde_json::to_string_pretty(self)?;
        replace_private_file(&file, text.as_bytes()).with_context(|| format!("failed to write {}", file.display()))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_the_next_midnight() {
        let day = NaiveDate::from_ymd_opt(2026, 11, 24).unwrap();
        let end = end_of_local_day(day).unwrap();
        assert_eq!(end.with_timezone(&Local).date_naive(), day.succ_opt().unwrap());
    }
}
