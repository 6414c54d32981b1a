use super::written::match_line_endings;
use super::*;

fn read(text: &str) -> anyhow::Result<PolicyOverrides> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wish.toml");
    std::fs::write(&path, text).unwrap();
    PolicyOverrides::read(&path)
}

fn rules() -> ReplayRules {
    ReplayRules { policy: Default::default(), default_ceiling: Ceiling::Act, sources: BTreeMap::new() }
}

#[test]
fn a_wish_changes_what_it_says_and_nothing_else() {
    let wish =
        read("live_mode = \"live\"\nconfidence_threshold = 1\nrelated_ceiling = \"confirm\"\nscan_seconds = 5\n")
            .unwrap();
    let wished = wish.apply_to(&rules());
    let mut expected = rules();
    expected.policy.mode = Mode::Live;
    expected.policy.confidence_threshold = 1.0;
    expected.policy.related_ceiling = Ceiling::Confirm;
    assert_eq!(wished, expected);
    let mut more = PolicyOverrides::default();
    more.add_ceiling("default=ask").unwrap();
    more.add_ceiling(" context_edit = Confirm").unwrap();
    more.add_ceiling("source:Mail:ann@b.example=confirm").unwrap();
    more.add_ceiling("source:gmail=act").unwrap();
    let keys: Vec<_> = more.apply_to(&rules()).sources.into_iter().collect();
    assert_eq!(keys, [("gmail".into(), Ceiling::Act), (source_key("mail:ann@b.example"), Ceiling::Confirm)]);
    assert_eq!(more.apply_to(&rules()).default_ceiling, Ceiling::Ask);
    assert_eq!(more.apply_to(&rules()).policy.context_edit_ceiling, Ceiling::Confirm);
}

#[test]
fn what_is_not_said_rightly_is_an_error() {
    for (text, named) in [
        ("live_mode = \"full\"", "full"),
        ("live_moed = \"live\"", "live_moed"),
        ("confidence_threshold = 1.1", "1.1"),
        ("confidence_threshold = \"high\"", "confidence_threshold"),
        ("related_ceiling = \"yes\"", "yes"),
        ("related_ceiling = ", "wish.toml"),
    ] {
        let message = format!("{:#}", read(text).unwrap_err());
        assert!(message.contains(named), "{text}: {message}");
    }
    for pair in ["related", "moon=act", "related=yes", "=act", "source:=act", "source:gmail=yes", "source:gmail"] {
        assert!(PolicyOverrides::default().add_ceiling(pair).is_err(), "{pair}");
    }
}

fn written(old: &str, wish: &PolicyOverrides, evidence: &[&str]) -> anyhow::Result<String> {
    let dir = tempfile::tempdir().unwrap();
    let (path, vault) = (dir.path().join("steward.toml"), dir.path().join("vault"));
    std::fs::create_dir(&vault).unwrap();
    let evidence: Vec<String> = evidence.iter().map(ToString::to_string).collect();
    set_toml_values(
        (&path, old),
        &list_overridden_entries(std::slice::from_ref(wish), &wish.apply_to(&rules())),
        &evidence,
        &vault,
    )
}

