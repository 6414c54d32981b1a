use super::*;
use crate::record::frontmatter::read_document;
use serde_json::json;

fn day_end(day: NaiveDate) -> Option<DateTime<Utc>> {
    Some(day.succ_opt()?.and_hms_opt(0, 0, 0)?.and_utc())
}

fn schema(change: impl FnOnce(&mut Value)) -> NoteSchema {
    let mut value = json!({
        "matter": {
            "where": {"folder": "Projects"},
            "state": {"property": "status", "open": ["active"], "done": ["done"]},
            "except": [{"folder": "Projects/Archive"}],
        },
        "task": {
            "where": {"tag": "task"},
            "state": {"property": "status", "open": ["todo", "doing"], "done": ["✅ done", "done"]},
            "due": {"property": "due"},
            "snooze": {"property": "later"},
            "parent": {"property": "project"},
            "related_to": {"property": "people"},
            "importance": {"property": "priority", "high": [1], "low": ["4"]},
            "recurrence": {"property": "repeat"},
        },
    });
    change(&mut value);
    let mapping: VaultMapping = serde_json::from_value(value).unwrap();
    assert_eq!(mapping.find_faults(), []);
    NoteSchema::from_mapping(mapping, day_end)
}

fn path(text: &str) -> RecordPath {
    RecordPath::parse(text).unwrap()
}

fn fields(text: &str) -> RecordFields {
    read_document(format!("---\n{text}\n---\n").as_bytes()).unwrap().into_fields()
}

fn classify(note: &str, text: &str) -> NoteClass {
    schema(|_| ()).classify(&path(note), &fields(text))
}

#[test]
fn a_note_is_what_the_mapping_says() {
    assert_eq!(classify("Projects/Roof.md", "status: active"), NoteClass::Matter);
    assert_eq!(classify("Projects/Roof.md", "x: 1"), NoteClass::Matter, "a matter needs no state");
    assert_eq!(classify("Projects/Archive/Old.md", "status: active"), NoteClass::Other);
    assert_eq!(classify("Notes/Call Ann.md", "tags: [task]\nstatus: Doing\nproject: '[[Roof]]'"), NoteClass::Task);
    assert_eq!(classify("Notes/Other.md", "status: todo"), NoteClass::Other);
    assert_eq!(classify("signal/x.md", "tags: [task]\nstatus: todo"), NoteClass::Other, "it is Steward's own");
}

#[test]
fn a_note_that_cannot_be_used_is_left_out_with_the_reason() {
    let task = "tags: [task]\nproject: Roof\n";
    for (note, text, words) in [
        ("Projects/A.md", format!("{task}status: todo"), "as a matter and as a task"),
        ("a.md", format!("{task}status: '{{{{status}}}}'"), "template"),
        ("a.md", format!("{task}due: <% tp.date.now() %>\nstatus: todo"), "template"),
        ("a.md", format!("{task}status: todo\nStatus: done"), "twice"),
        ("a.sync-conflict-20261124.md", format!("{task}status: todo"), "sync tool"),
        ("a (conflicted copy 2026).md", format!("{task}status: todo"), "sync tool"),
        ("a.md", task.to_owned(), "has no `status`"),
        ("a.md", format!("{task}status:"), "has no `status`"),
        ("a.md", format!("{task}status: soon"), "`soon`"),
        ("a.md", format!("{task}status: 2026-11-24"), "`2026-11-24`"),
        ("a.md", "tags: [task]\nstatus: todo".to_owned(), "no matter"),
        ("a.md", "tags: [task]\nstatus: todo\nproject: ''".to_owned(), "no matter"),
    ] {
        let NoteClass::Excluded(exclusion) = classify(note, &text) else { panic!("{note}: {text}") };
        assert!(exclusion.to_string().contains(words), "{exclusion}");
    }
}

#[test]
fn every_fault_that_a_person_can_fix_is_named_at_once() {
    for (text, words) in [
        ("tags: [task]\nstatus: soon", &["`soon`", "no matter"][..]),
        ("tags: [task]", &["has no `status`", "no matter"]),
        ("tags: [task]\nstatus: soon\nproject: 7", &["`soon`", "`project` holds no link"]),
        ("tags: [task]\nDue: a\ndue: b\nTags: x\nproject: Roof", &["`due`", "`Tags`", "has no `status`"]),
    ] {
        let NoteClass::Excluded(exclusion) = classify("a.md", text) else { panic!("{text}") };
        let message = exclusion.to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{text}: {message}");
        let json = serde_json::to_value(&exclusion).unwrap();
        assert_eq!(serde_json::from_value::<NoteExclusion>(json).unwrap(), exclusion);
    }
    // Nobody fills in a template or a copy, so its other faults are of no use.
    let NoteClass::Excluded(exclusion) = classify("a.md", "tags: [task]\nstatus: '<% x %>'") else { panic!() };
    assert!(matches!(exclusion, NoteExclusion::Template { .. }));
}

