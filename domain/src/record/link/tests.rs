use super::*;

fn path(text: &str) -> RecordPath {
    RecordPath::parse(text).unwrap()
}

fn names(scope: LinkScope, notes: &[&str]) -> NoteNames {
    let mut names = NoteNames::new(scope);
    notes.iter().for_each(|note| names.insert(path(note)));
    names
}

fn vault(notes: &[&str]) -> NoteNames {
    names(LinkScope::Vault, notes)
}

fn resolve(names: &NoteNames, link: &str) -> Result<String, LinkError> {
    names.resolve(RecordKind::Matter, link, &path("Projects/Roof/Tasks/Pay.md")).map(|note| note.to_string())
}

#[test]
fn a_link_is_a_full_path_or_the_end_of_one() {
    let names =
        vault(&["Farm.md", "Projects/Roof/Roof.md", "Projects/Garden.md", "Archive/Garden.md", "a/Projects/X.md"]);
    for (link, note) in [
        ("[[Farm]]", Some("Farm.md")),
        ("[[farm.md#Costs|The farm]]", Some("Farm.md")),
        ("[[/Farm]]", Some("Farm.md")),
        ("Roof", Some("Projects/Roof/Roof.md")),
        ("[[Roof/roof]]", Some("Projects/Roof/Roof.md")),
        ("[[oof]]", None),
        ("[[Projects/Garden]]", Some("Projects/Garden.md")),
        ("[[Garden]]", None),
        ("[[Projects/X]]", Some("a/Projects/X.md")),
        ("[[./Pay]]", None),
        ("[[../Roof]]", Some("Projects/Roof/Roof.md")),
        ("[[../../Garden]]", Some("Projects/Garden.md")),
        ("[[../../../../Farm]]", None),
        ("[[]]", None),
        ("", None),
    ] {
        assert_eq!(resolve(&names, link).ok().as_deref(), note, "{link}");
    }
    let message = resolve(&names, "[[Garden]]").unwrap_err().to_string();
    assert_eq!(message, "`Garden` names several notes: Archive/Garden.md, Projects/Garden.md");
}

#[test]
fn a_full_path_comes_before_the_end_of_another() {
    let names = vault(&["Roof.md", "Projects/Roof.md"]);
    assert_eq!(resolve(&names, "[[Roof]]").unwrap(), "Roof.md");
}

#[test]
fn names_are_compared_in_nfc_and_without_case_and_twins_are_ambiguous() {
    let names = vault(&["Cafe\u{301}.md", "Straße.md", "Twin.md", "twin.md"]);
    assert_eq!(resolve(&names, "[[CAF\u{c9}]]").unwrap(), "Cafe\u{301}.md");
    assert_eq!(resolve(&names, "[[STRAßE]]").unwrap(), "Straße.md");
    assert!(matches!(resolve(&names, "[[Twin]]"), Err(LinkError::Ambiguous { .. })));
}

#[test]
fn without_a_mapping_a_link_names_a_note_in_the_folder_of_its_kind() {
    let names = names(LinkScope::KindFolder, &["matter/roof.md", "task/roof.md", "matter/Wedding of Ann.md"]);
    let task = path("task/x.md");
    let of = |kind, link| names.resolve(kind, link, &task).map(|note| note.to_string());
    assert_eq!(of(RecordKind::Matter, "[[roof]]").unwrap(), "matter/roof.md");
    assert_eq!(of(RecordKind::Task, "[[roof]]").unwrap(), "task/roof.md");
    assert_eq!(of(RecordKind::Matter, "[[wedding of ann]]").unwrap(), "matter/Wedding of Ann.md");
    assert!(of(RecordKind::Matter, "[[task/roof]]").is_err());
    let twins = self::names(LinkScope::KindFolder, &["matter/Shed.md", "matter/shed.md"]);
    let of_twins = |link| twins.resolve(RecordKind::Matter, link, &task).map(|note| note.to_string());
    assert_eq!(
        (of_twins("shed").unwrap(), of_twins("[[matter/Shed]]").unwrap()),
        ("matter/shed.md".into(), "matter/Shed.md".into())
    );
    assert!(matches!(of_twins("SHED"), Err(LinkError::Ambiguous { .. })));
    assert_eq!(names.resolve_or_spell(RecordKind::Matter, "[[gone]]", &task), Some(path("matter/gone.md")));
    assert_eq!(names.resolve_or_spell(RecordKind::Matter, "[[task/roof]]", &task), None);
}

#[test]
fn a_note_that_is_gone_is_named_no_more() {
    let mut names = vault(&["a/Roof.md", "b/Roof.md"]);
    names.remove(&path("a/Roof.md"));
    assert_eq!(resolve(&names, "Roof").unwrap(), "b/Roof.md");
    names.remove(&path("b/Roof.md"));
    assert_eq!(names, vault(&[]));
}
