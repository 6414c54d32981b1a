//! Reads the drop folder: `.jsonl`, `.eml` and `.md` files that people and programs put into `inbox/`.
//!
//! A file that is still being written waits. A file whose writer only paused is moved back when they continue. An
//! ingested file moves to `inbox/done/`. An unreadable file moves to `inbox/refused/`, with the reason beside it.
//! Neither must be moved before the intake has stored its content. [`steward_vault::signals::inbox`] accesses the
//! folder and follows no links.

mod lines;
mod note;

use super::BATCH;
use super::BATCH_BYTES;
use super::FoundMessage;
use super::Intake;
use super::IntakeBatch;
use super::NextRound;
use super::StreamAdapter;
use super::StreamError;
use super::StreamKeys;
use super::StreamOpener;
use super::StreamSource;
use super::mail;
use super::run_blocking;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lines::LineReader;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};
use steward_vault::files::crash;
use steward_vault::files::root::VaultRoot;
use steward_vault::signals::inbox::{DroppedFile, Inbox, InboxError, MovedFile};

/// How long a file must be unchanged before it is read: 1 s. Programs that copy write more often than that.
const QUIET_TIME: TimeDelta = TimeDelta::seconds(1);
/// How long a file of an unknown kind may wait for its right name: 1 min.
const UNKNOWN_KIND_TIME: TimeDelta = TimeDelta::minutes(1);
/// How long a moved file is watched for further writes: 1 min.
const RETURN_TIME: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InboxSettings {}

/// The reason for a file that Steward has no right to read.
const LOCKED: &str = "Steward has no right to read it: allow it (chmod a+r) and put it back";

struct DropFolder {
    root: VaultRoot,
    max_bytes: u64,
    /// When a file was first seen with this size and time, for clocks that do not agree.
    first_seen: BTreeMap<OsString, (DroppedFile, Instant)>,
    /// The files that were moved lately.
    moved: Vec<(MovedFile, Instant)>,
}

/// How the reading of a small file ended.
enum SmallFileRead {
    Found(FoundMessage),
    Refused(String),
    /// The file changed since it was listed.
    Gone,
}

pub(super) fn read(keys: StreamKeys) -> Result<StreamOpener, String> {
    let max_bytes = keys.max_message_bytes;
    let InboxSettings {} = keys.read()?;
    Ok(Box::new(move |root| Ok(StreamSource::Polled(Box::new(DropFolder::new(root, max_bytes))))))
}

impl StreamAdapter for DropFolder {
    fn read_round<'a>(&'a mut self, intake: &'a mut Intake) -> BoxFuture<'a, Result<NextRound, StreamError>> {
        self.read_folder(intake).boxed()
    }
}

impl DropFolder {
    fn new(root: &VaultRoot, max_bytes: u64) -> Self {
        Self { root: root.clone(), max_bytes, first_seen: BTreeMap::new(), moved: Vec::new() }
    }

    async fn read_folder(&mut self, intake: &mut Intake) -> Result<NextRound, StreamError> {
        let (root, dry) = (self.root.clone(), intake.is_dry());
        let watched = std::mem::take(&mut self.moved);
        let list = move || {
            let inbox = if dry { Inbox::open_existing(&root)? } else { Some(Inbox::open(&root)?) };
            let Some(inbox) = inbox else { return Ok(None) };
            let mut left = Vec::new();
            for (moved, at) in watched {
                if !inbox.return_file(&moved)? && at.elapsed() < RETURN_TIME {
                    left.push((moved, at));
                }
            }
            let waiting = inbox.list_waiting_files()?;
            Ok::<_, InboxError>(Some((inbox, waiting, left)))
        };
        let Some((inbox, waiting, left)) = run_blocking(list).await?? else { return Ok(NextRound::Usual) };
        self.moved = left;
        let inbox = Arc::new(inbox);
        let (quiet, all) = self.take_quiet_files(waiting);
        let (lines, small): (Vec<_>, Vec<_>) =
            quiet.into_iter().partition(|d| d.is_file && d.lowercase_extension() == "jsonl");
        self.ingest_small_files(&inbox, small, intake).await?;
        for dropped in lines {
            match self.ingest_lines_file(&inbox, dropped, intake).await {
                // The error concerns this file alone.
                Err(e @ (StreamError::Io { .. } | StreamError::Inbox(_))) => intake.leave_for_next_round(&e),
                ingested => ingested?,
            }
        }
        Ok(if all { NextRound::Usual } else { NextRound::Within(QUIET_TIME.to_std().unwrap_or_default()) })
    }

