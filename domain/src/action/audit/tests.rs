//! Records read back as they were written, whatever words they carry.

use super::*;
use crate::record::frontmatter::{self, FieldUndo};
use crate::record::plain_text;
use crate::steward::clerk::TokenUsage;
use crate::steward::decide::tests::{at, build_check, clerk, evidence, live, path, run, verdict};
use crate::steward::decide::{DecisionCase, decide};
use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::sample::select;

fn draft() -> AuditDraft {
    let check = build_check(b"bytes", Some("open"), vec![evidence("gmail", 0.97, 60), evidence("slack", 0.96, 2)]);
    let verdict = verdict(Judgement::LikelyDone, 0.9, &check);
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
    decide(&case).draft().clone()
}

fn patch() -> FieldPatch {
    let undo = FieldUndo {
        field: "state".into(),
        lines_before: "state: open  # since May\n".into(),
        lines_after: "state: done  # since May\n".into(),
        below: Some("name".into()),
        distance: 1,
    };
    FieldPatch {
        field: "state".into(),
        property: None,
        prior: Some("open".into()),
        value: Some("done".into()),
        undo: Some(undo),
    }
}

fn link() -> ChainLink {
    ChainLink { seq: 7, prev: ContentHash::hash_bytes(b"the record before") }
}

fn record() -> AuditRecord {
    AuditRecord::from_draft(draft(), vec![patch()], link())
}

fn read_back(record: &AuditRecord) -> AuditRecord {
    AuditRecord::parse(record.render().unwrap().as_bytes()).unwrap()
}

#[test]
fn a_record_carries_every_field_of_the_contract() {
    let text = record().render().unwrap();
    let fields = frontmatter::read_document(text.as_bytes()).unwrap().fields().clone();
    let wanted = [
        "type",
        "id",
        "timestamp",
        "target",
        "target_kind",
        "class",
        "decision",
        "confidence",
        "mode",
        "gates",
        "prior_state",
        "prior_frontmatter",
        "pending_confirmation",
        "partially_applied",
        "evidence",
        "source_contributions",
        "plane_action",
        "undo_recipe",
        "clerk",
        "workflow",
        "prev_sha256",
    ];
    for field in wanted {
        assert!(fields.contains_key(field), "{field} is missing");
    }
    let inside = |field: &str, names: &[&str]| {
        for name in names {
            assert!(fields[field].as_object().unwrap().contains_key(*name), "{field}.{name} is missing");
        }
    };
    inside("undo_recipe", &["vault_patch", "plane_revert", "expires_at"]);
    inside("clerk", &["provider", "model", "prompt_sha256", "tokens"]);
    inside("workflow", &["id", "run_id"]);
    assert_eq!(fields["type"], "steward-action");
    assert_eq!(fields["target_kind"], "task");
    assert_eq!(fields["prior_frontmatter"]["state"], "open");
    assert_eq!(fields["undo_recipe"]["expires_at"], "2026-11-28T09:30:15.123Z");
    assert!(!fields.contains_key("reasoning"), "the reasoning is the body");
    assert_eq!(fields.keys().next_back().unwrap(), "prev_sha256", "fields keep their order");
    assert!(text.ends_with("said \"the invoice has been paid\" and 1 more\n\nthe payment is confirmed\n"), "{text}");
}

#[test]
fn a_record_without_a_change_keeps_the_same_fields_and_has_no_recipe() {
    let plain = AuditRecord::from_draft(draft(), Vec::new(), link());
    assert_eq!(plain.undo_recipe, None);
    assert_eq!(plain.prior_frontmatter["state"], "open");
    let text = plain.render().unwrap();
    assert!(text.contains("undo_recipe: null\n") && text.contains("plane_action: null\n"), "{text}");
    assert_eq!(read_back(&plain), plain);
}

#[test]
fn a_record_is_filed_under_its_kind_its_instant_and_its_target() {
    let mut draft = draft();
    assert_eq!(draft.record_path().unwrap().as_str(), "event/steward-action-20261121T093015123Z-pay-invoice.md");
    draft.kind = ActionKind::Reversed;
    let of = draft.id.clone();
    draft.resolution = Some(AuditResolution {
        action_id: of,
        decided_at: at("2026-11-20T01:02:03.004Z"),
        by: "ann".into(),
        reason: None,
        edited: false,
        batch_id: None,
        done: false,
        reopened: None,
        resolved_by: Default::default(),
    });
    assert_eq!(
        draft.record_path().unwrap().as_str(),
        "event/steward-action-reversed-20261120T010203004Z-pay-invoice.md"
    );
}

