//! The check of `steward doctor` that concerns wikis: whether an assistant gets the guide of each.
//!
//! A guide that is too long is refused, so that should be known before a client asks. No page is read.

use super::DoctorFindings;
use std::path::Path;
use steward_server::mcp::list_guide_faults;
use steward_vault::files::root::VaultRoot;

/// Checks the guides of all wikis. A vault without wikis has no finding.
pub(super) fn check_guides(root: &VaultRoot, state: &Path, findings: &mut DoctorFindings) {
    match list_guide_faults(root, state) {
        Ok(faults) => faults.into_iter().for_each(|fault| findings.add_fault("wiki guide", fault)),
        Err(e) => findings.add_fault("wiki guide", e.to_string()),
    }
}
