//! What is asked of an IMAP server, and what counts as its answer: only what ends with its OK.
//!
//! The client library takes NO, BAD and a connection that closes for the end of an answer like any other,
//! so after the login its own commands are not used. That mails came while something else was asked is
//! remembered until the next search. Nothing is stored here.

use super::ANSWER;
use super::IDLE;
use super::connection::ImapTransport;
use async_imap::imap_proto::{
    AttributeValue, Capability, MailboxDatum, Outcome, RequestId, Response, ResponseCode, Status,
};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::timeout;

/// A session that was logged in.
#[derive(Debug)]
pub(super) struct ImapSession {
    inner: async_imap::Session<Box<dyn ImapTransport>>,
    /// How many mails the folder has, as far as the server told.
    exist: u32,
    /// The server told of mails since the last search.
    has_news: bool,
}

/// A folder as it was opened.
pub(super) struct ExaminedFolder {
    pub(super) validity: u32,
    pub(super) next: Option<u32>,
}

/// What was asked of some mails; those that are gone have nothing.
pub(super) struct FetchedValues<T> {
    pub(super) given: BTreeMap<u32, T>,
    /// They are there, and the server does not give them.
    pub(super) withheld: BTreeSet<u32>,
}

/// An answer, or why it is none.
type ImapResult<T> = Result<T, String>;

impl ImapSession {
    pub(super) fn new(inner: async_imap::Session<Box<dyn ImapTransport>>) -> Self {
        Self { inner, exist: 0, has_news: false }
    }

    /// Opens a folder to read it.
    pub(super) async fn examine_folder(&mut self, folder: &str) -> ImapResult<ExaminedFolder> {
        let (mut validity, mut next) = (None, None);
        let name = folder.replace('\\', "\\\\").replace('"', "\\\"");
        self.run_command(&format!("EXAMINE \"{name}\""), |response| {
            let Response::Data { outcome: Outcome { code: Some(code), .. }, .. } = response else { return };
            match code {
                ResponseCode::UidValidity(number) => validity = Some(*number),
                ResponseCode::UidNext(number) => next = Some(*number),
                _ => {}
            }
        })
        .await?;
        let validity = validity.ok_or("it gave no UIDVALIDITY: its numbers of mails do not last")?;
        Ok(ExaminedFolder { validity, next })
    }

    /// The mails that a search finds. What is told from now on is news.
    pub(super) async fn search_mails(&mut self, query: &str) -> ImapResult<BTreeSet<u32>> {
        self.has_news = false;
        self.find_uids(query).await
    }

