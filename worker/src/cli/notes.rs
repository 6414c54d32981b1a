//! The arguments of the commands about a person's own notes.
//!
//! They are declared here and explained in `docs/your-vault.md`. The command `init` proposes how notes are read, and
//! `moved` says where one is.

use clap::Args;
use std::path::PathBuf;

/// The options of `steward init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The vault, as with --vault
    #[arg(value_name = "VAULT")]
    pub(crate) vault_folder: Option<PathBuf>,
    /// Accept the proposal without asking, and write it into the vault's steward.toml
    #[arg(long)]
    pub(crate) yes: bool,
    /// Accept `[map]` as it stands in the vault's steward.toml
    #[arg(long)]
    pub(crate) accept: bool,
    /// Keep Steward's own files in this folder of the vault; an existing one is moved there
    #[arg(long, value_name = "PATH")]
    pub(crate) folder: Option<String>,
    /// Look after a vault that another machine looked after, once Steward was ended there
    #[arg(long)]
    pub(crate) take_over: bool,
}

/// The arguments of `steward moved`.
#[derive(Debug, Args)]
pub(crate) struct MovedArgs {
    /// The path that the note had
    pub(crate) old: Option<String>,
    /// The path that it has now
    pub(crate) new: Option<String>,
    /// The note was deleted, so nothing is its successor
    #[arg(long, requires = "old", conflicts_with = "new")]
    pub(crate) deleted: bool,
}
