//! Changes of notes that a mapping reads: every property and value keeps the name that its person gave it.

use crate::desk::{Click, Desk, noon, settle};
use crate::sequences::{route_signal, signal};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

use steward_domain::action::audit::AuditRecord;
use steward_domain::action::mutation::{ContextField, Mutation, RelatedField};
use steward_domain::action::plan::{ContentHash, Disposition, Plan};
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::entity::RecordState;
use steward_domain::record::frontmatter;
use steward_domain::record::mapping::VaultMapping;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::{NoteAccess, NoteSchema};
use steward_domain::signals::route::RouteTarget;
use steward_vault::action::preview;
use steward_vault::action::resolve::ResolutionError;
use steward_vault::action::writer::{ActionReceipt, VaultWriter};
use steward_vault::index::Index;

const TASK: &str = "Aufgaben/Müller anrufen.md";
const MATTER: &str = "Projects/Roof.md";
const NOTE: &str =
    "---\ntags: [task]\nStatus: Todo  # since May\nproject: \"[[Roof]]\"\npeople:\n- \"[[Ann]]\"\n---\nBody\n";

pub(crate) fn mapping() -> VaultMapping {
    mapping_with("✅ done")
}

fn mapping_with(done: &str) -> VaultMapping {
    let state = json!({"property": "status", "open": ["todo", "doing", 0, false], "done": [done, "finished"]});
    let mapping = json!({
        "matter": {"where": {"folder": "Projects"}, "state": state, "owner": {"property": "lead"},
            "summary": {"property": "in a word"}, "related_to": {"property": "people"}},
        "task": {"where": {"tag": "task"}, "state": state, "parent": {"property": "project"},
            "related_to": {"property": "people"}, "related_orgs": {"property": "firms"}},
    });
    let mapping: VaultMapping = serde_json::from_value(mapping).unwrap();
    assert_eq!(mapping.find_faults(), []);
    mapping
}

/// A vault with a mapping, and its writer.
pub(crate) struct MappedDesk {
    pub(crate) desk: Desk,
    pub(crate) index: Index,
    pub(crate) writer: Arc<VaultWriter>,
    pub(crate) runtime: tokio::runtime::Runtime,
    moment: i64,
}

impl MappedDesk {
    pub(crate) fn new(notes: &[(&str, &str)]) -> Self {
        let desk = Desk::new();
        for (path, text) in notes.iter().chain(&[("Projects/Shed.md", "A shed.\n"), ("Projects/deep/Attic.md", "")]) {
            std::fs::create_dir_all(desk.file(path).parent().unwrap()).unwrap();
            desk.write(path, text.as_bytes());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let writer = desk.writer();
        let index = open_index(&runtime, &desk.state(), mapping());
        runtime.block_on(index.sync_all(writer.root(), noon())).unwrap();
        let writer = Arc::new(writer.with_index(&index));
        Self { desk, index, writer, runtime, moment: 0 }
    }

    /// A plan from a signal; `None` if the router skips it.
    pub(crate) fn plan(&mut self, name: &str, mutation: &Mutation, ceiling: Ceiling) -> Option<Plan> {
        self.moment += 1;
        let (text, path) = (self.desk.read(name), RecordPath::parse(name).unwrap());
        let kind = if name.starts_with("Projects/") { RecordKind::Matter } else { RecordKind::Task };
        let document = frontmatter::read_note(text.as_bytes()).unwrap();
        let schema = self.index.note_schema();
        let target = RouteTarget {
            path: path.clone(),
            kind,
            parent: Some(RecordPath::parse(MATTER).unwrap()),
            state: RecordState::Open,
            snoozed_until: None,
            has_twin: false,
            hash: ContentHash::hash_bytes(text.as_bytes()),
            fields: schema.read_note(kind, &path, document.fields()).fields,
            is_writable: schema.can_write(kind, mutation),
        };
        let mut signal = signal(path, mutation.clone());
        signal.target_kind = kind;
        route_signal(&signal, &target, self.moment, ceiling)
    }

    pub(crate) fn change(&mut self, name: &str, mutation: &Mutation) -> ActionReceipt {
        let plan = self.plan(name, mutation, Ceiling::Act).unwrap();
        self.writer.apply_plan(plan).unwrap()
    }

    pub(crate) fn record(&self, receipt: &ActionReceipt) -> AuditRecord {
        AuditRecord::parse(self.desk.read(receipt.record.as_str()).as_bytes()).unwrap()
    }

    pub(crate) fn undo(&self, receipt: &ActionReceipt) -> Result<ActionReceipt, ResolutionError> {
        Click::new(ResolutionKind::Undo, &receipt.record, "undo").ask(&self.writer)
    }

    /// The same vault under another accepted mapping.
    pub(crate) fn remap(self, mapping: VaultMapping) -> Self {
        let Self { desk, index, writer, runtime, moment } = self;
        runtime.block_on(index.close());
        drop(writer);
        let writer = desk.writer();
        let index = open_index(&runtime, &desk.state(), mapping);
        runtime.block_on(index.sync_all(writer.root(), noon())).unwrap();
        let writer = Arc::new(writer.with_index(&index));
        Self { desk, index, writer, runtime, moment }
    }
}

fn open_index(runtime: &tokio::runtime::Runtime, state: &Path, mapping: VaultMapping) -> Index {
    let index = runtime.block_on(Index::open(state)).unwrap();
    let schema = NoteSchema::from_mapping(mapping, |day| Some(day.succ_opt()?.and_hms_opt(0, 0, 0)?.and_utc()));
    index.with_schema(schema, [self::mapping().hash(), mapping_with("never filed").hash()])
}

pub(crate) fn to_done() -> Mutation {
    Mutation::StateChange { to: RecordState::Done }
}

pub(crate) fn move_to(path: &str) -> Mutation {
    Mutation::ParentMatter { to: RecordPath::parse(path).unwrap() }
}

/// The lines in which two texts differ.
fn changed_lines<'a>(before: &'a str, after: &'a str) -> Vec<(&'a str, &'a str)> {
    assert_eq!(before.lines().count(), after.lines().count(), "{after}");
    before.lines().zip(after.lines()).filter(|(a, b)| a != b).collect()
}

