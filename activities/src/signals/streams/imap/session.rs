//! The commands to an IMAP server. Only an answer that ends with OK counts.
//!
//! The client library treats NO, BAD and a closed connection like any end of an answer. So its own commands must not be
//! used after the login. New mail that the server announces during another command is remembered until the next search.
//! Nothing is stored here.

use super::ANSWER_TIMEOUT;
use super::IDLE;
use super::connection::ImapTransport;
use async_imap::imap_proto::{
    AttributeValue, Capability, MailboxDatum, Outcome, RequestId, Response, ResponseCode, Status,
};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::timeout;

/// A session after the login.
#[derive(Debug)]
pub(super) struct ImapSession {
    inner: async_imap::Session<Box<dyn ImapTransport>>,
    /// How many mails the folder has, as far as the server reported.
    exist: u32,
    /// The server announced mails since the last search.
    has_news: bool,
}

/// The state of a folder when it was opened.
pub(super) struct ExaminedFolder {
    pub(super) validity: u32,
    pub(super) next: Option<u32>,
}

/// The requested values of some mails. A mail that is gone has none.
pub(super) struct FetchedValues<T> {
    pub(super) given: BTreeMap<u32, T>,
    /// The mails that exist but that the server does not return.
    pub(super) withheld: BTreeSet<u32>,
}

