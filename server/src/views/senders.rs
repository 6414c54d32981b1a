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

/// One sender.
#[derive(Clone, Debug)]
pub(crate) struct SenderRow {
    pub(crate) trust: SenderTrust,
    /// The lowest ceiling that a person has set on it.
    pub(crate) ceiling: Option<Ceiling>,
    /// The files that set it, with the line, such as `instinct/gmail.md:4`.
    pub(crate) set_in: Vec<String>,
    /// The mode to which it was demoted after too many undos.
    pub(crate) demoted_to: Option<Mode>,
}

/// What the index held. The revision may be half a second late, so the newest record that a page can show counts, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexState {
    pub(crate) revision: i64,
    pub(crate) seq: u64,
}

/// What a judgement of all senders rests on.
#[derive(Clone, Debug, PartialEq)]
struct SendersKey {
    state: IndexState,
    policy: DecisionPolicy,
    budget: f64,
}

#[derive(Debug)]
struct JudgedSenders {
    at: Instant,
    key: SendersKey,
    rows: Arc<Vec<SenderRow>>,
}

/// The judgement that was made last.
#[derive(Debug, Default)]
pub(crate) struct SendersCache(Mutex<Option<JudgedSenders>>);

impl SendersCache {
    /// The senders, those with the most cases first. Concurrent requests share one pass, because it keeps a connection of
    /// the index busy.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub(crate) async fn list_senders(
        &self,
        views: &VaultViews,
        policy: &DecisionPolicy,
        budget: f64,
        state: IndexState,
    ) -> Result<Arc<Vec<SenderRow>>, IndexError> {
        let key = SendersKey { state, policy: policy.clone(), budget };
        let mut kept = self.0.lock().await;
        if let Some(judged) = kept.as_ref()
            && judged.key == key
            && judged.at.elapsed() < KEPT
        {
            return Ok(Arc::clone(&judged.rows));
        }
        let rows = Arc::new(views.judge_senders(policy, budget, Utc::now()).await?);
        *kept = Some(JudgedSenders { at: Instant::now(), key, rows: Arc::clone(&rows) });
        Ok(rows)
    }
}

impl VaultViews {
    async fn judge_senders(
        &self,
        policy: &DecisionPolicy,
        budget: f64,
        now: DateTime<Utc>,
    ) -> Result<Vec<SenderRow>, IndexError> {
        let trust = self.index.trust();
        let mut pass = SenderPass::new(policy, now);
        trust.for_each_case(now, |case| pass.add_case(case)).await?;
        let caps = trust.read_mode_caps().await?;
        let mut settings: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for instinct in trust.list_instincts(None).await? {
            settings.entry(instinct.source.clone()).or_default().push(instinct);
        }
        let bar = EvidenceBar::from_budget(budget);
        let mut keys: Vec<String> = pass.list_senders().into_iter().map(str::to_owned).collect();
        // A sender that a person has set a ceiling on is shown even if it has no case.
        let is_set = |(key, instincts): &(&String, &Vec<steward_vault::index::InstinctSetting>)| {
            !keys.contains(key) && instincts.iter().any(|instinct| instinct.ceiling.is_some())
        };
        let others: Vec<String> = settings.iter().filter(is_set).map(|(key, _)| key.clone()).collect();
        keys.extend(others);
        let mut rows = Vec::with_capacity(keys.len());
        for key in keys {
            let instincts = settings.remove(&key).unwrap_or_default();
            let ceiling = instincts.iter().filter_map(|instinct| instinct.ceiling).min();
            let set = instincts.iter().filter(|instinct| instinct.ceiling.is_some());
            let demoted_to = caps.get(&TrustSubject::Source(key.clone())).and_then(|cap| cap.mode);
            rows.push(SenderRow {
                trust: pass.judge_sender(&key, ceiling, &bar),
                ceiling,
                set_in: set.map(|instinct| self.locate_key(&instinct.path, &["ceiling"])).collect(),
                demoted_to,
            });
        }
        Ok(rows)
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
