//! The lines of a matter's policy: each setting with its value and its origin.
//!
//! The order is that in which the settings narrow each other: the settings of all matters, those of sources, the
//! matter's note, and demotions. The last lines are the outcome for each class, which [`mod@comes_to`] derives from all
//! of them. It must not read files or the index: its caller passes everything in.

mod comes_to;

use super::MAX_SOURCES;
use super::format_time;
use crate::config::StewardConfig;
use crate::temporal::note::HolderRecord;
use chrono::{DateTime, Utc};
use serde::Serialize;
use steward_domain::action::mutation::MutationClass;
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::gates::matter_policy::read::{BLOCK, CEILING};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::record::entity::RecordState;
use steward_domain::record::frontmatter::Document;
use steward_domain::record::path::RecordPath;
use steward_domain::record::schema::NoteSchema;
use steward_domain::trust::demotion::ModeCaps;
use steward_vault::gates::stop::VaultStop;
use steward_vault::index::SourceCeiling;

/// A setting or an outcome, its value, and where that comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PolicyLine {
    pub(super) what: String,
    pub(super) value: String,
    pub(super) from: String,
}

/// The settings of all matters.
pub(super) struct PolicyContext<'a> {
    /// How the notes of the vault are read.
    pub(super) schema: &'a NoteSchema,
    pub(super) config: &'a StewardConfig,
    /// The process that holds the vault, because its settings apply and not those of this command.
    pub(super) running: Option<HolderRecord>,
    pub(super) stop: Option<VaultStop>,
    pub(super) caps: ModeCaps,
    /// Every source that has a ceiling of its own, with the line that sets it.
    pub(super) sources: Vec<(SourceCeiling, String)>,
    pub(super) now: DateTime<Utc>,
}

/// The note of one matter.
pub(super) struct MatterPolicyContext<'a> {
    pub(super) matter: &'a RecordPath,
    pub(super) document: &'a Document,
    pub(super) state: RecordState,
    /// The ceiling outside of the `steward:` block.
    pub(super) top: Ceiling,
    pub(super) policy: Option<&'a MatterPolicy>,
    /// Live changes of the matter and its tasks in 24 h.
    pub(super) spent: u32,
}

impl PolicyContext<'_> {
    fn effective_policy(&self) -> &DecisionPolicy {
        self.running.as_ref().map_or(&self.config.policy, |up| &up.policy)
    }

    /// Describes where the value of a key was set. `is_same` tells whether the running process has the value of this
    /// command, because the process may have another environment.
    fn describe_origin(&self, key: &str, is_same: bool) -> String {
        match &self.running {
            Some(up) if !is_same => format!("`steward {}`, process {}", up.command, up.pid),
            Some(_) | None => self.config.origins.describe_key_origin(key),
        }
    }

    fn build_mode_line(&self) -> PolicyLine {
        let (found, ours) = (self.effective_policy().mode, self.config.policy.mode);
        match &self.stop {
            None => build_line("mode", found.as_str(), self.describe_origin("live_mode", found == ours)),
            Some(stop) => {
                let from = format!("stopped by {} at {}: `steward resume` ends the stop", stop.by, stop.at);
                let value = format!("{} while stopped, else {}", Mode::Shadow.as_str(), found.as_str());
                build_line("mode", value, from)
            }
        }
    }

    fn effective_mode(&self) -> Mode {
        if self.stop.is_some() { Mode::Shadow } else { self.effective_policy().mode }
    }

    fn class_ceiling(&self, class: MutationClass) -> (Ceiling, String) {
        let (found, ours) = (self.effective_policy().class_ceiling(class), self.config.policy.class_ceiling(class));
        (found, self.describe_origin(&format!("{}_ceiling", class.as_str()), found == ours))
    }
}

impl MatterPolicyContext<'_> {
    /// Describes the line of the file that sets a key.
    fn locate_key(&self, path: &[&str]) -> String {
        let line = self.document.line_of_key(path).or_else(|| self.document.line_of_key(&path[..1]));
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{line} ({})", self.matter, path.join("."))
    }

    /// The ceiling of the block. If it is lower than written because another key is invalid, its origin is the block.
    fn block_ceiling(&self) -> Option<(Ceiling, String)> {
        let ceiling = self.policy?.ceiling?;
        let own = self.document.line_of_key(&[BLOCK, "ceiling"]).is_some();
        let written = self.document.fields().get(BLOCK).and_then(|block| block.get("ceiling")?.as_str());
        if own && written.is_none_or(|text| Ceiling::parse_or_ask(text) == ceiling) {
            return Some((ceiling, self.locate_key(&[BLOCK, "ceiling"])));
        }
        Some((ceiling, format!("{}, which is partly invalid", self.locate_key(&[BLOCK]))))
    }

    fn top_ceiling(&self) -> Option<(Ceiling, String)> {
        self.document.line_of_key(&[CEILING]).map(|_| (self.top, self.locate_key(&[CEILING])))
    }
}