#[test]
fn a_change_writes_the_persons_words_and_the_record_shows_both() {
    let mut desk = MappedDesk::new(&[(TASK, NOTE), (MATTER, "---\nstatus: [doing]\n---\n")]);
    let receipt = desk.change(TASK, &to_done());
    assert_eq!(receipt.disposition, Disposition::Live);
    let after = desk.desk.read(TASK);
    assert_eq!(changed_lines(NOTE, &after), [("Status: Todo  # since May", "Status: ✅ done  # since May")]);
    let record = desk.record(&receipt);
    assert_eq!(record.mapping_sha256, Some(mapping().hash()));
    assert_eq!(
        (record.draft.prior_state.as_deref(), record.draft.proposed_state),
        (Some("open"), Some(RecordState::Done))
    );
    assert_eq!(Value::Object(record.prior_frontmatter.clone()), json!({"Status": "Todo"}));
    let patch = &record.undo_recipe.as_ref().unwrap().vault_patch[0];
    assert_eq!((patch.field.as_str(), patch.key()), ("state", "Status"));
    assert_eq!((patch.prior.clone(), patch.value.clone()), (Some(json!("Todo")), Some(json!("✅ done"))));

    let shown = preview::preview_undo(desk.writer.root(), Some(&desk.index), &receipt.record, noon()).unwrap();
    assert_eq!((shown.refusal, shown.fields[0].then.clone()), (None, Some(json!("Todo"))));
    let undone = desk.undo(&receipt).unwrap();
    assert_eq!(desk.desk.read(TASK), NOTE);
    assert_eq!(desk.record(&undone).mapping_sha256, Some(mapping().hash()));

    desk.change(MATTER, &to_done());
    assert_eq!(desk.desk.read(MATTER), "---\nstatus: [✅ done]\n---\n", "a list of one stays one");
    settle(&desk.writer);
    desk.desk.is_tidy();
}

