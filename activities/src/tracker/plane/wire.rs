//! The answers of Plane's API, as far as they are used.
//!
//! The types follow version 1 of its published API. Everything else in an answer is ignored. Nothing here sends a
//! request.

use serde::Deserialize;
use steward_domain::tracker::{TrackerId, TrackerStateGroup};

/// A state of a project.
#[derive(Debug, Deserialize)]
pub(super) struct PlaneState {
    pub(super) id: TrackerId,
    pub(super) group: String,
    #[serde(default)]
    pub(super) sequence: f64,
    #[serde(default)]
    pub(super) default: bool,
}

#[derive(Deserialize)]
pub(super) struct PlanePage<T> {
    pub(super) results: Vec<T>,
    #[serde(default)]
    pub(super) next_page_results: bool,
    pub(super) next_cursor: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct WorkItem {
    pub(super) state: Option<TrackerId>,
}

#[derive(Deserialize)]
pub(super) struct CreatedComment {
    pub(super) id: TrackerId,
}

#[derive(Deserialize)]
pub(super) struct PlaneComment {
    pub(super) id: TrackerId,
    pub(super) external_source: Option<String>,
    pub(super) external_id: Option<String>,
}

/// The states of one project.
pub(in crate::tracker) struct ProjectStates(pub(super) Vec<PlaneState>);

impl ProjectStates {
    /// The state of a group that an issue is moved to: the project's default if it is in the group, else the first.
    pub(in crate::tracker) fn first_in_group(&self, group: TrackerStateGroup) -> Option<&TrackerId> {
        let in_group = self.0.iter().filter(|state| state.group == group.as_str());
        let before = |a: &&PlaneState, b: &&PlaneState| {
            b.default.cmp(&a.default).then(a.sequence.total_cmp(&b.sequence)).then(a.id.cmp(&b.id))
        };
        in_group.min_by(before).map(|state| &state.id)
    }

    /// Reports whether a state is in a group.
    pub(in crate::tracker) fn is_in_group(&self, state: &TrackerId, group: TrackerStateGroup) -> bool {
        self.0.iter().any(|known| &known.id == state && known.group == group.as_str())
    }
}
