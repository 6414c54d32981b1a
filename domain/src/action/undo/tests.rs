//! Resolutions by table, and apply followed by undo over many documents.

use super::*;
use crate::action::audit::{ChainLink, FieldPatch};
use crate::action::mutation::ContextField;
use crate::action::plan::{ContentHash, PreparePlanError};
use crate::gates::mode::Ceiling;
use crate::steward::clerk::Judgement;
use crate::steward::decide::tests::{at, build_check, clerk, evidence, live, run, verdict};
use crate::steward::decide::{DecisionCase, decide};
use proptest::prelude::*;
use proptest::sample::select;

const DECIDED: &str = "2026-11-21T09:30:15.123Z";

fn plan_for(bytes: &[u8], policy: &DecisionPolicy, confidence: f64) -> Plan {
    plan_of(Judgement::LikelyDone, bytes, policy, confidence)
}

fn plan_of(judgement: Judgement, bytes: &[u8], policy: &DecisionPolicy, confidence: f64) -> Plan {
    let document = crate::record::frontmatter::read_document(bytes).unwrap();
    let written = document.fields().get("state").and_then(|s| s.as_str());
    let check = build_check(bytes, written, vec![evidence("gmail", 0.97, 60)]);
    let verdict = verdict(judgement, confidence, &check);
    decide(&DecisionCase {
        check: &check,
        policy,
        matter_policy: None,
        verdict: &verdict,
        clerk: &clerk(),
        caller_says_shadow: false,
        workflow: run("run-1"),
        at: at(DECIDED),
    })
}

/// Applies a plan as the vault does, and reads the record back from its file.
fn carry_out(plan: &Plan, bytes: &[u8]) -> Result<(Vec<u8>, AuditRecord), PreparePlanError> {
    let (after, patch) = if plan.has_record_change() {
        let prepared = plan.prepare(bytes, NoteAccess::unmapped())?;
        if prepared.after == bytes { (bytes.to_vec(), Vec::new()) } else { (prepared.after, prepared.patch) }
    } else {
        (bytes.to_vec(), Vec::new())
    };
    let link = ChainLink { seq: 1, prev: ContentHash::genesis() };
    let record = AuditRecord::from_draft(plan.draft().clone(), patch, link);
    let text = record.render().unwrap();
    Ok((after, AuditRecord::parse(text.as_bytes()).unwrap()))
}

fn ask(kind: ResolutionKind, record: &AuditRecord, policy: &DecisionPolicy) -> Result<Plan, ResolutionRefusal> {
    ask_for(kind, None, record, policy)
}

fn plan_resolution(record: &AuditRecord, request: &ResolutionRequest<'_>) -> Result<Plan, ResolutionRefusal> {
    build_resolution_plan(&ResolutionCase {
        request,
        record,
        history: &[],
        notes: NoteAccess::unmapped(),
        reopened: None,
    })
}

fn ask_for(
    kind: ResolutionKind,
    edited: Option<&Mutation>,
    record: &AuditRecord,
    policy: &DecisionPolicy,
) -> Result<Plan, ResolutionRefusal> {
    plan_resolution(record, &ResolutionRequest { edited, ..request_of(kind, policy) })
}

fn request_of(kind: ResolutionKind, policy: &DecisionPolicy) -> ResolutionRequest<'_> {
    ResolutionRequest {
        kind,
        by: "ann",
        reason: Some("not yet"),
        edited: None,
        batch_id: None,
        resolved_by: Default::default(),
        policy,
        ceiling: Ceiling::Act,
        workflow: run("run-2"),
        now: at("2026-11-22T10:00:00Z"),
    }
}

const TASK: &[u8] = b"---\ntype: task\nname: Pay\nstate: open # since May\nowner: ann\n---\nbody\n";

fn applied() -> (Vec<u8>, AuditRecord) {
    carry_out(&plan_for(TASK, &live(), 0.9), TASK).unwrap()
}

fn pending() -> AuditRecord {
    carry_out(&plan_for(TASK, &live(), 0.1), TASK).unwrap().1
}

#[test]
fn an_undo_puts_the_very_bytes_back_and_says_what_it_did() {
    let (after, record) = applied();
    assert_ne!(after, TASK);
    let plan = ask(ResolutionKind::Undo, &record, &live()).unwrap();
    let (back, reversed) = carry_out(&plan, &after).unwrap();
    assert_eq!(back, TASK);
    assert_eq!(reversed.draft.kind, ActionKind::Reversed);
    assert_eq!(reversed.draft.prior_state.as_deref(), Some("done"));
    assert_eq!(reversed.draft.proposed_state, Some(RecordState::Open));
    assert_eq!(reversed.undo_recipe, None, "an undo has no undo");
    let answers = reversed.draft.resolution.unwrap();
    assert_eq!((answers.action_id, answers.by.as_str()), (record.draft.id, "ann"));
}

