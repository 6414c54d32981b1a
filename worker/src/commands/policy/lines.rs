//! The lines of a matter's policy: what, which value, from where.
//!
//! Told in the order in which they narrow: what holds everywhere, what holds for sources, what the note says, what undos
//! have lowered. The last lines follow from the others, and are [`mod@comes_to`]'s.

mod comes_to;

use super::{SOURCES, told};
use crate::config::Config;
use crate::temporal::note::UpNote;
use chrono::{DateTime, Utc};
use serde::Serialize;
use steward_domain::frontmatter::Document;
use steward_domain::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::mutation::MutationClass;
use steward_domain::note_policy::MatterPolicy;
use steward_domain::note_policy::read::{BLOCK, CEILING};
use steward_domain::path::RecordPath;
use steward_domain::record::RecordState;
use steward_domain::trust::step_back::ModeCaps;
use steward_vault::brake::FleetStop;
use steward_vault::index::SourceCeiling;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Line {
    pub(super) what: String,
    pub(super) value: String,
    pub(super) from: String,
}

/// What holds for every matter.
pub(super) struct Settings<'a> {
    pub(super) config: &'a Config,
    /// The process that holds the vault; its settings are the ones that decide.
    pub(super) running: Option<UpNote>,
    pub(super) stop: Option<FleetStop>,
    pub(super) caps: ModeCaps,
    /// Every source that has a ceiling of its own, and the line that says so.
    pub(super) sources: Vec<(SourceCeiling, String)>,
    pub(super) now: DateTime<Utc>,
}

/// A matter's note.
pub(super) struct Note<'a> {
    pub(super) matter: &'a RecordPath,
    pub(super) document: &'a Document,
    pub(super) state: RecordState,
    /// Its ceiling outside of the block.
    pub(super) top: Ceiling,
    pub(super) policy: Option<&'a MatterPolicy>,
    /// Live changes of the matter and its tasks in 24 h.
    pub(super) spent: u32,
}

impl Settings<'_> {
    fn policy(&self) -> &DecisionPolicy {
        self.running.as_ref().map_or(&self.config.policy, |up| &up.policy)
    }

    /// Where a value was set that decides; a running process may have another environment than this command.
    fn from(&self, key: &str, same: bool) -> String {
        match &self.running {
            Some(up) if !same => format!("`steward {}`, process {}", up.command, up.pid),
            Some(_) | None => self.config.origins.of_key(key),
        }
    }

    fn mode(&self) -> Line {
        let (found, ours) = (self.policy().mode, self.config.policy.mode);
        match &self.stop {
            None => line("mode", found.as_str(), self.from("live_mode", found == ours)),
            Some(stop) => {
                let from = format!("stopped by {} at {}: `steward resume`", stop.by, stop.at);
                line("mode", format!("{}, {} before", Mode::Shadow.as_str(), found.as_str()), from)
            }
        }
    }

    fn effective_mode(&self) -> Mode {
        if self.stop.is_some() { Mode::Shadow } else { self.policy().mode }
    }

    fn class_ceiling(&self, class: MutationClass) -> (Ceiling, String) {
        let (found, ours) = (self.policy().class_ceiling(class), self.config.policy.class_ceiling(class));
        (found, self.from(&format!("{}_ceiling", class.as_str()), found == ours))
    }
}

impl Note<'_> {
    /// The line of the file on which a key stands.
    fn at(&self, path: &[&str]) -> String {
        let line = self.document.line_of_key(path).or_else(|| self.document.line_of_key(&path[..1]));
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{line} ({})", self.matter, path.join("."))
    }

    /// The block's ceiling; one that is lowered because something else cannot be read is told at the block itself.
    fn block_ceiling(&self) -> Option<(Ceiling, String)> {
        let ceiling = self.policy?.ceiling?;
        let own = self.document.line_of_key(&[BLOCK, "ceiling"]).is_some();
        let written = self.document.fields().get(BLOCK).and_then(|block| block.get("ceiling")?.as_str());
        if own && written.is_none_or(|text| Ceiling::parse_or_ask(text) == ceiling) {
            return Some((ceiling, self.at(&[BLOCK, "ceiling"])));
        }
        Some((ceiling, format!("{}, which cannot be understood whole", self.at(&[BLOCK]))))
    }

    fn top_ceiling(&self) -> Option<(Ceiling, String)> {
        self.document.line_of_key(&[CEILING]).map(|_| (self.top, self.at(&[CEILING])))
    }
}