/// Builds all lines of a matter's policy.
pub(super) fn build_policy_lines(settings: &PolicyContext<'_>, note: &MatterPolicyContext<'_>) -> Vec<PolicyLine> {
    let mut lines = vec![settings.build_mode_line()];
    add_global_lines(settings, &mut lines);
    let ceilings = [note.top_ceiling(), note.block_ceiling()];
    lines.extend(
        ceilings
            .into_iter()
            .flatten()
            .map(|(ceiling, from)| build_line("ceiling of this matter", ceiling.as_str(), from)),
    );
    if let Some(policy) = note.policy {
        add_block_lines(settings, note, policy, &mut lines);
    }
    for (subject, cap) in &settings.caps {
        if let Some(mode) = cap.mode {
            let from = format!("undone too often, since {}: `steward trust raise {subject}`", format_time(cap.since));
            lines.push(build_line(format!("mode limit of {subject}"), mode.as_str(), from));
        }
    }
    lines.extend(MutationClass::ALL.map(|class| comes_to::build_outcome_line(settings, note, class)));
    lines
}

fn add_global_lines(settings: &PolicyContext<'_>, lines: &mut Vec<PolicyLine>) {
    let (found, ours) = (settings.effective_policy(), &settings.config.policy);
    for (name, key, value, our) in [
        ("confidence for live", "confidence_threshold", found.confidence_threshold, ours.confidence_threshold),
        (
            "high confidence",
            "high_confidence_threshold",
            found.high_confidence_threshold,
            ours.high_confidence_threshold,
        ),
    ] {
        lines.push(build_line(
            name,
            format!("at least {value}"),
            settings.describe_origin(key, value.to_bits() == our.to_bits()),
        ));
    }
    for class in MutationClass::ALL {
        let (ceiling, from) = settings.class_ceiling(class);
        lines.push(build_line(format!("ceiling of {}", class.as_str()), ceiling.as_str(), from));
    }
    let ours = settings.config;
    lines.push(build_line(
        "ceiling of other sources",
        ours.default_ceiling.as_str(),
        settings.describe_origin("default_ceiling", true),
    ));
    for (source, from) in settings.sources.iter().take(MAX_SOURCES) {
        lines.push(build_line(format!("ceiling of {}", source.source), source.ceiling.as_str(), from.clone()));
    }
    let budget = format!("fewer than {} live changes in 24 h", ours.live_per_source_day);
    lines.push(build_line("each source", budget, settings.describe_origin("live_per_source_day", true)));
}

/// Adds the keys of the block other than its ceiling.
fn add_block_lines(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
    policy: &MatterPolicy,
    lines: &mut Vec<PolicyLine>,
) {
    let mut add =
        |key: &str, value: String| lines.push(build_line(key.replace('_', " "), value, note.locate_key(&[BLOCK, key])));
    if let Some(classes) = &policy.classes {
        add("classes", join_words(&classes.iter().map(|class| class.as_str()).collect::<Vec<_>>()));
    }
    if let Some(fields) = &policy.fields {
        add("fields", join_words(&fields.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    if let Some(hours) = policy.quiet_hours {
        let now = policy.quiet_until(settings.now).map(|until| format!(", now, until {}", format_time(until)));
        add("quiet_hours", format!("{hours}{}", now.unwrap_or_default()));
    }
    if let Some(sources) = &policy.trusted_sources {
        add("trusted_sources", join_words(&sources.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    if let Some(budget) = policy.daily_budget {
        add("daily_budget", format!("{budget} live changes in 24 h, {} used", note.spent));
    }
}

fn join_words(words: &[&str]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn build_line(what: impl Into<String>, value: impl Into<String>, from: impl Into<String>) -> PolicyLine {
    PolicyLine { what: what.into(), value: value.into(), from: from.into() }
}
