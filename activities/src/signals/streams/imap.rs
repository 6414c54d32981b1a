//! Reads a folder on an IMAP server and waits for new mail with IDLE. It must not change anything on the server.
//!
//! The cursor is the folder's UIDVALIDITY and the last UID. The first time, or when the server renumbers, the mails of
//! the last week are read, and mails that were ingested before are known by their names. The cursor passes a mail only
//! if the server returned it or reports it as gone, or if the cursor remembers it as withheld. A mail that is too
//! large is not fetched. The connection is encrypted unless the server is this machine. `mail` parses the mail itself.

mod connection;
mod session;

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
use chrono::{TimeDelta, Utc};
use connection::ImapServer;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use session::{FetchedValues, ImapSession};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// How long one IDLE lasts: 25 min. A server may close the connection after 29 min.
const IDLE: Duration = Duration::from_secs(25 * 60);
/// How often a server without IDLE is asked: 1 min.
const POLL: Duration = Duration::from_secs(60);
/// The wait before a lost connection is opened again: 5 s.
const RECONNECT_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for one answer of the server, bodies included: 2 min.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImapSettings {
    host: String,
    port: Option<u16>,
    user: String,
    password_env: Option<String>,
    password_file: Option<PathBuf>,
    #[serde(default = "inbox")]
    folder: String,
    /// `false` only for a server on this machine.
    #[serde(default = "yes")]
    tls: bool,
    /// A PEM file with certificates to trust besides the system's.
    ca_file: Option<PathBuf>,
    /// How many days old a mail may be when the folder is read for the first time.
    #[serde(default = "first_days")]
    since_days: u64,
    /// The mail server whose checks of senders count, by its name in `Authentication-Results`.
    trusted_authserv: Option<String>,
}

struct ImapMailbox {
    server: ImapServer,
    folder: String,
    since_days: u64,
    trusted_authserv: Option<String>,
    max_bytes: u64,
    /// The session, kept open from one round to the next.
    session: Option<ImapSession>,
}

/// How often a withheld mail is requested before it is given up: 50.
const MAX_REQUESTS: u32 = 50;
/// Most mails that a server may withhold: 100. With more, the server itself is at fault.
const MAX_WITHHELD: usize = 100;

/// How far a folder was read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ImapCursor {
    validity: u32,
    last: u32,
    /// The mails up to `last` that the server has but did not return, and how often.
    withheld: BTreeMap<u32, u32>,
}

fn inbox() -> String {
    "INBOX".to_owned()
}

fn yes() -> bool {
    true
}

fn first_days() -> u64 {
    FIRST_DAYS
}

pub(super) fn read(keys: StreamKeys) -> Result<StreamOpener, String> {
    let max_bytes = keys.max_message_bytes;
    let settings: ImapSettings = keys.read()?;
    if settings.password_env.is_some() == settings.password_file.is_some() {
        return Err("set either `password_env` or `password_file`".into());
    }
    super::settings::check_since_days(settings.since_days)?;
    if settings.folder.chars().any(char::is_control) {
        return Err("`folder` holds a control character: remove it".into());
    }
    if !settings.tls && !connection::is_local_host(&settings.host) {
        return Err(format!(
            "`tls = false` would send the password in the clear to {}: remove it",
            settings.host.escape_debug()
        ));
    }
    Ok(Box::new(move |_| {
        let (variable, file) = (settings.password_env.as_deref(), settings.password_file.as_ref());
        let server = ImapServer {
            host: settings.host.clone(),
            port: settings.port.unwrap_or(if settings.tls { 993 } else { 143 }),
            user: settings.user.clone(),
            password: super::settings::read_secret("password", variable, file)?,
            tls: settings.tls,
            ca_file: settings.ca_file.clone(),
        };
        let (folder, since_days) = (settings.folder.clone(), settings.since_days);
        Ok(StreamSource::Polled(Box::new(ImapMailbox {
            server,
            folder,
            since_days,
            trusted_authserv: settings.trusted_authserv.clone(),
            max_bytes,
            session: None,
        })))
    }))
}

