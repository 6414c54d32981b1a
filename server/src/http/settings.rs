//! The settings that the interfaces show: those of the process that holds the vault, and where they are set.
//!
//! The process that serves a page may have another environment than the one that holds the vault. What decides is the
//! latter. It must not read a file or a variable.

use crate::http::holder::HolderRecord;
use crate::views::streams::ConfiguredStream;
use std::collections::BTreeMap;
use std::time::Duration;
use steward_domain::action::mutation::MutationClass;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::steward::guard::CallCaps;
use steward_domain::steward::tick::Cadence;

/// The settings of the vault that the interfaces show.
#[derive(Clone, Debug)]
pub struct DashboardSettings {
    pub policy: DecisionPolicy,
    pub cadence: Cadence,
    /// The ceiling of sources for which no human has set one.
    pub default_ceiling: Ceiling,
    /// The caps of the rate guard.
    pub caps: CallCaps,
    /// The task queue of the workers.
    pub task_queue: String,
    /// The Temporal UI at this namespace, as in `http://127.0.0.1:8233/namespaces/default`.
    pub temporal_ui: Option<String>,
    /// The clerk: `rules`, `openai`, `anthropic` or `ollama`.
    pub clerk: String,
    /// The tracker's address; `None` if none is set.
    pub tracker: Option<String>,
    pub streams: Vec<ConfiguredStream>,
    /// The share of live changes that may be undone, 0 to 1.
    pub reversal_budget: f64,
    /// Live changes that one source may lead to in 24 hours.
    pub live_per_source_day: u32,
    /// Where each setting that limits a steward is set, by its key: a variable, or a file with the line. A missing one has
    /// its default.
    pub origins: BTreeMap<String, String>,
    /// How often the whole vault is scanned.
    pub scan_every: Duration,
    /// Problems of the configuration. They may quote it.
    pub warnings: Vec<String>,
}

impl DashboardSettings {
    /// Replaces the settings that the record of the vault's holder contains.
    pub(super) fn with_holder(mut self, record: HolderRecord, namespace: &str) -> Self {
        if let Some(services) = record.asks {
            self.caps = services.caps;
            self.clerk = services.clerk["kind"].as_str().map_or(self.clerk, str::to_owned);
            self.tracker = services.tracker;
        }
        let holder = format!("`steward {}`, process {}", record.command, record.pid);
        let mut note = |key: &str, is_same: bool| {
            if !is_same {
                self.origins.insert(key.to_owned(), holder.clone());
            }
        };
        let (own, found) = (&self.policy, &record.policy);
        note("live_mode", own.mode == found.mode);
        note("confidence_threshold", own.confidence_threshold.to_bits() == found.confidence_threshold.to_bits());
        let is_same = own.high_confidence_threshold.to_bits() == found.high_confidence_threshold.to_bits();
        note("high_confidence_threshold", is_same);
        note("default_ceiling", record.default_ceiling.is_none_or(|found| found == self.default_ceiling));
        let budget = record.reversal_budget.unwrap_or(self.reversal_budget);
        note("reversal_budget", budget.to_bits() == self.reversal_budget.to_bits());
        let per_source = record.live_per_source_day.unwrap_or(self.live_per_source_day);
        note("live_per_source_day", per_source == self.live_per_source_day);
        for class in MutationClass::ALL {
            note(&format!("{}_ceiling", class.as_str()), own.class_ceiling(class) == found.class_ceiling(class));
        }
        Self {
            policy: record.policy,
            reversal_budget: budget,
            live_per_source_day: per_source,
            cadence: record.cadence.unwrap_or(self.cadence),
            default_ceiling: record.default_ceiling.unwrap_or(self.default_ceiling),
            task_queue: record.task_queue,
            temporal_ui: record.ui.map(|ui| format!("{ui}/namespaces/{namespace}")).or(self.temporal_ui),
            scan_every: record.scan_seconds.map_or(self.scan_every, Duration::from_secs),
            ..self
        }
    }
}
