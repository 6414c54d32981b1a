use super::*;
use crate::config::StewardConfig;
use steward_domain::gates::matter_policy::read;
use steward_domain::record::entity::Matter;
use steward_domain::record::frontmatter;
use steward_domain::record::path::RecordPath;
use steward_domain::record::schema::NoteSchema;
use steward_domain::time;
use steward_domain::trust::demotion::{ModeCap, ModeCaps};
use steward_vault::index::SourceCeiling;

/// The outcome for `state_change`, with its origin. 3 live changes of the day are used, and it is noon.
fn explain_state_change(
    variables: &[(&str, &str)],
    sources: &[(&str, Ceiling)],
    block: &str,
    caps: ModeCaps,
) -> (String, String) {
    let variables = [&[("STEWARD_LIVE_MODE", "live")], variables].concat();
    let config = StewardConfig::from_variables(&variables);
    let named = |(source, ceiling): &(&str, Ceiling)| {
        let (path, source) = (format!("instinct/{source}.md"), (*source).to_owned());
        (SourceCeiling { path, source: source.clone(), ceiling: *ceiling }, format!("instinct/{source}.md:3"))
    };
    let settings = PolicyContext {
        schema: &NoteSchema::Folders,
        config: &config,
        running: None,
        stop: None,
        caps,
        sources: sources.iter().map(named).collect(),
        now: time::parse("2026-11-22T12:00:00Z").unwrap(),
    };
    let document = frontmatter::read_document(format!("---\ntype: matter\n{block}---\n").as_bytes()).unwrap();
    let entity = Matter::read(document.fields()).unwrap();
    let (policy, _) = read::read_matter_policy(&document);
    let note = MatterPolicyContext {
        matter: &RecordPath::parse("matter/m.md").unwrap(),
        document: &document,
        state: entity.state,
        top: entity.ceiling,
        policy: policy.as_ref(),
        spent: 3,
    };
    let line = build_outcome_line(&settings, &note, MutationClass::StateChange);
    assert_eq!(line.what, "outcome: state_change");
    (line.value, line.from)
}

const MAY: &str = "may be made";
const WAITS: &str = "waits for your confirmation";
const LEFT: &str = "is left to you";
const LIVE: &str = "STEWARD_LIVE_MODE";
const SHADOW: &str = "is recorded as shadow only";

#[test]
fn the_note_and_its_budget_are_in_the_outcome() {
    for (block, value, from) in [
        ("", MAY, LIVE),
        ("state: open\n", MAY, LIVE),
        ("state: done\n", "is not checked", "matter/m.md:3 (state)"),
        ("state: archived\nsteward_ceiling: ask\n", "is not checked", "matter/m.md:3 (state)"),
        ("steward:\n  daily_budget: 0\n", WAITS, "matter/m.md:4 (steward.daily_budget)"),
        ("steward:\n  daily_budget: 3\n", WAITS, "matter/m.md:4 (steward.daily_budget)"),
        ("steward:\n  daily_budget: 4\n", MAY, LIVE),
        ("steward:\n  daily_budget: 0\n  ceiling: ask\n", LEFT, "matter/m.md:5 (steward.ceiling)"),
        ("steward:\n  trusted_sources: []\n", WAITS, "matter/m.md:4 (steward.trusted_sources)"),
        ("steward:\n  trusted_sources: []\n  classes: [related]\n", LEFT, "matter/m.md:5 (steward.classes)"),
        (
            "steward:\n  trusted_sources: [Mail]\n",
            "may be made, from trusted sources only",
            "matter/m.md:4 (steward.trusted_sources); STEWARD_LIVE_MODE",
        ),
        ("steward:\n  trusted_sources: [mail]\n  daily_budget: 0\n", WAITS, "matter/m.md:5 (steward.daily_budget)"),
        (
            "steward:\n  quiet_hours: \"11:00-13:30\"\n",
            "waits until 2026-11-22T13:30:00Z, then may be made",
            "matter/m.md:4 (steward.quiet_hours); STEWARD_LIVE_MODE",
        ),
        (
            "steward:\n  quiet_hours: \"11:00-13:30\"\n  ceiling: confirm\n",
            "waits until 2026-11-22T13:30:00Z, then waits for your confirmation",
            "matter/m.md:4 (steward.quiet_hours); matter/m.md:5 (steward.ceiling)",
        ),
        ("steward:\n  quiet_hours: \"13:00-13:30\"\n", MAY, LIVE),
    ] {
        let found = explain_state_change(&[], &[], block, ModeCaps::new());
        assert_eq!((found.0.as_str(), found.1.as_str()), (value, from), "{block}");
    }
}

