//! Makes a backup beside a running process.
//!
//! Everything is copied once at leisure. Then, during the writer's turn, notes and Steward's own files are looked at
//! again and the index is copied. So no change of Steward's is half in a backup. A command has no turn: it tries again
//! if a change was made meanwhile. A backup gets its name when it is complete and on the disk.

use super::files::{PassScope, PreviousTree, TreeCopy};
use super::manifest::{FileHashes, format_manifest};
use super::verify::{read_backup_info, read_manifest};
use super::{Backup, BackupError, BackupInfo, FILES, FORMAT, INFO, STATE, VAULT, is_left_out};
use crate::action::chain;
use crate::action::journal;
use crate::action::writer::VaultWriter;
use crate::files::identity::{VaultId, VaultIdentity};
use crate::files::root::{OWN_FOLDER, VaultRoot};
use crate::index::Index;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use rustix::fs::{FlockOperation, flock, syncfs};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use steward_domain::action::audit::ChainHead;
use steward_domain::action::plan::ContentHash;
use tokio::runtime::Handle;

/// Complete backups that stay in the folder. Older ones are removed; another program keeps those elsewhere.
const KEPT: usize = 4;
/// How the name of a backup begins that is not complete.
const UNFINISHED: &str = ".new-";
/// The file that makes a folder one for backups: it holds the id of the vault, and its lock excludes two backups at once.
const MARKER: &str = ".steward-backups";
/// What an empty disk may hold.
const USUAL: &str = "lost+found";
/// A backup that is newer than now by more than this was made while the clock was ahead: 5 min.
const CLOCK_TOLERANCE: TimeDelta = TimeDelta::minutes(5);
/// The time in a backup's name, which sorts like the time itself.
const NAME_FORMAT: &str = "%Y-%m-%dT%H-%M-%S%.3fZ";
/// How often a command tries to find a moment without a change.
const TRIES: u32 = 10;

/// What is backed up.
#[derive(Clone, Copy, Debug)]
pub struct BackupSource<'a> {
    pub root: &'a VaultRoot,
    pub state_dir: &'a Path,
    pub index: &'a Index,
    /// The writer of the vault, in the process that holds it.
    pub writer: Option<&'a VaultWriter>,
    /// Whether nothing is linked to the backup before, because that one is damaged.
    pub copies_all: bool,
}

/// The complete backups in a folder, the newest last. One that was made while the clock was ahead comes first, as if it were
/// the oldest. A missing folder has none.
///
/// # Errors
/// [`BackupError::Io`] if the folder cannot be listed.
pub fn list_backups(folder: &Path) -> Result<Vec<PathBuf>, BackupError> {
    let failed = |e: io::Error| BackupError::wrap_io(folder)(e);
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>().map_err(failed)?;
    let is_whole = |path: &PathBuf| read_backup_info(path).is_ok();
    let mut backups: Vec<(DateTime<Utc>, PathBuf)> =
        paths.into_iter().filter(is_whole).filter_map(|path| Some((read_name(&path)?, path))).collect();
    // A time from the future says nothing about the order, so it comes first.
    let now = Utc::now() + CLOCK_TOLERANCE;
    backups.sort_by_key(|(at, path)| (*at <= now, *at, path.clone()));
    Ok(backups.into_iter().map(|(_, path)| path).collect())
}

/// The newest complete backup in a folder and its time; `None` if there is none.
///
/// # Errors
/// [`BackupError::Io`] if the folder cannot be listed.
pub fn find_newest_backup(folder: &Path) -> Result<Option<(PathBuf, DateTime<Utc>)>, BackupError> {
    let newest = list_backups(folder)?.pop().and_then(|path| Some((path.clone(), read_name(&path)?)));
    Ok(newest.filter(|(_, at)| *at <= Utc::now() + CLOCK_TOLERANCE))
}

/// The time in a backup's name; `None` for anything else.
fn read_name(path: &Path) -> Option<DateTime<Utc>> {
    let name = path.file_name()?.to_str()?;
    NaiveDateTime::parse_from_str(name, NAME_FORMAT).ok().map(|time| time.and_utc())
}

