//! Changes of all classes and their undos, in any allowed order, restore the bytes.
//!
//! Edits by people in between are kept. An undo is refused exactly if a newer change of the same field or member
//! exists.

use crate::desk::{Click, Desk, live, noon, settle};
use crate::preview::previewed;
use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;
use steward_domain::action::audit::WorkflowRef;
use steward_domain::action::mutation::{ContextField, Mutation, RelatedField};
use steward_domain::action::plan::{ContentHash, Disposition, Plan};
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::entity::{RecordState, SignalEffect};
use steward_domain::record::frontmatter;
use steward_domain::record::path::{RecordKind, RecordPath, parse_link};
use steward_domain::signals::route::{RouteCase, RouteDecision, RouteTarget, StewardWeighing, plan_signal_route};
use steward_domain::signals::signal::{Signal, SignalStatus};
use steward_vault::action::preview::{self, FieldUndoOutcome};
use steward_vault::action::resolve::ResolutionError;
use steward_vault::action::writer::{ActionReceipt, VaultWriter};

const TASK: &str = "task/pay.md";
const MATTER: &str = "matter/house.md";

/// One step of a story.
#[derive(Clone, Debug)]
enum Step {
    Change {
        of_matter: bool,
        mutation: Mutation,
    },
    /// A proposal that is confirmed with another value.
    Chosen {
        of_matter: bool,
        proposed: Mutation,
        chosen: Mutation,
    },
    Undo(Index),
    Human(Edit),
}

/// An edit by a person. It fits into the file whatever changes the other lines had.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Body,
    Comment,
    Other,
}

impl Edit {
    fn of(self, text: &str) -> String {
        match self {
            Self::Body => format!("{text}more words\n"),
            Self::Comment => text.replacen("# mine", "# mine, still", 1),
            Self::Other => text.replacen("tags: [a", "tags: [a, b", 1),
        }
    }
}

