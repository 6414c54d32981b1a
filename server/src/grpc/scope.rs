//! The scope that each rpc needs.
//!
//! The comments of the contract name the same scopes, and a test compares the two. An rpc that is not listed here needs
//! the highest scope, so that a new one is never open by mistake.

use crate::access::AccessScope;

/// The first words of the rpcs that only read.
const READ_PREFIXES: [&str; 4] = ["List", "Get", "Preview", "Watch"];
const ACT: [&str; 8] = [
    "UndoAction",
    "ConfirmAction",
    "DismissAction",
    "EditAndConfirmAction",
    "ResolveBatch",
    "Stop",
    "RejectWikiRun",
    "RevertWikiRun",
];
/// The only rpc of reflection.
const REFLECTION: &str = "ServerReflectionInfo";

/// The scope that an rpc needs; the highest for an unknown one.
pub(super) fn required_scope(rpc: &str) -> AccessScope {
    if READ_PREFIXES.iter().any(|prefix| rpc.starts_with(prefix)) || rpc == REFLECTION {
        AccessScope::Read
    } else if ACT.contains(&rpc) {
        AccessScope::Act
    } else {
        AccessScope::Operate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Every rpc of the contract with the word after `Scope:` in its comment.
    fn read_contract_scopes() -> Vec<(String, String)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/steward/v1");
        let mut scopes = Vec::new();
        for file in fs::read_dir(folder).unwrap() {
            let (text, mut comment) = (fs::read_to_string(file.unwrap().path()).unwrap(), String::new());
            for line in text.lines().map(str::trim) {
                if let Some(words) = line.strip_prefix("// ") {
                    comment = format!("{comment} {words}");
                    continue;
                }
                if let Some(rpc) = line.strip_prefix("rpc ") {
                    let scope = comment.split("Scope: ").nth(1).unwrap().split('.').next().unwrap();
                    scopes.push((rpc.split('(').next().unwrap().to_owned(), scope.to_owned()));
                }
                comment.clear();
            }
        }
        scopes
    }

    #[test]
    fn every_rpc_needs_the_scope_in_its_comment() {
        let scopes = read_contract_scopes();
        assert_eq!(scopes.len(), 31, "{scopes:?}");
        for (rpc, scope) in scopes {
            assert_eq!(required_scope(&rpc).as_str(), scope, "{rpc}");
        }
    }

    #[test]
    fn an_unknown_rpc_needs_the_highest_scope() {
        assert_eq!(required_scope("EraseVault"), AccessScope::Operate);
        assert_eq!(required_scope(""), AccessScope::Operate);
    }
}