/// Makes a backup of a vault in `folder`, which is created if it is missing. Blocks for as long as the copy takes; call it
/// on a thread that may block, inside a runtime.
///
/// # Errors
/// [`BackupError`]. Nothing incomplete has the name of a backup, and the backups before are as they were.
pub fn create_backup(source: &BackupSource<'_>, folder: &Path, build: &str) -> Result<Backup, BackupError> {
    let identity = VaultIdentity::read(source.root)?;
    let identity = identity.ok_or_else(|| BackupError::NoVault(source.root.path().to_owned()))?;
    refuse_nested_folder(source, folder)?;
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(BackupError::wrap_io(folder))?;
    let _lock = lock_folder(folder, identity.id)?;
    remove_unfinished(folder)?;
    let previous = list_backups(folder)?.pop().filter(|_| !source.copies_all);
    let unfinished = folder.join(format!("{UNFINISHED}{}", std::process::id()));
    let made = copy_all(source, &unfinished, previous.as_deref()).and_then(|copied| {
        let info = BackupInfo {
            format: FORMAT,
            vault: identity.id,
            tenant: identity.tenant,
            taken_at: copied.taken_at,
            build: build.to_owned(),
            chain: copied.chain,
            files: copied.hashes.len() as u64,
            bytes: copied.bytes,
            links: copied.links,
            doubtful: copied.doubtful,
        };
        finish(folder, &unfinished, copied.hashes, info)
    });
    if made.is_err() {
        // The next backup removes what cannot be removed now.
        let _ = std::fs::remove_dir_all(&unfinished);
    }
    let backup = made?;
    prune(folder, &backup.folder)?;
    Ok(backup)
}

/// Makes sure that the folder is one for backups of this vault, and that no other backup is being made there.
fn lock_folder(folder: &Path, vault: VaultId) -> Result<File, BackupError> {
    let path = folder.join(MARKER);
    let failed = |e: io::Error| BackupError::wrap_io(&path)(e);
    if !path.exists() {
        let entries = std::fs::read_dir(folder).map_err(BackupError::wrap_io(folder))?;
        if entries.flatten().any(|entry| entry.file_name() != USUAL) {
            return Err(BackupError::Foreign(folder.to_owned()));
        }
    }
    let mut marker = File::options().read(true).create(true).append(true).open(&path).map_err(failed)?;
    match flock(&marker, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(BackupError::Busy(folder.to_owned())),
        Err(e) => return Err(failed(e.into())),
    }
    let mut text = String::new();
    marker.read_to_string(&mut text).map_err(failed)?;
    match text.trim() {
        "" => writeln!(marker, "{vault}").map_err(failed)?,
        owner if owner == vault.to_string() => {}
        _ => return Err(BackupError::OtherVault(folder.to_owned())),
    }
    Ok(marker)
}

/// A backup in the vault would contain itself, and a state folder around the vault would hold the vault a second time.
fn refuse_nested_folder(source: &BackupSource<'_>, folder: &Path) -> Result<(), BackupError> {
    if source.state_dir.canonicalize().is_ok_and(|state| source.root.path().starts_with(state)) {
        return Err(BackupError::StateAroundVault(source.state_dir.to_owned()));
    }
    // The nearest ancestor that exists has no link in it any more.
    let absolute = std::path::absolute(folder).map_err(BackupError::wrap_io(folder))?;
    let real = absolute.ancestors().find_map(|path| path.canonicalize().ok()).unwrap_or(absolute);
    let is_inside = |outer: &Path| outer.canonicalize().is_ok_and(|outer| real.starts_with(outer));
    match is_inside(source.root.path()) || is_inside(source.state_dir) {
        true => Err(BackupError::InsideVault(folder.to_owned())),
        false => Ok(()),
    }
}

fn remove_unfinished(folder: &Path) -> Result<(), BackupError> {
    for entry in std::fs::read_dir(folder).map_err(BackupError::wrap_io(folder))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = |rest: &str| rest == "removed" || rest.parse::<u32>().is_ok();
        if name.strip_prefix(UNFINISHED).is_some_and(is_ours) {
            std::fs::remove_dir_all(entry.path()).map_err(BackupError::wrap_io(entry.path()))?;
        }
    }
    Ok(())
}