/// A field as people write it; empty if it is missing.
fn field(lines: Vec<&'static str>) -> BoxedStrategy<&'static str> {
    select(lines).boxed()
}

fn related(name: &'static str) -> BoxedStrategy<String> {
    select(vec![
        "",
        "F: []\n",
        "F: [Ann, \"[[Bob]]\"] # flow\n",
        "F:\n  - Ann # first\n\n  # then\n  - '[[Bob]]'\n",
        "F:\n- Ann\n- Bob\n",
        "F:\n",
        "F: [[Ann]]\n",
    ])
    .prop_map(move |lines| lines.replace('F', name))
    .boxed()
}

fn file(kind: &'static str, own: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let state = field(vec!["", "state: open # since May\n", "state: 'open'\n", "state: Open\n"]);
    let related = (related("related_to"), related("related_orgs"));
    (state, own, related, any::<bool>(), any::<bool>())
        .prop_map(move |(state, own, (to, orgs), crlf, bom)| {
            let head = format!("---\ntype: {kind}\nname: N # mine\n{state}{to}{own}tags: [a]\n{orgs}");
            let text = format!("{head}---\n\nBody\n");
            let text = if crlf { text.replace('\n', "\r\n") } else { text };
            if bom { format!("\u{feff}{text}") } else { text }
        })
        .boxed()
}

fn task() -> BoxedStrategy<String> {
    let parent = vec![
        "parent_matter: \"[[matter/house]]\"  # home\n",
        "parent_matter: house\n",
        "parent_matter: 'matter/house.md'\n",
    ];
    file("task", field(parent).prop_map(str::to_owned).boxed())
}

fn matter() -> BoxedStrategy<String> {
    let summary = field(vec!["", "summary: \"it's fine\" # so far\n", "summary: >\n  long\n  text\n", "summary:\n"]);
    let owner = field(vec!["", "owner: ann\n", "owner: 7\n"]);
    file("matter", (summary, owner).prop_map(|(s, o)| format!("{s}{o}")).boxed())
}

fn mutation(of_matter: bool) -> BoxedStrategy<Mutation> {
    let member = select(vec!["Ann", "[[Bob]]", "[[Eve]]", "Zoe: Z"]);
    let fields = select(vec![RelatedField::RelatedTo, RelatedField::RelatedOrgs, RelatedField::RelatedProjects]);
    let related = (fields, member, any::<bool>()).prop_map(|(field, member, present)| Mutation::Related {
        field,
        member: member.into(),
        present,
    });
    let state = select(vec![RecordState::Done, RecordState::Archived]).prop_map(|to| Mutation::StateChange { to });
    let own = if of_matter {
        (select(ContextField::ALL.to_vec()), select(vec!["new words", "50%: yes", "ann"]))
            .prop_map(|(field, to)| Mutation::ContextEdit { field, to: to.into() })
            .boxed()
    } else {
        let to = select(vec!["matter/house.md", "matter/shed.md", "matter/farm.md"]);
        to.prop_map(|to| Mutation::ParentMatter { to: RecordPath::parse(to).unwrap() }).boxed()
    };
    prop_oneof![3 => related, 1 => state, 2 => own].boxed()
}

/// A proposal, and what may be chosen instead.
fn chosen(of_matter: bool) -> BoxedStrategy<(Mutation, Mutation)> {
    let value = |mutation: &Mutation| match mutation {
        Mutation::StateChange { .. } => select(vec!["open", "done", "archived"]),
        Mutation::ContextEdit { .. } => select(vec!["new words", "my: words", "ann"]),
        Mutation::ParentMatter { .. } => select(vec!["house", "shed", "farm"]),
        Mutation::Related { .. } => select(vec!["Ann", "[[Bob]]", "Kim: K"]),
    };
    let both = move |proposed: Mutation| {
        value(&proposed).prop_map(move |text| (proposed.clone(), proposed.with_value(text).unwrap()))
    };
    mutation(of_matter).prop_flat_map(both).boxed()
}

fn steps(with_humans: bool) -> BoxedStrategy<Vec<Step>> {
    let change = any::<bool>()
        .prop_flat_map(|of_matter| mutation(of_matter).prop_map(move |mutation| Step::Change { of_matter, mutation }));
    let chosen = any::<bool>().prop_flat_map(|of_matter| {
        chosen(of_matter).prop_map(move |(proposed, chosen)| Step::Chosen { of_matter, proposed, chosen })
    });
    let undo = any::<Index>().prop_map(Step::Undo);
    let human = select(vec![Edit::Body, Edit::Comment, Edit::Other]).prop_map(Step::Human);
    let weight = u32::from(with_humans);
    proptest::collection::vec(prop_oneof![3 => change, 2 => chosen, 2 => undo, weight => human], 1..14).boxed()
}

/// The vault of a story, and the changes so far.
struct Story {
    desk: Desk,
    writer: VaultWriter,
    moment: i64,
    /// The changes that are not undone, newest last.
    standing: Vec<(Touched, ActionReceipt)>,
}

/// The file and the field of a change and, in a set, the member.
type Touched = (&'static str, &'static str, Option<String>);

fn touched(name: &'static str, mutation: &Mutation) -> Touched {
    let member = match mutation {
        Mutation::Related { member, .. } => frontmatter::member_name(&member.as_str().into()).map(str::to_owned),
        _ => None,
    };
    (name, mutation.field(), member)
}

/// The router's plan for a signal that is decided this many seconds after noon; `None` if it skips the signal.
pub(crate) fn route_signal(signal: &Signal, target: &RouteTarget, moment: i64, ceiling: Ceiling) -> Option<Plan> {
    let routed = plan_signal_route(&RouteCase {
        reference: &RecordPath::new(RecordKind::Signal, &format!("s{moment}")).unwrap(),
        signal,
        target: Some(target),
        new_parent: Some(RecordState::Open),
        claim: None,
        weighing: StewardWeighing::Until(noon()),
        doubt: None,
        observations: 60,
        ceiling,
        policy: &live(),
        matter_policies: &[],
        workflow: WorkflowRef { id: "al-signal-router".into(), run_id: "run".into() },
        at: noon(),
        decided_at: noon() + TimeDelta::seconds(moment),
    });
    match routed {
        RouteDecision::Planned(plan) => Some(*plan),
        RouteDecision::QuestionPlanned(_) | RouteDecision::Skipped(_) => None,
    }
}

impl Story {
    fn begin(task: &str, matter: &str) -> Self {
        let desk = Desk::new();
        desk.write(TASK, task.as_bytes());
        desk.write(MATTER, matter.as_bytes());
        for other in ["shed", "farm"] {
            desk.write(&format!("matter/{other}.md"), b"---\ntype: matter\n---\n");
        }
        let writer = desk.writer();
        Self { desk, writer, moment: 0, standing: Vec::new() }
    }

    /// A plan from a signal; `None` if the router skips it.
    fn plan(&mut self, name: &'static str, mutation: &Mutation, ceiling: Ceiling) -> Option<Plan> {
        self.moment += 1;
        let (text, path) = (self.desk.read(name), RecordPath::parse(name).unwrap());
        let fields = frontmatter::read_document(text.as_bytes()).unwrap().fields().clone();
        // The target always counts as open, so that the story continues after a task is done.
        let target = RouteTarget {
            path: path.clone(),
            kind: path.folder_kind().unwrap(),
            parent: fields.get("parent_matter").and_then(|link| parse_link(RecordKind::Matter, link.as_str()?).ok()),
            state: RecordState::Open,
            snoozed_until: None,
            has_twin: false,
            hash: ContentHash::hash_bytes(text.as_bytes()),
            fields,
            is_writable: true,
        };
        let signal = signal(path, mutation.clone());
        route_signal(&signal, &target, self.moment, ceiling)
    }

    fn change(&mut self, name: &'static str, mutation: &Mutation) {
        let Some(plan) = self.plan(name, mutation, Ceiling::Act) else { return };
        let before = self.desk.read(name);
        let receipt = self.writer.apply_plan(plan.clone()).unwrap();
        let after = self.desk.read(name);
        assert!(self.writer.apply_plan(plan).unwrap().repeated, "twice is once");
        assert_eq!(self.desk.read(name), after);
        if after != before {
            self.standing.push((touched(name, mutation), receipt));
        }
    }

    fn choose(&mut self, name: &'static str, proposed: &Mutation, chosen: &Mutation) {
        let Some(plan) = self.plan(name, proposed, Ceiling::Confirm) else { return };
        let (pending, before) = (self.writer.apply_plan(plan).unwrap(), self.desk.read(name));
        assert_eq!(pending.disposition, Disposition::Pending);
        let run = format!("choose-{}", self.moment);
        let click = Click::new(ResolutionKind::Confirm, &pending.record, &run);
        // It must be later than its action, because a follower is named after its moment.
        let now = noon() + TimeDelta::milliseconds(1_000 * self.moment + 500);
        let click = Click { edited: Some(chosen.clone()), now, ..click };
        match click.ask(&self.writer) {
            Ok(receipt) => {
                let record = &self.desk.records()[receipt.record.as_str()];
                let edited = record.draft.resolution.as_ref().unwrap().edited;
                assert_eq!((edited, &record.draft.proposal.as_ref().unwrap().mutation), (chosen != proposed, chosen));
                assert_eq!(click.ask(&self.writer).unwrap(), ActionReceipt { repeated: true, ..receipt.clone() });
                if self.desk.read(name) != before {
                    self.standing.push((touched(name, chosen), receipt));
                }
            }
            Err(ResolutionError::Refused(refusal @ ResolutionRefusal::NotAnEdit { .. })) => {
                assert!(refusal.to_string().contains("has this value already"), "{refusal}");
                assert_eq!(self.desk.read(name), before);
            }
            Err(e) => panic!("{e}"),
        }
    }

    /// Undoes any change. If that is refused, undoes the newer change that the refusal names.
    fn undo(&mut self, which: Index) {
        if self.standing.is_empty() {
            return;
        }
        let at = which.index(self.standing.len());
        let (touched, receipt) = self.standing[at].clone();
        let newest = self.standing.iter().rposition(|(other, _)| *other == touched).unwrap();
        let before = (self.desk.read(TASK), self.desk.read(MATTER), self.desk.records().len());
        match self.click(&receipt) {
            Ok(_) => assert_eq!(newest, at, "a newer change of {touched:?} stands"),
            Err(ResolutionError::Refused(refusal @ ResolutionRefusal::NotTheNewest { .. })) => {
                assert_ne!(newest, at, "{touched:?}: {refusal}");
                assert!(refusal.to_string().contains(self.standing[newest].1.id.as_str()), "{refusal}");
                assert_eq!((self.desk.read(TASK), self.desk.read(MATTER), self.desk.records().len()), before);
                let named = self.standing[newest].1.clone();
                self.click(&named).unwrap();
            }
            other => panic!("{other:?}"),
        }
        self.standing.remove(newest);
    }

    fn click(&mut self, receipt: &ActionReceipt) -> Result<ActionReceipt, ResolutionError> {
        self.moment += 1;
        let run = format!("undo-{}", self.moment);
        previewed(&self.desk, &self.writer, &Click::new(ResolutionKind::Undo, &receipt.record, &run))
    }

    fn human(&self, edit: Edit) {
        for name in [TASK, MATTER] {
            self.desk.write(name, edit.of(&self.desk.read(name)).as_bytes());
        }
    }

    fn tell(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Change { of_matter: true, mutation } => self.change(MATTER, mutation),
                Step::Change { of_matter: false, mutation } => self.change(TASK, mutation),
                Step::Chosen { of_matter: true, proposed, chosen } => self.choose(MATTER, proposed, chosen),
                Step::Chosen { of_matter: false, proposed, chosen } => self.choose(TASK, proposed, chosen),
                Step::Undo(which) => self.undo(*which),
                Step::Human(edit) => self.human(*edit),
            }
        }
    }

    fn undo_all(&mut self, order: &[Index]) {
        for which in order.iter().cycle() {
            if self.standing.is_empty() {
                return;
            }
            self.undo(*which);
        }
    }

    fn end(self) {
        settle(&self.writer);
        self.desk.is_tidy();
    }
}

