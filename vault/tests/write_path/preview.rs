//! The preview of an undo shows what the undo then does, or why it is refused.
//!
//! Every scene is previewed, which must change nothing, and then done. The stories of `sequences` do the same.

use crate::desk::{Click, Desk, TASK, Wish, noon, task};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::gates::mode::DecisionPolicy;
use steward_domain::record::frontmatter;
use steward_domain::record::path::RecordPath;
use steward_domain::tracker::PlaneAction;
use steward_vault::action::preview::{self, FieldUndoOutcome, UndoPreview};
use steward_vault::action::resolve::ResolutionError;
use steward_vault::action::writer::{ActionReceipt, VaultWriter};
use steward_vault::tracker::outbox::TrackerSite;

const PROJECT: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const ISSUE: &str = "bbbbbbbb-0000-4000-8000-000000000001";

/// Every file of the vault with its bytes, without Steward's own folder.
fn files(desk: &Desk) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for folder in ["task", "matter", "event", "signal"] {
        for name in crate::desk::names(&desk.file(folder)) {
            let path = format!("{folder}/{name}");
            all.insert(path.clone(), std::fs::read(desk.file(&path)).unwrap());
        }
    }
    all
}

fn values(desk: &Desk, target: &str) -> frontmatter::RecordFields {
    std::fs::read(desk.file(target))
        .ok()
        .and_then(|bytes| frontmatter::read_document(&bytes).ok())
        .map(|document| document.fields().clone())
        .unwrap_or_default()
}

/// Previews a click and then clicks: the preview must show what happens.
pub(crate) fn previewed(
    desk: &Desk,
    writer: &VaultWriter,
    click: &Click<'_>,
) -> Result<ActionReceipt, ResolutionError> {
    let before = files(desk);
    let shown = preview::preview_undo(writer.root(), None, click.record, click.now);
    assert_eq!(files(desk), before, "a preview changed something");
    let done = click.ask(writer);
    match (&shown, &done) {
        (Ok(shown), done) => is_what_was_shown(desk, shown, done, &before),
        (Err(ResolutionError::Refused(shown)), Err(ResolutionError::Refused(refusal))) => {
            assert_eq!(shown, refusal);
            assert_eq!(files(desk), before);
        }
        (shown, done) => panic!("shown {shown:?}, done {done:?}"),
    }
    done
}

fn is_what_was_shown(
    desk: &Desk,
    shown: &UndoPreview,
    done: &Result<ActionReceipt, ResolutionError>,
    before: &BTreeMap<String, Vec<u8>>,
) {
    match done {
        Err(ResolutionError::Refused(refusal)) => {
            let previewed = shown.refusal.as_ref().unwrap_or_else(|| panic!("not shown: {refusal}"));
            assert_eq!(
                (&previewed.refusal, previewed.status, &previewed.message),
                (refusal, refusal.http_status(), &refusal.to_string())
            );
            assert_eq!(&files(desk), before);
            assert_eq!(shown.tracker, None);
        }
        Ok(receipt) => {
            assert_eq!(shown.refusal, None, "refused in the preview and done");
            let mut after = files(desk);
            assert!(after.remove(receipt.record.as_str()).is_some());
            let changed: Vec<&String> =
                after.iter().filter(|(k, v)| before.get(*k) != Some(v)).map(|(k, _)| k).collect();
            let restores = shown.fields.iter().any(|field| field.fate == FieldUndoOutcome::Restored);
            assert!(!restores || changed == [shown.target.as_str()], "{changed:?}");
        }
        Err(e) => panic!("{e}"),
    }
    let now = values(desk, shown.target.as_str());
    for field in &shown.fields {
        assert_eq!(now.get(&field.field).filter(|v| !v.is_null()), field.then.as_ref(), "{field:?}");
        assert_eq!(field.fate == FieldUndoOutcome::Restored, field.now != field.then, "{field:?}");
    }
}

/// A change of `task/pay.md` to done, and its click an hour later.
struct Scene {
    desk: Desk,
    writer: VaultWriter,
    record: RecordPath,
    now: DateTime<Utc>,
}

impl Scene {
    fn new(wish: impl FnOnce(&mut Wish)) -> Self {
        let desk = Desk::new();
        let writer = desk.writer();
        let record = writer.apply_plan(Wish::done("pay", TASK.as_bytes(), "run-1").with(wish).plan()).unwrap().record;
        Self { desk, writer, record, now: noon() + TimeDelta::hours(1) }
    }

