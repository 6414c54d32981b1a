//! Whose schedules a namespace holds.
//!
//! Routines and the task queue are shared by all schedules of a namespace, so a namespace belongs to one vault: the one
//! whose id its schedules bear. [`find_conflict`] decides that from a listing; [`ScheduleRegistrar::claim`] asks it before a
//! vault is served. The schedules of another vault are never changed; only `steward schedules adopt` takes them over.

use super::ScheduleRegistrar;
use super::apply;
use super::facts;
use super::routine::{self, ROUTINES};
use super::server::RegistrarError;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use steward_server::views::schedules::is_steward_schedule;
use steward_server::views::schedules::mark::ScheduleMark;
use steward_vault::files::identity::{VaultId, VaultIdentity, VaultPlace};
use temporalio_common::protos::temporal::api::schedule::v1::ScheduleListEntry;

/// A schedule of Steward's, of whatever vault, as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct OwnedSchedule {
    pub(crate) id: String,
    pub(crate) paused: bool,
    /// The vault that it names; `None` when it names none.
    pub(crate) vault: Option<VaultId>,
    /// Where that vault was, as far as this schedule says so. Untrusted.
    pub(crate) place: Option<VaultPlace>,
}

/// Why a vault may not use a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ConflictReason {
    /// Schedules bear the id of another vault.
    AnotherVault { vault: VaultId, place: Option<VaultPlace> },
    /// The schedules are those of a vault of which this one is a copy.
    Copy { place: VaultPlace },
    /// They bear the id of this vault, and were registered in another folder of another machine.
    OtherHost { place: VaultPlace },
    /// Schedules name no vault, and none bears the id of this one.
    Unmarked { schedules: usize },
}

/// A namespace whose schedules are not those of this vault, or may not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NamespaceConflict {
    #[serde(flatten)]
    pub(crate) reason: ConflictReason,
    pub(crate) namespace: String,
    /// The folder of this vault.
    pub(crate) folder: String,
}

impl std::error::Error for NamespaceConflict {}

impl fmt::Display for NamespaceConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, namespace, folder } = self;
        match reason {
            ConflictReason::AnotherVault { place, .. } => write!(
                f,
                "namespace `{namespace}` holds the schedules of another vault, {}, and this vault is {folder}",
                place.as_ref().map_or_else(|| "whose folder is not known".to_owned(), describe_place)
            )?,
            ConflictReason::Copy { place } => write!(
                f,
                "namespace `{namespace}` holds the schedules of the vault {}, and this vault, {folder}, is a copy of it",
                describe_place(place)
            )?,
            ConflictReason::OtherHost { place } => write!(
                f,
                "namespace `{namespace}` holds schedules that were registered for the vault {}; this vault, {folder}, was \
                 moved from there or is a copy of it, which cannot be told from here",
                describe_place(place)
            )?,
            ConflictReason::Unmarked { schedules } => write!(
                f,
                "namespace `{namespace}` holds {schedules} schedules of Steward that name no vault, and this vault is {folder}"
            )?,
        }
        f.write_str(
            ": give this vault a namespace of its own (TEMPORAL_NAMESPACE, or that of your Temporal profile), or take the \
             schedules over with `steward schedules adopt`",
        )
    }
}

pub(crate) fn describe_place(place: &VaultPlace) -> String {
    format!("{} on host {}", place.folder, place.host)
}

/// Why a vault may not use a namespace with these schedules; `None` when it may.
///
/// `owner` is `None` for a vault that has no id yet. `has_twin_in` tells whether a folder of this machine holds another
/// vault of the same id.
pub(super) fn find_conflict(
    listed: &[OwnedSchedule],
    owner: Option<&VaultIdentity>,
    has_twin_in: impl Fn(&Path) -> bool,
) -> Option<ConflictReason> {
    let ours = owner.map(|owner| owner.id);
    let other = listed.iter().find_map(|each| each.vault.filter(|vault| Some(*vault) != ours));
    if let Some(vault) = other {
        let place = listed.iter().filter(|each| each.vault == Some(vault)).find_map(|each| each.place.clone());
        return Some(ConflictReason::AnotherVault { vault, place });
    }
    let unmarked = listed.iter().filter(|each| each.vault.is_none()).count();
    if unmarked > 0 && unmarked == listed.len() {
        return Some(ConflictReason::Unmarked { schedules: unmarked });
    }
    let here = &owner?.place;
    listed.iter().filter_map(|each| each.place.as_ref()).find_map(|there| find_copy_conflict(there, here, &has_twin_in))
}

/// What speaks against it that the vault which was there is the one that is here.
fn find_copy_conflict(
    there: &VaultPlace,
    here: &VaultPlace,
    has_twin_in: impl Fn(&Path) -> bool,
) -> Option<ConflictReason> {
    let same_host = there.host == here.host;
    if there.file == here.file || (same_host && there.folder == here.folder) {
        return None;
    }
    if !same_host {
        return Some(ConflictReason::OtherHost { place: there.clone() });
    }
    has_twin_in(Path::new(&there.folder)).then(|| ConflictReason::Copy { place: there.clone() })
}