pub(crate) fn signal(target: RecordPath, mutation: Mutation) -> Signal {
    Signal {
        created: noon(),
        source_event: None,
        origin_at: None,
        source_type: "mail:bank".into(),
        raw_quote: "so it is".into(),
        target_kind: target.folder_kind().unwrap_or(RecordKind::Task),
        target: Some(target),
        target_confidence: 0.97,
        candidates: Vec::new(),
        effect: SignalEffect::Mutation,
        proposal: Some(mutation),
        effect_confidence: 0.97,
        reasoning: String::new(),
        status: SignalStatus::Unrouted,
        reason: None,
    }
}

fn order() -> BoxedStrategy<Vec<Index>> {
    proptest::collection::vec(any::<Index>(), 1..8).boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_sequence_and_its_undos_give_the_bytes_back(
        task in task(), matter in matter(), steps in steps(false), order in order(),
    ) {
        let mut story = Story::begin(&task, &matter);
        story.tell(&steps);
        story.undo_all(&order);
        prop_assert_eq!(story.desk.read(TASK), task);
        prop_assert_eq!(story.desk.read(MATTER), matter);
        story.end();
    }

    #[test]
    fn what_humans_edit_in_between_stays(
        task in task(), matter in matter(), steps in steps(true), order in order(),
    ) {
        let mut story = Story::begin(&task, &matter);
        story.tell(&steps);
        story.undo_all(&order);
        let edited = |text: &str| steps.iter().fold(text.to_owned(), |text, step| match step {
            Step::Human(edit) => edit.of(&text),
            Step::Change { .. } | Step::Chosen { .. } | Step::Undo(_) => text,
        });
        prop_assert_eq!(story.desk.read(TASK), edited(&task));
        prop_assert_eq!(story.desk.read(MATTER), edited(&matter));
        story.end();
    }

    #[test]
    fn a_set_is_given_back_in_whatever_order_its_members_are_taken_back(
        task in task(), members in proptest::collection::vec((members(), any::<bool>(), any::<Index>()), 1..14),
        order in order(),
    ) {
        let mut story = Story::begin(&task, "---\ntype: matter\n---\n");
        for (mutation, undo, which) in members {
            story.change(TASK, &mutation);
            if undo {
                story.undo(which);
            }
        }
        story.undo_all(&order);
        prop_assert_eq!(story.desk.read(TASK), task);
        story.end();
    }
}