    /// The sizes of mails.
    pub(super) async fn fetch_sizes(&mut self, uids: &[u32]) -> ImapResult<FetchedValues<u32>> {
        let size = |value: &AttributeValue<'_>| match value {
            AttributeValue::Rfc822Size(size) => Some(*size),
            _ => None,
        };
        self.fetch_values(uids, "RFC822.SIZE", size).await
    }

    /// The first bytes of mails.
    pub(super) async fn fetch_bodies(&mut self, uids: &[u32], most: u64) -> ImapResult<FetchedValues<Vec<u8>>> {
        let body = |value: &AttributeValue<'_>| match value {
            AttributeValue::BodySection { section: None, data, .. } | AttributeValue::Rfc822(data) => {
                Some(data.as_deref().unwrap_or_default().to_vec())
            }
            _ => None,
        };
        self.fetch_values(uids, &format!("BODY.PEEK[]<0.{most}>"), body).await
    }

    /// Whether the server can tell of mails by itself.
    pub(super) async fn can_idle(&mut self) -> ImapResult<bool> {
        let mut can = false;
        self.run_command("CAPABILITY", |response| {
            let Response::Capabilities(all) = response else { return };
            can |= all.iter().any(|one| matches!(one, Capability::Atom(name) if name.eq_ignore_ascii_case("IDLE")));
        })
        .await?;
        Ok(can)
    }

    /// Whether the server told of mails since the last search.
    pub(super) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Waits until the server tells of mails, or for as long as it may be waited for. `false` when it will not
    /// tell, whatever it can.
    pub(super) async fn idle(&mut self) -> ImapResult<bool> {
        let tag = self.send_command("IDLE").await?;
        let begun = async {
            loop {
                let begun = self.read_next_response(|response| match response {
                    Response::Continue(_) => Some(true),
                    Response::Done { tag: of, .. } if *of == tag => Some(false),
                    _ => None,
                });
                if let Some(begun) = begun.await? {
                    return Ok::<bool, String>(begun);
                }
            }
        };
        if !timeout(ANSWER, begun).await.map_err(|_| "no answer in time")?? {
            return Ok(false);
        }
        let told = async {
            while !self.has_news {
                let is_over = self
                    .read_next_response(|response| matches!(response, Response::Done { tag: of, .. } if *of == tag));
                if is_over.await? {
                    return Ok::<bool, String>(true);
                }
            }
            Ok(false)
        };
        // No news in all that time is no failure, nor is a server that ends it by itself.
        if timeout(IDLE, told).await.unwrap_or(Ok(false))? {
            return Ok(true);
        }
        let done = async {
            self.inner.run_command_untagged("DONE").await.map_err(|e| e.to_string())?;
            self.read_until_done(&tag, |_| ()).await
        };
        timeout(ANSWER, done).await.map_err(|_| "no answer in time")??;
        Ok(true)
    }

    pub(super) async fn logout(&mut self) -> ImapResult<()> {
        self.run_command("LOGOUT", |_| ()).await
    }

    async fn find_uids(&mut self, query: &str) -> ImapResult<BTreeSet<u32>> {
        let mut uids = BTreeSet::new();
        self.run_command(&format!("UID SEARCH {query}"), |response| {
            if let Response::MailboxData(MailboxDatum::Search(some)) = response {
                uids.extend(some);
            }
        })
        .await?;
        Ok(uids)
    }

    /// One thing of each of these mails. One that is not answered counts as gone only if a search says so too.
    /// What fails for several is asked for one by one, so that one ill mail keeps back no other.
    async fn fetch_values<T>(
        &mut self,
        uids: &[u32],
        what: &str,
        read: impl Fn(&AttributeValue<'_>) -> Option<T>,
    ) -> ImapResult<FetchedValues<T>> {
        let mut all = FetchedValues { given: BTreeMap::new(), withheld: BTreeSet::new() };
        let failed = match self.fetch_batch(uids, what, &read).await {
            Ok(some) if some.withheld.is_empty() => return Ok(some),
            Ok(some) => {
                all = some;
                None
            }
            Err(why) => Some(why),
        };
        let left: Vec<u32> = match failed {
            Some(_) => uids.to_vec(),
            None => std::mem::take(&mut all.withheld).into_iter().collect(),
        };
        for uid in left {
            match self.fetch_batch(&[uid], what, &read).await {
                Ok(one) => {
                    all.given.extend(one.given);
                    all.withheld.extend(one.withheld);
                }
                Err(why) => {
                    // Whether it is the mail's fault, or the connection is gone.
                    self.run_command("NOOP", |_| ()).await.map_err(|_| why)?;
                    all.withheld.insert(uid);
                }
            }
        }
        match failed {
            Some(why) if uids.len() > 1 && all.given.is_empty() => Err(why),
            Some(_) | None => Ok(all),
        }
    }

    async fn fetch_batch<T>(
        &mut self,
        uids: &[u32],
        what: &str,
        read: impl Fn(&AttributeValue<'_>) -> Option<T>,
    ) -> ImapResult<FetchedValues<T>> {
        let asked: BTreeSet<u32> = uids.iter().copied().collect();
        let mut given = BTreeMap::new();
        self.run_command(&format!("UID FETCH {} (UID {what})", join_uids(uids)), |response| {
            let Response::Fetch(_, values) = response else { return };
            let uid = values.iter().find_map(|value| match value {
                AttributeValue::Uid(uid) => Some(*uid),
                _ => None,
            });
            if let (Some(uid), Some(value)) = (uid.filter(|uid| asked.contains(uid)), values.iter().find_map(&read)) {
                given.insert(uid, value);
            }
        })
        .await?;
        let missing: Vec<u32> = asked.into_iter().filter(|uid| !given.contains_key(uid)).collect();
        let there = if missing.is_empty() {
            BTreeSet::new()
        } else {
            self.find_uids(&format!("UID {}", join_uids(&missing))).await?
        };
        let withheld = missing.into_iter().filter(|uid| there.contains(uid)).collect();
        Ok(FetchedValues { given, withheld })
    }

    async fn run_command(&mut self, command: &str, each: impl FnMut(&Response<'_>)) -> ImapResult<()> {
        let tag = self.send_command(command).await?;
        self.read_until_done(&tag, each).await
    }

    async fn send_command(&mut self, command: &str) -> ImapResult<RequestId> {
        self.inner.run_command(command).await.map_err(|e| e.to_string())
    }

    async fn read_until_done(&mut self, tag: &RequestId, mut each: impl FnMut(&Response<'_>)) -> ImapResult<()> {
        loop {
            let done = self.read_next_response(|response| match response {
                Response::Done { tag: of, status, outcome } if of == tag => Some(check_status(status, outcome)),
                other => {
                    each(other);
                    None
                }
            });
            if let Some(done) = done.await? {
                return done;
            }
        }
    }

    async fn read_next_response<T>(&mut self, read: impl FnOnce(&Response<'_>) -> T) -> ImapResult<T> {
        let response = self.inner.read_response().await.map_err(|e| e.to_string())?;
        let response = response.ok_or("it hung up in the midst of an answer")?;
        match response.parsed() {
            Response::MailboxData(MailboxDatum::Exists(number)) => {
                self.has_news |= *number != self.exist;
                self.exist = *number;
            }
            Response::Expunge(_) => self.exist = self.exist.saturating_sub(1),
            _ => {}
        }
        Ok(read(response.parsed()))
    }
}

fn check_status(status: &Status, outcome: &Outcome<'_>) -> ImapResult<()> {
    match status {
        Status::Ok => Ok(()),
        other => Err(format!("it said {other:?}: {}", outcome.information.as_deref().unwrap_or("no reason"))),
    }
}

fn join_uids(uids: &[u32]) -> String {
    uids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}
