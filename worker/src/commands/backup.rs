//! The command `steward backup`: makes, checks and restores backups.
//!
//! A backup is made by this command itself, also while a process serves the vault. A restore writes into empty folders
//! alone, and says what the restored vault needs before it acts.

use crate::cli::BackupCommand;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::config::StewardConfig;
use crate::config::mapping::MappingStatus;
use crate::fleet;
use anyhow::{Context, bail};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steward_domain::fleet::TenantId;
use steward_domain::time::format_seconds;
use steward_vault::backup::{
    Backup, BackupError, BackupInfo, BackupSource, BackupVerification, RestoreTarget, create_backup,
    find_newest_backup, read_backup_info, restore_backup, verify_backup,
};
use steward_vault::files::root::VaultRoot;

/// How long the fleet's database may take to say whose vault this is: 5 s. A backup must be possible without it.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often a folder is tried in which another backup is being made, and the pause between two tries: a minute in all.
const BUSY_TRIES: u32 = 60;
const BUSY_PAUSE: Duration = Duration::from_secs(1);

pub(crate) async fn run(
    config: &StewardConfig,
    command: BackupCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    match command {
        BackupCommand::Create { to } => create(config, to, out).await,
        BackupCommand::Verify { backup } => verify(&choose_backup(config, backup)?, out).await,
        BackupCommand::Restore { backup } => restore(config, choose_backup(config, backup)?, out).await,
    }
}

async fn create(config: &StewardConfig, to: Option<PathBuf>, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let configured = || config.backup.as_ref().map(|backup| backup.folder.clone());
    let folder = to.or_else(configured).context("no folder is set: pass --to <folder> or set STEWARD_BACKUP_DIR")?;
    let root = VaultRoot::open(config.vault_folder()?)?;
    // Only a database that says so is a reason not to make one.
    if let Ok(owned) = tokio::time::timeout(PATIENCE, fleet::refuse_other_owner(config, &root)).await {
        owned?;
    }
    let state_dir = config.state_dir()?;
    let index = super::open_index(config).await?;
    let made = tokio::task::spawn_blocking(move || {
        let source =
            BackupSource { root: &root, state_dir: &state_dir, index: &index, writer: None, copies_all: false };
        let mut tries = 1;
        loop {
            match create_backup(&source, &folder, env!("CARGO_PKG_VERSION")) {
                // The process that serves the vault is making one.
                Err(BackupError::Busy(_)) if tries < BUSY_TRIES => {
                    tries += 1;
                    std::thread::sleep(BUSY_PAUSE);
                }
                made => return made,
            }
        }
    });
    let made = made.await??;
    out.print_value(&made, || {
        let mut lines = vec![format!("{}: {}", made.folder.display(), describe_content(&made.info))];
        lines.extend(
            made.info
                .doubtful
                .iter()
                .map(|path| format!("{}: could not be read, or changed while it was", escape_text(path))),
        );
        lines.join("\n")
    })?;
    Ok(if made.info.doubtful.is_empty() { CommandExit::Ok } else { CommandExit::Faults })
}

/// `5012 files, 31 MB, 812 audit records`.
fn describe_content(info: &BackupInfo) -> String {
    format!("{} files, {} kB, {} audit records", info.files, info.bytes.div_ceil(1_000), info.chain.seq)
}

/// The backup that a person names, or the newest one.
fn choose_backup(config: &StewardConfig, named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named);
    }
    let settings = config.backup.as_ref().context("name the folder of a backup, or set STEWARD_BACKUP_DIR")?;
    let newest = find_newest_backup(&settings.folder)?;
    newest.map(|(path, _)| path).with_context(|| format!("{}: holds no backup", settings.folder.display()))
}

async fn verify(backup: &Path, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let folder = backup.to_owned();
    let checked = tokio::task::spawn_blocking(move || verify_backup(&folder)).await??;
    let BackupVerification { backup: Backup { folder, info }, faults, audit_faults } = &checked;
    out.print_value(&checked, || {
        let state = if faults.is_empty() { "whole" } else { "damaged" };
        let of = format_seconds(info.taken_at);
        let mut lines = vec![format!("{}: {state}, of {of}, {}", folder.display(), describe_content(info))];
        lines.extend(faults.iter().map(|fault| escape_text(fault)));
        lines.extend(audit_faults.iter().map(|fault| format!("of the vault itself: {}", escape_text(fault))));
        lines.join("\n")
    })?;
    Ok(if faults.is_empty() && audit_faults.is_empty() { CommandExit::Ok } else { CommandExit::Faults })
}

async fn restore(config: &StewardConfig, backup: PathBuf, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let (theirs, ours) = (read_backup_info(&backup)?.tenant, config.fleet.as_ref().map(|fleet| fleet.tenant.clone()));
    if theirs != ours {
        let describe = |tenant: Option<TenantId>| {
            tenant.map_or_else(|| "no tenant".to_owned(), |tenant| format!("the tenant {tenant}"))
        };
        bail!(
            "the backup is of {}, and STEWARD_TENANT names {}: set it as for the vault's process",
            describe(theirs),
            describe(ours)
        );
    }
    // Where the databases lie depends on the vault that is not there yet.
    let mapping = MappingStatus::read(&Backup::vault_copy(&backup));
    let is_mapped = mapping.is_mapped();
    let mut restored_config = config.clone();
    restored_config.mapping = mapping;
    let (vault, state_dir) = (config.vault_folder()?.to_owned(), restored_config.state_dir()?);
    let target = vault.clone();
    let restored = tokio::task::spawn_blocking(move || {
        restore_backup(&backup, RestoreTarget { vault: &target, state_dir: &state_dir })
    });
    let Backup { info, .. } = restored.await??;
    let mut steps = Vec::new();
    if let Some(tenant) = &info.tenant {
        steps.push(format!(
            "make sure that the old copy is gone or may never act again, then `steward fleet take {tenant} --yes`"
        ));
    }
    if is_mapped {
        steps.push("on another machine than before, `steward init --take-over`".to_owned());
    }
    steps.push("start the process; it reads the notes and registers the schedules".to_owned());
    steps.push(
        "`steward doctor --accept-ledger-loss`, or wait a day: nobody knows how many clerk calls were made since"
            .to_owned(),
    );
    out.print_value(&json!({"restored": info, "vault": vault, "next": steps}), || {
        let head = format!(
            "restored {} of {} into {}. Next:",
            describe_content(&info),
            format_seconds(info.taken_at),
            vault.display()
        );
        let numbered = steps.iter().enumerate().map(|(number, step)| format!("{}. {step}", number + 1));
        std::iter::once(head).chain(numbered).collect::<Vec<_>>().join("\n")
    })?;
    Ok(CommandExit::Ok)
}