fn members() -> BoxedStrategy<Mutation> {
    let member = select(vec!["Ann", "[[Bob]]", "[[Eve]]", "Zoe: Z", "Kim", "Lou"]);
    let related = |(member, present): (&str, bool)| Mutation::Related {
        field: RelatedField::RelatedTo,
        member: member.into(),
        present,
    };
    (member, any::<bool>()).prop_map(related).boxed()
}

/// Two changes of one field. In some tests the second restores the value before the first.
fn there_and_back(task: &str, changes: [Mutation; 2]) -> (Story, ActionReceipt, ActionReceipt) {
    let mut story = Story::begin(task, "---\ntype: matter\n---\n");
    for change in &changes {
        story.change(TASK, change);
    }
    let [(_, first), (_, second)] = <[_; 2]>::try_from(story.standing.clone()).unwrap();
    (story, first, second)
}

fn member(member: &str, present: bool) -> Mutation {
    Mutation::Related { field: RelatedField::RelatedTo, member: member.into(), present }
}

#[test]
fn the_older_of_two_changes_is_not_undone_before_the_newer() {
    let to = |to: &str| Mutation::ParentMatter { to: RecordPath::parse(to).unwrap() };
    for (line, changes) in [
        ("parent_matter: matter/house", [to("matter/farm.md"), to("matter/house.md")]),
        ("related_to: [Ann]", [member("Ann", false), member("[[Ann]]", true)]),
    ] {
        let task = format!("---\ntype: task\nname: N\n{line}\n---\n");
        let (mut story, first, second) = there_and_back(&task, changes);
        match story.click(&first) {
            Err(ResolutionError::Refused(refusal)) => {
                assert_eq!(refusal.http_status(), 409);
                let says = format!("{} is not the newest change of ", first.id);
                let first_undo = format!("undo {} first", second.id);
                assert!(refusal.to_string().starts_with(&says), "{refusal}");
                assert!(refusal.to_string().ends_with(&first_undo), "{refusal}");
            }
            other => panic!("{other:?}"),
        }
        story.click(&second).unwrap();
        story.click(&first).unwrap();
        assert_eq!(story.desk.read(TASK), task);
        story.end();
    }
}

