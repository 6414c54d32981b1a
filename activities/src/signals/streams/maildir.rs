//! Reads a Maildir, its folders `new/` and `cur/`. It must not change anything there.
//!
//! A mail's unique name is its key, so that a mail whose flags changed is not read again. The first time, only the
//! mails of the last week are ingested. The cursor holds the start of that week and the folder, so that later mails
//! are read however long the stream was off. Links are not followed. `mail` parses the mail itself.

use super::BATCH;
use super::BATCH_BYTES;
use super::FIRST_DAYS;
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
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustix::fs::OFlags;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct MaildirSettings {
    /// The folder that holds `new/` and `cur/`.
    path: PathBuf,
    /// How many days old, by its file's time, a mail may be when the folder is read for the first time.
    #[serde(default = "first_days")]
    since_days: u64,
    /// The mail server whose checks of senders count, by its name in `Authentication-Results`.
    trusted_authserv: Option<String>,
}

struct Maildir {
    settings: MaildirSettings,
    max_bytes: u64,
}

/// The file of a mail.
struct MailFile {
    key: String,
    folder: &'static str,
    name: String,
    size: u64,
}

fn first_days() -> u64 {
    FIRST_DAYS
}

pub(super) fn read(keys: StreamKeys) -> Result<StreamOpener, String> {
    let max_bytes = keys.max_message_bytes;
    let settings: MaildirSettings = keys.read()?;
    super::settings::check_since_days(settings.since_days)?;
    Ok(Box::new(move |_| Ok(StreamSource::Polled(Box::new(Maildir { settings: settings.clone(), max_bytes })))))
}

impl StreamAdapter for Maildir {
    fn read_round<'a>(&'a mut self, intake: &'a mut Intake) -> BoxFuture<'a, Result<NextRound, StreamError>> {
        self.read_new_mails(intake).boxed()
    }
}

impl Maildir {
    async fn read_new_mails(&self, intake: &mut Intake) -> Result<NextRound, StreamError> {
        let path = self.settings.path.display().to_string();
        let (oldest, cursor) = match intake.read_cursor().await?.as_deref().and_then(|text| parse_cursor(text, &path)) {
            Some(oldest) => (oldest, None),
            None => plan_first_read(self.settings.since_days, &path),
        };
        let from = self.settings.path.clone();
        let listed = run_blocking(move || list_mails(&from, oldest)).await?;
        let mut mails = listed.map_err(|source| StreamError::Io { path, source })?;
        if cursor.is_some() {
            intake.ingest_batch(IntakeBatch { cursor, ..IntakeBatch::default() }).await?;
        }
        let unknown = intake.filter_unknown(mails.keys().cloned().collect()).await?;
        let mut unknown = unknown.into_iter().filter_map(|key| mails.remove(&key)).peekable();
        while unknown.peek().is_some() {
            let (mut group, mut size) = (Vec::new(), 0);
            while let Some(next) = unknown.next_if(|_| group.len() < BATCH && size < BATCH_BYTES as u64) {
                size += next.size.min(self.max_bytes);
                group.push(next);
            }
            let (settings, max_bytes) = (self.settings.clone(), self.max_bytes);
            let (batch, error) = run_blocking(move || read_batch(&settings, &group, max_bytes)).await?;
            intake.ingest_batch(batch).await?;
            if let Some(error) = error {
                intake.leave_for_next_round(&error);
            }
        }
        Ok(NextRound::Usual)
    }
}

/// Plans the first read: the oldest time that it covers, and the cursor that keeps that time.
fn plan_first_read(since_days: u64, path: &str) -> (SystemTime, Option<String>) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = now.saturating_sub(since_days.saturating_mul(86_400));
    (time_from_seconds(seconds), Some(format!("{seconds} {path}")))
}

/// The oldest time that the first read of this folder covered; `None` for the cursor of another folder.
fn parse_cursor(cursor: &str, path: &str) -> Option<SystemTime> {
    let (seconds, folder) = cursor.split_once(' ')?;
    (folder == path).then(|| seconds.parse().ok().map(time_from_seconds))?
}

fn time_from_seconds(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Lists the mails that are not too old, by their keys.
fn list_mails(path: &Path, oldest: SystemTime) -> io::Result<BTreeMap<String, MailFile>> {
    let mut mails = BTreeMap::new();
    for folder in ["new", "cur"] {
        for entry in std::fs::read_dir(path.join(folder))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let meta = match entry.metadata() {
                Ok(meta) => meta,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            if name.starts_with('.') || !meta.is_file() || meta.modified()? < oldest {
                continue;
            }
            let unique = name.split(':').next().unwrap_or_default();
            let key = format!("maildir:{unique}");
            mails.insert(key.clone(), MailFile { key, folder, name, size: meta.len() });
        }
    }
    Ok(mails)
}

/// Reads some mails. A mail that moved meanwhile, or that the disk fails to deliver, is left for the next round.
///
/// The first error of the disk is returned with the rest.
fn read_batch(settings: &MaildirSettings, mails: &[MailFile], max_bytes: u64) -> (IntakeBatch, Option<StreamError>) {
    let (mut batch, mut failed) = (IntakeBatch::default(), None);
    for mail in mails {
        let path = settings.path.join(mail.folder).join(&mail.name);
        let read = if mail.size > max_bytes {
            Ok(Err(format!("{} bytes, but a message may have at most {max_bytes}", mail.size)))
        } else {
            read_bytes(&path, max_bytes)
                .and_then(|bytes| mail::parse_mail(&bytes, settings.trusted_authserv.as_deref()))
        };
        match read {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => {
                failed.get_or_insert(StreamError::Io { path: path.display().to_string(), source });
                continue;
            }
            Ok(Ok(found)) => batch.found.push(found),
            Ok(Err(reason)) => {
                tracing::warn!(mail = %mail.name.escape_debug(), "not ingested: {}", reason.escape_debug());
                batch.refused += 1;
            }
        }
        batch.keys.push(mail.key.clone());
    }
    (batch, failed)
}

fn read_bytes(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