    fn edit(&self, from: &str, to: &str) {
        let text = self.desk.read("task/pay.md");
        assert!(text.contains(from), "{text}");
        self.desk.write("task/pay.md", text.replace(from, to).as_bytes());
    }

    /// Previews the undo, then makes it, and returns the preview.
    fn shown(&self, run: &str) -> UndoPreview {
        let shown = preview::preview_undo(self.writer.root(), None, &self.record, self.now).unwrap();
        let click = Click { now: self.now, ..Click::new(ResolutionKind::Undo, &self.record, run) };
        let _ = previewed(&self.desk, &self.writer, &click);
        shown
    }
}

/// The status of the refusal; and the first field's value now, its value after the undo, and its fate.
fn summary(shown: &UndoPreview) -> (Option<u16>, Option<(Value, Value, FieldUndoOutcome)>) {
    let value = |v: &Option<Value>| v.clone().unwrap_or_default();
    let field = shown.fields.first().map(|f| (value(&f.now), value(&f.then), f.fate));
    (shown.refusal.as_ref().map(|r| r.status), field)
}

#[test]
fn a_plain_change_is_shown_with_what_it_was_and_until_when() {
    let scene = Scene::new(|_| {});
    let shown = scene.shown("run-2");
    assert_eq!(summary(&shown), (None, Some((json!("done"), json!("open"), FieldUndoOutcome::Restored))));
    assert_eq!((shown.target.clone(), shown.until), (task("pay"), Some(noon() + TimeDelta::days(7))));
    let field = &shown.fields[0];
    assert_eq!(
        (field.field.as_str(), &field.before, &field.made),
        ("state", &Some(json!("open")), &Some(json!("done")))
    );
    assert_eq!((shown.followers.len(), shown.newer.len()), (0, 0));
    assert_eq!(scene.desk.read("task/pay.md"), TASK);
    let text = serde_json::to_value(&shown).unwrap();
    assert_eq!((&text["fields"][0]["fate"], &text["refusal"]), (&json!("restored"), &Value::Null));
}

#[test]
fn what_a_human_edited_since_is_shown_as_kept() {
    let scene = Scene::new(|_| {});
    scene.edit("state: done", "state: archived");
    let shown = scene.shown("run-2");
    assert_eq!(
        summary(&shown),
        (Some(409), Some((json!("archived"), json!("archived"), FieldUndoOutcome::EditedSince)))
    );
    scene.edit("state: archived", "state: done");
    scene.edit("owner: ann", "owner: zoe");
    assert_eq!(
        summary(&scene.shown("run-3")),
        (None, Some((json!("done"), json!("open"), FieldUndoOutcome::Restored)))
    );
    assert_eq!(scene.desk.read("task/pay.md"), TASK.replace("ann", "zoe"), "another field is kept");
}

#[test]
fn what_a_human_has_put_back_already_is_shown_as_such() {
    let scene = Scene::new(|_| {});
    scene.edit("state: done", "state: open");
    assert_eq!(
        summary(&scene.shown("run-2")),
        (None, Some((json!("open"), json!("open"), FieldUndoOutcome::AsBefore)))
    );
}

#[test]
fn every_refusal_is_shown_before_it_is_met() {
    let expired = Scene { now: noon() + TimeDelta::days(7), ..Scene::new(|_| {}) };
    let shown = expired.shown("run-2");
    assert_eq!(summary(&shown), (Some(410), Some((json!("done"), json!("done"), FieldUndoOutcome::Untouched))));
    assert_eq!(shown.until, Some(expired.now));

    let shadow = Scene::new(|w| w.policy = DecisionPolicy::default());
    assert_eq!(summary(&shadow.shown("run-2")), (Some(400), None));

    let undone = Scene::new(|_| {});
    undone.shown("run-2");
    let shown = undone.shown("run-3");
    assert_eq!(summary(&shown), (Some(409), Some((json!("open"), json!("open"), FieldUndoOutcome::Untouched))));
    let [by] = shown.followers.as_slice() else { panic!("{:?}", shown.followers) };
    assert_eq!((by.kind, by.by.as_str(), by.undoable), (ActionKind::Reversed, "ann", false));

    let gone = Scene::new(|_| {});
    std::fs::remove_file(gone.desk.file("task/pay.md")).unwrap();
    assert_eq!(
        summary(&gone.shown("run-2")),
        (Some(422), Some((Value::Null, Value::Null, FieldUndoOutcome::Untouched)))
    );
    gone.desk.write("task/pay.md", b"---\nstate: [done\n---\n");
    assert_eq!(summary(&gone.shown("run-3")).0, Some(422));
}

