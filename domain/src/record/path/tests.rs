use super::*;

#[test]
fn a_path_that_leaves_the_vault_is_refused() {
    for bad in [
        "../task/x.md",
        "task/../x.md",
        "task/..md",
        "task/.hidden.md",
        ".obsidian/x.md",
        "a/.git/x.md",
        "/task/x.md",
        "task//x.md",
        "task/x",
        "task/x.MD",
        "task/a\n.md",
        "task/a\u{85}.md",
        "task/a\u{0}.md",
        "task/a\u{fffd}.md",
        "task/a .md",
        "Projects /a.md",
        "task/.md",
        "stream/x.md",
        "stream/../x.md",
        "stream/mail/../x.md",
        "stream/a/b/c.md",
        "stream/.mail/x.md",
        "stream/a b/x.md",
        "stream//x.md",
        "signal/a/b.md",
        "event/a/b.md",
        "event/steward-action-x (1).md",
        ".md",
        "",
    ] {
        assert!(RecordPath::parse(bad).is_err(), "{bad:?} was accepted");
    }
    assert!(RecordPath::parse(&format!("task/{}.md", "ä".repeat(127))).is_err(), "257 bytes");
    assert!(RecordPath::parse(&format!("{}x.md", "a/".repeat(2_100))).is_err());
}

#[test]
fn every_other_name_stands_as_it_is() {
    for (text, slug) in [
        ("Projects/Wedding of Ann and Ben.md", "Wedding of Ann and Ben"),
        ("task/Überweisung.md", "Überweisung"),
        ("📌 Plan.md", "📌 Plan"),
        ("a/b/c/-x.md", "-x"),
        ("#1.md", "#1"),
        ("Wait… what?.md", "Wait… what?"),
        ("a\\b.md", "a\\b"),
        ("x..y.md", "x..y"),
        (" x.md", " x"),
        ("task/[[a]] & <b>.md", "[[a]] & <b>"),
        ("signal/Meine Notiz.md", "Meine Notiz"),
    ] {
        let path = RecordPath::parse(text).unwrap();
        assert_eq!((path.as_str(), path.slug()), (text, slug));
        let json = serde_json::to_string(&path).unwrap();
        assert_eq!(serde_json::from_str::<RecordPath>(&json).unwrap(), path);
    }
    assert!(RecordPath::parse(&format!("task/{}.md", "ä".repeat(126))).is_ok(), "255 bytes");
}

#[test]
fn a_refused_name_says_which_part_and_why() {
    let message = RecordPath::parse("Projects/.trash/x.md").unwrap_err().to_string();
    assert_eq!(
        message,
        "`Projects/.trash/x.md` has a name that cannot be used, because `.trash` begins with a dot: rename it"
    );
    let message = RecordPath::parse("a/b\u{1b}[31m.md").unwrap_err().to_string();
    assert!(message.contains("holds a control character") && !message.contains('\u{1b}'), "{message}");
}

#[test]
fn a_record_is_named_by_folder_and_slug() {
    let path = RecordPath::parse("task/renew-passport_2.0.md").unwrap();
    assert_eq!((path.own_kind(), path.folder_kind()), (None, Some(RecordKind::Task)));
    assert_eq!((path.slug(), path.file_name()), ("renew-passport_2.0", "renew-passport_2.0.md"));
    let event = RecordPath::parse("stream/mail/a-1.md").unwrap();
    assert_eq!((event.own_kind(), event.slug()), (Some(RecordKind::Stream), "mail/a-1"));
    assert_eq!((event.split_folder(), path.split_folder().0), (("stream/mail", "a-1.md"), "task"));
    assert_eq!(RecordPath::new(RecordKind::Stream, "mail/a-1"), Ok(event));
    let root = RecordPath::parse("signal.md").unwrap();
    assert_eq!((root.own_kind(), root.split_folder(), root.slug()), (None, ("", "signal.md"), "signal"));
}

#[test]
fn links_are_read_the_way_people_write_them() {
    for text in
        ["[[matter/farm]]", "[[matter/farm|The farm]]", "matter/farm", "/matter/farm.md", " farm ", "[[farm#Top]]"]
    {
        assert_eq!(parse_link(RecordKind::Matter, text).unwrap().as_str(), "matter/farm.md", "{text}");
    }
    assert_eq!(parse_link(RecordKind::Matter, "[[Projects/The farm]]").unwrap().as_str(), "Projects/The farm.md");
    assert_eq!(parse_link(RecordKind::Matter, "The farm.md").unwrap().as_str(), "The farm.md", "a path from the root");
    assert_eq!(parse_link(RecordKind::Task, "task/Bill #2 | b.md").unwrap().as_str(), "task/Bill #2 | b.md");
    for text in ["[[task/farm]]", "[[signal/farm]]", "[[../farm]]", "[[]]", ""] {
        assert!(parse_link(RecordKind::Matter, text).is_err(), "{text}");
    }
}

#[test]
fn a_path_in_a_payload_is_checked_too() {
    assert!(serde_json::from_str::<RecordPath>("\"task/../../x.md\"").is_err());
}

#[test]
fn only_a_slug_in_its_own_folder_stands_for_itself() {
    let name = |path: &str| RecordPath::parse(path).unwrap().plain_name(RecordKind::Matter);
    assert_eq!(name("matter/eagle-farm.md"), "eagle-farm");
    let hashed = |path: &str, part: &str| {
        let name = name(path);
        let hash = name.strip_prefix(part).and_then(|rest| rest.strip_prefix('-')).unwrap_or_else(|| panic!("{name}"));
        assert!(hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
    };
    hashed("Projects/eagle-farm.md", "eagle-farm");
    hashed("task/eagle-farm.md", "eagle-farm");
    hashed("matter/Wedding of Ann & Ben.md", "wedding-of-ann-ben");
    hashed("matter/Überweisung.md", "uberweisung");
    hashed("日本.md", "");
    hashed(&format!("{}.md", "x".repeat(200)), &"x".repeat(60));
    hashed(&format!("{} z.md", "x".repeat(59)), &"x".repeat(59));
    assert_ne!(name("a/x.md"), name("b/x.md"));
    assert_eq!(name("Caf\u{e9}.md"), name("Cafe\u{301}.md"), "the hash is of the path in NFC");
}