#[test]
fn a_move_writes_the_shortest_link_that_names_the_matter() {
    let notes = [(TASK, NOTE), (MATTER, ""), ("Elsewhere/Shed.md", "")];
    let mut desk = MappedDesk::new(&notes);
    for (to, line) in
        [("Projects/deep/Attic.md", "project: \"[[Attic]]\""), ("Projects/Shed.md", "project: \"[[Projects/Shed]]\"")]
    {
        let receipt = desk.change(TASK, &move_to(to));
        assert_eq!(changed_lines(NOTE, &desk.desk.read(TASK)), [("project: \"[[Roof]]\"", line)]);
        desk.undo(&receipt).unwrap();
        assert_eq!(desk.desk.read(TASK), NOTE);
    }
}

#[test]
fn a_link_that_is_relative_to_the_note_may_be_moved() {
    let note = NOTE.replace("\"[[Roof]]\"", "\"[[../Projects/Roof]]\"");
    let mut desk = MappedDesk::new(&[(TASK, &note), (MATTER, "")]);
    let receipt = desk.change(TASK, &move_to("Projects/Shed.md"));
    let line = ("project: \"[[../Projects/Roof]]\"", "project: \"[[Shed]]\"");
    assert_eq!(changed_lines(&note, &desk.desk.read(TASK)), [line]);
    desk.undo(&receipt).unwrap();
    assert_eq!(desk.desk.read(TASK), note);
}

#[test]
fn what_has_no_property_or_has_a_list_in_its_place_is_left_alone() {
    let mut desk = MappedDesk::new(&[(TASK, NOTE), (MATTER, "---\nlead: Ann\n---\n")]);
    let archive = Mutation::StateChange { to: RecordState::Archived };
    let project = Mutation::Related { field: RelatedField::RelatedProjects, member: "x".into(), present: true };
    assert!(desk.plan(TASK, &archive, Ceiling::Act).is_none());
    assert!(desk.plan(TASK, &project, Ceiling::Act).is_none());
    let listed = NOTE.replace("\"[[Roof]]\"", "[\"[[Roof]]\"]");
    desk.desk.write(TASK, listed.as_bytes());
    let plan = desk.plan(TASK, &move_to("Projects/Shed.md"), Ceiling::Act).unwrap();
    let refused = desk.writer.apply_plan(plan).unwrap_err().to_string();
    assert!(refused.contains("`parent_matter`") && refused.contains("list"), "{refused}");
    assert_eq!(desk.desk.read(TASK), listed);
}

#[test]
fn a_word_that_a_person_wrote_since_is_an_edit_even_if_it_means_the_same() {
    let mut desk = MappedDesk::new(&[(TASK, NOTE), (MATTER, "")]);
    let receipt = desk.change(TASK, &to_done());
    let edited = desk.desk.read(TASK).replace("✅ done", "finished");
    desk.desk.write(TASK, edited.as_bytes());
    let refused = desk.undo(&receipt);
    assert!(
        matches!(&refused, Err(ResolutionError::Refused(ResolutionRefusal::Conflict { fields })) if fields == &["state"])
    );
    assert_eq!(desk.desk.read(TASK), edited);
}

#[test]
fn a_change_is_undone_by_the_words_of_its_own_mapping_and_a_proposal_ends_with_it() {
    let mut desk = MappedDesk::new(&[(TASK, NOTE), (MATTER, "")]);
    desk.writer.accept_mapping(&mapping(), "ann", noon()).unwrap();
    let receipt = desk.change(TASK, &to_done());
    let other = "Aufgaben/Zweite.md";
    desk.desk.write(other, NOTE.as_bytes());
    let plan = desk.plan(other, &to_done(), Ceiling::Confirm).unwrap();
    let pending = desk.writer.apply_plan(plan).unwrap();
    assert_eq!(pending.disposition, Disposition::Pending);

    let desk = desk.remap(mapping_with("erledigt"));
    let confirm = Click::new(ResolutionKind::Confirm, &pending.record, "confirm").ask(&desk.writer);
    assert!(matches!(confirm, Err(ResolutionError::Refused(ResolutionRefusal::OtherMapping { .. }))), "{confirm:?}");
    assert_eq!(desk.desk.read(other), NOTE);
    let waiting = desk.runtime.block_on(desk.index.read().count_records(chrono::Utc::now())).unwrap().pending;
    assert_eq!(waiting, 0, "the proposal has ended");
    desk.undo(&receipt).unwrap();
    assert_eq!(desk.desk.read(TASK), NOTE);

    let mut unknown = desk;
    // A record of an acceptance that anybody could have put there.
    unknown.writer.accept_mapping(&mapping_with("erledigt"), "mallory", noon()).unwrap();
    let receipt = unknown.change(TASK, &to_done());
    assert!(unknown.desk.read(TASK).contains("erledigt"));
    let unknown = unknown.remap(mapping());
    let refused = unknown.undo(&receipt);
    assert!(
        matches!(refused, Err(ResolutionError::Refused(ResolutionRefusal::UnknownMapping { .. }))),
        "nobody accepted that mapping: {refused:?}"
    );
}