    /// Takes the files that nobody writes any more, and reports whether those are all.
    fn take_quiet_files(&mut self, waiting: Vec<DroppedFile>) -> (Vec<DroppedFile>, bool) {
        let (now, count) = (Utc::now(), waiting.len());
        let mut first_seen = std::mem::take(&mut self.first_seen);
        let mut quiet = Vec::new();
        for dropped in waiting {
            let since = first_seen.remove(&dropped.name).filter(|(before, _)| *before == dropped);
            let since = since.map(|(_, since)| since);
            if is_quiet(&dropped, since, now) {
                quiet.push(dropped);
            } else {
                let since = since.unwrap_or_else(Instant::now);
                self.first_seen.insert(dropped.name.clone(), (dropped, since));
            }
        }
        let unknown = self.first_seen.values().filter(|(d, _)| !has_known_ending(d)).count();
        let all = quiet.len() + unknown == count;
        (quiet, all)
    }

    /// Ingests files that hold one message each, many at once.
    async fn ingest_small_files(
        &mut self,
        inbox: &Arc<Inbox>,
        files: Vec<DroppedFile>,
        intake: &mut Intake,
    ) -> Result<(), StreamError> {
        let mut files = files.into_iter().peekable();
        while files.peek().is_some() {
            let (mut group, mut size) = (Vec::new(), 0_u64);
            while let Some(next) = files.next_if(|_| group.len() < BATCH && size < BATCH_BYTES as u64) {
                size += next.size.min(self.max_bytes);
                group.push(next);
            }
            let (from, max_bytes) = (Arc::clone(inbox), self.max_bytes);
            let read = move || {
                let read_one = |d: DroppedFile| (read_small_file(&from, &d, max_bytes), d);
                group.into_iter().map(read_one).collect::<Vec<_>>()
            };
            let (mut batch, mut done, mut refused) = (IntakeBatch::default(), Vec::new(), Vec::new());
            for (outcome, dropped) in run_blocking(read).await? {
                match outcome {
                    Ok(SmallFileRead::Found(found)) => {
                        batch.found.push(found);
                        done.push(dropped);
                    }
                    Ok(SmallFileRead::Refused(reason)) => refused.push((dropped, reason)),
                    Ok(SmallFileRead::Gone) => {}
                    Err(e) => intake.leave_for_next_round(&e.into()),
                }
            }
            batch.refused = refused.len() as u64;
            intake.ingest_batch(batch).await?;
            if !intake.is_dry() {
                self.move_files(inbox, done, refused).await?;
            }
        }
        Ok(())
    }

    async fn move_files(
        &mut self,
        inbox: &Arc<Inbox>,
        done: Vec<DroppedFile>,
        refused: Vec<(DroppedFile, String)>,
    ) -> Result<(), StreamError> {
        let inbox = Arc::clone(inbox);
        let work = move || {
            let mut moved = inbox.move_to_done(&done, Utc::now().date_naive())?;
            for (dropped, reason) in &refused {
                tracing::warn!(file = %dropped.display_name(), "not ingested: {}", reason.escape_debug());
                moved.extend(inbox.move_to_refused(dropped, reason)?);
            }
            Ok::<_, InboxError>(moved)
        };
        let moved = run_blocking(work).await??;
        self.moved.extend(moved.into_iter().map(|moved| (moved, Instant::now())));
        crash::die_if_armed("after-putting-away");
        Ok(())
    }