/// What was copied, and of which moment.
struct CopiedVault {
    taken_at: DateTime<Utc>,
    chain: ChainHead,
    hashes: FileHashes,
    bytes: u64,
    links: BTreeMap<String, String>,
    doubtful: Vec<String>,
}

fn copy_all(source: &BackupSource<'_>, to: &Path, previous: Option<&Path>) -> Result<CopiedVault, BackupError> {
    let (vault_copy, state_copy) = (make_dir(&to.join(VAULT))?, make_dir(&to.join(STATE))?);
    let previous = previous.and_then(open_previous);
    let state_dir = source.state_dir.canonicalize().ok();
    let state_in_vault = state_dir.as_ref().and_then(|state| state.strip_prefix(source.root.path()).ok());
    let skips_in_vault = |path: &Path| {
        let is_own = path.parent() == Some(Path::new(OWN_FOLDER)) && path.file_name().is_some_and(is_left_out);
        is_own || (state_in_vault == Some(path) && path != Path::new(OWN_FOLDER))
    };
    let skips_in_state = |path: &Path| path.components().count() == 1 && path.file_name().is_some_and(is_left_out);
    let mut vault = TreeCopy::new(source.root.dir(), &vault_copy, previous.as_ref(), &skips_in_vault);
    vault.run_pass(PassScope::Everything)?;
    // Files of `.steward/` are in the copy of the vault.
    let state_source = match state_in_vault == Some(Path::new(OWN_FOLDER)) {
        true => None,
        false => {
            let opened = Dir::open_ambient_dir(source.state_dir, ambient_authority());
            Some(opened.map_err(BackupError::wrap_io(source.state_dir))?)
        }
    };
    let mut state = state_source.as_ref().map(|from| TreeCopy::new(from, &state_copy, None, &skips_in_state));
    let (taken_at, chain) = find_quiet_moment(source, || {
        // The index first: an older one finds what it lacks in the files, and a newer one would know of files that are missing.
        copy_index(source.index, &to.join(STATE))?;
        state.as_mut().map_or(Ok(()), |state| state.run_pass(PassScope::Everything))?;
        vault.run_pass(PassScope::Records)
    })?;
    let index = copied_index_hash(&to.join(STATE))?;
    let mut copied = CopiedVault {
        taken_at,
        chain,
        hashes: FileHashes::from([(Path::new(STATE).join(crate::index::FILE), index.hash)]),
        bytes: index.bytes,
        links: BTreeMap::new(),
        doubtful: Vec::new(),
    };
    copied.add(VAULT, &vault);
    state.iter().for_each(|state| copied.add(STATE, state));
    Ok(copied)
}

impl CopiedVault {
    /// Adds a folder that was copied.
    fn add(&mut self, name: &str, tree: &TreeCopy<'_>) {
        let place = |path: &Path| Path::new(name).join(path);
        let text = |path: &Path| path.to_string_lossy().into_owned();
        self.hashes.extend(tree.hashes().map(|(path, hash)| (place(path), hash.clone())));
        self.links.extend(tree.links().map(|(path, target)| (text(&place(path)), text(target))));
        self.doubtful.extend(tree.doubtful().iter().map(|path| text(&place(path))));
        self.bytes += tree.count_bytes();
    }
}

/// Runs `copy` while no change of Steward's is made, and returns the moment and the head of the audit chain.
fn find_quiet_moment(
    source: &BackupSource<'_>,
    mut copy: impl FnMut() -> Result<(), BackupError>,
) -> Result<(DateTime<Utc>, ChainHead), BackupError> {
    if let Some(writer) = source.writer {
        let _turn = writer.lock_state()?;
        let begun = Instant::now();
        copy()?;
        tracing::info!(seconds = begun.elapsed().as_secs_f64(), "changes waited while the backup was completed");
        return Ok((Utc::now(), chain::read_head(source.root)?));
    }
    for _ in 0..TRIES {
        let before = read_progress(source.root)?;
        copy()?;
        if read_progress(source.root)? == before {
            return Ok((Utc::now(), chain::read_head(source.root)?));
        }
    }
    Err(BackupError::Changing(TRIES))
}

