//! The senders: how often each was right, what its cases lack, and how far a person lets it go.
//!
//! The evidence is judged in [`steward_domain::trust::report::sender`]. One pass over all cases serves every sender, so
//! the result is kept for a moment. It must not decide whether a click is allowed: the process that holds the vault does.

use super::VaultViews;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::record::frontmatter;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::mark::TrustSubject;
use steward_domain::trust::report::advice::EvidenceBar;
use steward_domain::trust::report::sender::{SenderPass, SenderTrust};
use steward_vault::index::IndexError;
use tokio::sync::Mutex;

/// How long the judgement of all senders is kept while nothing changes: 60 s. Unanswered cases grow old meanwhile.
const KEPT: Duration = Duration::from_secs(60);
/// While something changes, it is kept for ten times as long as it took: at a million cases for minutes, else for less than a
/// second. So it never takes more than a tenth of the time.
const KEPT_PER_COST: u32 = 10;

/// One sender.
#[derive(Clone, Debug)]
pub(crate) struct SenderRow {
    pub(crate) trust: SenderTrust,
    /// The lowest ceiling that a person has set on it.
    pub(crate) ceiling: Option<Ceiling>,
    /// The instincts that set one.
    pub(crate) set_in: Vec<RecordPath>,
    /// The mode to which it was demoted after too many undos.
    pub(crate) demoted_to: Option<Mode>,
}

/// What the index held. The revision may be half a second late, so the newest record that a page can show counts, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexState {
    pub(crate) revision: i64,
    pub(crate) seq: u64,
}

/// The settings that a judgement of all senders rests on.
#[derive(Clone, Debug, PartialEq)]
struct SendersKey {
    policy: DecisionPolicy,
    budget: f64,
}

#[derive(Debug)]
struct JudgedSenders {
    at: Instant,
    cost: Duration,
    key: SendersKey,
    state: IndexState,
    senders: Arc<Vec<SenderTrust>>,
}

impl JudgedSenders {
    fn holds_for(&self, key: &SendersKey, state: IndexState) -> bool {
        let age = self.at.elapsed();
        self.key == *key && ((self.state == state && age < KEPT) || age < self.cost * KEPT_PER_COST)
    }
}

/// The judgement that was made last.
#[derive(Debug, Default)]
pub(crate) struct SendersCache(Mutex<Option<JudgedSenders>>);

impl SendersCache {
    /// The senders, those with the most cases first, with the ceilings of this moment. Concurrent requests share one pass
    /// over the cases, because it keeps a connection of the index busy.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub(crate) async fn list_senders(
        &self,
        views: &VaultViews,
        policy: &DecisionPolicy,
        budget: f64,
        state: IndexState,
    ) -> Result<Vec<SenderRow>, IndexError> {
        let key = SendersKey { policy: policy.clone(), budget };
        let mut kept = self.0.lock().await;
        let senders = match kept.as_ref().filter(|judged| judged.holds_for(&key, state)) {
            Some(judged) => Arc::clone(&judged.senders),
            None => {
                let at = Instant::now();
                let senders = Arc::new(views.judge_senders(policy, budget, Utc::now()).await?);
                *kept = Some(JudgedSenders { at, cost: at.elapsed(), key, state, senders: Arc::clone(&senders) });
                senders
            }
        };
        drop(kept);
        views.add_settings(&senders).await
    }
}

impl VaultViews {
    async fn judge_senders(
        &self,
        policy: &DecisionPolicy,
        budget: f64,
        now: DateTime<Utc>,
    ) -> Result<Vec<SenderTrust>, IndexError> {
        let trust = self.index.trust();
        let mut pass = SenderPass::new(policy, now);
        trust.for_each_case(now, |case| pass.add_case(case)).await?;
        let ceilings = self.list_ceilings().await?;
        let bar = EvidenceBar::from_budget(budget);
        let mut keys: Vec<&str> = pass.list_senders();
        // A sender that a person has set a ceiling on is shown even if it has no case.
        let others = ceilings.keys().map(String::as_str).filter(|key| !keys.contains(key));
        let others: Vec<&str> = others.collect();
        keys.extend(others);
        let ceiling = |key: &str| ceilings.get(key).and_then(|set| set.iter().map(|one| one.1).min());
        Ok(keys.into_iter().map(|key| pass.judge_sender(key, ceiling(key), &bar)).collect())
    }

    /// The ceilings that people have set, by the key of the sender, each with its instinct.
    async fn list_ceilings(&self) -> Result<BTreeMap<String, Vec<(RecordPath, Ceiling)>>, IndexError> {
        let mut ceilings: BTreeMap<String, Vec<(RecordPath, Ceiling)>> = BTreeMap::new();
        for instinct in self.index.trust().list_instincts(None).await? {
            if let Some(ceiling) = instinct.ceiling {
                ceilings.entry(instinct.source).or_default().push((instinct.path, ceiling));
            }
        }
        Ok(ceilings)
    }

    async fn add_settings(&self, senders: &[SenderTrust]) -> Result<Vec<SenderRow>, IndexError> {
        let (mut ceilings, caps) = (self.list_ceilings().await?, self.index.trust().read_mode_caps().await?);
        let add = |trust: &SenderTrust| {
            let set = ceilings.remove(&trust.source).unwrap_or_default();
            SenderRow {
                trust: trust.clone(),
                ceiling: set.iter().map(|one| one.1).min(),
                set_in: set.into_iter().map(|(path, _)| path).collect(),
                demoted_to: caps.get(&TrustSubject::Source(trust.source.clone())).and_then(|cap| cap.mode),
            }
        };
        Ok(senders.iter().map(add).collect())
    }

    /// The lowest ceiling that a person has set on a sender.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub(crate) async fn find_ceiling(&self, source: &str) -> Result<Option<Ceiling>, IndexError> {
        let instincts = self.index.trust().list_instincts(Some(source)).await?;
        Ok(instincts.into_iter().filter_map(|instinct| instinct.ceiling).min())
    }

    /// The line of a file that sets a key, as in `instinct/gmail.md:4`; the file alone if it cannot be found.
    pub(crate) fn locate_key(&self, path: &RecordPath, key: &[&str]) -> String {
        let document = self.root.read_file(path).ok().and_then(|file| frontmatter::read_document(&file.bytes).ok());
        let place = self.root.locate(path);
        match document.and_then(|document| document.line_of_key(key)) {
            Some(line) => format!("{place}:{line}"),
            None => place.into_owned(),
        }
    }
}