/// The schedules of Steward's in a listing.
pub(super) fn list_owned_schedules(entries: &[ScheduleListEntry]) -> Vec<OwnedSchedule> {
    let of_steward = entries.iter().filter(|entry| is_steward_schedule(entry));
    of_steward
        .map(|entry| {
            let info = entry.info.as_ref();
            let mark = ScheduleMark::find_in_spec(info.and_then(|info| info.spec.as_ref()));
            let (vault, place) = mark.map_or((None, None), |mark| (mark.vault, mark.place));
            OwnedSchedule { id: entry.schedule_id.clone(), paused: info.is_some_and(|info| info.paused), vault, place }
        })
        .collect()
}

impl ScheduleRegistrar {
    /// Whether this vault may use the namespace, from a listing.
    pub(super) fn find_namespace_conflict(&self, entries: &[ScheduleListEntry]) -> Option<NamespaceConflict> {
        let owner = self.settings.owner.as_ref();
        let has_twin_in = |folder: &Path| owner.is_some_and(|owner| owner.has_twin_in(folder));
        let reason = find_conflict(&list_owned_schedules(entries), owner, has_twin_in)?;
        // A vault that was copied with its server's database uses the copy; what lies in its own database is its own.
        let is_harmless = self.settings.private_server && !matches!(reason, ConflictReason::AnotherVault { .. });
        (!is_harmless).then(|| self.build_namespace_conflict(reason))
    }

    fn build_namespace_conflict(&self, reason: ConflictReason) -> NamespaceConflict {
        NamespaceConflict { reason, namespace: self.namespace(), folder: self.settings.folder.clone() }
    }

    /// Makes sure that this vault may use the namespace, before anything is served.
    ///
    /// The listing lags behind, so of two vaults that begin at one moment both may find nothing. The server takes one
    /// schedule of an id, so only one of them creates the first routine, and the other reads in it whose it is.
    ///
    /// # Errors
    /// [`RegistrarError::Conflict`] when the namespace is another vault's; other errors when the server gives no answer.
    pub(crate) async fn claim_namespace(&self) -> Result<(), RegistrarError> {
        let entries = self.list_entries().await?;
        if let Some(conflict) = self.find_namespace_conflict(&entries) {
            return Err(Box::new(conflict).into());
        }
        let [first, ..] = &ROUTINES;
        if self.create_schedule(first.id, routine::build_routine_schedule(first, &self.settings)).await? {
            return Ok(());
        }
        let Some(found) = self.describe_schedule(first.id).await? else { return Ok(()) };
        let schedule = found.schedule.unwrap_or_default();
        let mark = ScheduleMark::find_in_spec(schedule.spec.as_ref())
            .filter(|_| facts::find_workflow_type(&schedule) == first.workflow);
        match mark {
            Some(ScheduleMark { vault: Some(vault), place, .. }) if self.settings.is_foreign_vault(Some(vault)) => {
                Err(Box::new(self.build_namespace_conflict(ConflictReason::AnotherVault { vault, place })).into())
            }
            _ => Ok(()),
        }
    }

    /// Makes sure that the first routine, if there is one, is not that of another vault; for a command that asks whoever
    /// serves the namespace to change something.
    ///
    /// # Errors
    /// [`RegistrarError::Conflict`] when it is; other errors when the server gives no answer.
    pub(crate) async fn check_owner(&self) -> Result<(), RegistrarError> {
        let [first, ..] = &ROUTINES;
        let Some(found) = self.describe_schedule(first.id).await? else { return Ok(()) };
        let mark = found.schedule.and_then(|schedule| ScheduleMark::find_in_spec(schedule.spec.as_ref()));
        let Some(ScheduleMark { vault: Some(vault), place, .. }) = mark else { return Ok(()) };
        let listed = [OwnedSchedule { id: first.id.to_owned(), paused: false, vault: Some(vault), place }];
        let owner = self.settings.owner.as_ref();
        let has_twin_in = |folder: &Path| owner.is_some_and(|owner| owner.has_twin_in(folder));
        match find_conflict(&listed, owner, has_twin_in) {
            Some(reason) => Err(Box::new(self.build_namespace_conflict(reason)).into()),
            None => Ok(()),
        }
    }

    /// The schedules that are not this vault's, or may not be: what [`ScheduleRegistrar::adopt`] takes over.
    ///
    /// # Errors
    /// [`RegistrarError::Listing`].
    pub(crate) async fn list_adoptable(&self) -> Result<Vec<OwnedSchedule>, RegistrarError> {
        let entries = self.list_entries().await?;
        let owner = self.settings.owner.as_ref();
        let is_settled = |each: &OwnedSchedule| {
            let place = each.place.as_ref();
            owner.is_some_and(|owner| each.vault == Some(owner.id) && place.is_none_or(|place| *place == owner.place))
        };
        Ok(list_owned_schedules(&entries).into_iter().filter(|each| !is_settled(each)).collect())
    }

    /// Makes schedules this vault's, whosever they were; nothing else in them changes. Every one is tried.
    pub(crate) async fn adopt_all(&self, ids: Vec<String>) -> Vec<RegistrarError> {
        let mut progress = self.start_progress("schedules adopted", ids.len());
        let mut adopted = stream::iter(ids)
            .map(async |id| self.edit_schedule_if(&id, |_| Ok(()), |_| ()).await)
            .buffer_unordered(apply::AT_ONCE);
        let mut errors = Vec::new();
        while let Some(result) = adopted.next().await {
            progress.advance();
            errors.extend(result.err());
        }
        errors
    }
}

#[cfg(test)]
mod tests;
