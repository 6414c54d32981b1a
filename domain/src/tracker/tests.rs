//! Owed actions, their records, and the escaping of untrusted words.

use super::*;
use crate::action::audit::{AuditResolution, ChainLink, CitedSignal};
use crate::action::plan::ContentHash;
use crate::record::schema::NoteSchema;
use crate::steward::decide::tests::{at, build_check, clerk, evidence, live, run, verdict};
use crate::steward::decide::{DecisionCase, decide};
use proptest::prelude::*;
use serde_json::{Value, json};

const ISSUE: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
const PROJECT: &str = "6fa459ea-ee8a-4ca4-894e-db77e160355e";

fn id(text: &str) -> TrackerId {
    TrackerId::parse(text).unwrap()
}

fn issue() -> TrackerIssue {
    TrackerIssue { project: id(PROJECT), issue: id(ISSUE) }
}

fn patch(to: &str) -> Vec<FieldPatch> {
    vec![FieldPatch {
        field: "state".into(),
        property: None,
        prior: Some("open".into()),
        value: Some(to.into()),
        undo: None,
    }]
}

fn fields(value: Value) -> RecordFields {
    value.as_object().unwrap().clone()
}

fn record() -> AuditRecord {
    let check = build_check(b"bytes", Some("open"), vec![evidence("gmail", 0.97, 60)]);
    let verdict = verdict(crate::steward::clerk::Judgement::LikelyDone, 0.9, &check);
    let (policy, clerk) = (live(), clerk());
    let case = DecisionCase {
        check: &check,
        policy: &policy,
        matter_policy: None,
        verdict: &verdict,
        clerk: &clerk,
        caller_says_shadow: false,
        workflow: run("run-1"),
        at: at("2026-11-21T09:30:15.123Z"),
    };
    let link = ChainLink { seq: 1, prev: ContentHash::genesis() };
    AuditRecord::from_draft(decide(&case).draft().clone(), patch("done"), link)
}

fn read_back(record: &AuditRecord) -> AuditRecord {
    AuditRecord::parse(record.render().unwrap().as_bytes()).unwrap()
}

#[test]
fn only_a_uuid_is_an_id() {
    assert_eq!(id(" 1B4E28BA-2FA1-41D2-883F-0016D3CCA427\n").as_str(), ISSUE);
    for bad in [
        "",
        "ROOF-7",
        "1b4e28ba2fa141d2883f0016d3cca427",
        "1b4e28ba-2fa1-41d2-883f-0016d3cca42",
        "1b4e28ba-2fa1-41d2-883f-0016d3cca427-",
        "1b4e28ba-2fa1-41d2-883f-0016d3cca42g",
        "../../../users/me/../../1b4e28ba-2fa1",
        "{1b4e28ba-2fa1-41d2-883f-0016d3cca427}",
    ] {
        assert!(TrackerId::parse(bad).is_err(), "{bad}");
        assert!(serde_json::from_value::<TrackerId>(json!(bad)).is_err(), "{bad} from a file");
    }
}

#[test]
fn a_task_owes_what_its_new_state_means_and_a_matter_owes_nothing() {
    let both = fields(json!({"plane_issue_id": ISSUE, "plane_project_id": PROJECT}));
    for (to, group) in [("done", TrackerStateGroup::Completed), ("archived", TrackerStateGroup::Cancelled)] {
        let expected = Some(PlaneAction::Owed { issue: issue(), group });
        assert_eq!(derive_owed_action(RecordKind::Task, &both, &patch(to), &NoteSchema::Folders, None), expected);
        assert_eq!(derive_owed_action(RecordKind::Matter, &both, &patch(to), &NoteSchema::Folders, None), None);
    }
    assert_eq!(derive_owed_action(RecordKind::Task, &both, &patch("open"), &NoteSchema::Folders, None), None);
    assert_eq!(derive_owed_action(RecordKind::Task, &both, &[], &NoteSchema::Folders, None), None);
    let other = FieldPatch { field: "parent_matter".into(), ..patch("done").remove(0) };
    assert_eq!(derive_owed_action(RecordKind::Task, &both, &[other], &NoteSchema::Folders, None), None);
    let alone = fields(json!({"plane_issue_id": ISSUE}));
    let expected = Some(PlaneAction::Owed { issue: issue(), group: TrackerStateGroup::Completed });
    assert_eq!(
        derive_owed_action(RecordKind::Task, &alone, &patch("done"), &NoteSchema::Folders, Some(&id(PROJECT))),
        expected
    );
    for none in [json!({}), json!({"plane_issue_id": null}), json!({"plane_issue_id": " "})] {
        assert_eq!(
            derive_owed_action(
                RecordKind::Task,
                &fields(none),
                &patch("done"),
                &NoteSchema::Folders,
                Some(&id(PROJECT))
            ),
            None
        );
    }
}