/// An answer, or why there is none.
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
        let validity = validity.ok_or("it gave no UIDVALIDITY, so its mail numbers are not stable")?;
        Ok(ExaminedFolder { validity, next })
    }

    /// Searches mails. Mails that the server announces from now on count as news.
    pub(super) async fn search_mails(&mut self, query: &str) -> ImapResult<BTreeSet<u32>> {
        self.has_news = false;
        self.find_uids(query).await
    }

    /// Fetches the sizes of mails.
    pub(super) async fn fetch_sizes(&mut self, uids: &[u32]) -> ImapResult<FetchedValues<u32>> {
        let size = |value: &AttributeValue<'_>| match value {
            AttributeValue::Rfc822Size(size) => Some(*size),
            _ => None,
        };
        self.fetch_values(uids, "RFC822.SIZE", size).await
    }

    /// Fetches the first `most` bytes of mails.
    pub(super) async fn fetch_bodies(&mut self, uids: &[u32], most: u64) -> ImapResult<FetchedValues<Vec<u8>>> {
        let body = |value: &AttributeValue<'_>| match value {
            AttributeValue::BodySection { section: None, data, .. } | AttributeValue::Rfc822(data) => {
                Some(data.as_deref().unwrap_or_default().to_vec())
            }
            _ => None,
        };
        self.fetch_values(uids, &format!("BODY.PEEK[]<0.{most}>"), body).await
    }

    /// Reports whether the server supports IDLE.
    pub(super) async fn can_idle(&mut self) -> ImapResult<bool> {
        let mut can_idle = false;
        self.run_command("CAPABILITY", |response| {
            let Response::Capabilities(all) = response else { return };
            let is_idle = |c: &Capability<'_>| matches!(c, Capability::Atom(name) if name.eq_ignore_ascii_case("IDLE"));
            can_idle |= all.iter().any(is_idle);
        })
        .await?;
        Ok(can_idle)
    }

    /// Reports whether the server announced mails since the last search.
    pub(super) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Waits until the server announces mails, at most for one IDLE; `false` if the server refuses IDLE.
    pub(super) async fn idle(&mut self) -> ImapResult<bool> {
        let tag = self.send_command("IDLE").await?;
        let begun = async {
            loop {
                let begun = self.read_next_response(|response| match response {
                    Response::Continue(_) => Some(true),
                    Response::Done { tag: done, .. } if *done == tag => Some(false),
                    _ => None,
                });
                if let Some(begun) = begun.await? {
                    return Ok::<bool, String>(begun);
                }
            }
        };
        if !timeout(ANSWER_TIMEOUT, begun).await.map_err(|_| "no answer in time")?? {
            return Ok(false);
        }
        let news = async {
            while !self.has_news {
                let is_over = self.read_next_response(
                    |response| matches!(response, Response::Done { tag: done, .. } if *done == tag),
                );
                if is_over.await? {
                    return Ok::<bool, String>(true);
                }
            }
            Ok(false)
        };
        // Neither a time without news nor a server that ends IDLE by itself is a failure.
        if timeout(IDLE, news).await.unwrap_or(Ok(false))? {
            return Ok(true);
        }
        let done = async {
            self.inner.run_command_untagged("DONE").await.map_err(|e| e.to_string())?;
            self.read_until_done(&tag, |_| ()).await
        };
        timeout(ANSWER_TIMEOUT, done).await.map_err(|_| "no answer in time")??;
        Ok(true)
    }

    pub(super) async fn logout(&mut self) -> ImapResult<()> {
        self.run_command("LOGOUT", |_| ()).await
    }

    async fn find_uids(&mut self, query: &str) -> ImapResult<BTreeSet<u32>> {
        let mut uids = BTreeSet::new();
        self.run_command(&format!("UID SEARCH {query}"), |response| {
            if let Response::MailboxData(MailboxDatum::Search(found)) = response {
                uids.extend(found);
            }
        })
        .await?;
        Ok(uids)
    }

    /// Fetches one value of each of these mails.
    ///
    /// A mail without an answer counts as gone only if a search agrees. A request that fails for several mails is
    /// repeated for each of them, so that one invalid mail does not block the others.
    async fn fetch_values<T>(
        &mut self,
        uids: &[u32],
        item: &str,
        read: impl Fn(&AttributeValue<'_>) -> Option<T>,
    ) -> ImapResult<FetchedValues<T>> {
        let mut all = FetchedValues { given: BTreeMap::new(), withheld: BTreeSet::new() };
        let failed = match self.fetch_batch(uids, item, &read).await {
            Ok(fetched) if fetched.withheld.is_empty() => return Ok(fetched),
            Ok(fetched) => {
                all = fetched;
                None
            }
            Err(why) => Some(why),
        };
        let left: Vec<u32> = match failed {
            Some(_) => uids.to_vec(),
            None => std::mem::take(&mut all.withheld).into_iter().collect(),
        };
        for uid in left {
            match self.fetch_batch(&[uid], item, &read).await {
                Ok(fetched) => {
                    all.given.extend(fetched.given);
                    all.withheld.extend(fetched.withheld);
                }
                Err(why) => {
                    // NOOP shows whether the mail is at fault or the connection is lost.
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
        item: &str,
        read: impl Fn(&AttributeValue<'_>) -> Option<T>,
    ) -> ImapResult<FetchedValues<T>> {
        let requested: BTreeSet<u32> = uids.iter().copied().collect();
        let mut given = BTreeMap::new();
        self.run_command(&format!("UID FETCH {} (UID {item})", join_uids(uids)), |response| {
            let Response::Fetch(_, values) = response else { return };
            let uid = values.iter().find_map(|value| match value {
                AttributeValue::Uid(uid) => Some(*uid),
                _ => None,
            });
            if let (Some(uid), Some(value)) = (uid.filter(|uid| requested.contains(uid)), values.iter().find_map(&read))
            {
                given.insert(uid, value);
            }
        })
        .await?;
        let missing: Vec<u32> = requested.into_iter().filter(|uid| !given.contains_key(uid)).collect();
        let existing = if missing.is_empty() {
            BTreeSet::new()
        } else {
            self.find_uids(&format!("UID {}", join_uids(&missing))).await?
        };
        let withheld = missing.into_iter().filter(|uid| existing.contains(uid)).collect();
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
                Response::Done { tag: done, status, outcome } if done == tag => Some(check_status(status, outcome)),
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
        let response = response.ok_or("it closed the connection during an answer")?;
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
        other => Err(format!("it answered {other:?}: {}", outcome.information.as_deref().unwrap_or("no reason"))),
    }
}

fn join_uids(uids: &[u32]) -> String {
    uids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}
