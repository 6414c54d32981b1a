//! The mapping of a vault's notes, as `steward doctor` reports it.
//!
//! It compares what the vault proposes with what a person accepted, and names the notes that are left out. It changes
//! nothing.

use super::DoctorFindings;
use crate::commands::moved::describe_lost_note;
use crate::config::mapping::{MappingStatus, describe_acceptance, describe_mapping};
use steward_domain::record::schema::is_sync_copy;
use steward_domain::time::format_millis;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;

/// The most notes that are listed as left out.
const MOST_LEFT_OUT: u32 = 100;

/// Checks whether `[map]` in the vault is the mapping that a person accepted.
pub(super) fn check_mapping(mapping: &MappingStatus, root: Option<&VaultRoot>, findings: &mut DoctorFindings) {
    if let Some(root) = root {
        list_sync_copies(root, findings);
    }
    match mapping {
        MappingStatus::Unmapped => {
            if let Some(Err(e)) = root.map(|root| mapping.refuse_unmapped_notes(root)) {
                findings.add_fault("mapping", e.to_string());
            }
        }
        MappingStatus::NotAccepted(e) => findings.add_fault("mapping", e.to_string()),
        MappingStatus::Broken(e) => findings.add_fault("mapping", e.to_string()),
        MappingStatus::InForce(found) if found.differences.is_empty() => {
            let (since, read) = (format_millis(found.accepted.accepted_at), describe_mapping(&found.accepted.mapping));
            findings.add_ok("mapping", format!("in force since {since}: {read}"));
        }
        MappingStatus::InForce(found) => {
            let (differences, advice) = (found.differences.join("; "), describe_acceptance(&found.differences));
            findings.add_fault("mapping", format!("not accepted: {differences}; {advice}"));
        }
    }
}

/// Names copies of the vault's `steward.toml` that a sync tool made. They are ignored.
fn list_sync_copies(root: &VaultRoot, findings: &mut DoctorFindings) {
    let entries = std::fs::read_dir(root.path()).into_iter().flatten().flatten();
    for name in entries.map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        if name.starts_with("steward") && name.ends_with(".toml") && is_sync_copy(&name) {
            findings.add_fault(
                "mapping",
                format!("{name}: a copy that a sync tool made is ignored: merge it into steward.toml"),
            );
        }
    }
}

/// Lists the notes that Steward has acted on and misses.
pub(super) async fn list_lost_notes(index: &Index, findings: &mut DoctorFindings) -> anyhow::Result<()> {
    for note in index.list_lost_notes().await? {
        findings.add_fault("moved note", describe_lost_note(&note));
    }
    Ok(())
}

/// Lists the notes that would be matters or tasks and are left out. That is no fault.
pub(super) async fn list_left_out(index: &Index, findings: &mut DoctorFindings) -> anyhow::Result<()> {
    let left_out = index.list_excluded_notes("", MOST_LEFT_OUT).await?;
    for note in &left_out {
        findings.add_note("left out", format!("{}: {}", note.path, note.exclusion));
    }
    if left_out.len() as u64 == u64::from(MOST_LEFT_OUT) {
        let total: u64 = index.count_excluded_notes().await?.iter().map(|(_, count)| count).sum();
        findings.add_note("left out", format!("and {} more", total.saturating_sub(u64::from(MOST_LEFT_OUT))));
    }
    Ok(())
}
