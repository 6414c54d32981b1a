//! What narrows a token: toolsets, one wiki, and whether pages may be written.
//!
//! A token with any limit is one for an assistant. It opens `/mcp` alone, because every other interface shows the whole vault.

use super::{AccessError, AccessScope};
use serde::{Deserialize, Serialize};

/// A set of tools for assistants.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::Display, strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Toolset {
    /// Wikis: read their pages, and write them through runs.
    Wiki,
    /// What the stewards did, and taking it back.
    Steward,
}

/// What an assistant may do with wikis.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::Display, strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WikiRight {
    Read,
    /// Also stage changes, which the verifier judges.
    Write,
}

/// The limits of a token; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenLimits {
    /// The toolsets; all of them if there are none here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Toolset>,
    /// The one wiki that is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wiki: Option<WikiRight>,
}

impl TokenLimits {
    #[must_use]
    pub fn is_limited(&self) -> bool {
        *self != Self::default()
    }

    /// Checks that the limits fit each other and the scope.
    ///
    /// # Errors
    /// [`AccessError::Limits`] with the fix.
    pub fn check(&self, scope: AccessScope) -> Result<(), AccessError> {
        if self.workspace.is_some() && self.tools.contains(&Toolset::Steward) {
            let reason = "the tools of the stewards show the whole vault, so they cannot be limited to one wiki: leave out \
                `--workspace`, or `steward` in `--tools`";
            return Err(AccessError::Limits { reason });
        }
        if self.is_limited() && scope == AccessScope::Operate {
            let reason =
                "a token with limits opens `/mcp` alone, where nothing needs the scope `operate`: use `act` or `read`";
            return Err(AccessError::Limits { reason });
        }
        Ok(())
    }

    /// The limits in words, for a list of tokens; empty without any.
    #[must_use]
    pub fn describe(&self) -> String {
        let tools: Vec<String> = self.tools.iter().map(Toolset::to_string).collect();
        let parts = [
            (!tools.is_empty()).then(|| format!("tools {}", tools.join(", "))),
            self.workspace.as_ref().map(|workspace| format!("wiki {workspace}")),
            self.wiki.map(|right| format!("pages {right}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_fit_each_other_and_the_scope() {
        let pinned = TokenLimits { workspace: Some("acme".to_owned()), ..TokenLimits::default() };
        assert!(pinned.check(AccessScope::Act).is_ok() && pinned.check(AccessScope::Operate).is_err());
        assert!(TokenLimits::default().check(AccessScope::Operate).is_ok());
        let both = TokenLimits { tools: vec![Toolset::Steward], ..pinned.clone() };
        assert!(both.check(AccessScope::Read).is_err());
        let all = TokenLimits { tools: vec![Toolset::Wiki], wiki: Some(WikiRight::Read), ..pinned };
        assert_eq!(all.describe(), "tools wiki; wiki acme; pages read");
        assert_eq!((TokenLimits::default().describe(), TokenLimits::default().is_limited()), (String::new(), false));
    }
}
