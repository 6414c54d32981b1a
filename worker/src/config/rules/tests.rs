use super::*;

fn read(text: &str) -> anyhow::Result<Wish> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wish.toml");
    std::fs::write(&path, text).unwrap();
    Wish::read(&path)
}

fn rules() -> Rules {
    Rules { policy: Default::default(), default_ceiling: Ceiling::Act }
}

#[test]
fn a_wish_changes_what_it_says_and_nothing_else() {
    let wish =
        read("live_mode = \"live\"\nconfidence_threshold = 1\nrelated_ceiling = \"confirm\"\nscan_seconds = 5\n")
            .unwrap();
    let wished = wish.over(&rules());
    let mut expected = rules();
    expected.policy.mode = Mode::Live;
    expected.policy.confidence_threshold = 1.0;
    expected.policy.related_ceiling = Ceiling::Confirm;
    assert_eq!(wished, expected);
    let mut more = Wish::default();
    more.hold("default=ask").unwrap();
    more.hold(" context_edit = Confirm").unwrap();
    assert_eq!(more.over(&rules()).default_ceiling, Ceiling::Ask);
    assert_eq!(more.over(&rules()).policy.context_edit_ceiling, Ceiling::Confirm);
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
    for pair in ["related", "moon=act", "related=yes", "=act"] {
        assert!(Wish::default().hold(pair).is_err(), "{pair}");
    }
}

#[test]
fn settings_are_written_with_what_they_rest_on_and_a_humans_words_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (path, vault) = (dir.path().join("steward.toml"), dir.path().join("vault"));
    std::fs::create_dir(&vault).unwrap();
    let old = "# ours\nscan_seconds = 5 # quick\n# the switch\nlive_mode = \"shadow\" # for now\n\n[caps]\nper_day = 7 # few\n";
    let mut wished = rules();
    wished.policy.mode = Mode::Live;
    let said = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    let once = with_rules((&path, old), &wished, &said(&["407 cases", "a\nb = 1"]), &vault).unwrap();
    for kept in ["# ours\nscan_seconds = 5 # quick\n", "# the switch\n", " # for now\n", "[caps]\nper_day = 7 # few\n"]
    {
        assert!(once.contains(kept), "{once}");
    }
    assert!(once.contains("# backtest: 407 cases\n# backtest: a b = 1\nlive_mode = \"live\" # for now\n"), "{once}");
    let table: Table = once.parse().unwrap();
    assert_eq!(Wish::of(&table).unwrap().over(&rules()), wished);
    assert!(table.get("b").is_none());
    let twice = with_rules((&path, &once), &wished, &said(&["500 cases"]), &vault).unwrap();
    assert_eq!((twice.matches("# backtest: ").count(), twice.contains("500 cases")), (1, true), "{twice}");
    let new = with_rules((&path, ""), &wished, &said(&["x"]), &vault).unwrap();
    assert_eq!(Wish::of(&new.parse().unwrap()).unwrap().over(&rules()), wished);
    assert!(with_rules((&vault.join("steward.toml"), old), &wished, &[], &vault).is_err(), "not from a vault");
}
