use super::*;
use crate::record::frontmatter::read_note;
use crate::record::link::LinkScope;
use serde_json::json;

fn propose(notes: &[(&str, &str)], left_out: &[&str]) -> Result<MappingProposal, ProposalError> {
    let mut names = NoteNames::new(LinkScope::Vault);
    let mut samples = Vec::new();
    for (path, text) in notes {
        let path = RecordPath::parse(path).unwrap();
        names.insert(path.clone());
        let text = if text.is_empty() { String::new() } else { format!("---\n{text}\n---\n") };
        samples.push(NoteSample { path, fields: read_note(text.as_bytes()).unwrap().into_fields() });
    }
    let left_out: Vec<String> = left_out.iter().map(|folder| (*folder).to_owned()).collect();
    propose_mapping(&VaultSample { notes: &samples, names: &names, left_out: &left_out, tasknotes: None })
}

fn mapping(notes: &[(&str, &str)]) -> Value {
    let proposal = propose(notes, &[]).unwrap();
    assert_eq!(proposal.mapping.find_faults(), []);
    serde_json::to_value(proposal.mapping).unwrap()
}

#[test]
fn tasks_with_a_tag_and_a_link_property_are_found_with_their_words() {
    let notes = [
        ("Projekte/Dach reparieren.md", "status: active\nlead: Ann"),
        ("Projekte/Garten.md", "status: active"),
        ("Projekte/Keller.md", ""),
        ("Aufgaben/a.md", "tags: [task]\nStatus: todo\nproject: '[[Dach reparieren]]'\ndue: 2026-12-01"),
        ("Aufgaben/b.md", "tags: [task, x]\nStatus: todo\nproject: '[[garten]]'\npeople: ['[[Ann]]']\npriority: 1"),
        ("Notes/c.md", "tags: task\nStatus: ✅ done\nproject: '[[Keller]]'\npriority: low"),
        ("Notes/d.md", "tags: task\nStatus: someday\nproject: '[[Keller]]'"),
        ("Notes/other.md", "tags: [idea]\nmood: fine"),
        ("Ann.md", ""),
    ];
    let found = mapping(&notes);
    assert_eq!(
        found,
        json!({
            "matter": {"where": {"folder": "Projekte"}, "owner": {"property": "lead"},
                "state": {"property": "status", "open": ["active"], "done": ["done"]}},
            "task": {"where": {"tag": "task"}, "parent": {"property": "project"}, "due": {"property": "due"},
                "related_to": {"property": "people"},
                "importance": {"property": "priority", "high": [1], "low": ["low"]},
                "state": {"property": "Status", "open": ["todo"], "done": ["✅ done"]}},
        })
    );
    let reasons = propose(&notes, &[]).unwrap().reasons;
    assert_eq!(reasons["task.parent"], "`project` links to another note; tasks: 3, matters: 3");
    assert!(
        reasons["task.where"].contains("3 of 3") && reasons["task.where"].contains("further notes: 1"),
        "{reasons:?}"
    );
}

#[test]
fn tasks_in_the_folder_of_their_matter_need_no_link() {
    let found = mapping(&[
        ("Work/Roof/Roof.md", "type: project"),
        ("Work/Roof/call.md", "type: task\nstatus: open"),
        ("Work/Attic.md", "type: project"),
        ("Work/Attic/clean.md", "type: task\nstatus: done"),
    ]);
    assert_eq!(found["task"]["parent"], json!({"folder": true}));
    assert_eq!(
        (&found["task"]["where"], &found["matter"]["where"]),
        (&json!({"type": "task"}), &json!({"type": "project"}))
    );
    assert!(found["matter"].get("state").is_none(), "no matter has one");
}

#[test]
fn a_checkbox_property_and_german_words_keep_their_own_form() {
    let notes = |state: &'static str| {
        [("P/A.md", ""), ("T/x.md", state), ("T/y.md", "project: '[[A]]'\nstatus: offen\nerledigt: false")]
    };
    let flag = mapping(&notes("project: '[[A]]'\nerledigt: false"));
    assert_eq!(flag["task"]["state"], json!({"property": "erledigt", "open": [false], "done": [true]}));
    let words = mapping(&notes("project: '[[A]]'\nstatus: offen"));
    assert_eq!(words["task"]["state"], json!({"property": "status", "open": ["offen"], "done": ["erledigt"]}));
}

#[test]
fn what_the_notes_do_not_show_is_said_and_not_guessed() {
    assert_eq!(propose(&[("a.md", "mood: fine")], &[]), Err(ProposalError::NoStates));
    let not_apart = |note: &str| Err(ProposalError::NotApart { what: "tasks", examples: vec![format!("`{note}`")] });
    assert_eq!(propose(&[("a.md", "status: todo")], &[]), not_apart("a.md"));
    let mixed = [("N/A.md", "status: todo"), ("N/b.md", "status: todo\nproject: '[[A]]'")];
    assert_eq!(propose(&mixed, &[]), not_apart("N/b.md"));
    let drowned = [("N/a.md", "status: todo"), ("N/b.md", ""), ("N/c.md", "")];
    assert_eq!(propose(&drowned, &[]), not_apart("N/a.md"), "the folder holds mostly other notes");
}

#[test]
fn tasks_that_name_no_matter_are_found_all_the_same() {
    let found = mapping(&[("Tasks/a.md", "status: todo"), ("Tasks/b.md", "status: done\narea: home"), ("x.md", "")]);
    assert_eq!(found["task"]["where"], json!({"folder": "Tasks"}));
    assert_eq!(found["task"]["parent"], json!({"property": "area"}), "the property that they use");
    assert_eq!(found["matter"]["where"], json!({"type": "matter"}));
}