#[test]
fn the_sources_and_their_settings_are_in_the_outcome() {
    let default = |ceiling| [("STEWARD_DEFAULT_CEILING", ceiling)];
    let named = "from sources with a ceiling of their own only";
    let (key, both) = ("STEWARD_DEFAULT_CEILING", "STEWARD_DEFAULT_CEILING; STEWARD_LIVE_MODE");
    let trusts = "steward:\n  trusted_sources: [mail]\n";
    let mail = |ceiling| [("mail", ceiling)];
    for (variables, sources, block, value, from) in [
        (default("ask"), &[][..], "", LEFT.to_owned(), key),
        (default("confirm"), &[], "", WAITS.to_owned(), key),
        (default("act"), &mail(Ceiling::Ask), "", MAY.to_owned(), LIVE),
        (default("ask"), &mail(Ceiling::Act), "", format!("{MAY}, {named}"), both),
        (default("confirm"), &mail(Ceiling::Act), "", format!("{MAY}, {named}"), both),
        (
            default("ask"),
            &mail(Ceiling::Confirm),
            "",
            format!("{WAITS}, {named}"),
            "STEWARD_DEFAULT_CEILING; instinct/mail.md:3",
        ),
        (default("ask"), &[("mail", Ceiling::Act), ("mail", Ceiling::Ask)], "", LEFT.to_owned(), key),
        (
            default("confirm"),
            &mail(Ceiling::Act),
            "steward_ceiling: confirm\n",
            WAITS.to_owned(),
            "matter/m.md:3 (steward_ceiling)",
        ),
        (default("act"), &mail(Ceiling::Ask), trusts, WAITS.to_owned(), "matter/m.md:4 (steward.trusted_sources)"),
        (default("ask"), &[], trusts, LEFT.to_owned(), key),
        ([("STEWARD_LIVE_PER_SOURCE_DAY", "0")], &[], "", WAITS.to_owned(), "STEWARD_LIVE_PER_SOURCE_DAY"),
        ([("STEWARD_LIVE_PER_SOURCE_DAY", "1")], &[], "", MAY.to_owned(), LIVE),
    ] {
        let found = explain_state_change(&variables, sources, block, ModeCaps::new());
        assert_eq!((found.0.as_str(), found.1.as_str()), (value.as_str(), from), "{variables:?} {sources:?} {block}");
    }
}

#[test]
fn a_demoted_class_is_named_before_the_budgets() {
    let cap = |mode| {
        let since = time::parse("2026-11-21T12:00:00Z").unwrap();
        ModeCaps::from([(TrustSubject::Class(MutationClass::StateChange), ModeCap { mode: Some(mode), since, seq: 1 })])
    };
    let none = "steward:\n  daily_budget: 0\n";
    for (mode, block, value) in [
        (Mode::Shadow, none, SHADOW),
        (Mode::Shadow, "steward:\n  trusted_sources: [mail]\n", SHADOW),
        (Mode::LiveHighConfidenceOnly, none, WAITS),
        (Mode::LiveHighConfidenceOnly, "", "may be made at high confidence"),
        (Mode::Live, "", MAY),
    ] {
        assert_eq!(explain_state_change(&[], &[], block, cap(mode)).0, value, "{mode:?} {block}");
    }
}

#[test]
fn a_demotion_of_every_source_that_may_act_is_in_the_outcome() {
    let since = time::parse("2026-11-21T12:00:00Z").unwrap();
    let cap = |source: &str, mode| (TrustSubject::Source(source.into()), ModeCap { mode: Some(mode), since, seq: 1 });
    let both = [("chat", Ceiling::Act), ("mail", Ceiling::Act)];
    let (sure, only) = (Mode::LiveHighConfidenceOnly, "from sources with a ceiling of their own only");
    for (default, caps, value, raise) in [
        ("confirm", vec![cap("mail", Mode::Shadow)], format!("{MAY}, {only}"), None),
        ("confirm", vec![cap("mail", Mode::Shadow), cap("chat", Mode::Shadow)], SHADOW.into(), Some("mail")),
        (
            "confirm",
            vec![cap("mail", Mode::Shadow), cap("chat", sure)],
            format!("may be made at high confidence, {only}"),
            Some("chat"),
        ),
        ("act", vec![cap("mail", Mode::Shadow), cap("chat", Mode::Shadow)], MAY.into(), None),
    ] {
        let (found, from) =
            explain_state_change(&[("STEWARD_DEFAULT_CEILING", default)], &both, "", caps.into_iter().collect());
        assert_eq!(found, value, "{default}");
        assert_eq!(raise.is_some(), from.contains("steward trust raise"), "{from}");
        assert!(raise.is_none_or(|source| from.contains(&format!("`steward trust raise {source}`"))), "{from}");
    }
}