#[test]
fn only_a_confirmation_repeats_the_reasons_of_the_clerk() {
    let (after, record) = applied();
    assert!(!record.draft.reasoning.is_empty());
    let reversed = carry_out(&ask(ResolutionKind::Undo, &record, &live()).unwrap(), &after).unwrap().1;
    let resolve = |kind| carry_out(&ask(kind, &pending(), &live()).unwrap(), TASK).unwrap().1.draft.reasoning;
    assert_eq!(reversed.draft.reasoning, "");
    assert_eq!(resolve(ResolutionKind::Dismiss), "");
    assert_eq!(resolve(ResolutionKind::Confirm), record.draft.reasoning);
}

#[test]
fn an_undo_works_in_shadow_mode_and_keeps_the_mode_of_what_it_takes_back() {
    let (_, record) = applied();
    let plan = ask(ResolutionKind::Undo, &record, &DecisionPolicy::default()).unwrap();
    assert_eq!((plan.draft().mode, plan.disposition()), (Mode::Live, Disposition::Live));
}

#[test]
fn the_window_ends_to_the_millisecond() {
    let (_, record) = applied();
    let policy = live();
    let request = |now| ResolutionRequest { now, ..request_of(ResolutionKind::Undo, &policy) };
    let in_time = plan_resolution(&record, &request(at("2026-11-28T09:30:15.122Z")));
    assert!(in_time.is_ok());
    let refusal = plan_resolution(&record, &request(at("2026-11-28T09:30:15.123Z"))).unwrap_err();
    assert!(matches!(refusal, ResolutionRefusal::Expired { .. }), "{refusal}");
    assert_eq!(refusal.http_status(), 410);
}

#[test]
fn the_window_follows_from_the_moment_of_the_action_whatever_expires_at_says() {
    let (_, record) = applied();
    assert_eq!(record.edited_expiry(), None);
    for (expires_at, now, is_open) in [
        ("2099-01-01T00:00:00Z", "2026-11-28T09:30:15.123Z", false),
        ("2020-01-01T00:00:00Z", "2026-11-28T09:30:15.122Z", true),
    ] {
        let mut edited = record.clone();
        edited.undo_recipe.as_mut().unwrap().expires_at = at(expires_at);
        assert_eq!(edited.edited_expiry(), Some(at(expires_at)));
        let request = ResolutionRequest {
            kind: ResolutionKind::Undo,
            by: "ann",
            reason: None,
            edited: None,
            batch_id: None,
            resolved_by: Default::default(),
            policy: &live(),
            ceiling: Ceiling::Act,
            workflow: run("run-2"),
            now: at(now),
        };
        assert_eq!(plan_resolution(&edited, &request).is_ok(), is_open, "{expires_at}");
    }
}

#[test]
fn what_changed_nothing_cannot_be_undone() {
    let shadow = carry_out(&plan_for(TASK, &DecisionPolicy::default(), 0.9), TASK).unwrap().1;
    for record in [shadow, pending()] {
        let refusal = ask(ResolutionKind::Undo, &record, &live()).unwrap_err();
        assert!(matches!(refusal, ResolutionRefusal::NothingToUndo { .. }), "{refusal}");
        assert_eq!(refusal.http_status(), 400);
    }
}

#[test]
fn only_what_waits_for_an_answer_is_confirmed_or_dismissed() {
    let (_, record) = applied();
    for kind in [ResolutionKind::Confirm, ResolutionKind::Dismiss] {
        let refusal = ask(kind, &record, &live()).unwrap_err();
        assert!(matches!(refusal, ResolutionRefusal::NotPending { .. }), "{refusal}");
        assert_eq!(refusal.http_status(), 400);
    }
}

