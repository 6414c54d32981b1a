use super::*;

fn read(text: &str) -> anyhow::Result<PolicyOverrides> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("overrides.toml");
    std::fs::write(&path, text).unwrap();
    PolicyOverrides::read(&path)
}

fn rules() -> ReplayRules {
    ReplayRules { policy: Default::default(), default_ceiling: Ceiling::Act, sources: BTreeMap::new() }
}

#[test]
fn overrides_change_what_they_name_and_nothing_else() {
    let overrides =
        read("live_mode = \"live\"\nconfidence_threshold = 1\nrelated_ceiling = \"confirm\"\nscan_seconds = 5\n")
            .unwrap();
    let changed = overrides.apply_to(&rules());
    let mut expected = rules();
    expected.policy.mode = Mode::Live;
    expected.policy.confidence_threshold = 1.0;
    expected.policy.related_ceiling = Ceiling::Confirm;
    assert_eq!(changed, expected);
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
fn an_unknown_word_or_key_is_an_error() {
    for (text, named) in [
        ("live_mode = \"full\"", "full"),
        ("live_moed = \"live\"", "live_moed"),
        ("confidence_threshold = 1.1", "1.1"),
        ("confidence_threshold = \"high\"", "confidence_threshold"),
        ("related_ceiling = \"yes\"", "yes"),
        ("related_ceiling = ", "overrides.toml"),
    ] {
        let message = format!("{:#}", read(text).unwrap_err());
        assert!(message.contains(named), "{text}: {message}");
    }
    for pair in ["related", "moon=act", "related=yes", "=act", "source:=act", "source:gmail=yes", "source:gmail"] {
        assert!(PolicyOverrides::default().add_ceiling(pair).is_err(), "{pair}");
    }
}

#[test]
fn every_key_of_the_file_can_be_overridden() {
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
fn high_confidence_below_the_ordinary_one_is_an_error_that_names_both() {
    let overrides = PolicyOverrides { high_confidence: Some(0.5), ..PolicyOverrides::default() };
    let message = check_threshold_order(&overrides.apply_to(&rules())).unwrap_err().to_string();
    assert!(message.contains("0.5, below confidence_threshold, which is 0.6"), "{message}");
    check_threshold_order(
        &PolicyOverrides { high_confidence: Some(0.6), ..PolicyOverrides::default() }.apply_to(&rules()),
    )
    .unwrap();
}

#[test]
fn the_settings_of_a_file_are_read_without_the_environment() {
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

#[test]
fn a_file_in_the_vault_must_not_hold_settings_that_decide() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |path: &Path, toml: &str| refuse_file_in_vault(path, toml, dir.path()).unwrap();
    let inside = dir.path().join("steward.toml");
    assert!(refused(&inside, "live_mode = \"live\"").unwrap().contains("lies in the vault"));
    assert_eq!(refused(&inside, ""), None);
    assert_eq!(refused(&dir.path().with_file_name("steward.toml"), "live_mode = \"live\""), None);
}