#[test]
fn a_forged_recipe_restores_no_other_property() {
    let mut desk = MappedDesk::new(&[(TASK, &NOTE.replace("---\nBody", "secret: a\n---\nBody")), (MATTER, "")]);
    let receipt = desk.change(TASK, &to_done());
    let honest = desk.desk.read(receipt.record.as_str());
    let before = desk.desk.read(TASK);
    for (from, to) in [("property: Status", "property: secret"), ("field: state", "field: owner")] {
        assert!(honest.contains(from), "{honest}");
        desk.desk.write(receipt.record.as_str(), honest.replace(from, to).as_bytes());
        let refused = desk.undo(&receipt);
        assert!(matches!(refused, Err(ResolutionError::Refused(ResolutionRefusal::Record { .. }))), "{refused:?}");
    }
    assert_eq!(desk.desk.read(TASK), before);
}

/// A property as people write it: the name's case, and the form of the value.
fn state_lines() -> impl Strategy<Value = (String, String)> {
    let key = select(vec!["status", "Status", "STATUS", "\"status\""]);
    let form = select(vec![
        ("todo", "✅ done"),
        ("'doing'", "'✅ done'"),
        ("\"Todo\"", "\"✅ done\""),
        ("[todo]", "[✅ done]"),
        ("[ 'DOING' ]", "[ '✅ done' ]"),
        ("  todo   # since May", "  ✅ done   # since May"),
        ("\n  - todo", "\n  - ✅ done"),
        ("\n- \"todo\"", "\n- \"✅ done\""),
        ("todo ", "✅ done "),
    ]);
    (key, form).prop_map(|(key, (before, after))| (format!("{key}: {before}"), format!("{key}: {after}")))
}

/// Lines of properties without a role, in the shapes that public vaults hold.
const OTHER_LINES: [&str; 22] = [
    "categories:",
    "rating: ",
    "genre: []",
    "related: [[Apollo Integration]]",
    "source: PR #73 (fix/prefill)",
    "notes: |\n  1. first\n\n  2. second",
    "summary: >-\n  folded\n  text",
    "created: 2025-08-22T21:58:00.000Z",
    "due_date: 2025-01-10",
    "isbn13: 9780596517748",
    "completion: 100",
    "language_agnostic: true",
    "kanban-plugin: board",
    "imdbId: tt0133093",
    "url: https://example.com/a?b=c#d",
    "author: Sönke Ahrens",
    "aliases:\n  - \"[[Books]]\"\n  - plain",
    "metadata:\n  type: feedback\n  depth: {a: 1}",
    "previous: \"[[2023-06]]\"",
    "# a comment of mine",
    "",
    "attendees: [\"a, b\", 'c: d']",
];

/// The links to a matter, as people and TaskNotes write them, and whether they are a list.
const PARENT_LINES: [(&str, bool); 5] = [
    ("project: \"[[Roof]]\"", false),
    ("project: '[[Projects/Roof|the roof]]' # mine", false),
    ("project:\n  - \"[[Roof]]\"", true),
    ("project: [\"[[roof]]\", \"[[Shed]]\"]", true),
    ("project: Roof", false),
];

/// Ends of notes: with a body, without one, and without a last newline.
const BODIES: [&str; 5] =
    ["\nBody\n", "# Title right here\n- [ ] part\n", "", "no newline at the end", "\n\n---\nnot a fence\n"];

/// Names of notes, as public vaults have them and as people type them.
const NAMES: [&str; 7] = [
    "Conway's Law",
    "2025-08-22 Call (v2)",
    "📌 Plan #1",
    "Mu\u{308}ller anrufen",
    "Überweisung, 50 % [2]",
    " x - y …",
    "AUTOMAGIK_HIVE",
];