#[test]
fn a_question_is_dismissed_or_answered_by_a_state_and_never_just_confirmed() {
    let decided = |judgement| carry_out(&plan_of(judgement, TASK, &live(), 0.9), TASK).unwrap().1;
    let asking = decided(Judgement::NeedsInput);
    let dismissed = ask(ResolutionKind::Dismiss, &asking, &live()).unwrap();
    assert_eq!((dismissed.draft().kind, dismissed.disposition()), (ActionKind::Dismissed, Disposition::Recorded));
    let refusal = ask(ResolutionKind::Confirm, &asking, &live()).unwrap_err();
    assert!(matches!(refusal, ResolutionRefusal::NothingProposed { .. }), "{refusal}");
    let set = |to, policy: &DecisionPolicy| {
        ask_for(ResolutionKind::Confirm, Some(&Mutation::StateChange { to }), &asking, policy)
    };
    for (to, word) in [(RecordState::Done, "state: done"), (RecordState::Archived, "state: archived")] {
        let plan = set(to, &live()).unwrap();
        assert_eq!((plan.draft().kind, plan.draft().class), (ActionKind::Confirmed, Some(MutationClass::StateChange)));
        assert!(plan.draft().evidence.iter().all(|cited| !cited.supports), "it teaches nothing about a source");
        let (after, confirmed) = carry_out(&plan, TASK).unwrap();
        assert_eq!(after, std::str::from_utf8(TASK).unwrap().replace("state: open", word).as_bytes());
        let undo = ask(ResolutionKind::Undo, &confirmed, &live()).unwrap();
        assert_eq!(carry_out(&undo, &after).unwrap().0, TASK);
    }
    assert!(matches!(set(RecordState::Open, &live()), Err(ResolutionRefusal::NotAnEdit { .. })));
    assert!(matches!(set(RecordState::Done, &DecisionPolicy::default()), Err(ResolutionRefusal::ShadowNow)));
    let owner = Mutation::ContextEdit { field: ContextField::Owner, to: "Ann".into() };
    let refusal = ask_for(ResolutionKind::Confirm, Some(&owner), &asking, &live()).unwrap_err();
    assert!(matches!(refusal, ResolutionRefusal::NotAnEdit { .. }), "{refusal}");
    let calm = decided(Judgement::StillActive);
    assert!(ask(ResolutionKind::Dismiss, &calm, &live()).is_err(), "what asks nothing has nothing to dismiss");
}

#[test]
fn a_confirmation_is_a_change_with_a_recipe_of_its_own() {
    let record = pending();
    assert!(record.draft.pending_confirmation);
    let plan = ask(ResolutionKind::Confirm, &record, &live()).unwrap();
    let (after, confirmed) = carry_out(&plan, TASK).unwrap();
    assert_eq!(after, std::str::from_utf8(TASK).unwrap().replace("state: open", "state: done").as_bytes());
    assert_eq!(confirmed.draft.kind, ActionKind::Confirmed);
    assert!(!confirmed.draft.pending_confirmation);
    let recipe = confirmed.undo_recipe.as_ref().unwrap();
    assert_eq!(recipe.expires_at, at("2026-11-29T10:00:00Z"), "a new week");
    let undo = ask(ResolutionKind::Undo, &confirmed, &live()).unwrap();
    assert_eq!(carry_out(&undo, &after).unwrap().0, TASK);
}

#[test]
fn a_confirmation_keeps_what_a_human_edited_in_other_fields() {
    let plan = ask(ResolutionKind::Confirm, &pending(), &live()).unwrap();
    let edited = std::str::from_utf8(TASK).unwrap().replace("owner: ann", "owner: bob");
    let (after, _) = carry_out(&plan, edited.as_bytes()).unwrap();
    assert_eq!(after, edited.replace("state: open", "state: done").as_bytes());
}

#[test]
fn a_confirmation_of_what_a_human_did_by_hand_changes_nothing() {
    let plan = ask(ResolutionKind::Confirm, &pending(), &live()).unwrap();
    let edited = std::str::from_utf8(TASK).unwrap().replace("state: open", "state: done");
    let (after, confirmed) = carry_out(&plan, edited.as_bytes()).unwrap();
    assert_eq!(after, edited.as_bytes());
    assert_eq!(confirmed.undo_recipe, None);
}

#[test]
fn a_confirmation_over_another_state_is_a_conflict() {
    let plan = ask(ResolutionKind::Confirm, &pending(), &live()).unwrap();
    let edited = std::str::from_utf8(TASK).unwrap().replace("state: open", "state: archived");
    assert_eq!(
        plan.prepare(edited.as_bytes(), NoteAccess::unmapped()),
        Err(PreparePlanError::Conflict(vec!["state".into()]))
    );
}

#[test]
fn in_shadow_nothing_is_confirmed_and_a_dismissal_still_counts() {
    let record = pending();
    let refusal = ask(ResolutionKind::Confirm, &record, &DecisionPolicy::default()).unwrap_err();
    assert_eq!((refusal.http_status(), &refusal), (409, &ResolutionRefusal::ShadowNow));
    let plan = ask(ResolutionKind::Dismiss, &record, &DecisionPolicy::default()).unwrap();
    assert_eq!((plan.disposition(), plan.has_record_change()), (Disposition::Recorded, false));
    assert!(!plan.draft().pending_confirmation);
    assert_eq!(plan.draft().proposed_state, Some(RecordState::Done), "what was turned down");
}