#[test]
fn of_what_there_is_no_record_there_is_no_preview() {
    let scene = Scene::new(|_| {});
    for (name, bytes) in [("20260101T000000000Z-pay", None), ("note", Some(b"---\ntype: note\n---\n"))] {
        let record = RecordPath::parse(&format!("event/steward-action-{name}.md")).unwrap();
        if let Some(bytes) = bytes {
            scene.desk.write(record.as_str(), bytes);
        }
        let refused = previewed(&scene.desk, &scene.writer, &Click::new(ResolutionKind::Undo, &record, "run-2"));
        assert!(
            matches!(
                refused,
                Err(ResolutionError::Refused(ResolutionRefusal::Unknown { .. } | ResolutionRefusal::Record { .. }))
            ),
            "{name}"
        );
    }
}

#[test]
fn the_newer_changes_are_named_in_the_order_in_which_to_undo_them() {
    let scene = Scene::new(|_| {});
    let mut newer = Vec::new();
    for (run, minutes) in [("run-2", 1), ("run-3", 2)] {
        // It is reopened by hand, and done once more.
        scene.edit("state: done", "state: open");
        let bytes = scene.desk.read("task/pay.md").into_bytes();
        let wish = Wish::done("pay", &bytes, run).with(|w| w.at = noon() + TimeDelta::minutes(minutes));
        newer.insert(0, scene.writer.apply_plan(wish.plan()).unwrap().id);
    }
    let shown = scene.shown("run-4");
    assert_eq!((summary(&shown).0, &shown.newer), (Some(409), &newer));
    for id in newer {
        let record = scene.desk.records().into_iter().find(|(_, r)| r.draft.id == id).unwrap().0;
        let record = RecordPath::parse(&record).unwrap();
        let click = Click::new(ResolutionKind::Undo, &record, "run-5");
        previewed(&scene.desk, &scene.writer, &click).unwrap();
        scene.edit("state: open", "state: done");
    }
    assert_eq!(summary(&scene.shown("run-6")).0, None);
}

#[test]
fn of_a_confirmed_proposal_the_confirmation_is_shown_as_what_to_undo() {
    let mut scene = Scene::new(|w| w.confidence = 0.1);
    let confirmed = Click::new(ResolutionKind::Confirm, &scene.record, "run-2").ask(&scene.writer).unwrap();
    let shown = scene.shown("run-3");
    assert_eq!(summary(&shown), (Some(409), None));
    let [by] = shown.followers.as_slice() else { panic!("{:?}", shown.followers) };
    assert_eq!((by.kind, &by.id, by.undoable), (ActionKind::Confirmed, &confirmed.id, true));
    scene.record = confirmed.record;
    assert_eq!(
        summary(&scene.shown("run-4")),
        (None, Some((json!("done"), json!("open"), FieldUndoOutcome::Restored)))
    );
    assert_eq!(scene.desk.read("task/pay.md"), TASK);
}

#[test]
fn a_preview_needs_no_lock_and_no_writer() {
    let scene = Scene::new(|_| {});
    let (desk, record) = (scene.desk, scene.record);
    let other = desk.root();
    let held = preview::preview_undo(&other, None, &record, scene.now).unwrap();
    drop(scene.writer);
    assert_eq!(preview::preview_undo(&other, None, &record, scene.now).unwrap(), held);
}

#[test]
fn what_would_be_taken_back_in_the_tracker_is_what_the_undo_then_owes() {
    let desk = Desk::new();
    let more = format!("plane_issue_id: {ISSUE}\nplane_project_id: {PROJECT}\nparent_matter");
    desk.write("task/pay.md", TASK.replace("parent_matter", &more).as_bytes());
    let writer = desk.writer().with_tracker(Some(TrackerSite::default()));
    let bytes = desk.read("task/pay.md").into_bytes();
    let record = writer.apply_plan(Wish::done("pay", &bytes, "run-1").plan()).unwrap().record;
    let shown = preview::preview_undo(writer.root(), None, &record, noon()).unwrap();
    let receipt = previewed(&desk, &writer, &Click::new(ResolutionKind::Undo, &record, "run-2")).unwrap();
    let owed = desk.records()[receipt.record.as_str()].plane_action.clone();
    assert!(matches!(owed, Some(PlaneAction::RevertOwed { .. })) && shown.tracker == owed, "{:?}", shown.tracker);
    assert_eq!(preview::preview_undo(writer.root(), None, &record, noon()).unwrap().tracker, None, "it is undone");
}
