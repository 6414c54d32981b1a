//! The owner of a namespace: the vault whose id its schedules carry.
//!
//! All schedules of a namespace share the routines and the task queue, so a namespace belongs to one vault.
//! [`find_conflict`] decides that from a listing, and [`ScheduleRegistrar::claim_namespace`] checks it before a vault
//! is served. The schedules of another vault must not be changed; only `steward schedules adopt` takes them over.

use super::apply;
use super::facts;
use super::routine::{self, ROUTINES};
use super::server::RegistrarError;
use super::{ScheduleRegistrar, ScheduleSettings};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use steward_domain::fleet::names::VaultNames;
use steward_server::views::schedules::mark::ScheduleMark;
use steward_server::views::schedules::{self, is_steward_schedule};
use steward_vault::files::identity::{VaultId, VaultIdentity, VaultPlace};
use temporalio_common::protos::temporal::api::schedule::v1::ScheduleListEntry;

/// A schedule of Steward, of any vault, as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct OwnedSchedule {
    pub(crate) id: String,
    pub(crate) paused: bool,
    /// The vault that it names, if any.
    pub(crate) vault: Option<VaultId>,
    /// The place of that vault, if the schedule names it. Untrusted.
    pub(crate) place: Option<VaultPlace>,
}

/// Why a vault must not use a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ConflictReason {
    /// Schedules carry the id of another vault.
    AnotherVault { vault: VaultId, place: Option<VaultPlace> },
    /// The schedules belong to a vault of which this one is a copy.
    Copy { place: VaultPlace },
    /// The schedules carry the id of this vault, but were registered in another folder on another machine.
    OtherHost { place: VaultPlace },
    /// The schedules name no vault, and none carries the id of this one.
    Unmarked { schedules: usize },
    /// This vault has no tenant, and tenants share the namespace.
    SharedByTenants { tenant: String },
    /// This vault is a tenant's, and a vault without a tenant has the namespace alone.
    HeldAlone,
}

/// A namespace whose schedules belong to another vault, or may belong to one.
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
                 moved from there or is a copy of it, and nothing here shows which",
                describe_place(place)
            )?,
            ConflictReason::SharedByTenants { tenant } => {
                return write!(
                    f,
                    "namespace `{namespace}` is shared by tenants, such as {tenant}, and this vault, {folder}, has none: set \
                     STEWARD_TENANT and STEWARD_FLEET_DB, or give it a namespace of its own (TEMPORAL_NAMESPACE)"
                );
            }
            ConflictReason::HeldAlone => {
                return write!(
                    f,
                    "namespace `{namespace}` belongs to one vault alone, and this vault, {folder}, is a tenant's: use the \
                     namespace that `steward fleet init` made (TEMPORAL_NAMESPACE)"
                );
            }
            ConflictReason::Unmarked { schedules } => write!(
                f,
                "namespace `{namespace}` holds {schedules} schedules of Steward without a vault id, and this vault is \
                 {folder}"
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

/// Finds the reason why a vault must not use a namespace with these schedules; `None` if it may.
///
/// `owner` is `None` if the vault has no id yet. `has_twin_in` reports whether a folder of this machine holds another
/// vault with the same id.
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
    let mut places = listed.iter().filter_map(|each| each.place.as_ref());
    places.find_map(|registered| find_copy_conflict(registered, here, &has_twin_in))
}

/// Finds a reason why the vault at the registered place may be another one than the vault here.
fn find_copy_conflict(
    registered: &VaultPlace,
    here: &VaultPlace,
    has_twin_in: impl Fn(&Path) -> bool,
) -> Option<ConflictReason> {
    let same_host = registered.host == here.host;
    if registered.file == here.file || (same_host && registered.folder == here.folder) {
        return None;
    }
    if !same_host {
        return Some(ConflictReason::OtherHost { place: registered.clone() });
    }
    has_twin_in(Path::new(&registered.folder)).then(|| ConflictReason::Copy { place: registered.clone() })
}