#[test]
fn the_line_that_the_owner_wrote_outlives_the_last_member() {
    let task = "---\ntype: task\nname: N\nrelated_to:\nparent_matter: house\n---\n";
    let (mut story, eve, zoe) = there_and_back(task, [member("Eve", true), member("Zoe", true)]);
    story.click(&eve).unwrap();
    assert_eq!(story.desk.read(TASK), task.replace("related_to:\n", "related_to:\n  - Zoe\n"));
    story.click(&zoe).unwrap();
    assert_eq!(story.desk.read(TASK), task);
    story.end();
}

#[test]
fn a_humans_member_and_comment_among_ours_stay() {
    let task = "---\ntype: task\nname: N\nrelated_to:\n  - Ann\nparent_matter: house\n---\n";
    let (mut story, ann, zoe) = there_and_back(task, [member("Ann", false), member("Zoe", true)]);
    let edited = story.desk.read(TASK).replace("[Zoe]", "[Zoe, Kim] # mine");
    story.desk.write(TASK, edited.as_bytes());
    story.click(&zoe).unwrap();
    assert_eq!(story.desk.read(TASK), edited.replace("Zoe, ", ""));
    story.click(&ann).unwrap();
    let text = story.desk.read(TASK);
    assert!(text.contains("Kim") && text.contains("Ann") && text.contains("] # mine\n"), "{text}");
    story.end();
}

