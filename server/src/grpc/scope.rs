//! What each rpc needs.
//!
//! The comments of the contract say the same, and a test holds one against the other. An rpc that nobody has listed here
//! wants the most, so that a new one is never open by oversight.

use crate::access::AccessScope;

/// How the names of those begin that only look.
const LOOK: [&str; 4] = ["List", "Get", "Preview", "Watch"];
const ACT: [&str; 6] =
    ["UndoAction", "ConfirmAction", "DismissAction", "EditAndConfirmAction", "AnswerTogether", "PullBrake"];
/// Of reflection, its only one.
const REFLECTION: &str = "ServerReflectionInfo";

/// What somebody needs to ask this; one that is not known wants the most.
pub(super) fn required_scope(rpc: &str) -> AccessScope {
    if LOOK.iter().any(|word| rpc.starts_with(word)) || rpc == REFLECTION {
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
    fn said() -> Vec<(String, String)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/steward/v1");
        let mut said = Vec::new();
        for file in fs::read_dir(folder).unwrap() {
            let (text, mut comment) = (fs::read_to_string(file.unwrap().path()).unwrap(), String::new());
            for line in text.lines().map(str::trim) {
                if let Some(words) = line.strip_prefix("// ") {
                    comment = format!("{comment} {words}");
                    continue;
                }
                if let Some(rpc) = line.strip_prefix("rpc ") {
                    let scope = comment.split("Scope: ").nth(1).unwrap().split('.').next().unwrap();
                    said.push((rpc.split('(').next().unwrap().to_owned(), scope.to_owned()));
                }
                comment.clear();
            }
        }
        said
    }

    #[test]
    fn every_rpc_needs_what_its_comment_says() {
        let said = said();
        assert_eq!(said.len(), 24, "{said:?}");
        for (rpc, scope) in said {
            assert_eq!(required_scope(&rpc).as_str(), scope, "{rpc}");
        }
    }

    #[test]
    fn what_is_not_known_wants_the_most() {
        assert_eq!(required_scope("EraseVault"), AccessScope::Operate);
        assert_eq!(required_scope(""), AccessScope::Operate);
    }
}