#[test]
fn what_was_asked_for_is_written_with_what_it_rests_on_and_a_humans_words_stay() {
    let old = "# ours\nscan_seconds = 5 # quick\n# the switch\nlive_mode = \"shadow\" # for now\n\n[caps]\nper_day = 7 # few\n";
    let wish = PolicyOverrides { mode: Some(Mode::Live), ..PolicyOverrides::default() };
    let once = written(old, &wish, &["407 cases", "a\nb = 1"]).unwrap();
    let expected =
        old.replace("live_mode = \"shadow\"", "# backtest: 407 cases\n# backtest: a b = 1\nlive_mode = \"live\"");
    assert_eq!(once, expected, "nothing but what was asked for");
    let held = PolicyOverrides { ceilings: [None, None, None, Some(Ceiling::Confirm)], ..wish.clone() };
    let twice = written(&once, &held, &["500 cases"]).unwrap();
    assert_eq!((twice.matches("# backtest: ").count(), twice.contains("500 cases")), (1, true), "{twice}");
    assert!(twice.contains("related_ceiling = \"confirm\"\n") && !twice.contains("default_ceiling"), "{twice}");
    assert_eq!(PolicyOverrides::from_table(&twice.parse().unwrap()).unwrap(), held);
    let new = written("", &held, &["x"]).unwrap();
    assert_eq!(PolicyOverrides::from_table(&new.parse().unwrap()).unwrap(), held);
    assert_eq!(written(old, &PolicyOverrides::default(), &["x"]).unwrap(), old);

    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("steward.toml");
    let values = list_overridden_entries(&[wish], &rules());
    assert!(set_toml_values((&inside, old), &values, &[], dir.path()).is_err(), "not from a vault");
}

#[test]
fn every_key_that_is_written_can_be_asked_for() {
    let choice =
        SettingsChoice { mode: Mode::Live, classes: vec![], sources: vec!["gmail".into()], why: String::new() };
    let all = PolicyOverrides {
        confidence: Some(0.7),
        high_confidence: Some(0.9),
        ..PolicyOverrides::from_choice(&choice, &DecisionPolicy::default())
    };
    assert_eq!(list_overridden_entries(&[all], &rules()).len(), list_policy_entries(&rules()).len());
    assert!(list_policy_entries(&rules()).iter().all(|(key, _)| !PolicyOverrides::default().has_key(key)));
}

#[test]
fn line_endings_stay_as_a_humans_editor_left_them() {
    let wish = PolicyOverrides { mode: Some(Mode::Live), confidence: Some(0.7), ..PolicyOverrides::default() };
    let old = "# ours\r\n\r\nscan_seconds = 5 # quick\r\nlive_mode = \"shadow\"\r\n\r\n[caps]\r\nper_day = 7\r\n";
    let new = written(&format!("\u{feff}{old}"), &wish, &["407 cases"]).unwrap();
    let changed = "# backtest: 407 cases\r\nlive_mode = \"live\"\r\n";
    let changed = old.replace("live_mode = \"shadow\"\r\n", &format!("{changed}confidence_threshold = 0.7\r\n"));
    assert_eq!(new, format!("\u{feff}{changed}"));
    let mixed = "a = 1\r\nb = 2\nc = 3\r\n";
    assert_eq!(match_line_endings(mixed, "a = 1\nb = 5\nb = 2\nc = 3\n"), "a = 1\r\nb = 5\r\nb = 2\nc = 3\r\n");
    assert_eq!(match_line_endings("a = 1\r\nb = 2", "a = 1\nb = 2\nc = 3\n"), "a = 1\r\nb = 2\r\nc = 3\r\n");
}

#[test]
fn high_confidence_below_the_ordinary_one_is_an_error_that_names_both() {
    let wish = PolicyOverrides { high_confidence: Some(0.5), ..PolicyOverrides::default() };
    let message = check_threshold_order(&wish.apply_to(&rules())).unwrap_err().to_string();
    assert!(message.contains("0.5, below confidence_threshold, which is 0.6"), "{message}");
    check_threshold_order(
        &PolicyOverrides { high_confidence: Some(0.6), ..PolicyOverrides::default() }.apply_to(&rules()),
    )
    .unwrap();
}

#[test]
fn what_a_file_alone_sets_is_known_whatever_the_environment_says() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("steward.toml");
    assert_eq!(read_rules_file(&path).unwrap(), rules());
    std::fs::write(&path, "live_mode = \"live\"\nscan_seconds = 5\n").unwrap();
    assert_eq!(
        read_rules_file(&path).unwrap(),
        PolicyOverrides { mode: Some(Mode::Live), ..PolicyOverrides::default() }.apply_to(&rules())
    );
    std::fs::write(&path, "live_mode = \"full\"\n").unwrap();
    assert!(read_rules_file(&path).is_err());
}
