//! The check of `steward doctor` that concerns the log of calls of assistants: whether each call can have its line.
//!
//! Without the log no assistant is answered, so a fault should be known before a client asks.

use super::DoctorFindings;
use steward_server::mcp::find_call_log_fault;
use steward_vault::files::root::VaultRoot;

/// Checks the log of calls. A vault whose log is in order, or that has none yet, has no finding.
pub(super) fn check_call_log(root: &VaultRoot, findings: &mut DoctorFindings) {
    if let Some(fault) = find_call_log_fault(root) {
        findings.add_fault("call log", fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_of_a_missing_line_is_a_fault() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let check = || {
            let mut findings = DoctorFindings::default();
            check_call_log(&root, &mut findings);
            findings.list().iter().map(|it| it.found.clone()).collect::<Vec<_>>()
        };
        assert_eq!(check(), Vec::<String>::new());
        let logs = dir.path().join(".steward/logs");
        std::fs::create_dir_all(&logs).unwrap();
        assert_eq!(check(), Vec::<String>::new());
        std::fs::write(logs.join("mcp-incomplete"), "").unwrap();
        let found = check();
        assert!(found.len() == 1 && found[0].contains(".steward/logs/mcp-incomplete"), "{found:?}");
    }
}
