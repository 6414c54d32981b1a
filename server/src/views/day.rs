//! Which actions a day consists of: those that wait, changed something, would have changed something, or were resolved.
//!
//! The page Today and `steward_today` show the same, each in its form. What waits is shown however old it is.

use chrono::{DateTime, Utc};
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::Disposition;
use steward_vault::index::{ActionFilter, ActionSubset};

/// The filters of one period, which ends now.
pub(crate) struct DayFilters {
    pub(crate) waiting: ActionFilter,
    /// Changes that nobody has undone: an undone change counts as undone.
    pub(crate) changed: ActionFilter,
    pub(crate) shadow: ActionFilter,
    pub(crate) resolved: ActionFilter,
}

impl DayFilters {
    pub(crate) fn new(since: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let recent = |kinds: &[ActionKind], disposition| ActionFilter {
            since: Some(since),
            disposition,
            kinds: kinds.to_vec(),
            ..ActionFilter::default()
        };
        let changes = [ActionKind::Action, ActionKind::Confirmed];
        let resolutions =
            [ActionKind::Reversed, ActionKind::Dismissed, ActionKind::Right, ActionKind::Wrong, ActionKind::Reopened];
        Self {
            waiting: ActionFilter { only: ActionSubset::Waiting(now), ..ActionFilter::default() },
            changed: ActionFilter { only: ActionSubset::Undoable, ..recent(&changes, Some(Disposition::Live)) },
            shadow: recent(&[ActionKind::Action], Some(Disposition::Shadow)),
            resolved: recent(&resolutions, None),
        }
    }
}