#[test]
fn a_record_that_owes_carries_the_way_back_and_reads_back() {
    let owes = PlaneAction::Owed { issue: issue(), group: TrackerStateGroup::Completed };
    let record = record().with_tracker(Some(owes));
    let revert = PlaneRevert { issue: issue(), external_id: record.draft.id.clone() };
    assert_eq!(record.undo_recipe.as_ref().unwrap().plane_revert, Some(revert));
    assert!(!record.partially_applied);
    assert_eq!(read_back(&record), record);
    assert_eq!(
        revert_of(&record),
        Some(PlaneAction::RevertOwed { issue: issue(), action_id: record.draft.id.clone() })
    );
    assert_eq!(revert_of(&self::record()), None);
}

fn revert_of(record: &AuditRecord) -> Option<PlaneAction> {
    derive_owed_revert(record)
}

#[test]
fn an_outcome_is_a_record_of_its_own_that_can_be_answered_by_nobody() {
    let owing = record().with_tracker(Some(PlaneAction::Owed { issue: issue(), group: TrackerStateGroup::Completed }));
    let made = PlaneAction::Delivered {
        issue: issue(),
        comment: id(ISSUE),
        from_state: None,
        to_state: Some(id(PROJECT)),
        left: None,
    };
    let failed = PlaneAction::Failed { issue: issue(), reason: "is in trouble (503)".into() };
    let mut names = Vec::new();
    for (outcome, partially) in [(made, false), (failed, true)] {
        let plan = plan_tracker_outcome(&owing, &outcome, run("r"), at("2026-11-22T10:00:00Z"));
        assert!(!plan.has_record_change());
        names.push(plan.draft().record_path().unwrap().to_string());
        let link = ChainLink { seq: 2, prev: ContentHash::genesis() };
        let record = AuditRecord::from_draft(plan.draft().clone(), Vec::new(), link).with_tracker(Some(outcome));
        assert_eq!(
            (record.partially_applied, &record.undo_recipe, &record.draft.evidence),
            (partially, &None, &vec![])
        );
        assert!(record.draft.kind.is_tracker_outcome() && !record.draft.pending_confirmation);
        assert_eq!(read_back(&record), record);
    }
    let named = "pay-invoice.md";
    assert_eq!(
        names,
        [
            format!("event/steward-action-tracked-20261121T093015123Z-{named}"),
            format!("event/steward-action-track-failed-20261121T093015123Z-{named}"),
        ],
        "named after the action, so that each is there once"
    );
}

#[test]
fn a_comment_names_the_change_its_reason_and_its_undo() {
    let record = record();
    let html = render_comment(&record);
    let expected = format!(
        "<p>Steward set the task <em>pay-invoice</em> to <strong>done</strong>.</p><p>Because gmail said <q>the invoice \
         has been paid</q>.</p><p>Undo it within 7 days: <code>steward undo {}</code></p>",
        record.draft.id
    );
    assert_eq!(html, expected);
}

#[test]
fn a_comment_names_the_person_who_confirmed() {
    let mut record = record();
    record.draft.kind = ActionKind::Confirmed;
    let (of, at) = (record.draft.id.clone(), record.draft.timestamp);
    record.draft.resolution = Some(AuditResolution {
        action_id: of,
        decided_at: at,
        by: "<b>ann</b>".into(),
        reason: None,
        edited: false,
        batch_id: None,
        done: false,
        reopened: None,
        resolved_by: Default::default(),
    });
    assert!(render_comment(&record).contains(", confirmed by &lt;b&gt;ann&lt;/b&gt;."));
}

proptest! {
    #[test]
    fn no_word_from_outside_becomes_markup(note in ".{0,50}", source in ".{0,20}", by in ".{0,20}") {
        let mut record = record();
        let cited = CitedSignal { note, source, ..record.draft.evidence[0].clone() };
        record.draft.evidence = vec![cited];
        record.draft.kind = ActionKind::Confirmed;
        let (action_id, at) = (record.draft.id.clone(), record.draft.timestamp);
        record.draft.resolution = Some(AuditResolution { action_id, decided_at: at, by, reason: None, edited: false, batch_id: None, done: false, reopened: None, resolved_by: Default::default() });
        let html = render_comment(&record);
        let mut bare = html.clone();
        for tag in ["<p>", "</p>", "<em>", "</em>", "<strong>", "</strong>", "<q>", "</q>", "<code>", "</code>"] {
            bare = bare.replacen(tag, "", html.matches(tag).count());
        }
        prop_assert!(!bare.contains(['<', '>', '"']), "{}", html);
        prop_assert_eq!((html.matches("<p>").count(), html.matches("<q>").count()), (3, 1));
        prop_assert!(!html.contains(|c: char| c.is_control()));
    }
}