/// All lines of a matter's policy.
pub(super) fn of(settings: &Settings<'_>, note: &Note<'_>) -> Vec<Line> {
    let mut lines = vec![settings.mode()];
    everywhere(settings, &mut lines);
    let ceilings = [note.top_ceiling(), note.block_ceiling()];
    lines.extend(ceilings.into_iter().flatten().map(|(ceiling, from)| line("ceiling here", ceiling.as_str(), from)));
    if let Some(policy) = note.policy {
        block(settings, note, (policy, &mut lines));
    }
    for (subject, cap) in &settings.caps {
        if let Some(mode) = cap.mode {
            let from = format!("undone too often, since {}: `steward trust raise {subject}`", told(cap.since));
            lines.push(line(format!("{subject} at most"), mode.as_str(), from));
        }
    }
    lines.extend(MutationClass::ALL.map(|class| comes_to::of(settings, note, class)));
    lines
}

fn everywhere(settings: &Settings<'_>, lines: &mut Vec<Line>) {
    let (found, ours) = (settings.policy(), &settings.config.policy);
    for (what, key, value, our) in [
        ("confidence for live", "confidence_threshold", found.confidence_threshold, ours.confidence_threshold),
        (
            "high confidence",
            "high_confidence_threshold",
            found.high_confidence_threshold,
            ours.high_confidence_threshold,
        ),
    ] {
        lines.push(line(what, format!("at least {value}"), settings.from(key, value.to_bits() == our.to_bits())));
    }
    for class in MutationClass::ALL {
        let (ceiling, from) = settings.class_ceiling(class);
        lines.push(line(format!("ceiling of {}", class.as_str()), ceiling.as_str(), from));
    }
    let ours = settings.config;
    lines.push(line("ceiling of other sources", ours.default_ceiling.as_str(), settings.from("default_ceiling", true)));
    for (one, from) in settings.sources.iter().take(SOURCES) {
        lines.push(line(format!("ceiling of {}", one.source), one.ceiling.as_str(), from.clone()));
    }
    let budget = format!("fewer than {} live in 24 h", ours.live_per_source_day);
    lines.push(line("each source", budget, settings.from("live_per_source_day", true)));
}

/// What the block says beside its ceiling.
fn block(settings: &Settings<'_>, note: &Note<'_>, (policy, lines): (&MatterPolicy, &mut Vec<Line>)) {
    let mut say = |key: &str, value: String| lines.push(line(key.replace('_', " "), value, note.at(&[BLOCK, key])));
    if let Some(classes) = &policy.classes {
        say("classes", listed(&classes.iter().map(|class| class.as_str()).collect::<Vec<_>>()));
    }
    if let Some(fields) = &policy.fields {
        say("fields", listed(&fields.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    if let Some(hours) = policy.quiet_hours {
        let now = policy.quiet_until(settings.now).map(|until| format!(", now, until {}", told(until)));
        say("quiet_hours", format!("{hours}{}", now.unwrap_or_default()));
    }
    if let Some(sources) = &policy.trusted_sources {
        say("trusted_sources", listed(&sources.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    if let Some(budget) = policy.daily_budget {
        say("daily_budget", format!("{budget} live in 24 h, {} spent", note.spent));
    }
}

fn listed(words: &[&str]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn line(what: impl Into<String>, value: impl Into<String>, from: impl Into<String>) -> Line {
    Line { what: what.into(), value: value.into(), from: from.into() }
}