#[test]
fn long_names_that_begin_alike_stay_two_names() {
    let mut names = Vec::new();
    for ending in ["a", "b", ".x"] {
        let mut draft = draft();
        draft.target = path(&format!("task/{}{ending}.md", "x".repeat(100)));
        draft.kind = ActionKind::Dismissed;
        names.push(draft.record_path().unwrap().to_string());
    }
    names.dedup();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn a_dot_at_the_end_of_a_name_is_cut_so_that_the_file_name_stays_one() {
    let mut draft = draft();
    draft.target = path(&format!("task/{}.{}.md", "x".repeat(70), "y".repeat(30)));
    assert!(draft.record_path().is_ok());
}

#[test]
fn words_from_outside_stay_words() {
    let mut draft = draft();
    draft.reasoning =
        "# Done\n- [ ] see [[matter/secret]] ![[x]] <script>alert(1)</script> https://evil.example %%hidden%% \
                       ---\n```\ncode\n``` $x$ \u{202e}reversed"
            .into();
    draft.evidence[0].note = "](http://evil.example)\n\n---\ntype: forged".into();
    let text = AuditRecord::from_draft(draft, Vec::new(), link()).render().unwrap();
    let (_, body) = text.rsplit_once("\n---\n").unwrap();
    assert_eq!(body.lines().count(), 3, "{body}");
    let bare = body.split('\\').enumerate().map(|(i, part)| if i == 0 { part } else { &part[1..] }).collect::<String>();
    let (_, quoted) = bare.split_once("said").unwrap();
    for markup in ["[", "]", "<", ">", "`", "://", "%", "$", "#", "!", "\u{202e}"] {
        assert!(!quoted.contains(markup), "{markup} survived in {body}");
    }
    assert!(body.lines().nth(2).unwrap().starts_with("\\# Done - \\[ \\]"), "{body}");
}

#[test]
fn a_file_that_is_no_record_is_refused_with_its_reason() {
    let text = record().render().unwrap();
    for (what, broken) in [
        ("no frontmatter", "just text".to_owned()),
        ("another type", text.replace("type: steward-action\n", "type: task\n")),
        ("no id", text.replacen("id: ", "ix: ", 1)),
        ("a target outside the vault", text.replace("target: task/pay-invoice.md", "target: task/../../etc/passwd.md")),
        ("an id that is none", text.replace(record().draft.id.as_str(), "ZZZZ")),
        ("cut off", text[..text.len() / 2].to_owned()),
    ] {
        assert_ne!(broken, text, "{what}: the test changes nothing");
        assert!(AuditRecord::parse(broken.as_bytes()).is_err(), "{what} was accepted");
    }
}

/// What people, mails and models might say, and what might break a file.
fn hostile() -> BoxedStrategy<String> {
    let fixed = select(vec![
        "---",
        "\n---\nstate: done\n---\n",
        "\r\n",
        "[[matter/secret|x]]",
        "![[embed]]",
        "<img src=x onerror=alert(1)>",
        "&a [*a, *a]",
        "*a",
        "!!python/object/apply:os.system",
        "a: &x [*x,*x]",
        "{{7*7}}",
        "# heading",
        "- item",
        "1. one",
        "12) twelve",
        "== mark ==",
        "\u{0}\u{1}\u{7f}\u{85}\u{2028}\u{2029}",
        "\u{feff}\u{200b}\u{202e}",
        "\\",
        "\\\\n",
        "\"'`",
        "| a | b |",
        "~",
        "null",
        "yes",
        "12:30:45",
        "  leading and trailing  ",
        "",
        "\t",
        "größe 日本 🏡",
        "https://x.example//y",
        "%% hidden %%",
        "$$x$$",
    ]);
    let any = prop_oneof![3 => fixed.prop_map(str::to_owned), 1 => any::<String>(), 1 => "[ -~]{0,80}"];
    proptest::collection::vec(any, 0..5).prop_map(|parts| parts.concat()).boxed()
}

fn unit() -> BoxedStrategy<f64> {
    prop_oneof![Just(0.0), Just(1.0), Just(0.1 + 0.2), 0.0..1.0].boxed()
}

fn cited() -> BoxedStrategy<CitedSignal> {
    (hostile(), hostile(), unit(), unit(), any::<bool>())
        .prop_map(|(source, note, target_confidence, effect_confidence, speaks)| CitedSignal {
            reference: path("signal/2026-x.md"),
            source,
            note,
            target_confidence,
            effect_confidence,
            supports: speaks,
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_record_reads_back_as_it_was_written(
        reasoning in hostile(), by in hostile(), reason in proptest::option::of(hostile()),
        cited in proptest::collection::vec(cited(), 0..4), model in hostile(), prior in proptest::option::of(hostile()),
        confidence in unit(), tokens in any::<u32>(), answered in any::<bool>(), patched in any::<bool>(),
    ) {
        let mut draft = draft();
        draft.source_contributions = cited.iter().map(|c| (c.source.clone(), confidence)).collect();
        draft.reasoning = reasoning;
        draft.confidence = confidence;
        draft.evidence = cited;
        draft.prior_state = prior;
        draft.timestamp += TimeDelta::microseconds(i64::from(tokens % 5_000));
        if let Some(clerk) = &mut draft.clerk {
            clerk.model = model;
            clerk.tokens = TokenUsage { prompt_tokens: u64::from(tokens), completion_tokens: 0 };
        }
        if answered {
            draft.kind = ActionKind::Reversed;
            draft.clerk = None;
            let (action_id, at) = (draft.id.clone(), draft.timestamp);
            draft.resolution = Some(AuditResolution { action_id, decided_at: at, by, reason, edited: false, batch_id: None, done: false, reopened: None, resolved_by: Default::default() });
        }
        let patch = if patched { vec![patch()] } else { Vec::new() };
        let record = AuditRecord::from_draft(draft, patch, link());
        let text = record.render().unwrap();
        let read = AuditRecord::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(&read, &record, "{}", text);
        prop_assert_eq!(read.render().unwrap(), text);
        prop_assert_eq!(read.draft.record_path().unwrap(), record.draft.record_path().unwrap());
    }

    #[test]
    fn escaping_is_undone_by_unescaping(text in hostile()) {
        let line = plain_text::to_one_line(&text);
        prop_assert_eq!(plain_text::unescape_markdown(&plain_text::escape_markdown(&line)), line);
    }
}

#[test]
fn the_same_proposal_on_one_record_has_one_hash_and_another_one_has_another() {
    use crate::action::mutation::{ContextField, Mutation, RelatedField};
    let plan = crate::steward::decide::tests::live_plan();
    let replaced = plan.draft().proposal.as_ref().unwrap().replaces.clone();
    assert_eq!(replaced, Some("open".into()));
    let hash_replacing = |replaces, target: &str, mutation: Mutation| {
        let mut draft = plan.draft().clone();
        draft.target = path(target);
        draft.class = Some(mutation.class());
        draft.proposal = Some(MutationProposal { mutation, replaces, moved_from: None });
        draft.proposal_hash().unwrap()
    };
    let hash = |target: &str, mutation: Mutation| hash_replacing(replaced.clone(), target, mutation);
    let done = || Mutation::StateChange { to: RecordState::Done };
    let member =
        |member: &str, present| Mutation::Related { field: RelatedField::RelatedTo, member: member.into(), present };
    let owner = |to: &str| Mutation::ContextEdit { field: ContextField::Owner, to: to.into() };
    let task = "task/pay-invoice.md";
    assert_eq!(Some(hash(task, done())), plan.draft().proposal_hash());
    let mut without = plan.draft().clone();
    without.proposal = None;
    assert_eq!(without.proposal_hash(), None, "nothing is proposed");
    assert_eq!(hash(task, member("Ann", true)), hash(task, member("[[Ann|her]]", true)));
    let all = [
        hash(task, done()),
        hash_replacing(Some("doing".into()), task, done()),
        hash_replacing(None, task, done()),
        hash("task/other.md", done()),
        hash(task, Mutation::StateChange { to: RecordState::Archived }),
        hash(task, member("Ann", true)),
        hash(task, member("Ann", false)),
        hash(task, owner("Ann")),
        hash(task, owner("Bob")),
        hash(task, Mutation::ContextEdit { field: ContextField::Summary, to: "Ann".into() }),
        hash(task, Mutation::ParentMatter { to: path("matter/house.md") }),
    ];
    let different: std::collections::BTreeSet<String> = all.iter().map(|hash| hash.as_str().to_owned()).collect();
    assert_eq!(different.len(), all.len());
    let mut answer = plan.draft().clone();
    answer.kind = ActionKind::Confirmed;
    let mut nothing = plan.draft().clone();
    nothing.class = None;
    assert_eq!((answer.proposal_hash(), nothing.proposal_hash()), (None, None));
}

#[test]
fn a_record_names_only_the_evidence_that_does_not_support_it() {
    let plan = crate::steward::decide::tests::live_plan();
    let link = || ChainLink { seq: 1, prev: ContentHash::genesis() };
    let mut draft = plan.draft().clone();
    let text = AuditRecord::from_draft(draft.clone(), Vec::new(), link()).render().unwrap();
    assert!(!text.contains("supports"), "what is usual is not written: {text}");
    assert!(AuditRecord::parse(text.as_bytes()).unwrap().draft.evidence.iter().all(|e| e.supports));
    draft.evidence[0].supports = false;
    let text = AuditRecord::from_draft(draft, Vec::new(), link()).render().unwrap();
    assert!(text.contains("supports: false"), "{text}");
    assert!(AuditRecord::parse(text.as_bytes()).unwrap().draft.supporting_sources().is_empty());
}