#[test]
fn what_is_in_the_way_but_cannot_be_read_is_named() {
    let (mut story, eve, zoe) = there_and_back("---\ntype: task\n---\n", [member("Eve", true), member("Zoe", true)]);
    let record = story.desk.read(zoe.record.as_str());
    story.desk.write(zoe.record.as_str(), b"---\ntype: note\n---\n");
    match story.click(&eve) {
        Err(ResolutionError::Refused(refusal)) => {
            assert_eq!(refusal.http_status(), 422);
            assert!(refusal.to_string().contains(zoe.record.as_str()), "{refusal}");
        }
        other => panic!("{other:?}"),
    }
    story.desk.write(zoe.record.as_str(), record.as_bytes());
    story.change(MATTER, &Mutation::ContextEdit { field: ContextField::Owner, to: "bob".into() });
    // A record of an older decision does not block the undo, even if it cannot be read.
    let older = story.desk.read(eve.record.as_str());
    story.desk.write(eve.record.as_str(), b"---\ntype: note\n---\n");
    story.click(&zoe).unwrap();
    story.desk.write(eve.record.as_str(), older.as_bytes());
    story.click(&eve).unwrap();
}

#[test]
fn a_humans_own_value_on_top_of_ours_is_a_conflict_and_stays() {
    let text = "---\ntype: matter\nowner: ann\n---\n";
    let mut story = Story::begin("---\ntype: task\nparent_matter: house\n---\n", text);
    story.change(MATTER, &Mutation::ContextEdit { field: ContextField::Owner, to: "bob".into() });
    let receipt = story.standing[0].1.clone();
    let human = text.replace("ann", "zoe");
    story.desk.write(MATTER, human.as_bytes());
    match story.click(&receipt) {
        Err(ResolutionError::Refused(ResolutionRefusal::Conflict { fields })) => assert_eq!(fields, ["owner"]),
        other => panic!("{other:?}"),
    }
    assert_eq!(story.desk.read(MATTER), human);
    story.end();
}

#[test]
fn a_member_that_a_human_took_out_again_is_shown_as_gone_and_an_undo_leaves_the_set_alone() {
    let task = "---\ntype: task\nname: N\nrelated_to:\n  - Ann\nparent_matter: house\n---\n";
    let mut story = Story::begin(task, "---\ntype: matter\n---\n");
    story.change(TASK, &member("Zoe", true));
    let receipt = story.standing[0].1.clone();
    let by_hand = task.replace("- Ann", "- Ann\n  - Kim # mine");
    story.desk.write(TASK, by_hand.as_bytes());
    let shown = preview::preview_undo(story.writer.root(), None, &receipt.record, noon()).unwrap();
    assert_eq!(
        (shown.fields[0].fate, &shown.fields[0].now),
        (FieldUndoOutcome::AsBefore, &Some(json!(["Ann", "Kim"])))
    );
    story.click(&receipt).unwrap();
    assert_eq!(story.desk.read(TASK), by_hand);
    story.end();
}
