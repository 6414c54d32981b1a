//! Changes of all classes and their undos, in any legal order, give the bytes back; what humans edit
//! in between stays.

use crate::desk::{Click, Desk, live, noon, settle};
use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::collections::BTreeMap;
use steward_domain::audit::WorkflowRef;
use steward_domain::frontmatter;
use steward_domain::mode::Ceiling;
use steward_domain::mutation::{ContextField, Mutation, RelatedField};
use steward_domain::path::{RecordKind, RecordPath};
use steward_domain::plan::{ContentHash, Plan};
use steward_domain::record::{Effect, State};
use steward_domain::route::{Route, RouteCase, Target, Weighing, route};
use steward_domain::signal::{Signal, SignalStatus};
use steward_domain::undo::{AnswerKind, Refusal};
use steward_vault::answer::AnswerError;
use steward_vault::keeper::{Keeper, Receipt};

const TASK: &str = "task/pay.md";
const MATTER: &str = "matter/house.md";

/// One step of a story.
#[derive(Clone, Debug)]
enum Step {
    Change { of_matter: bool, mutation: Mutation },
    Undo(Index),
    Human(Edit),
}

/// A human's edit, which finds its place in the file whatever we did to the other lines.
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

/// A field as people write it; empty where it is missing.
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
    let state = select(vec![State::Done, State::Archived]).prop_map(|to| Mutation::StateChange { to });
    let own = if of_matter {
        (select(ContextField::ALL.to_vec()), select(vec!["new words", "50%: yes", "ann"]))
            .prop_map(|(field, to)| Mutation::ContextEdit { field, to: to.into() })
            .boxed()
    } else {
        let to = select(vec!["matter/shed.md", "matter/farm.md"]);
        to.prop_map(|to| Mutation::ParentMatter { to: RecordPath::parse(to).unwrap() }).boxed()
    };
    prop_oneof![3 => related, 1 => state, 2 => own].boxed()
}

fn steps(with_humans: bool) -> BoxedStrategy<Vec<Step>> {
    let change = any::<bool>()
        .prop_flat_map(|of_matter| mutation(of_matter).prop_map(move |mutation| Step::Change { of_matter, mutation }));
    let undo = any::<Index>().prop_map(Step::Undo);
    let human = select(vec![Edit::Body, Edit::Comment, Edit::Other]).prop_map(Step::Human);
    let weight = u32::from(with_humans);
    proptest::collection::vec(prop_oneof![3 => change, 2 => undo, weight => human], 1..14).boxed()
}

/// The vault under a story, and what it has done so far.
struct Story {
    desk: Desk,
    keeper: Keeper,
    moment: i64,
    /// By file and field, the changes that stand, the newest last.
    standing: BTreeMap<(&'static str, &'static str), Vec<Receipt>>,
}

impl Story {
    fn begin(task: &str, matter: &str) -> Self {
        let desk = Desk::new();
        desk.write(TASK, task.as_bytes());
        desk.write(MATTER, matter.as_bytes());
        let keeper = desk.keeper();
        Self { desk, keeper, moment: 0, standing: BTreeMap::new() }
    }

    /// A plan from a signal; none where the router skips it.
    fn plan(&mut self, name: &'static str, mutation: &Mutation) -> Option<Plan> {
        self.moment += 1;
        let (text, path) = (self.desk.read(name), RecordPath::parse(name).unwrap());
        let fields = frontmatter::read(text.as_bytes()).unwrap().fields().clone();
        // The story goes on where a task is done: undo has to find its way there too.
        let target = Target {
            path: path.clone(),
            state: State::Open,
            snoozed_until: None,
            has_twin: false,
            hash: ContentHash::of(text.as_bytes()),
            fields,
        };
        let signal = signal(path, mutation.clone());
        let routed = route(&RouteCase {
            reference: &RecordPath::new(RecordKind::Signal, &format!("s{}", self.moment)).unwrap(),
            signal: &signal,
            target: Some(&target),
            new_parent: Some(State::Open),
            claim: None,
            weighing: Weighing::Until(noon()),
            observations: 60,
            ceiling: Ceiling::Act,
            policy: &live(),
            workflow: WorkflowRef { id: "al-signal-router".into(), run_id: "run".into() },
            at: noon(),
            decided_at: noon() + TimeDelta::seconds(self.moment),
        });
        match routed {
            Route::Planned(plan) => Some(*plan),
            Route::Skipped(_) => None,
        }
    }

    fn change(&mut self, name: &'static str, mutation: &Mutation) {
        let Some(plan) = self.plan(name, mutation) else { return };
        let before = self.desk.read(name);
        let receipt = self.keeper.apply(plan.clone()).unwrap();
        let after = self.desk.read(name);
        assert!(self.keeper.apply(plan).unwrap().repeated, "twice is once");
        assert_eq!(self.desk.read(name), after);
        if after != before {
            self.standing.entry((name, mutation.field())).or_default().push(receipt);
        }
    }