#[test]
fn under_a_ceiling_of_ask_only_the_human_acts() {
    let mut policy = live();
    policy.state_change_ceiling = Ceiling::Ask;
    let record = carry_out(&plan_for(TASK, &policy, 0.9), TASK).unwrap().1;
    assert!(record.draft.pending_confirmation);
    let refusal = ask(ResolutionKind::Confirm, &record, &live()).unwrap_err();
    assert!(matches!(refusal, ResolutionRefusal::HumanOnly { .. }), "{refusal}");
    assert_eq!(refusal.http_status(), 400);
    assert!(ask(ResolutionKind::Dismiss, &record, &live()).is_ok());
}

#[test]
fn a_recipe_that_no_steward_writes_is_not_followed() {
    let (_, record) = applied();
    let forge = |change: fn(&mut AuditRecord)| {
        let mut forged = record.clone();
        change(&mut forged);
        let refusal = ask(ResolutionKind::Undo, &forged, &live()).unwrap_err();
        assert_eq!(refusal.http_status(), 422, "{refusal}");
    };
    fn first(record: &mut AuditRecord) -> &mut FieldPatch {
        &mut record.undo_recipe.as_mut().unwrap().vault_patch[0]
    }
    forge(|r| first(r).field = "owner".into());
    forge(|r| first(r).undo.as_mut().unwrap().field = "owner".into());
    forge(|r| first(r).undo = None);
    forge(|r| first(r).undo.as_mut().unwrap().lines_before = "state: deleted\n".into());
    forge(|r| first(r).value = Some("deleted".into()));
    forge(|r| first(r).prior = None);
    forge(|r| r.draft.class = Some(MutationClass::ContextEdit));
    forge(|r| r.draft.target = crate::record::path::RecordPath::parse("signal/house.md").unwrap());
    forge(|r| r.draft.target = crate::record::path::RecordPath::parse("matter/house.md").unwrap());
    forge(|r| r.draft.target_kind = crate::record::path::RecordKind::Matter);
    forge(|r| {
        let twice = first(r).clone();
        r.undo_recipe.as_mut().unwrap().vault_patch.push(twice);
    });
}

#[test]
fn a_recipe_that_would_widen_what_a_note_allows_is_not_followed() {
    for (field, followed) in [("owner", true), ("steward_ceiling", false), ("steward", false)] {
        let text = format!("---\ntype: matter\n{field}: act\n---\n");
        let edit = crate::record::frontmatter::FieldEdit { field: field.into(), value: Some("ask".into()) };
        let undo = crate::record::frontmatter::edit_fields_with_undo(text.as_bytes(), &[edit]).unwrap().undo.remove(0);
        let (_, mut forged) = applied();
        forged.draft.class = Some(MutationClass::ContextEdit);
        forged.draft.target = crate::record::path::RecordPath::parse("matter/house.md").unwrap();
        forged.draft.target_kind = crate::record::path::RecordKind::Matter;
        let patch = FieldPatch {
            field: field.into(),
            property: None,
            prior: Some("act".into()),
            value: Some("ask".into()),
            undo: Some(undo),
        };
        forged.undo_recipe.as_mut().unwrap().vault_patch = vec![patch];
        assert_eq!(ask(ResolutionKind::Undo, &forged, &live()).is_ok(), followed, "{field}");
    }
}

#[test]
fn a_long_name_and_a_long_reason_are_cut() {
    let (_, record) = applied();
    let (by, reason) = ("a".repeat(100_000), "b".repeat(100_000));
    let plan = plan_resolution(
        &record,
        &ResolutionRequest { by: &by, reason: Some(&reason), ..request_of(ResolutionKind::Undo, &live()) },
    )
    .unwrap();
    let answers = plan.draft().resolution.clone().unwrap();
    assert_eq!((answers.by.len(), answers.reason.unwrap().len()), (200, 2_000));
}

#[test]
fn a_change_whose_lines_are_too_long_to_remember_is_refused() {
    let long = String::from_utf8(TASK.to_vec()).unwrap().replace("since May", &"x".repeat(20_000));
    let plan = plan_for(long.as_bytes(), &live(), 0.9);
    assert!(matches!(plan.prepare(long.as_bytes(), NoteAccess::unmapped()), Err(PreparePlanError::TooLong { .. })));
}

#[test]
fn an_empty_state_counts_as_an_absent_one() {
    let empty = b"---\ntype: task\nstate:\n---\n".as_slice();
    let (after, record) = carry_out(&plan_for(empty, &live(), 0.9), empty).unwrap();
    assert_eq!(after, b"---\ntype: task\nstate: done\n---\n");
    let undo = ask(ResolutionKind::Undo, &record, &live()).unwrap();
    assert_eq!(carry_out(&undo, &after).unwrap().0, empty);
    let by_hand = b"---\ntype: task\nstate: \n---\n".as_slice();
    let (left, reversed) = carry_out(&undo, by_hand).unwrap();
    assert_eq!((left.as_slice(), reversed.draft.kind), (by_hand, ActionKind::Reversed));
}