impl StreamAdapter for ImapMailbox {
    fn read_round<'a>(&'a mut self, intake: &'a mut Intake) -> BoxFuture<'a, Result<NextRound, StreamError>> {
        async move {
            // A session whose round fails or is interrupted is not used again.
            let open = self.session.take();
            let (mut session, is_reused) = match open {
                Some(session) => (session, true),
                None => (self.server.connect().await?, false),
            };
            self.read_new_mails(&mut session, is_reused, intake).await?;
            if intake.is_dry() {
                let _ = timeout(RECONNECT_WAIT, session.logout()).await;
            } else {
                self.session = Some(session);
            }
            Ok(NextRound::Usual)
        }
        .boxed()
    }

    fn wait_for_news(&mut self) -> BoxFuture<'_, ()> {
        async move {
            let Some(session) = self.session.take() else { return tokio::time::sleep(RECONNECT_WAIT).await };
            match idle_until_news(session).await {
                Some(session) => self.session = Some(session),
                None => tokio::time::sleep(RECONNECT_WAIT).await,
            }
        }
        .boxed()
    }
}

/// Waits until there may be new mail; `None` if the connection is lost.
async fn idle_until_news(mut session: ImapSession) -> Option<ImapSession> {
    let can_idle = timeout(ANSWER_TIMEOUT, session.can_idle()).await.ok()?.ok()?;
    if session.has_news() {
        return Some(session);
    }
    if !can_idle || !session.idle().await.ok()? {
        tokio::time::sleep(POLL).await;
    }
    Some(session)
}

impl ImapMailbox {
    async fn read_new_mails(
        &self,
        session: &mut ImapSession,
        is_reused: bool,
        intake: &mut Intake,
    ) -> Result<(), StreamError> {
        let mut cursor = intake.read_cursor().await?.as_deref().and_then(ImapCursor::parse);
        if !is_reused || cursor.is_none() {
            let folder = self.server.await_answer(session.examine_folder(&self.folder)).await?;
            let validity = folder.validity;
            cursor = cursor.filter(|c| c.validity == validity);
            if cursor.is_none() {
                let last = match folder.next {
                    Some(next) => next.saturating_sub(1),
                    None => self.server.await_answer(session.search_mails("ALL")).await?.last().copied().unwrap_or(0),
                };
                let since = days_before_now(self.since_days).format("SINCE %-d-%b-%Y").to_string();
                let uids = self.server.await_answer(session.search_mails(&since)).await?;
                let cursor = ImapCursor { validity, last, withheld: BTreeMap::new() };
                return self.ingest_mails(session, uids.into_iter().collect(), cursor, intake).await;
            }
        }
        let Some(mut cursor) = cursor else { return Ok(()) };
        self.retry_withheld(session, &mut cursor, intake).await?;
        let query = format!("UID {}:*", cursor.last.saturating_add(1));
        let uids = self.server.await_answer(session.search_mails(&query)).await?;
        // `n:*` includes the last mail even if its number is lower than n.
        let uids: Vec<u32> = uids.into_iter().filter(|uid| *uid > cursor.last).collect();
        self.ingest_mails(session, uids, cursor, intake).await
    }

    /// Ingests mails, the oldest first, and moves the cursor with them.
    async fn ingest_mails(
        &self,
        session: &mut ImapSession,
        uids: Vec<u32>,
        mut cursor: ImapCursor,
        intake: &mut Intake,
    ) -> Result<(), StreamError> {
        for some in uids.chunks(BATCH) {
            let FetchedValues { given: sizes, withheld } = self.server.await_answer(session.fetch_sizes(some)).await?;
            cursor.add_withheld(withheld)?;
            let mut rest = some.iter().copied().peekable();
            while rest.peek().is_some() {
                let (mut group, mut refused, mut bytes, mut last) = (Vec::new(), 0, 0, 0);
                while let Some(uid) = rest.next_if(|_| bytes < BATCH_BYTES as u64) {
                    last = uid;
                    match sizes.get(&uid) {
                        Some(size) if u64::from(*size) > self.max_bytes => refused += 1,
                        Some(size) => {
                            bytes += u64::from(*size);
                            group.push(uid);
                        }
                        // The mail is withheld, or gone since it was listed.
                        None => {}
                    }
                }
                if refused > 0 {
                    let folder = self.folder.escape_debug();
                    tracing::warn!(%folder, refused, "some mails are too large (max_message_bytes)");
                }
                let (mut batch, withheld) = self.fetch_mails(session, &group).await?;
                cursor.add_withheld(withheld)?;
                batch.refused += refused;
                // In the first read, the cursor moves only when the last mail is stored.
                let read = ImapCursor { last, ..cursor.clone() };
                batch.cursor = (last >= cursor.last).then(|| read.to_text());
                intake.ingest_batch(batch).await?;
            }
        }
        cursor.last = uids.last().copied().unwrap_or(0).max(cursor.last);
        let text = cursor.to_text();
        if intake.read_cursor().await?.as_deref() != Some(&text) {
            intake.ingest_batch(IntakeBatch { cursor: Some(text), ..IntakeBatch::default() }).await?;
        }
        Ok(())
    }