    /// Takes the newest change of some field back.
    fn undo(&mut self, which: Index) {
        let keys: Vec<_> = self.standing.iter().filter(|(_, all)| !all.is_empty()).map(|(key, _)| *key).collect();
        if keys.is_empty() {
            return;
        }
        let key = keys[which.index(keys.len())];
        let receipt = self.standing.get_mut(&key).and_then(Vec::pop).unwrap();
        self.click(&receipt).unwrap();
    }

    fn click(&mut self, receipt: &Receipt) -> Result<Receipt, AnswerError> {
        self.moment += 1;
        let run = format!("undo-{}", self.moment);
        Click::new(AnswerKind::Undo, &receipt.record, &run).ask(&self.keeper)
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
                Step::Undo(which) => self.undo(*which),
                Step::Human(edit) => self.human(*edit),
            }
        }
    }

    fn undo_all(&mut self, order: &[Index]) {
        for which in order.iter().cycle() {
            if self.standing.values().all(Vec::is_empty) {
                return;
            }
            self.undo(*which);
        }
    }

    fn end(self) {
        settle(&self.keeper);
        self.desk.is_tidy();
    }
}

fn signal(target: RecordPath, mutation: Mutation) -> Signal {
    Signal {
        created: noon(),
        source_event: None,
        origin_at: None,
        source_type: "mail:bank".into(),
        raw_quote: "so it is".into(),
        target: Some(target),
        target_confidence: 0.97,
        candidates: Vec::new(),
        effect: Effect::Mutation,
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

/// The members of every set of a file, in no order.
fn sets(text: &str) -> BTreeMap<&'static str, Vec<String>> {
    let fields = frontmatter::read(text.as_bytes()).unwrap().fields().clone();
    let of = |field: &RelatedField| {
        let items = frontmatter::members(fields.get(field.word())).unwrap();
        let mut names: Vec<String> =
            items.iter().map(|item| frontmatter::member_name(item).unwrap().to_owned()).collect();
        names.sort();
        (field.word(), names)
    };
    RelatedField::ALL.iter().map(of).collect()
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
            Step::Change { .. } | Step::Undo(_) => text,
        });
        prop_assert_eq!(story.desk.read(TASK), edited(&task));
        prop_assert_eq!(story.desk.read(MATTER), edited(&matter));
        story.end();
    }

    #[test]
    fn a_set_is_given_back_in_whatever_order_its_changes_are_taken_back(
        task in task(), steps in steps(false), order in order(),
    ) {
        let mut story = Story::begin(&task, "---\ntype: matter\n---\n");
        for step in &steps {
            if let Step::Change { mutation: mutation @ Mutation::Related { .. }, .. } = step {
                story.change(TASK, mutation);
            }
        }
        let mut all: Vec<Receipt> = std::mem::take(&mut story.standing).into_values().flatten().collect();
        // Two changes of one member cancel each other only in their own order.
        let mut seen = Vec::new();
        all.retain(|receipt| {
            let record = &story.desk.records()[receipt.record.as_str()];
            let Some(Mutation::Related { field, member, .. }) = record.draft.proposal.clone().map(|p| p.mutation) else {
                return false;
            };
            let key = (field.word(), frontmatter::member_name(&member.into()).unwrap().to_owned());
            let first = !seen.contains(&key);
            seen.push(key);
            first
        });
        prop_assume!(seen.len() == all.len());
        for which in order.iter().cycle() {
            if all.is_empty() {
                break;
            }
            let receipt = all.remove(which.index(all.len()));
            story.click(&receipt).unwrap();
        }
        prop_assert_eq!(sets(&story.desk.read(TASK)), sets(&task));
        story.end();
    }
}

#[test]
fn a_humans_own_value_on_top_of_ours_is_a_conflict_and_stays() {
    let text = "---\ntype: matter\nowner: ann\n---\n";
    let mut story = Story::begin("---\ntype: task\nparent_matter: house\n---\n", text);
    story.change(MATTER, &Mutation::ContextEdit { field: ContextField::Owner, to: "bob".into() });
    let receipt = story.standing[&(MATTER, "owner")][0].clone();
    let human = text.replace("ann", "zoe");
    story.desk.write(MATTER, human.as_bytes());
    match story.click(&receipt) {
        Err(AnswerError::Refused(Refusal::Conflict { fields })) => assert_eq!(fields, ["owner"]),
        other => panic!("{other:?}"),
    }
    assert_eq!(story.desk.read(MATTER), human);
    story.end();
}