#[test]
fn every_refusal_has_the_status_of_the_contract() {
    let id = String::new;
    let table = [
        (ResolutionRefusal::Unknown { id: id() }, 404),
        (ResolutionRefusal::Ambiguous { id: id(), count: 2 }, 400),
        (ResolutionRefusal::Malformed { id: id() }, 400),
        (ResolutionRefusal::NothingToUndo { id: id(), disposition: id() }, 400),
        (ResolutionRefusal::NotPending { id: id(), disposition: id() }, 400),
        (ResolutionRefusal::HumanOnly { id: id() }, 400),
        (ResolutionRefusal::Unclear { id: id() }, 409),
        (ResolutionRefusal::NotAnEdit { id: id(), reason: id() }, 400),
        (ResolutionRefusal::AlreadyResolved { id: id(), how: id(), by: id(), undo: None }, 409),
        (ResolutionRefusal::Conflict { fields: vec![] }, 409),
        (ResolutionRefusal::ShadowNow, 409),
        (ResolutionRefusal::Stopped, 409),
        (ResolutionRefusal::Expired { id: id(), ended: id() }, 410),
        (ResolutionRefusal::Record { reason: id() }, 422),
    ];
    for (refusal, status) in table {
        assert_eq!(refusal.http_status(), status, "{refusal}");
        let json = serde_json::to_string(&refusal).unwrap();
        assert_eq!(serde_json::from_str::<ResolutionRefusal>(&json).unwrap(), refusal);
    }
}

/// A task as somebody may have written it; `None` for the state means that the field is missing.
#[derive(Clone, Debug)]
struct Written {
    above: Vec<String>,
    state: Option<String>,
    below: Vec<String>,
    body: String,
    bom: bool,
    crlf: bool,
}

impl Written {
    fn bytes(&self) -> Vec<u8> {
        let state = self.state.as_ref().map(|s| format!("state: {s}\n"));
        let yaml: String = self.above.iter().cloned().chain(state).chain(self.below.iter().cloned()).collect();
        let text = format!("---\ntype: task\n{yaml}---\n{}", self.body);
        let text = if self.crlf { text.replace('\n', "\r\n") } else { text };
        format!("{}{text}", if self.bom { "\u{feff}" } else { "" }).into_bytes()
    }
}

fn lines(names: Vec<&'static str>) -> BoxedStrategy<Vec<String>> {
    let line = select(names).prop_flat_map(|name| {
        select(vec![
            "ann",
            "'it''s'",
            "\"[[x|y]]\"",
            "[a, b]  # flow",
            "{k: v}",
            "|\n  long\n  text",
            "\n  - one # 1\n  - two",
            "2026-11-21",
        ])
        .prop_map(move |value| {
            let space = if value.starts_with('\n') { "" } else { " " };
            format!("{name}:{space}{value}\n")
        })
    });
    let noise = select(vec!["# a comment\n", "\n", "  # indented: yes\n"]).prop_map(str::to_owned);
    // Each field once: a record with a field twice is refused before anything is decided.
    proptest::collection::vec(prop_oneof![2 => line, 1 => noise], 0..5)
        .prop_map(|lines| {
            let mut seen = std::collections::BTreeSet::new();
            let name = |line: &String| line.split(':').next().unwrap_or_default().to_owned();
            lines.into_iter().filter(|l| l.trim_start().starts_with('#') || l == "\n" || seen.insert(name(l))).collect()
        })
        .boxed()
}