    /// Ingests a file of one message a line, some lines at a time.
    async fn ingest_lines_file(
        &mut self,
        inbox: &Arc<Inbox>,
        dropped: DroppedFile,
        intake: &mut Intake,
    ) -> Result<(), StreamError> {
        let (from, listed) = (Arc::clone(inbox), dropped.clone());
        let file = match run_blocking(move || from.open_file(&listed)).await? {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(()),
            Err(e) if is_locked(&e) && !intake.is_dry() => {
                return self.move_files(inbox, Vec::new(), vec![(dropped, LOCKED.to_owned())]).await;
            }
            Err(e) => return Err(e.into()),
        };
        let file = Arc::new(file);
        let mut lines = LineReader::new(BufReader::new(Arc::clone(&file)), self.max_bytes);
        let (mut good, mut refused, mut complaints) = (0, 0, lines::LineComplaints::default());
        loop {
            let (returned, chunk) = run_blocking(move || {
                let chunk = lines.read_chunk();
                (lines, chunk)
            })
            .await?;
            lines = returned;
            let chunk = chunk.map_err(|source| StreamError::Io { path: dropped.display_name(), source })?;
            let last = chunk.last;
            good += chunk.found.len();
            refused += chunk.bad.len() as u64;
            complaints.add(chunk.bad);
            intake.ingest_batch(IntakeBatch { found: chunk.found, ..IntakeBatch::default() }).await?;
            if last {
                break;
            }
        }
        // The next round reads what was written meanwhile, and knows the lines that are already ingested.
        if !inbox.is_unchanged(&dropped, &file)? {
            return Ok(());
        }
        if refused > 0 {
            intake.ingest_batch(IntakeBatch { refused, ..IntakeBatch::default() }).await?;
        }
        if intake.is_dry() {
            return Ok(());
        }
        let reason = complaints.into_report(&dropped.display_name());
        match reason {
            Some(reason) if good == 0 => self.move_files(inbox, Vec::new(), vec![(dropped, reason)]).await,
            Some(reason) => {
                tracing::warn!(
                    file = %dropped.display_name(),
                    "some lines were not ingested: {}", reason.escape_debug()
                );
                let (to, file) = (Arc::clone(inbox), dropped.clone());
                run_blocking(move || to.leave_reason(&file, &reason)).await??;
                self.move_files(inbox, vec![dropped], Vec::new()).await
            }
            None => self.move_files(inbox, vec![dropped], Vec::new()).await,
        }
    }
}

fn has_known_ending(dropped: &DroppedFile) -> bool {
    !dropped.is_file || matches!(dropped.lowercase_extension().as_str(), "jsonl" | "eml" | "md")
}

fn is_quiet(dropped: &DroppedFile, first_seen: Option<Instant>, now: DateTime<Utc>) -> bool {
    if !dropped.is_file {
        return true;
    }
    let wait = if has_known_ending(dropped) { QUIET_TIME } else { UNKNOWN_KIND_TIME };
    let quiet = dropped.modified.is_some_and(|at| now - at >= wait);
    quiet || first_seen.is_some_and(|seen| seen.elapsed() >= wait.to_std().unwrap_or(Duration::MAX))
}

/// Reads a file that holds one message.
fn read_small_file(inbox: &Inbox, dropped: &DroppedFile, max_bytes: u64) -> Result<SmallFileRead, InboxError> {
    if !dropped.is_file {
        return Ok(SmallFileRead::Refused("a link, a pipe or a device: put the file itself there".into()));
    }
    let is_mail = dropped.lowercase_extension() == "eml";
    if !is_mail && dropped.lowercase_extension() != "md" {
        return Ok(SmallFileRead::Refused(
            "its name must end in .jsonl, .eml or .md: rename it and put it back".into(),
        ));
    }
    if dropped.size > max_bytes {
        let reason = format!("{} bytes, but a message may have at most {max_bytes} (max_message_bytes)", dropped.size);
        return Ok(SmallFileRead::Refused(reason));
    }
    let file = match inbox.open_file(dropped) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(SmallFileRead::Gone),
        Err(e) if is_locked(&e) => return Ok(SmallFileRead::Refused(LOCKED.to_owned())),
        Err(e) => return Err(e),
    };
    let failed = |source| InboxError { path: dropped.display_name(), source };
    // The file changed since it was listed. The next round reads it.
    let Some(bytes) = read_whole(&file, max_bytes).map_err(failed)? else { return Ok(SmallFileRead::Gone) };
    if !inbox.is_unchanged(dropped, &file)? {
        return Ok(SmallFileRead::Gone);
    }
    let read = if is_mail {
        mail::parse_mail(&bytes, None).map_err(failed)?
    } else {
        note::parse_note(&bytes, &dropped.name.to_string_lossy())
    };
    Ok(read.map_or_else(SmallFileRead::Refused, SmallFileRead::Found))
}

/// Reports whether the error is a missing right to read, which concerns one file alone.
fn is_locked(e: &InboxError) -> bool {
    e.source.kind() == std::io::ErrorKind::PermissionDenied
}

fn read_whole(file: &File, max_bytes: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max_bytes).then_some(bytes))
}

#[cfg(test)]
mod tests;