/// Lists the schedules of Steward in a listing.
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
    /// Finds the conflict of this vault with a listing of the namespace.
    pub(super) fn find_namespace_conflict(&self, entries: &[ScheduleListEntry]) -> Option<NamespaceConflict> {
        let owner = self.settings.owner.as_ref();
        let has_twin_in = |folder: &Path| owner.is_some_and(|owner| owner.has_twin_in(folder));
        let reason = find_conflict(&list_owned_schedules(entries), owner, has_twin_in)?;
        // A vault that was copied together with its server's database uses the copied server, so its schedules are its
        // own.
        let is_harmless = (self.settings.private_server || self.is_copy_decided())
            && !matches!(reason, ConflictReason::AnotherVault { .. });
        (!is_harmless).then(|| self.build_namespace_conflict(reason))
    }

    /// Whether the database of the fleet says which copy of the vault may act.
    fn is_copy_decided(&self) -> bool {
        self.settings.names.tenant().is_some()
    }

    fn build_namespace_conflict(&self, reason: ConflictReason) -> NamespaceConflict {
        NamespaceConflict { reason, namespace: self.namespace(), folder: self.settings.folder.clone() }
    }

    /// Claims the namespace for this vault, before anything is served. Returns whether this call created the first
    /// routine.
    ///
    /// The listing lags behind, so two vaults that start at the same moment may both find it empty. The server accepts
    /// only one schedule with an id. So only one of them creates the first routine, and the other finds the owner in
    /// it.
    ///
    /// # Errors
    /// [`RegistrarError::Conflict`] if the namespace belongs to another vault; other errors if the server does not
    /// answer.
    pub(crate) async fn claim_namespace(&self) -> Result<bool, RegistrarError> {
        if let Some(reason) = self.find_mixed_use().await? {
            return Err(Box::new(self.build_namespace_conflict(reason)).into());
        }
        let entries = self.list_entries().await?;
        if let Some(conflict) = self.find_namespace_conflict(&entries) {
            return Err(Box::new(conflict).into());
        }
        let [first, ..] = &ROUTINES;
        if self.create_schedule(first.id, routine::build_routine_schedule(first, &self.settings)).await? {
            return Ok(true);
        }
        let Some(found) = self.describe_schedule(first.id).await? else { return Ok(false) };
        let schedule = found.schedule.unwrap_or_default();
        let mark = ScheduleMark::find_in_spec(schedule.spec.as_ref())
            .filter(|_| facts::find_workflow_type(&schedule) == first.workflow);
        match mark {
            Some(ScheduleMark { vault: Some(vault), place, .. }) if self.settings.is_foreign_vault(Some(vault)) => {
                Err(Box::new(self.build_namespace_conflict(ConflictReason::AnotherVault { vault, place })).into())
            }
            _ => Ok(false),
        }
    }

    /// Finds out whether a vault alone and tenants would share the namespace. Each has the first routine, under another
    /// id.
    async fn find_mixed_use(&self) -> Result<Option<ConflictReason>, RegistrarError> {
        if self.settings.names.tenant().is_none() {
            let tenant = schedules::find_any_tenant(&self.client).await?;
            return Ok(tenant.map(|tenant| ConflictReason::SharedByTenants { tenant }));
        }
        let [first, ..] = &ROUTINES;
        let alone = ScheduleSettings { names: VaultNames::default(), ..self.settings.clone() };
        let found = Self { settings: alone, ..self.clone() }.describe_schedule(first.id).await?;
        Ok(found.map(|_| ConflictReason::HeldAlone))
    }

    /// Checks that the first routine, if it exists, does not belong to another vault. Commands call this before they
    /// ask the process that serves the namespace for a change.
    ///
    /// # Errors
    /// [`RegistrarError::Conflict`] if it does; other errors if the server does not answer.
    pub(crate) async fn check_owner(&self) -> Result<(), RegistrarError> {
        let [first, ..] = &ROUTINES;
        let Some(found) = self.describe_schedule(first.id).await? else { return Ok(()) };
        let mark = found.schedule.and_then(|schedule| ScheduleMark::find_in_spec(schedule.spec.as_ref()));
        let Some(ScheduleMark { vault: Some(vault), place, .. }) = mark else { return Ok(()) };
        let listed = [OwnedSchedule { id: first.id.to_owned(), paused: false, vault: Some(vault), place }];
        let owner = self.settings.owner.as_ref();
        let has_twin_in = |folder: &Path| owner.is_some_and(|owner| owner.has_twin_in(folder));
        match find_conflict(&listed, owner, has_twin_in) {
            Some(reason) if matches!(reason, ConflictReason::AnotherVault { .. }) || !self.is_copy_decided() => {
                Err(Box::new(self.build_namespace_conflict(reason)).into())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Lists the schedules that belong to another vault, or may: those that [`ScheduleRegistrar::adopt_all`] takes
    /// over.
    ///
    /// # Errors
    /// [`RegistrarError::Listing`].
    pub(crate) async fn list_adoptable(&self) -> Result<Vec<OwnedSchedule>, RegistrarError> {
        let entries = self.list_entries().await?;
        let owner = self.settings.owner.as_ref();
        let is_ours = |each: &OwnedSchedule| {
            let place = each.place.as_ref();
            owner.is_some_and(|owner| each.vault == Some(owner.id) && place.is_none_or(|place| *place == owner.place))
        };
        Ok(list_owned_schedules(&entries).into_iter().filter(|each| !is_ours(each)).collect())
    }

    /// Assigns schedules of any owner to this vault; nothing else in them changes. A failure does not stop the others.
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