fn written() -> BoxedStrategy<Written> {
    let states =
        vec!["open", "Open", "'open'", "\"open\"", "open  # since May", "\"open\"# x", "OPEN # done: no", "archived"];
    let state = proptest::option::weighted(0.9, select(states).prop_map(str::to_owned));
    let body = select(vec!["", "text\n", "\n# Title\n\n---\nstate: open\n---\n", "no newline at the end"]);
    (lines(vec!["name", "due", "a-b"]), state, lines(vec!["owner", "tags", "note"]), body, any::<bool>(), any::<bool>())
        .prop_map(|(above, state, below, body, bom, crlf)| Written {
            above,
            state,
            below,
            body: body.into(),
            bom,
            crlf,
        })
        .prop_filter("readable", |w| crate::record::frontmatter::read_document(&w.bytes()).is_ok())
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn apply_and_undo_give_the_bytes_before(written in written()) {
        let before = written.bytes();
        let (after, record) = carry_out(&plan_for(&before, &live(), 0.9), &before).unwrap();
        prop_assert_ne!(&after, &before);
        let undo = ask(ResolutionKind::Undo, &record, &live()).unwrap();
        let (back, _) = carry_out(&undo, &after).unwrap();
        prop_assert_eq!(String::from_utf8(back.clone()).unwrap(), String::from_utf8(before).unwrap());
        // Again, on what is back already.
        let (again, reversed) = carry_out(&undo, &back).unwrap();
        prop_assert_eq!(again, back);
        prop_assert_eq!(reversed.undo_recipe, None);
    }

    #[test]
    fn an_undo_keeps_what_a_human_edited_meanwhile(written in written()) {
        let before = written.bytes();
        let (after, record) = carry_out(&plan_for(&before, &live(), 0.9), &before).unwrap();
        let undo = ask(ResolutionKind::Undo, &record, &live()).unwrap();
        let human = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            text.replacen("type: task", "type: task # mine\r\nhuman: token".replace("\r\n", if written.crlf { "\r\n" } else { "\n" }).as_str(), 1)
                + "late words"
        };
        let (back, _) = carry_out(&undo, human(&after).as_bytes()).unwrap();
        prop_assert_eq!(String::from_utf8(back).unwrap(), human(&before));
    }

    #[test]
    fn a_plan_fits_no_content_but_the_one_that_was_judged(written in written(), extra in "[a-z ]{1,9}") {
        let before = written.bytes();
        let plan = plan_for(&before, &live(), 0.9);
        let mut changed = before.clone();
        changed.extend_from_slice(extra.as_bytes());
        prop_assert_eq!(plan.prepare(&changed, NoteAccess::unmapped()), Err(PreparePlanError::ChangedMeanwhile));
    }
}

#[test]
fn a_confirmation_with_another_value_records_what_was_chosen_beside_what_was_proposed() {
    let record = pending();
    let chosen = Mutation::StateChange { to: RecordState::Archived };
    let plan = ask_for(ResolutionKind::Confirm, Some(&chosen), &record, &live()).unwrap();
    let (after, confirmed) = carry_out(&plan, TASK).unwrap();
    assert_eq!(String::from_utf8(after.clone()).unwrap(), String::from_utf8_lossy(TASK).replace("open", "archived"));
    let draft = &confirmed.draft;
    let proposal = draft.proposal.clone().unwrap();
    assert_eq!((proposal.mutation, proposal.replaces), (chosen, Some(json!("open"))));
    assert_eq!((draft.kind, draft.proposed_state), (ActionKind::Confirmed, Some(RecordState::Archived)));
    assert!(draft.resolution.as_ref().unwrap().edited);
    assert_eq!(record.draft.proposed_state, Some(RecordState::Done), "what was proposed stays where it is");
    assert!(record.draft.supporting_sources().contains_key("gmail"));
    assert!(draft.supporting_sources().is_empty() && !draft.evidence.is_empty(), "no source supports the chosen value");
    let text = confirmed.render().unwrap();
    assert!(text.contains("Changed and confirmed by ann: not yet"), "{text}");
    assert!(crate::tracker::render_comment(&confirmed).contains("<strong>archived</strong>, chosen by ann"));
    let undo = ask(ResolutionKind::Undo, &confirmed, &live()).unwrap();
    let (back, reversed) = carry_out(&undo, &after).unwrap();
    assert_eq!((back.as_slice(), reversed.draft.resolution.unwrap().edited), (TASK, false));
    assert!(carry_out(&undo, TASK.to_vec().as_slice()).is_ok(), "already as before");
}

#[test]
fn the_proposal_itself_is_no_edit() {
    let record = pending();
    let same = Mutation::StateChange { to: RecordState::Done };
    let plain = ask(ResolutionKind::Confirm, &record, &live()).unwrap();
    assert_eq!(ask_for(ResolutionKind::Confirm, Some(&same), &record, &live()).unwrap(), plain);
    let text = serde_json::to_string(plain.draft()).unwrap();
    assert!(!text.contains("edited"), "only an edited confirmation has this field: {text}");
}

