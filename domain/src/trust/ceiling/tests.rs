use super::*;
use crate::action::audit::{ActionKind, AuditRecord, ChainLink};
use crate::action::plan::ContentHash;
use crate::action::undo::{ResolutionCase, ResolutionKind, ResolutionRequest, build_resolution_plan};
use crate::gates::mode::DecisionPolicy;
use crate::record::frontmatter::{read_document, render_document};
use crate::record::link::NoteNames;
use crate::record::moves::MoveHistory;
use crate::record::schema::{NoteAccess, NoteSchema};
use crate::time;

fn path() -> RecordPath {
    RecordPath::parse("instinct/gmail.md").unwrap()
}

fn request(to: Ceiling) -> CeilingRequest<'static> {
    CeilingRequest {
        source: "gmail",
        name: "Gmail",
        to,
        by: "ann",
        at: time::parse("2026-11-22T08:00:00.123Z").unwrap(),
        mode: Mode::Shadow,
        workflow: WorkflowRef { id: "w".into(), run_id: "r".into() },
    }
}

/// Applies the wish to an instinct: the new bytes, and the record of it.
fn set(text: &str, to: Ceiling) -> (Vec<u8>, AuditRecord) {
    let fields = read_document(text.as_bytes()).unwrap().into_fields();
    let plan = request(to).plan_for_instinct(&path(), &fields);
    let (schema, names, moves) = (NoteSchema::default(), NoteNames::default(), MoveHistory::default());
    let notes = NoteAccess { schema: &schema, names: &names, moves: &moves };
    let change = plan.prepare(text.as_bytes(), notes).unwrap();
    let link = ChainLink { seq: 1, prev: ContentHash::genesis() };
    let record = AuditRecord::from_draft(plan.draft().clone(), change.patch, link);
    assert_eq!(AuditRecord::parse(record.render().unwrap().as_bytes()).unwrap(), record);
    (change.after, record)
}

fn undo(record: &AuditRecord, current: &[u8]) -> Result<Vec<u8>, String> {
    let (schema, names, moves) = (NoteSchema::default(), NoteNames::default(), MoveHistory::default());
    let notes = NoteAccess { schema: &schema, names: &names, moves: &moves };
    let policy = DecisionPolicy::default();
    let request = ResolutionRequest {
        kind: ResolutionKind::Undo,
        by: "ann",
        reason: None,
        edited: None,
        batch_id: None,
        resolved_by: Default::default(),
        policy: &policy,
        ceiling: Ceiling::Act,
        workflow: WorkflowRef::default(),
        now: time::parse("2026-11-23T08:00:00Z").unwrap(),
    };
    let case = ResolutionCase { request: &request, record, history: &[], notes, reopened: None };
    let plan = build_resolution_plan(&case).map_err(|e| e.to_string())?;
    assert_eq!(plan.draft().proposed_state, None, "it says nothing about a state");
    Ok(plan.prepare(current, notes).map_err(|e| e.to_string())?.after)
}

#[test]
fn one_line_changes_and_an_undo_gives_every_byte_back() {
    for (text, changed) in [
        (
            "---\ntype: instinct\nobservations: 62 # mine\n---\nText\n",
            "---\ntype: instinct\nobservations: 62 # mine\nceiling: act\n---\nText\n",
        ),
        (
            "---\r\ntype: instinct\r\nceiling:   'Confirm'  # by hand\r\n---\r\n",
            "---\r\ntype: instinct\r\nceiling:   'act'  # by hand\r\n---\r\n",
        ),
        ("---\nceiling: banana\ntype: instinct\n---\n", "---\nceiling: act\ntype: instinct\n---\n"),
    ] {
        let (after, record) = set(text, Ceiling::Act);
        assert_eq!(String::from_utf8(after.clone()).unwrap(), changed);
        assert_eq!(undo(&record, &after).unwrap(), text.as_bytes());
        assert_eq!(record.draft.record_path().unwrap().slug(), "steward-ceiling-set-20261122T080000123Z-gmail");
        assert_eq!((record.draft.kind, record.draft.class), (ActionKind::CeilingSet, None));
    }
}

#[test]
fn a_repeat_has_the_same_id_and_an_equal_ceiling_is_known() {
    let fields = read_document(b"---\ntype: instinct\nceiling: confirm\n---\n").unwrap().into_fields();
    let id = |to| request(to).plan_for_instinct(&path(), &fields).id().clone();
    assert!(request(Ceiling::Confirm).is_set_in(&fields) && !request(Ceiling::Act).is_set_in(&fields));
    assert_eq!(id(Ceiling::Act), id(Ceiling::Act));
    assert_ne!(id(Ceiling::Act), id(Ceiling::Ask));
}

#[test]
fn the_record_says_who_set_what() {
    let (_, record) = set("---\ntype: instinct\nceiling: confirm\n---\n", Ceiling::Act);
    let text = record.render().unwrap();
    assert!(text.contains("ann set the ceiling of gmail from confirm to act"), "{text}");
}

#[test]
fn only_an_undo_that_restores_act_lets_the_source_act() {
    let sets = |text: &str, to| set(text, to).1.source_let_act_by_undo().map(str::to_owned);
    assert_eq!(sets("---\nceiling: act\ntype: instinct\n---\n", Ceiling::Confirm), Some("gmail".into()));
    assert_eq!(sets("---\nceiling: ' ACT '\ntype: instinct\n---\n", Ceiling::Confirm), Some("gmail".into()));
    assert_eq!(sets("---\nceiling: ask\ntype: instinct\n---\n", Ceiling::Act), None);
    assert_eq!(sets("---\ntype: instinct\n---\n", Ceiling::Confirm), None, "the default is judged elsewhere");
}

#[test]
fn a_forged_recipe_is_not_used() {
    let text = "---\ntype: instinct\nceiling: confirm\n---\n";
    let (after, record) = set(text, Ceiling::Ask);
    let forge = |change: &dyn Fn(&mut AuditRecord)| {
        let mut forged = record.clone();
        change(&mut forged);
        undo(&forged, &after).unwrap_err()
    };
    fn patch(record: &mut AuditRecord) -> &mut crate::action::audit::FieldPatch {
        &mut record.undo_recipe.as_mut().unwrap().vault_patch[0]
    }
    for error in [
        forge(&|forged| forged.draft.target = RecordPath::parse("task/pay.md").unwrap()),
        forge(&|forged| patch(forged).field = "observations".into()),
        forge(&|forged| patch(forged).prior = Some("act".into())),
        forge(&|forged| patch(forged).value = Some("banana".into())),
        forge(&|forged| forged.draft.trust = None),
        forge(&|forged| {
            let Some(TrustMark::CeilingSet { from, .. }) = &mut forged.draft.trust else { panic!() };
            *from = Some(Ceiling::Act);
        }),
        forge(&|forged| {
            let second = patch(forged).clone();
            forged.undo_recipe.as_mut().unwrap().vault_patch.push(second);
        }),
    ] {
        assert!(error.contains("Steward writes no such undo recipe"), "{error}");
    }
    let fields = read_document(text.as_bytes()).unwrap().into_fields();
    assert_eq!(render_document(&fields, ""), text);
}