/// What every change that has an audit record alters: the head of the chain, and the intents.
fn read_progress(root: &VaultRoot) -> Result<(ChainHead, Vec<String>), BackupError> {
    let intents = journal::list_open_intents(root).map_err(BackupError::wrap_io(OWN_FOLDER))?;
    let keys = intents.iter().map(|intent| intent.display_path()).collect();
    Ok((chain::read_head(root)?, keys))
}

/// The backup before, if its list can be read. Otherwise everything is copied.
fn open_previous(folder: &Path) -> Option<PreviousTree> {
    let hashes = read_manifest(folder).ok()?;
    let below = |(path, hash): (PathBuf, ContentHash)| Some((path.strip_prefix(VAULT).ok()?.to_owned(), hash));
    let dir = Dir::open_ambient_dir(folder.join(VAULT), ambient_authority()).ok()?;
    Some(PreviousTree { dir, hashes: hashes.into_iter().filter_map(below).collect() })
}

fn make_dir(path: &Path) -> Result<Dir, BackupError> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
    let opened = created.and_then(|()| Dir::open_ambient_dir(path, ambient_authority()));
    opened.map_err(BackupError::wrap_io(path))
}

/// Writes a copy of the index, which other processes may be writing.
fn copy_index(index: &Index, to: &Path) -> Result<(), BackupError> {
    let file = to.join(crate::index::FILE);
    match std::fs::remove_file(&file) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(BackupError::wrap_io(&file)(e)),
        Ok(()) | Err(_) => {}
    }
    let copied = Handle::current().block_on(index.write_copy(&file));
    copied.map_err(|e| BackupError::IndexCopy { path: file, reason: e.to_string() })
}

struct CopiedIndex {
    hash: ContentHash,
    bytes: u64,
}

fn copied_index_hash(state: &Path) -> Result<CopiedIndex, BackupError> {
    let file = state.join(crate::index::FILE);
    let read = super::verify::hash_path(&file).and_then(|hash| Ok(CopiedIndex { hash, bytes: file.metadata()?.len() }));
    read.map_err(BackupError::wrap_io(&file))
}

/// Writes what the backup is and the list of its files, makes everything durable, and gives it its name.
fn finish(folder: &Path, unfinished: &Path, mut hashes: FileHashes, info: BackupInfo) -> Result<Backup, BackupError> {
    let text = format!("{}\n", serde_json::to_string_pretty(&info).unwrap_or_default());
    hashes.insert(INFO.into(), ContentHash::hash_bytes(text.as_bytes()));
    for (name, content) in [(INFO, text.into_bytes()), (FILES, format_manifest(&hashes))] {
        let path = unfinished.join(name);
        std::fs::write(&path, content).map_err(BackupError::wrap_io(&path))?;
    }
    let opened = File::open(unfinished).map_err(BackupError::wrap_io(unfinished))?;
    syncfs(&opened).map_err(|e| BackupError::wrap_io(unfinished)(e.into()))?;
    let named = folder.join(info.taken_at.format(NAME_FORMAT).to_string());
    std::fs::rename(unfinished, &named).map_err(BackupError::wrap_io(&named))?;
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(BackupError::wrap_io(folder))?;
    Ok(Backup { folder: named, info })
}

/// Removes all but the newest backups. The one that was just made stays, also if the clock was set back.
fn prune(folder: &Path, made: &Path) -> Result<(), BackupError> {
    let backups = list_backups(folder)?;
    let older = backups.len().saturating_sub(KEPT);
    for path in backups.iter().take(older).filter(|path| *path != made) {
        // A removal that is cut short must not look like a backup.
        let unfinished = folder.join(format!("{UNFINISHED}removed"));
        let removed = std::fs::rename(path, &unfinished).and_then(|()| std::fs::remove_dir_all(&unfinished));
        removed.map_err(BackupError::wrap_io(path))?;
    }
    Ok(())
}