/// The lines of a note's frontmatter around the ones that have a role.
fn other_lines() -> impl Strategy<Value = (String, String)> {
    let lines = proptest::sample::subsequence(OTHER_LINES.to_vec(), 0..8);
    (lines, 0..8_usize).prop_map(|(lines, at)| {
        let (above, below) = lines.split_at(at.min(lines.len()));
        let join = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        (join(above), join(below))
    })
}

fn mutations() -> impl Strategy<Value = (bool, Mutation)> {
    let member = select(vec!["[[Bob]]", "Ann", "[[Ann]]", "Ä [[ö]]", "x: y"]);
    let related = (select(vec![RelatedField::RelatedTo, RelatedField::RelatedOrgs]), member, any::<bool>());
    let text = select(vec!["Bob", "a: b", "- x", "it's", "ja", "12"]);
    prop_oneof![
        Just((false, to_done())),
        Just((true, to_done())),
        select(vec![MATTER, "Projects/Shed.md", "Projects/deep/Attic.md"]).prop_map(|to| (false, move_to(to))),
        related
            .prop_map(|(field, member, present)| (false, Mutation::Related { field, member: member.into(), present })),
        (select(vec![ContextField::Owner, ContextField::Summary]), text)
            .prop_map(|(field, to)| (true, Mutation::ContextEdit { field, to: to.into() })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_change_of_a_mapped_note_is_undone_to_the_byte(
        (state, _) in state_lines(),
        (of_matter, mutation) in mutations(),
        crlf in any::<bool>(),
        lead in select(vec!["Ann", "''", "\"\"", "12", "true"]),
        (above, below) in other_lines(),
        ((parent, is_list), body, name) in (select(PARENT_LINES.to_vec()), select(BODIES.to_vec()), select(NAMES.to_vec())),
    ) {
        let task = format!("---\ntags: [task]\n{above}{state}\n{parent}\npeople:\n- \"[[Ann]]\"\n{below}---\n{body}");
        let matter = format!("---\n{above}lead: {lead} # boss\n{state}\n{below}other: [x]\n---\n{body}");
        let task_path = format!("Aufgaben/{name}.md");
        let newline = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        let (task, matter) = (newline(&task), newline(&matter));
        let mut desk = MappedDesk::new(&[(&task_path, &task), (MATTER, &matter)]);
        let (name, before) = if of_matter { (MATTER, &matter) } else { (task_path.as_str(), &task) };
        if let Some(plan) = desk.plan(name, &mutation, Ceiling::Act) {
            let applied = desk.writer.apply_plan(plan);
            if mutation.new_parent().is_some() && is_list {
                prop_assert!(applied.is_err(), "a list of matters is left to its person");
                prop_assert_eq!(&desk.desk.read(name), before);
                return Ok(());
            }
            let receipt = applied.unwrap();
            let changed = desk.desk.read(name);
            prop_assert!(changed.ends_with(&newline(body)) && changed.contains(&newline(&below)), "{changed}");
            if changed != *before {
                let kind = if of_matter { RecordKind::Matter } else { RecordKind::Task };
                let document = frontmatter::read_document(changed.as_bytes()).unwrap();
                let path = RecordPath::parse(name).unwrap();
                let names = desk.runtime.block_on(desk.index.read_note_names()).unwrap();
                let (schema, moves) = (desk.index.note_schema(), desk.index.note_moves());
                let notes = NoteAccess { schema, names: &names, moves: &moves };
                let hash = schema.content_hash(kind, &document, notes.links(&path, noon()));
                prop_assert_eq!(desk.record(&receipt).content_sha256, Some(hash));
                desk.undo(&receipt).unwrap();
            }
            prop_assert_eq!(&desk.desk.read(name), before);
        }
        settle(&desk.writer);
        desk.desk.is_tidy();
    }

    #[test]
    fn a_state_is_written_in_the_notes_own_form((before, after) in state_lines()) {
        let task = NOTE.replace("Status: Todo  # since May", &before);
        let mut desk = MappedDesk::new(&[(TASK, &task), (MATTER, "")]);
        desk.change(TASK, &to_done());
        prop_assert_eq!(desk.desk.read(TASK), task.replace(&before, &after));
    }
}
