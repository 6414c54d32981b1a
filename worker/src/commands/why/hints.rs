//! What `steward why` advises: what would change the outcome for a task or matter.
//!
//! The advice after a resolution must agree with `steward signals explain`. It must name nothing that cannot work.

use super::WhyResolution;
use crate::cli::output::escape_text;
use chrono::{DateTime, Utc};
use steward_domain::action::audit::AuditRecord;
use steward_domain::action::plan::Disposition;
use steward_domain::record::entity::RecordState;
use steward_domain::time::format_millis;
use steward_server::views::why::describe_opening_condition;
use steward_vault::index::SubjectRow;

/// What decides which hints are given.
pub(super) struct HintFacts<'a> {
    pub(super) subject: &'a SubjectRow,
    /// The line that opens the record again, such as `state: open`.
    pub(super) reopening: &'a str,
    /// The newest decision.
    pub(super) decided: Option<&'a AuditRecord>,
    /// How people resolved it.
    pub(super) resolutions: &'a [WhyResolution],
    /// Whether a signal could still lead to a decision and no decision cites it.
    pub(super) has_unjudged: bool,
    pub(super) stopped: bool,
    pub(super) now: DateTime<Utc>,
}

impl HintFacts<'_> {
    /// Lists what would change the outcome.
    pub(super) fn list_hints(&self) -> Vec<String> {
        let mut hints = Vec::new();
        match self.subject.state {
            RecordState::Open => {}
            RecordState::Done | RecordState::Archived => {
                hints.push(format!("set `{}`: a closed record is not checked", self.reopening))
            }
        }
        if let Some(until) = self.subject.snoozed_until.filter(|until| *until > self.now) {
            hints.push(format!("remove `snoozed_until`: the record is snoozed until {}", format_millis(until)));
        }
        if self.stopped {
            hints.push("run `steward resume`: the vault is stopped, so no clerk is asked".into());
        }
        match (self.decided, self.resolutions) {
            (_, [.., last]) => self.list_resolved_hints(last, &mut hints),
            (Some(record), []) => hints.extend(list_decision_hints(record)),
            (None, []) if self.has_unjudged => hints.push(
                "a tick that can ask a clerk: `steward tick <matter> --wait` shows what holds it, `steward status` \
                 shows how full the rate guard is"
                    .into(),
            ),
            (None, []) => hints.push("a new signal: without one no clerk is asked".into()),
        }
        hints
    }

    /// A resolved decision keeps its signals, as `signals explain` says. So a tick alone changes nothing.
    fn list_resolved_hints(&self, last: &WhyResolution, hints: &mut Vec<String>) {
        if last.undo_until.is_some_and(|until| self.now < until) {
            hints.push(format!("`steward undo {}` undoes the change, within 7 days", last.id));
        }
        if self.has_unjudged && self.subject.state == RecordState::Open {
            hints.push("a check of the signals that no decision cites yet: `steward tick <matter> --wait`".into());
        }
        hints.push(
            "a new signal: those of this decision stay claimed and are not proposed again; or edit the record".into(),
        );
    }
}

/// Lists what would change the outcome of a decision that no person has resolved.
fn list_decision_hints(record: &AuditRecord) -> Vec<String> {
    let mut hints = Vec::new();
    let id = &record.draft.id;
    match record.draft.disposition {
        Disposition::Live => hints.push(format!("`steward undo {id}` undoes the change, within 7 days")),
        Disposition::Pending if record.draft.confirmable => {
            hints.push(format!("`steward confirm {id}` makes the change"))
        }
        Disposition::Pending => {
            hints.push("make the change by hand: a ceiling of `ask` or the matter's note leaves it to you".into())
        }
        Disposition::Recorded => return vec!["a new signal that proposes a change".into()],
        Disposition::Shadow => {}
    }
    hints.extend(
        record
            .draft
            .gates
            .iter()
            .filter(|g| !g.open)
            .map(|g| describe_opening_condition(g.gate, &escape_text(&g.found), &escape_text(&g.needed))),
    );
    hints
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::action::audit::ActionKind;
    use steward_domain::action::plan::ActionId;
    use steward_domain::record::path::RecordPath;

    fn now() -> DateTime<Utc> {
        steward_domain::time::parse("2026-11-22").unwrap()
    }

    fn open_task() -> SubjectRow {
        SubjectRow {
            path: RecordPath::parse("task/pay.md").unwrap(),
            name: "Pay".into(),
            state: RecordState::Open,
            snoozed_until: None,
            last_check_at: None,
            next_check_after: None,
        }
    }

    #[test]
    fn every_case_has_a_hint_what_would_change_it() {
        let (open, now) = (open_task(), now());
        let hints = |subject: &SubjectRow, stopped, has_unjudged| {
            HintFacts { subject, reopening: "state: open", decided: None, resolutions: &[], has_unjudged, stopped, now }
                .list_hints()
        };
        assert_eq!(hints(&open, false, false), ["a new signal: without one no clerk is asked"]);
        assert!(hints(&open, false, true)[0].contains("steward tick"));
        assert!(hints(&open, true, false)[0].contains("steward resume"));
        let snoozed = SubjectRow { snoozed_until: Some(now + chrono::TimeDelta::days(1)), ..open.clone() };
        assert!(hints(&snoozed, false, false)[0].contains("snoozed_until"));
        let done = SubjectRow { state: RecordState::Done, ..open };
        assert!(hints(&done, false, false)[0].contains("state: open"));
    }

    #[test]
    fn after_a_resolution_only_new_evidence_or_an_undo_is_advised() {
        let subject = open_task();
        let resolution = |kind, undo_until| WhyResolution {
            kind,
            id: ActionId::derive(&["r"]),
            at: now(),
            by: "ann".into(),
            reason: None,
            undo_until,
        };
        let hints = |last: WhyResolution, has_unjudged| {
            let (subject, resolutions) = (&subject, &[last][..]);
            HintFacts {
                subject,
                reopening: "state: open",
                decided: None,
                resolutions,
                has_unjudged,
                stopped: false,
                now: now(),
            }
            .list_hints()
        };
        for kind in [ActionKind::Reversed, ActionKind::Dismissed, ActionKind::DoneAnyway] {
            let given = hints(resolution(kind, None), false);
            assert_eq!(given.len(), 1, "{given:?}");
            assert!(given[0].starts_with("a new signal: ") && given[0].contains("not proposed again"), "{given:?}");
        }
        let later = Some(now() + chrono::TimeDelta::days(1));
        let confirmed = hints(resolution(ActionKind::Confirmed, later), false);
        assert!(confirmed[0].starts_with("`steward undo ") && confirmed.len() == 2, "{confirmed:?}");
        assert_eq!(hints(resolution(ActionKind::Confirmed, Some(now())), false).len(), 1, "its window has ended");
        assert!(hints(resolution(ActionKind::Reversed, None), true)[0].contains("no decision cites yet"));
    }
}
