//! What tools may read: the wikis of a vault, its index, and the key of its fences.
//!
//! The index is opened when a call first needs it, and the files are read where there is none.

use super::admission::CallLimits;
use super::attachments::AttachmentsByWiki;
use super::call_log::CALL_LOG;
use super::caller::McpCaller;
use super::error::{ToolError, ToolErrorCode, shorten_outside, show_reason};
use super::fence::FenceKey;
use super::workspace::Workspace;
use crate::access::{AccessError, SecretStore};
use crate::http::app::SharedAppState;
use crate::temporal::resolve::ResolutionClient;
use crate::views::VaultViews;
use crate::views::wiki::{NoteMapping, WikiIndex};
use futures_util::future::BoxFuture;
use std::path::Path;
use std::sync::Arc;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::schema::NoteSchema;
use steward_vault::files::day_log::DayLog;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::create::list_wikis;
use steward_vault::wiki::folder::WikiFolder;

/// The key from which the marks of fences follow.
pub(crate) const FENCE_KEY: &str = "mcp";

/// Reaches the process that holds the vault, when a call first needs it. An error says why it cannot be reached.
pub type ConnectHolder = Arc<dyn Fn() -> BoxFuture<'static, Result<ResolutionClient, String>> + Send + Sync>;

/// A vault as tools see it.
pub struct McpVault {
    root: VaultRoot,
    pub(crate) wikis: WikiIndex,
    pub(crate) fences: FenceKey,
    pub(crate) log: DayLog,
    pub(crate) limits: Arc<CallLimits>,
    pub(crate) secrets: SecretStore,
    /// What belongs to each wiki beside its files.
    pub(crate) attachments: AttachmentsByWiki,
    connect: ConnectHolder,
    /// What the other interfaces of this process know; `None` over stdio.
    pub(crate) app: Option<SharedAppState>,
}

impl McpVault {
    /// Opens a vault for a process without its index. The state folder gets a key if it has none.
    ///
    /// # Errors
    /// [`AccessError`] if the key can be neither read nor made.
    pub fn open(root: VaultRoot, state: &Path, connect: ConnectHolder) -> Result<Self, AccessError> {
        Self::new(root, SecretStore::new(state), WikiIndex::new(state), connect)
    }

    /// A vault with its index.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn new(
        root: VaultRoot,
        secrets: SecretStore,
        wikis: WikiIndex,
        connect: ConnectHolder,
    ) -> Result<Self, AccessError> {
        let fences = FenceKey::new(&secrets.ensure_key(FENCE_KEY)?);
        let log = DayLog::new(root.clone(), CALL_LOG);
        let attachments = AttachmentsByWiki::default();
        Ok(Self { root, wikis, fences, log, limits: Arc::default(), secrets, attachments, connect, app: None })
    }

    /// Reads notes by the mapping of the vault. `accepted` holds the hashes of all mappings that were ever accepted.
    #[must_use]
    pub fn with_mapping(self, schema: NoteSchema, accepted: Vec<ContentHash>) -> Self {
        Self { wikis: self.wikis.with_mapping(NoteMapping { schema, accepted }), ..self }
    }

    pub(crate) fn with_app(self, app: SharedAppState) -> Self {
        Self { app: Some(app), ..self }
    }

    /// What the other interfaces show of the vault.
    ///
    /// # Errors
    /// [`ToolErrorCode::EngineAway`] without an index.
    pub(crate) async fn open_views(&self) -> Result<VaultViews, ToolError> {
        if let Some(app) = &self.app {
            return Ok(app.views.clone());
        }
        self.wikis.open_views(&self.root).await.ok_or_else(|| {
            let what = "there is no index of this vault yet";
            ToolError::new(ToolErrorCode::EngineAway, what, "Start `steward up`, which makes one, then try again")
        })
    }

    /// Adds what the configuration says to belong to each wiki.
    #[must_use]
    pub fn with_attachments(self, attachments: AttachmentsByWiki) -> Self {
        Self { attachments, ..self }
    }

    /// The process that holds the vault.
    ///
    /// # Errors
    /// [`ToolErrorCode::EngineAway`].
    pub(crate) async fn reach_holder(&self) -> Result<ResolutionClient, ToolError> {
        (self.connect)().await.map_err(|reason| {
            let what = format!("the process that holds the vault is not reached: {}", show_reason(&reason));
            ToolError::new(ToolErrorCode::EngineAway, what, "Start it with `steward up`, then try again")
        })
    }

    pub(crate) fn root(&self) -> &VaultRoot {
        &self.root
    }

    /// The names of the workspaces that a caller sees, sorted.
    ///
    /// # Errors
    /// The wikis cannot be listed.
    pub(crate) fn list_workspaces(&self, caller: &McpCaller) -> Result<Vec<String>, ToolError> {
        let known = list_wikis(&self.root).map_err(ToolError::internal)?.into_iter().map(|(name, _)| name);
        Ok(known.filter(|name| caller.workspace.as_ref().is_none_or(|pin| pin == name)).collect())
    }

    /// Opens the workspace that a call names. A caller with one workspace need not name it.
    ///
    /// # Errors
    /// [`ToolErrorCode::WorkspaceRequired`], [`ToolErrorCode::WorkspaceNotAccessible`].
    pub(crate) fn open_workspace(&self, caller: &McpCaller, named: Option<&str>) -> Result<Workspace<'_>, ToolError> {
        let known = list_wikis(&self.root).map_err(ToolError::internal)?;
        let is_seen = |name: &str| caller.workspace.as_deref().is_none_or(|pin| pin == name);
        let names =
            known.iter().map(|(name, _)| name.as_str()).filter(|name| is_seen(name)).collect::<Vec<_>>().join(", ");
        let choose = match names.as_str() {
            "" => "The vault has no wiki yet: `steward wiki init` makes one".to_owned(),
            names => format!("Use one of: {names}"),
        };
        let Some(name) = named.or(caller.workspace.as_deref()) else {
            let what = "every call names its workspace";
            return Err(ToolError::new(ToolErrorCode::WorkspaceRequired, what, choose));
        };
        let Some((name, path)) = known.iter().find(|(known, _)| known == name && is_seen(name)) else {
            let what = format!("there is no workspace `{}` here", shorten_outside(name));
            return Err(ToolError::new(ToolErrorCode::WorkspaceNotAccessible, what, choose));
        };
        let folder = WikiFolder::open(path).map_err(ToolError::internal)?;
        Ok(Workspace { name: name.clone(), folder, vault: self })
    }
}