/// Proposes for notes of a vault with these settings of TaskNotes.
fn propose_by_plugin(settings: Value, notes: &[(&str, &str)]) -> VaultMapping {
    let settings: TaskNotesSettings = serde_json::from_value(settings).unwrap();
    let mut names = NoteNames::new(LinkScope::Vault);
    let mut samples = Vec::new();
    for (path, text) in notes {
        let path = RecordPath::parse(path).unwrap();
        names.insert(path.clone());
        let text = format!("---\n{text}\n---\n");
        samples.push(NoteSample { path, fields: read_note(text.as_bytes()).unwrap().into_fields() });
    }
    let sample = VaultSample { notes: &samples, names: &names, left_out: &[], tasknotes: Some(&settings) };
    let proposal = propose_mapping(&sample).unwrap();
    assert_eq!(proposal.mapping.find_faults(), []);
    proposal.mapping
}

#[test]
fn the_settings_of_tasknotes_say_what_a_task_is() {
    let notes = [
        ("Projects/Roof.md", "tags: [project]"),
        ("Tasks/a.md", "tags: [task]\nstatus: open\nprojects: ['[[Roof]]']"),
        ("Tasks/part.md", "tags: [task]\nstatus: open\nprojects: ['[[a]]']"),
    ];
    let mapping = propose_by_plugin(json!({}), &notes);
    assert_eq!(
        serde_json::to_value(mapping).unwrap(),
        json!({
            "matter": {"where": {"tag": "project"}},
            "task": {"where": {"tag": "task"}, "except": [{"tag": "archived"}],
                "state": {"property": "status", "open": ["open", "none", "in-progress"], "done": ["done"]},
                "parent": {"property": "projects"}, "due": {"property": "due"}, "recurrence": {"property": "recurrence"},
                "importance": {"property": "priority", "high": ["high"], "low": ["low"]}},
        })
    );
}

#[test]
fn settings_of_tasknotes_that_a_person_changed_are_followed() {
    let settings = json!({
        "taskIdentificationMethod": "property", "taskPropertyName": "kind", "taskPropertyValue": "todo",
        "excludedFolders": "Old/, .trash, Templates,,", "moveArchivedTasks": true, "archiveFolder": "TaskNotes/Archive", "storeTitleInFilename": false, "defaultTaskStatus": "next",
        "defaultTaskPriority": "b", "fieldMapping": {"status": "zustand", "title": "titel", "archiveTag": ""},
        "customStatuses": [
            {"value": "later", "order": 1}, {"value": "next", "order": 2}, {"value": "cancelled", "isCompleted": true},
            {"value": "fertig", "isCompleted": true, "order": 4}
        ],
        "customPriorities": [{"value": "a", "weight": 2}, {"value": "b", "weight": 1}],
    });
    let task = propose_by_plugin(settings, &[("a.md", "kind: todo\nzustand: next\nprojects: []")]).task;
    assert_eq!(
        serde_json::to_value(task).unwrap(),
        json!({
            "where": {"kind": "todo"}, "except": [{"folder": "Old"}, {"folder": "Templates"}, {"folder": "TaskNotes/Archive"}],
            "state": {"property": "zustand", "open": ["next", "later"], "done": ["fertig"], "archived": ["cancelled"]},
            "parent": {"property": "projects"}, "due": {"property": "due"}, "recurrence": {"property": "recurrence"},
            "importance": {"property": "priority", "high": ["a"]}, "title": {"property": "titel"},
        })
    );
}

#[test]
fn settings_of_tasknotes_that_no_mapping_can_express_leave_the_proposal_to_the_notes() {
    let notes = [("T/a.md", "tags: [task]\nstatus: todo\nproject: '[[A]]'"), ("A.md", "type: project")];
    let by_notes = json!({"property": "project"});
    for settings in [
        json!({"taskIdentificationMethod": "property", "taskPropertyName": "status", "taskPropertyValue": "todo"}),
        json!({"taskIdentificationMethod": "property", "taskPropertyName": "kind"}),
        json!({"fieldMapping": {"due": "tags"}}),
        json!({"customStatuses": [{"value": "open"}]}),
        json!({"taskTag": "nobody-has-it"}),
    ] {
        let mut settings = settings;
        settings["fieldMapping"]["recurrence"] = json!("wiederkehr");
        let mapping = propose_by_plugin(settings.clone(), &notes);
        assert_eq!(
            mapping.task.property(NoteRole::Recurrence),
            Some("wiederkehr"),
            "it protects repeated tasks: {settings}"
        );
        assert_eq!(serde_json::to_value(mapping.task.parent).unwrap(), by_notes, "{settings}");
    }
}

#[test]
fn a_folder_of_templates_is_no_evidence_and_becomes_an_exception() {
    let notes = [
        ("Projects/A.md", ""),
        ("Tasks/x.md", "tags: [task]\nstatus: todo\nproject: '[[A]]'"),
        ("Templates/t.md", "tags: [task]\nstatus: waiting\nproject: '[[A]]'"),
    ];
    let proposal = propose(&notes, &["Templates"]).unwrap().mapping;
    assert_eq!(proposal.task.state.unwrap().open, [json!("todo")]);
    assert_eq!(proposal.task.except, [NoteSelector::in_folder("Templates")]);
}