#[test]
fn a_note_is_read_under_the_fixed_names() {
    let schema = schema(|_| ());
    let note = fields(
        "tags: [task]\nStatus: [DOING]\nproject: ['[[Roof|the roof]]']\ndue: '[[Daily/2026-11-24]]'\npriority: 1\n\
         later: 2026-12-01\nsnoozed_until: 2026-12-24\npeople: ['[[Ann]]']\nplane_issue_id: abc\nnotes: x",
    );
    let NoteReading { fields: read, ceiling, further_parents, has_unreadable_due } =
        schema.read_note(RecordKind::Task, &path("a.md"), &note);
    assert_eq!(
        Value::Object(read.clone()),
        json!({
            "type": "task", "state": "open", "parent_matter": "[[Roof|the roof]]", "surface_class": "high",
            "due": "2026-11-25T00:00:00.000Z", "snoozed_until": "2026-12-24T00:00:00.000Z",
            "related_to": ["[[Ann]]"], "plane_issue_id": "abc",
        })
    );
    assert_eq!((ceiling, further_parents, has_unreadable_due), (Ceiling::Act, vec![], false));
    assert_eq!(Task::read(&read).unwrap().parent_link, "[[Roof|the roof]]");

    let unreadable = fields("status: todo\nproject: Roof\ndue: soon");
    let read = schema.read_note(RecordKind::Task, &path("a.md"), &unreadable);
    assert!(read.has_unreadable_due && !read.fields.contains_key("due"));
    for empty in ["due:", "due: ''"] {
        let read = schema.read_note(RecordKind::Task, &path("a.md"), &fields(&format!("status: todo\n{empty}")));
        assert!(!read.has_unreadable_due && !read.fields.contains_key("due"), "{empty}");
    }
    for held in ["repeat: weekly", "project: [Roof, 7]", "later: next week"] {
        let read = schema.read_note(RecordKind::Task, &path("a.md"), &fields(&format!("status: todo\n{held}")));
        assert_eq!(read.ceiling, Ceiling::Ask, "{held}");
    }
    let list = fields("status: todo\nproject: ['[[Roof]]', '[[./Attic]]', Shed]");
    let read = schema.read_note(RecordKind::Task, &path("Work/a.md"), &list);
    assert_eq!(read.fields["parent_matter"], "[[Roof]]");
    assert_eq!((read.further_parents, read.ceiling), (vec!["Work/Attic.md".into(), "Shed".into()], Ceiling::Act));
}

#[test]
fn a_matter_whose_state_is_not_mapped_is_open_and_asked_about() {
    let schema = schema(|_| ());
    let matter = schema.read_matter(&path("Projects/Roof.md"), &fields("status: someday")).unwrap();
    assert_eq!((matter.state, matter.ceiling), (RecordState::Open, Ceiling::Ask));
    let matter = schema.read_matter(&path("Projects/Roof.md"), &fields("x: 1")).unwrap();
    assert_eq!((matter.state, matter.ceiling), (RecordState::Open, Ceiling::Act));
}

#[test]
fn a_task_belongs_to_the_folder_above_it_that_has_a_note() {
    let schema = schema(|v| v["task"]["parent"] = json!({"folder": true}));
    let mut names = NoteNames::new(LinkScope::Vault);
    for note in ["Work/Roof/Roof.md", "Work/Roof/a.md", "Work/Roof/deep/er/b.md", "Work/Attic.md", "Work/Attic/c.md"] {
        names.insert(path(note));
    }
    let parent = |task: &str| {
        let task = path(task);
        let link = schema.read_task(&task, &fields("status: todo")).unwrap().parent_link;
        schema.resolve_parent(&names, &link, &task).map(|found| found.to_string())
    };
    assert_eq!(parent("Work/Roof/a.md").unwrap(), "Work/Roof/Roof.md");
    assert_eq!(parent("Work/Roof/deep/er/b.md").unwrap(), "Work/Roof/Roof.md");
    assert_eq!(parent("Work/Attic/c.md").unwrap(), "Work/Attic.md");
    assert!(matches!(parent("Other/d.md"), Err(LinkError::Missing(_))));
    names.insert(path("Work/Attic/Attic.md"));
    let task = path("Work/Attic/c.md");
    let link = schema.read_task(&task, &fields("status: todo")).unwrap().parent_link;
    let both = schema.resolve_parent(&names, &link, &task);
    assert!(matches!(both, Err(LinkError::Ambiguous { .. })), "inside and beside: {both:?}");
}

