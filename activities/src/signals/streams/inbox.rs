//! The drop folder: `.jsonl`, `.eml` and `.md` files that people and programs put into `inbox/`.
//!
//! A file that is still being written waits; one whose writer only paused comes back when they go on. One
//! that was taken in moves to `inbox/done/`, one that
//! cannot be read to `inbox/refused/` with the reason beside it, both only after the intake has stored
//! what it says. Whatever else lies there is met by [`steward_vault::signals::inbox`], which follows nothing.

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

/// How long nobody must have written into a file: 1 s. Programs that copy write more often than that.
const STILL: TimeDelta = TimeDelta::seconds(1);
/// How long a file of an unknown kind may lie there, because it may yet get its right name: 1 min.
const UNKNOWN: TimeDelta = TimeDelta::minutes(1);
/// For how long it is seen that somebody writes on in a file that was put away: 1 min.
const PAUSE: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InboxSettings {}

/// The reason of a file that its writer keeps to themselves.
const LOCKED: &str = "Steward may not read it: let it (chmod a+r) and put it back";

struct DropFolder {
    root: VaultRoot,
    max_bytes: u64,
    /// When a file was first met with this size and time, for clocks that do not agree.
    met: BTreeMap<OsString, (DroppedFile, Instant)>,
    /// What was put away lately.
    away: Vec<(MovedFile, Instant)>,
}

/// What became of a small file.
enum SmallFileRead {
    Found(FoundMessage),
    Refused(String),
    /// Not the file that was listed any more.
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
        Self { root: root.clone(), max_bytes, met: BTreeMap::new(), away: Vec::new() }
    }

    async fn read_folder(&mut self, intake: &mut Intake) -> Result<NextRound, StreamError> {
        let (root, dry) = (self.root.clone(), intake.is_dry());
        let away = std::mem::take(&mut self.away);
        let listed = move || {
            let inbox = if dry { Inbox::open_existing(&root)? } else { Some(Inbox::open(&root)?) };
            let Some(inbox) = inbox else { return Ok(None) };
            let mut left = Vec::new();
            for (moved, at) in away {
                if !inbox.return_file(&moved)? && at.elapsed() < PAUSE {
                    left.push((moved, at));
                }
            }
            let waiting = inbox.list_waiting_files()?;
            Ok::<_, InboxError>(Some((inbox, waiting, left)))
        };
        let Some((inbox, waiting, left)) = run_blocking(listed).await?? else { return Ok(NextRound::Usual) };
        self.away = left;
        let inbox = Arc::new(inbox);
        let (ripe, all) = self.take_ripe_files(waiting);
        let (lines, small): (Vec<_>, Vec<_>) =
            ripe.into_iter().partition(|d| d.is_file && d.lowercase_extension() == "jsonl");
        self.ingest_small_files(&inbox, small, intake).await?;
        for dropped in lines {
            match self.ingest_lines_file(&inbox, dropped, intake).await {
                // Of this file alone.
                Err(e @ (StreamError::Io { .. } | StreamError::Inbox(_))) => intake.leave_for_next_round(&e),
                read => read?,
            }
        }
        Ok(if all { NextRound::Usual } else { NextRound::Within(STILL.to_std().unwrap_or_default()) })
    }

    /// The files that nobody is writing any more, and whether those are all.
    fn take_ripe_files(&mut self, waiting: Vec<DroppedFile>) -> (Vec<DroppedFile>, bool) {
        let (now, count) = (Utc::now(), waiting.len());
        let mut met = std::mem::take(&mut self.met);
        let mut ripe = Vec::new();
        for dropped in waiting {
            let since = met.remove(&dropped.name).filter(|(before, _)| *before == dropped).map(|(_, since)| since);
            if is_quiet(&dropped, since, now) {
                ripe.push(dropped);
            } else {
                let since = since.unwrap_or_else(Instant::now);
                self.met.insert(dropped.name.clone(), (dropped, since));
            }
        }
        let unknown = self.met.values().filter(|(d, _)| !has_known_ending(d)).count();
        let all = ripe.len() + unknown == count;
        (ripe, all)
    }

    /// Takes in files that hold one thing each, many at once.
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
                let one = |d: DroppedFile| (read_small_file(&from, &d, max_bytes), d);
                group.into_iter().map(one).collect::<Vec<_>>()
            };
            let (mut batch, mut done, mut refused) = (IntakeBatch::default(), Vec::new(), Vec::new());
            for (read, dropped) in run_blocking(read).await? {
                match read {
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
                self.put_away(inbox, done, refused).await?;
            }
        }
        Ok(())
    }

    async fn put_away(
        &mut self,
        inbox: &Arc<Inbox>,
        done: Vec<DroppedFile>,
        refused: Vec<(DroppedFile, String)>,
    ) -> Result<(), StreamError> {
        let inbox = Arc::clone(inbox);
        let work = move || {
            let mut moved = inbox.move_to_done(&done, Utc::now().date_naive())?;
            for (dropped, reason) in &refused {
                tracing::warn!(file = %dropped.display_name(), "not taken in: {}", reason.escape_debug());
                moved.extend(inbox.move_to_refused(dropped, reason)?);
            }
            Ok::<_, InboxError>(moved)
        };
        let moved = run_blocking(work).await??;
        self.away.extend(moved.into_iter().map(|moved| (moved, Instant::now())));
        crash::die_if_armed("after-putting-away");
        Ok(())
    }

    /// Takes in a file of one thing a line, some lines at a time.
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
                return self.put_away(inbox, Vec::new(), vec![(dropped, LOCKED.to_owned())]).await;
            }
            Err(e) => return Err(e.into()),
        };
        let file = Arc::new(file);
        let mut lines = LineReader::new(BufReader::new(Arc::clone(&file)), self.max_bytes);
        let (mut good, mut refused, mut complaints) = (0, 0, lines::LineComplaints::default());
        loop {
            let (back, chunk) = run_blocking(move || {
                let chunk = lines.read_chunk();
                (lines, chunk)
            })
            .await?;
            lines = back;
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
        // The next round reads what was written meanwhile, and knows the lines that are taken in.
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
            Some(reason) if good == 0 => self.put_away(inbox, Vec::new(), vec![(dropped, reason)]).await,
            Some(reason) => {
                tracing::warn!(file = %dropped.display_name(), "some lines were not taken in: {}", reason.escape_debug());
                let (to, noted) = (Arc::clone(inbox), dropped.clone());
                run_blocking(move || to.leave_reason(&noted, &reason)).await??;
                self.put_away(inbox, vec![dropped], Vec::new()).await
            }
            None => self.put_away(inbox, vec![dropped], Vec::new()).await,
        }
    }
}