#[test]
fn what_is_no_other_value_of_the_same_change_is_refused() {
    use crate::action::mutation::{ContextField, RelatedField};
    let owner = |to: &str| Mutation::ContextEdit { field: ContextField::Owner, to: to.into() };
    let summary = Mutation::ContextEdit { field: ContextField::Summary, to: "x".into() };
    let member =
        |member: &str, present| Mutation::Related { field: RelatedField::RelatedTo, member: member.into(), present };
    let elsewhere = Mutation::Related { field: RelatedField::RelatedOrgs, member: "Ann".into(), present: true };
    let house = |slug: &str| Mutation::ParentMatter { to: crate::record::path::RecordPath::parse(slug).unwrap() };
    let state = |to| Mutation::StateChange { to };
    let of_matter = |mutation: &Mutation| matches!(mutation.class(), MutationClass::ContextEdit);
    let refused = |proposed: &Mutation, replaces: Option<Value>, edited: &Mutation| {
        let mut record = pending();
        if of_matter(proposed) {
            record.draft.target = crate::record::path::RecordPath::parse("matter/house.md").unwrap();
            record.draft.target_kind = crate::record::path::RecordKind::Matter;
        }
        record.draft.class = Some(proposed.class());
        record.draft.proposal =
            Some(crate::action::audit::MutationProposal { mutation: proposed.clone(), replaces, moved_from: None });
        match ask_for(ResolutionKind::Confirm, Some(edited), &record, &live()) {
            Ok(plan) => {
                assert_eq!(&plan.draft().proposal.as_ref().unwrap().mutation, edited);
                None
            }
            Err(ResolutionRefusal::NotAnEdit { reason, .. }) => Some(reason),
            Err(other) => panic!("{other}"),
        }
    };
    let (open, ann, home) = (Some(json!("Open")), Some(json!("ann")), Some(json!("[[matter/house]]")));
    for (proposed, replaces, edited, expected) in [
        (state(RecordState::Done), open.clone(), state(RecordState::Archived), None),
        (state(RecordState::Done), open.clone(), state(RecordState::Open), Some("has this value already")),
        (state(RecordState::Done), None, state(RecordState::Open), Some("has this value already")),
        (state(RecordState::Archived), Some(json!("done")), state(RecordState::Open), None),
        (state(RecordState::Done), open.clone(), owner("bob"), Some("state_change of `state`")),
        (state(RecordState::Done), open, member("Ann", true), Some("state_change of `state`")),
        (owner("bob"), ann.clone(), owner("zoe"), None),
        (owner("bob"), ann.clone(), owner("ann"), Some("has this value already")),
        (owner("bob"), ann.clone(), summary, Some("of `owner`")),
        (owner("bob"), ann.clone(), owner("a\nsteward: act"), Some("the value is not valid for `owner`")),
        (owner("bob"), ann, owner(&"x".repeat(501)), Some("the value is not valid for")),
        (member("Ann", true), None, member("[[Bob]]", true), None),
        (member("Ann", true), None, member("Ann", false), Some("of `related_to`")),
        (member("Ann", true), None, elsewhere, Some("of `related_to`")),
        (member("Ann", true), None, member("[[|alias]]", true), Some("member of `related_to` has no name")),
        (member("Ann", true), None, member("a\u{2028}b", true), Some("holds U+2028")),
        (house("matter/farm.md"), home.clone(), house("matter/shed.md"), None),
        (house("matter/farm.md"), home.clone(), house("matter/house.md"), Some("has this value already")),
        (house("matter/farm.md"), home, house("task/shed.md"), Some("the value is not valid for")),
    ] {
        let reason = refused(&proposed, replaces, &edited);
        assert_eq!(reason.is_some(), expected.is_some(), "{proposed:?} as {edited:?}: {reason:?}");
        assert!(reason.unwrap_or_default().contains(expected.unwrap_or_default()), "{proposed:?} as {edited:?}");
    }
}

#[test]
fn only_a_confirmation_chooses_another_value_and_by_the_rules_of_every_confirmation() {
    let (chosen, record) = (Mutation::StateChange { to: RecordState::Archived }, pending());
    for kind in [ResolutionKind::Undo, ResolutionKind::Dismiss, ResolutionKind::Raise] {
        let refused = ask_for(kind, Some(&chosen), &record, &live()).unwrap_err();
        assert!(matches!(refused, ResolutionRefusal::NotAnEdit { .. }), "{refused}");
    }
    let confirm =
        |record: &AuditRecord, policy: &DecisionPolicy| ask_for(ResolutionKind::Confirm, Some(&chosen), record, policy);
    assert_eq!(confirm(&record, &DecisionPolicy::default()), Err(ResolutionRefusal::ShadowNow));
    let left = AuditRecord { draft: AuditDraft { confirmable: false, ..record.draft.clone() }, ..record.clone() };
    assert!(matches!(confirm(&left, &live()), Err(ResolutionRefusal::HumanOnly { .. })));
    assert!(matches!(confirm(&applied().1, &live()), Err(ResolutionRefusal::NotPending { .. })));
    let without = AuditRecord { draft: AuditDraft { proposal: None, ..record.draft.clone() }, ..record };
    assert!(matches!(confirm(&without, &live()), Err(ResolutionRefusal::NotAnEdit { .. })));
}

