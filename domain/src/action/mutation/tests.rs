use super::*;

fn every() -> Vec<Mutation> {
    let mut all = vec![
        Mutation::StateChange { to: RecordState::Archived },
        Mutation::ParentMatter { to: RecordPath::parse("matter/farm.md").unwrap() },
    ];
    all.extend(ContextField::ALL.map(|field| Mutation::ContextEdit { field, to: "Maria: 50%".into() }));
    for present in [true, false] {
        all.extend(RelatedField::ALL.map(|field| Mutation::Related { field, member: "[[Acme]]".into(), present }));
    }
    all
}

#[test]
fn every_mutation_reads_back_from_its_proposal() {
    for mutation in every() {
        assert_eq!(Mutation::from_proposal(&mutation.to_proposal()), Ok(mutation));
    }
}

#[test]
fn another_value_is_of_the_same_kind_and_held_to_the_same_form() {
    for mutation in every() {
        let (good, bad) = match mutation.class() {
            MutationClass::StateChange => ("Open", "deleted"),
            MutationClass::ContextEdit => (" Bob ", "a\nstate: done"),
            MutationClass::ParentMatter => ("house", "task/x.md"),
            MutationClass::Related => ("[[Bob]]", "x\u{202e}y"),
        };
        let other = mutation.with_value(good).unwrap();
        assert!(other != mutation && other.is_same_kind_as(&mutation) && other.is_sound(), "{other:?}");
        assert!(mutation.with_value(bad).is_err() && mutation.with_value("").is_err(), "{mutation:?}");
    }
    let of_the_kind = |a: &Mutation| every().iter().filter(|b| b.is_same_kind_as(a)).count();
    assert!(every().iter().all(|a| of_the_kind(a) == 1), "a field, and whether a member enters or leaves");
}

#[test]
fn nothing_outside_the_four_classes_and_their_fields_is_a_mutation() {
    for bad in [
        json!(null),
        json!("state_change"),
        json!({"class": "delete", "set": {"state": "done"}}),
        json!({"class": "state_change", "set": {"state": "deleted"}}),
        json!({"class": "state_change", "set": {"state": "done", "owner": "eve"}}),
        json!({"class": "state_change", "set": {}}),
        json!({"class": "state_change", "set": {"steward_ceiling": "act"}}),
        json!({"class": "context_edit", "set": {"state": "done"}}),
        json!({"class": "context_edit", "set": {"owner": ""}}),
        json!({"class": "context_edit", "set": {"owner": "a\nsteward_ceiling: act"}}),
        json!({"class": "context_edit", "set": {"owner": "a\u{202e}b"}}),
        json!({"class": "context_edit", "set": {"owner": 7}}),
        json!({"class": "context_edit", "set": {"summary": "x".repeat(501)}}),
        json!({"class": "parent_matter", "set": {"parent_matter": "../../etc/passwd"}}),
        json!({"class": "parent_matter", "set": {"parent_matter": "[[task/x]]"}}),
        json!({"class": "related", "add": {"related_to": "a"}, "remove": {"related_to": "b"}}),
        json!({"class": "related", "set": {"related_to": "a"}}),
        json!({"class": "related", "add": {"related_to": ["a"]}}),
        json!({"class": "related", "add": {"tags": "a"}}),
        json!({"class": "related", "add": {"related_to": "x".repeat(121)}}),
    ] {
        assert!(Mutation::from_proposal(&bad).is_err(), "{bad} was taken");
    }
}

#[test]
fn a_member_that_names_nothing_or_not_the_same_twice_is_refused_by_name() {
    for member in [
        "|",
        "| a",
        "[[|alias]]",
        "[[ ]]",
        "[[]]",
        "[[#h]]",
        "[[^b]]",
        "[[ # h | x ]]",
        ".md",
        "[[.md]]",
        "\u{200c}\u{200d}",
        "[[\u{ad}]]",
        "\u{3164}",
        "\u{180e}|x",
        "a .md",
        "a.md.md",
        "[[[[a]]|b]]",
        "[[ [[a]] ]]",
    ] {
        for part in ["add", "remove"] {
            let read = Mutation::from_proposal(&json!({"class": "related", part: {"related_to": member}}));
            assert_eq!(read, Err(MutationError::Member("related_to")), "{member:?}");
        }
    }
    for member in
        ["Acme", "[[Acme]]", "[[Acme|the firm]]", "[[org/acme.md#Top|x]]", "#1 Plumbing", "C#", "a\u{200d}b", "日本"]
    {
        assert!(
            Mutation::from_proposal(&json!({"class": "related", "add": {"related_to": member}})).is_ok(),
            "{member:?}"
        );
    }
}

#[test]
fn a_value_with_a_separator_of_lines_is_refused_by_the_name_of_the_character() {
    for mutation in every() {
        for (c, name) in [('\u{85}', "U+0085"), ('\u{2028}', "U+2028"), ('\u{2029}', "U+2029")] {
            for text in [format!("{c}Bob"), format!("Bob{c}"), format!("B{c}ob")] {
                let error = mutation.with_value(&text).unwrap_err().to_string();
                assert!(error.contains(name) && error.contains(mutation.field()), "{error}");
            }
        }
    }
}

#[test]
fn a_new_link_is_written_like_the_old_one() {
    let to = RecordPath::parse("matter/house.md").unwrap();
    for (old, new) in [
        ("[[matter/farm]]", "[[matter/house]]"),
        ("[[farm|The farm]]", "[[house]]"),
        ("matter/farm.md", "matter/house.md"),
        ("matter/farm", "matter/house"),
        ("farm", "house"),
        ("[[matter/farm.md]]", "[[matter/house.md]]"),
        ("", "[[matter/house]]"),
    ] {
        assert_eq!(format_link_like(Some(old), &to), new, "{old}");
        assert_eq!(parse_link(RecordKind::Matter, new), Ok(to.clone()));
    }
    assert_eq!(format_link_like(None, &to), "[[matter/house]]");
    for name in ["C# course", "a | b", " x", "x.md", "Wedding of Ann", "[[a]]"] {
        let to = RecordPath::new(RecordKind::Matter, name).unwrap();
        for old in [None, Some("[[matter/farm]]"), Some("farm"), Some("[[farm]]"), Some("matter/farm.md")] {
            let written = format_link_like(old, &to);
            assert_eq!(parse_link(RecordKind::Matter, &written), Ok(to.clone()), "{written} for {name}");
        }
    }
}

#[test]
fn a_mutation_of_a_file_is_sound_only_if_it_could_be_read() {
    assert!(every().iter().all(Mutation::is_sound));
    assert!(!Mutation::ContextEdit { field: ContextField::Owner, to: "a\nstate: done".into() }.is_sound());
    let task = RecordPath::parse("task/x.md").unwrap();
    assert!(!Mutation::ParentMatter { to: task }.is_sound());
}

#[test]
fn a_mutation_fits_only_records_that_have_its_field() {
    for mutation in every() {
        let class = mutation.class();
        assert_eq!(mutation.is_applicable_to(RecordKind::Task), class != MutationClass::ContextEdit, "{mutation:?}");
        assert_eq!(mutation.is_applicable_to(RecordKind::Matter), class != MutationClass::ParentMatter, "{mutation:?}");
        for kind in [RecordKind::Signal, RecordKind::Event, RecordKind::Instinct, RecordKind::Stream] {
            assert!(!mutation.is_applicable_to(kind), "{mutation:?} of {kind:?}");
        }
    }
}