#[test]
fn a_task_in_a_folder_without_a_note_belongs_to_the_default() {
    let schema = schema(|v| v["task"]["parent"] = json!({"folder": true, "default": "[[Other]]"}));
    let mut names = NoteNames::new(LinkScope::Vault);
    for note in ["Work/Roof/Roof.md", "Work/Roof/a.md", "Inbox/b.md", "c.md", "Projects/Other.md"] {
        names.insert(path(note));
    }
    let parent = |task: &str| {
        let task = path(task);
        let link = schema.read_task(&task, &fields("status: todo")).unwrap().parent_link;
        schema.resolve_parent(&names, &link, &task).unwrap().to_string()
    };
    assert_eq!(parent("Work/Roof/a.md"), "Work/Roof/Roof.md");
    assert_eq!((parent("Inbox/b.md"), parent("c.md")), ("Projects/Other.md".into(), "Projects/Other.md".into()));
}

#[test]
fn a_task_without_a_parent_belongs_to_the_default() {
    let schema = schema(|v| v["task"]["parent"]["default"] = json!("[[Projects/Roof]]"));
    let parent = |note: &str| schema.read_task(&path("Work/a.md"), &fields(note)).unwrap().parent_link;
    assert_eq!(parent("status: todo"), "[[Projects/Roof]]");
    assert_eq!(parent("status: todo\nproject: ''"), "[[Projects/Roof]]");
    assert_eq!(parent("status: todo\nproject: '[[Shed]]'"), "[[Shed]]");
}

#[test]
fn what_has_no_property_cannot_be_written() {
    let schema = schema(|_| ());
    let archive = Mutation::StateChange { to: RecordState::Archived };
    assert!(schema.can_write(RecordKind::Task, &Mutation::StateChange { to: RecordState::Done }));
    assert!(!schema.can_write(RecordKind::Task, &archive), "no value stands for archived");
    assert!(NoteSchema::Folders.can_write(RecordKind::Task, &archive));
    let owner = Mutation::from_proposal(&json!({"class": "context_edit", "set": {"owner": "Ann"}})).unwrap();
    assert!(!schema.can_write(RecordKind::Matter, &owner));
}

#[test]
fn the_shortest_link_names_the_note_and_no_other() {
    let mut names = NoteNames::new(LinkScope::Vault);
    for note in ["Work/Roof.md", "Home/Roof.md", "Home/Attic.md", "C# notes.md", "Roof/x.md"] {
        names.insert(path(note));
    }
    let from = path("a.md");
    for (note, link) in
        [("Home/Attic.md", "[[Attic]]"), ("Home/Roof.md", "[[Home/Roof]]"), ("C# notes.md", "C# notes.md")]
    {
        assert_eq!(names.shortest_link(&path(note), &from), link);
    }
}

#[test]
fn a_recurring_note_is_known_by_the_usual_property_too() {
    let schema = schema(|v| drop(v["task"].as_object_mut().unwrap().remove("recurrence")));
    let ceiling = |line: &str| {
        let note = fields(&format!("status: todo\nproject: Roof\n{line}"));
        schema.read_note(RecordKind::Task, &path("a.md"), &note).ceiling
    };
    assert_eq!(ceiling("Recurrence: FREQ=WEEKLY"), Ceiling::Ask);
    for none in ["recurrence: ''", "recurrence:", "recurrence: false", "other: x"] {
        assert_eq!(ceiling(none), Ceiling::Act, "{none}");
    }
}

#[test]
fn a_relative_link_to_a_matter_is_read_from_the_place_of_its_note() {
    let schema = schema(|_| ());
    let note = fields("status: todo\nproject: '[[../../Projects/Roof|r]]'");
    let task = schema.read_task(&path("Notes/deep/a.md"), &note).unwrap();
    assert_eq!(task.parent_matter, path("Projects/Roof.md"));
}