    /// Requests the withheld mails once more.
    async fn retry_withheld(
        &self,
        session: &mut ImapSession,
        cursor: &mut ImapCursor,
        intake: &mut Intake,
    ) -> Result<(), StreamError> {
        for (uid, times) in cursor.withheld.clone() {
            let sizes = self.server.await_answer(session.fetch_sizes(&[uid])).await?;
            let fits = sizes.given.get(&uid).is_some_and(|size| u64::from(*size) <= self.max_bytes);
            let (mut batch, mut withheld) = (IntakeBatch::default(), sizes.withheld);
            if fits {
                (batch, withheld) = self.fetch_mails(session, &[uid]).await?;
            }
            cursor.withheld.remove(&uid);
            let given_up = withheld.contains(&uid) && times >= MAX_REQUESTS;
            if given_up || (sizes.given.contains_key(&uid) && !fits) {
                let folder = self.folder.escape_debug();
                tracing::warn!(%folder, uid, times, "not ingested: too large, or withheld by the server");
                batch.refused += 1;
            } else if withheld.contains(&uid) {
                cursor.withheld.insert(uid, times + 1);
            }
            batch.cursor = Some(cursor.to_text());
            intake.ingest_batch(batch).await?;
        }
        Ok(())
    }

    /// Fetches and parses mails, and returns which of them the server withholds.
    async fn fetch_mails(
        &self,
        session: &mut ImapSession,
        uids: &[u32],
    ) -> Result<(IntakeBatch, BTreeSet<u32>), StreamError> {
        if uids.is_empty() {
            return Ok(Default::default());
        }
        // Only the allowed number of bytes is fetched: a server that lies about a size must not fill the memory.
        let FetchedValues { given: fetched, withheld } =
            self.server.await_answer(session.fetch_bodies(uids, self.max_bytes)).await?;
        let trusted = self.trusted_authserv.clone();
        let batch = run_blocking(move || {
            let mut batch = IntakeBatch::default();
            for (uid, bytes) in &fetched {
                match mail::parse_mail(bytes, trusted.as_deref())? {
                    Ok(found) => batch.found.push(found),
                    Err(reason) => {
                        tracing::warn!(uid, "not ingested: {}", reason.escape_debug());
                        batch.refused += 1;
                    }
                }
            }
            Ok(batch)
        })
        .await?;
        let failed = |source: std::io::Error| StreamError::Io { path: self.folder.clone(), source };
        Ok((batch.map_err(failed)?, withheld))
    }
}

impl ImapCursor {
    /// Reads `<validity> <last>[ <uid>*<times>]…`.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (validity, last) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let parse_withheld = |word: &str| {
            let (uid, times) = word.split_once('*')?;
            Some((uid.parse().ok()?, times.parse().ok()?))
        };
        Some(Self { validity, last, withheld: words.map(parse_withheld).collect::<Option<_>>()? })
    }

    fn to_text(&self) -> String {
        let withheld: String = self.withheld.iter().map(|(uid, times)| format!(" {uid}*{times}")).collect();
        format!("{} {}{withheld}", self.validity, self.last)
    }

    fn add_withheld(&mut self, uids: BTreeSet<u32>) -> Result<(), StreamError> {
        for uid in uids {
            tracing::warn!(uid, "the mail server withholds a mail; it will be requested again");
            self.withheld.entry(uid).or_insert(1);
        }
        if self.withheld.len() > MAX_WITHHELD {
            let message = format!("it withholds {} mails: check its log", self.withheld.len());
            return Err(StreamError::Server { server: "the mail server".into(), message });
        }
        Ok(())
    }
}

fn days_before_now(ago: u64) -> chrono::DateTime<Utc> {
    let ago = i64::try_from(ago).ok().and_then(TimeDelta::try_days);
    ago.and_then(|ago| Utc::now().checked_sub_signed(ago)).unwrap_or(chrono::DateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests;
