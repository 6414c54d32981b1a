//! The disks of a vault: whether they can be written, and whether a change can be made live there.
//!
//! The check writes files of its own and removes them. A folder that does not exist yet is not created.

use super::DoctorFindings;
use std::path::Path;
use steward_vault::files::disk::check_writable;
use steward_vault::files::root::OWN_FOLDER;
use steward_vault::files::storage::check_storage;

/// Checks the disk of the vault and that of its state.
pub(super) fn check_disks(vault: &Path, state: &Path, findings: &mut DoctorFindings) {
    let is_writable = check_disk("vault disk", vault, findings);
    check_disk("state disk", state, findings);
    // In its own folder, so that no program that copies notes sees the files.
    let own = vault.join(OWN_FOLDER);
    if !is_writable || !own.exists() {
        return;
    }
    match check_storage(&own) {
        Ok(()) => findings.add_ok("storage", "can exchange files, keeps what is there, and is not shared"),
        Err(e) => findings.add_fault("storage", e.to_string()),
    }
}

/// Whether the folder exists and can be written.
fn check_disk(check: &'static str, folder: &Path, findings: &mut DoctorFindings) -> bool {
    if !folder.exists() {
        findings.add_ok(check, format!("{}: does not exist yet", folder.display()));
        return false;
    }
    let found = check_writable(folder);
    let is_writable = found.is_ok();
    match found {
        Ok(free) => findings.add_ok(check, format!("{}: writable, {} GB free", folder.display(), free / 1_000_000_000)),
        Err(e) => findings.add_fault(check, e.to_string()),
    }
    is_writable
}