fn has_known_ending(dropped: &DroppedFile) -> bool {
    !dropped.is_file || matches!(dropped.lowercase_extension().as_str(), "jsonl" | "eml" | "md")
}

fn is_quiet(dropped: &DroppedFile, met: Option<Instant>, now: DateTime<Utc>) -> bool {
    if !dropped.is_file {
        return true;
    }
    let wait = if has_known_ending(dropped) { STILL } else { UNKNOWN };
    let quiet = dropped.modified.is_some_and(|at| now - at >= wait);
    quiet || met.is_some_and(|met| met.elapsed() >= wait.to_std().unwrap_or(Duration::MAX))
}

/// Reads a file that holds one thing.
fn read_small_file(inbox: &Inbox, dropped: &DroppedFile, max_bytes: u64) -> Result<SmallFileRead, InboxError> {
    if !dropped.is_file {
        return Ok(SmallFileRead::Refused("a link, a pipe or a device: put the file itself there".into()));
    }
    let is_mail = dropped.lowercase_extension() == "eml";
    if !is_mail && dropped.lowercase_extension() != "md" {
        return Ok(SmallFileRead::Refused(
            "its name ends in none of .jsonl, .eml and .md: rename it and put it back".into(),
        ));
    }
    if dropped.size > max_bytes {
        let reason =
            format!("{} bytes, more than the {max_bytes} that a message may have (max_message_bytes)", dropped.size);
        return Ok(SmallFileRead::Refused(reason));
    }
    let file = match inbox.open_file(dropped) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(SmallFileRead::Gone),
        Err(e) if is_locked(&e) => return Ok(SmallFileRead::Refused(LOCKED.to_owned())),
        Err(e) => return Err(e),
    };
    let failed = |source| InboxError { path: dropped.display_name(), source };
    // It changed since it was listed: the next round says how far.
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

/// Of one file alone, whatever holds for the others.
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