#[test]
fn only_a_proposal_made_in_shadow_is_called_right_or_wrong() {
    let shadow = carry_out(&plan_of(Judgement::LikelyDone, TASK, &DecisionPolicy::default(), 0.9), TASK).unwrap().1;
    assert_eq!(shadow.draft.disposition, Disposition::Shadow);
    for (kind, record_kind, done) in [
        (ResolutionKind::Right, ActionKind::Right, false),
        (ResolutionKind::RightDone, ActionKind::Right, true),
        (ResolutionKind::Wrong, ActionKind::Wrong, false),
    ] {
        let plan = ask(kind, &shadow, &DecisionPolicy::default()).unwrap();
        let answer = plan.draft().resolution.as_ref().unwrap();
        assert_eq!((plan.draft().kind, answer.done, plan.has_record_change()), (record_kind, done, false));
        let (_, record) = carry_out(&plan, TASK).unwrap();
        assert_eq!(record.draft.resolution, plan.draft().resolution);
        for other in [pending(), applied().1] {
            let refusal = ask(kind, &other, &live()).unwrap_err();
            assert!(matches!(refusal, ResolutionRefusal::NotWatched { .. }), "{refusal}");
        }
    }
}

#[test]
fn a_person_agrees_with_what_an_assistant_dismissed_and_nobody_calls_it_wrong() {
    let (_, mut dismissed) = carry_out(&ask(ResolutionKind::Dismiss, &pending(), &live()).unwrap(), TASK).unwrap();
    let refusal = ask(ResolutionKind::Right, &dismissed, &live()).unwrap_err();
    assert!(matches!(refusal, ResolutionRefusal::NotWatched { .. }), "a person said it: {refusal}");
    dismissed.draft.resolution.as_mut().unwrap().resolved_by = ResolverKind::Agent;
    let plan = ask(ResolutionKind::Right, &dismissed, &live()).unwrap();
    let (draft, answer) = (plan.draft(), plan.draft().resolution.as_ref().unwrap());
    assert_eq!(
        (draft.kind, &answer.action_id, plan.has_record_change()),
        (ActionKind::Right, &dismissed.draft.id, false)
    );
    assert_eq!((draft.proposal_hash(), answer.resolved_by), (None, ResolverKind::Human));
    for kind in [ResolutionKind::Wrong, ResolutionKind::RightDone] {
        let refusal = ask(kind, &dismissed, &live()).unwrap_err();
        assert!(matches!(refusal, ResolutionRefusal::NotWatched { .. }), "{refusal}");
    }
}

#[test]
fn an_answer_without_a_change_is_taken_back_within_7_days_and_later_answers_are_named_after_that() {
    let record = pending();
    let (_, dismissed) = carry_out(&ask(ResolutionKind::Dismiss, &record, &live()).unwrap(), TASK).unwrap();
    let reopening = ask(ResolutionKind::Reopen, &dismissed, &live()).unwrap();
    let (_, reopened) = carry_out(&reopening, TASK).unwrap();
    assert_eq!(reopened.draft.resolution.as_ref().unwrap().action_id, dismissed.draft.id);
    let mark = Reopening { id: reopened.draft.id.clone(), at: reopened.draft.timestamp };
    let policy = live();
    let request = request_of(ResolutionKind::Dismiss, &policy);
    let again = build_resolution_plan(&ResolutionCase {
        request: &request,
        record: &record,
        history: &[],
        notes: NoteAccess::unmapped(),
        reopened: Some(&mark),
    })
    .unwrap();
    let (first, second) = (&dismissed.draft, again.draft());
    assert_ne!((&first.id, first.record_path()), (&second.id, second.record_path()));
    assert_eq!(second.resolution.as_ref().unwrap().action_id, record.draft.id);
    assert_eq!(record.draft.answer_path(ActionKind::Dismissed, Some(&mark)), second.record_path());

    for other in [record, applied().1] {
        let refusal = ask(ResolutionKind::Reopen, &other, &live()).unwrap_err();
        assert!(matches!(refusal, ResolutionRefusal::NothingToReopen { .. }), "{refusal}");
    }
    let mut old = dismissed;
    old.draft.timestamp -= chrono::TimeDelta::days(UNDO_WINDOW_DAYS);
    let refusal = ask(ResolutionKind::Reopen, &old, &live()).unwrap_err();
    assert!(matches!(refusal, ResolutionRefusal::ReopenExpired { .. }), "{refusal}");
    assert_eq!(refusal.http_status(), 410);
}
