//! Who calls a tool, which wikis they may see, and what they may do.
//!
//! Over stdio that is the operating system's user who started the process, within the limits of its command. Over HTTP it is a token, and its rights
//! are looked up at every request.

use crate::access::{AccessScope, AuthenticatedCaller, Toolset, WikiRight};
use std::collections::BTreeSet;

/// A caller of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpCaller {
    /// As the log names them.
    pub name: String,
    /// The one workspace that they see; all of the vault without it.
    pub workspace: Option<String>,
    pub tools: BTreeSet<Toolset>,
    pub wiki: WikiRight,
    /// Whether they may resolve actions of stewards.
    pub may_act: bool,
}

/// What a tool needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolNeed {
    Read,
    /// To stage changes of wikis.
    Write,
    /// To resolve actions.
    Act,
    /// A stop makes things safer, so either suffices. An undo of an own run needs no more than the run did.
    WriteOrAct,
}

impl McpCaller {
    /// The caller of a token, at the address of one wiki or of all.
    pub(crate) fn from_token(caller: &AuthenticatedCaller, addressed: Option<&str>) -> Self {
        let may_act = caller.scope >= AccessScope::Act;
        let granted = if may_act { WikiRight::Write } else { WikiRight::Read };
        let limits = &caller.limits;
        let workspace = limits.workspace.as_deref().or(addressed).map(str::to_owned);
        Self::new(caller.name.clone(), workspace, &limits.tools, limits.wiki.unwrap_or(granted), may_act)
    }

    /// A caller with the toolsets that fit: whoever sees one wiki sees no tools of the whole vault. Without the tools of the stewards they
    /// resolve no action of a steward either, only runs of their own.
    #[must_use]
    pub fn new(name: String, workspace: Option<String>, tools: &[Toolset], wiki: WikiRight, may_act: bool) -> Self {
        let mut tools: BTreeSet<Toolset> = match tools {
            [] => BTreeSet::from([Toolset::Wiki, Toolset::Steward]),
            tools => tools.iter().copied().collect(),
        };
        if workspace.is_some() {
            tools.remove(&Toolset::Steward);
        }
        let may_act = may_act && tools.contains(&Toolset::Steward);
        Self { name, workspace, tools, wiki, may_act }
    }

    pub(crate) fn has(&self, need: ToolNeed) -> bool {
        let may_write = self.wiki >= WikiRight::Write;
        match need {
            ToolNeed::Read => true,
            ToolNeed::Write => may_write,
            ToolNeed::Act => self.may_act,
            ToolNeed::WriteOrAct => may_write || self.may_act,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{CallerProof, TokenLimits};

    fn caller(scope: AccessScope, limits: TokenLimits) -> AuthenticatedCaller {
        AuthenticatedCaller { name: "token:x#1".to_owned(), scope, proof: CallerProof::Token, limits }
    }

    #[test]
    fn a_scope_gives_rights_and_limits_narrow_them() {
        let read = McpCaller::from_token(&caller(AccessScope::Read, TokenLimits::default()), None);
        assert_eq!((read.wiki, read.may_act, read.tools.len()), (WikiRight::Read, false, 2));
        let act = McpCaller::from_token(&caller(AccessScope::Act, TokenLimits::default()), Some("acme"));
        assert_eq!(
            (act.wiki, act.may_act),
            (WikiRight::Write, false),
            "whoever sees one wiki resolves no action of a steward"
        );
        let wiki = TokenLimits { tools: vec![Toolset::Wiki], ..TokenLimits::default() };
        assert!(!McpCaller::from_token(&caller(AccessScope::Act, wiki), None).may_act);
        assert!(McpCaller::from_token(&caller(AccessScope::Act, TokenLimits::default()), None).may_act);
        assert_eq!((act.workspace.as_deref(), act.tools), (Some("acme"), BTreeSet::from([Toolset::Wiki])));
        let writer = TokenLimits { wiki: Some(WikiRight::Write), ..TokenLimits::default() };
        let writer = McpCaller::from_token(&caller(AccessScope::Read, writer), None);
        assert!(writer.has(ToolNeed::Write) && writer.has(ToolNeed::WriteOrAct) && !writer.has(ToolNeed::Act));
        let reader = TokenLimits { wiki: Some(WikiRight::Read), ..TokenLimits::default() };
        let reader = McpCaller::from_token(&caller(AccessScope::Act, reader), None);
        assert!(!reader.has(ToolNeed::Write) && reader.has(ToolNeed::WriteOrAct) && reader.has(ToolNeed::Act));
    }
}
