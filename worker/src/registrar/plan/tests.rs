//! The planner against tables and against any vault and any server.

use super::super::apply;
use super::*;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use steward_vault::identity::{VaultIdentity, VaultPlace};
use temporalio_common::protos::temporal::api::schedule::v1 as spb;

fn path(slug: &str) -> RecordPath {
    RecordPath::new(RecordKind::Matter, slug).unwrap()
}

fn matter(slug: &str, standing: Standing) -> WantedMatter {
    WantedMatter { path: path(slug), standing, interval_seconds: 0 }
}

fn right(slug: &str) -> spb::Schedule {
    facts::desired(&path(slug), 1800, &Settings::default())
}

fn described(slug: &str, schedule: &spb::Schedule) -> KnownSchedule {
    let state = schedule.state.clone().unwrap_or_default();
    KnownSchedule {
        id: facts::schedule_id(slug),
        workflow_type: facts::workflow_type(schedule).to_owned(),
        paused: state.paused,
        note: state.notes,
        mark: facts::mark_of(schedule.spec.as_ref()),
        contents: Contents::Described(Facts::of(schedule)),
    }
}

fn listed(slug: &str, schedule: &spb::Schedule) -> KnownSchedule {
    let cadence = facts::cadence(schedule.spec.as_ref());
    KnownSchedule { contents: Contents::Listed { cadence }, ..described(slug, schedule) }
}

fn paused(slug: &str, note: &str) -> KnownSchedule {
    KnownSchedule { paused: true, note: note.to_owned(), ..described(slug, &right(slug)) }
}

fn verbs(matters: &[WantedMatter], known: &[KnownSchedule]) -> Vec<Verb> {
    plan(matters, known, &Settings::default()).steps.into_iter().map(|step| step.verb).collect()
}

#[test]
fn a_matter_without_a_schedule_gets_one_and_a_done_one_a_paused_one() {
    assert_eq!(verbs(&[matter("farm", Standing::Open)], &[]), [Verb::Create { paused: false }]);
    assert_eq!(verbs(&[matter("farm", Standing::Done)], &[]), [Verb::Create { paused: true }]);
    assert_eq!(verbs(&[matter("farm", Standing::Archived)], &[]), []);
    assert!(matches!(verbs(&[matter("farm", Standing::Unreadable)], &[])[..], [Verb::Keep { .. }]));
}

#[test]
fn a_schedule_that_is_right_is_unchanged() {
    for known in [described("farm", &right("farm")), listed("farm", &right("farm"))] {
        assert_eq!(verbs(&[matter("farm", Standing::Open)], &[known]), [Verb::Unchanged]);
    }
}

#[test]
fn every_real_difference_is_updated_and_named() {
    let settings = Settings { task_queue: "other".into(), ..Settings::default() };
    let mut schedule = facts::desired(&path("garden"), 3600, &settings);
    schedule.policies.get_or_insert_default().catchup_window = None;
    let [Verb::Update { differences }] = &verbs(&[matter("farm", Standing::Open)], &[described("farm", &schedule)])[..]
    else {
        panic!("not an update");
    };
    let named: Vec<&str> = differences.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(named, ["cadence", "workflow id", "argument", "task queue", "catch-up window", "summary"]);
    assert!(differences.contains(&"task queue: other → steward".to_owned()), "{differences:?}");
    assert!(differences.contains(&r#"argument: "matter/garden.md" → "matter/farm.md""#.to_owned()), "{differences:?}");
}

#[test]
fn every_fact_of_ours_is_compared_and_adopted() {
    let wanted = right("farm");
    let mut empty = spb::Schedule::default();
    assert_eq!(Facts::of(&empty).differences(&Facts::of(&wanted)).len(), 11);
    facts::adopt(&mut empty, &wanted);
    assert_eq!(Facts::of(&empty), Facts::of(&wanted));
    let mut other =
        facts::desired(&path("garden"), 60, &Settings { task_queue: "other".into(), ..Settings::default() });
    facts::adopt(&mut other, &wanted);
    facts::set_mark(&mut other, "al-steward-farm", None);
    assert_eq!(other, wanted);
}

#[test]
fn what_people_added_to_a_schedule_is_neither_compared_nor_touched() {
    let mut schedule = right("farm");
    schedule.spec.get_or_insert_default().jitter = std::time::Duration::from_secs(60).try_into().ok();
    schedule.policies.get_or_insert_default().pause_on_failure = true;
    schedule.state = Some(spb::ScheduleState { limited_actions: true, remaining_actions: 3, ..Default::default() });
    assert_eq!(verbs(&[matter("farm", Standing::Open)], &[described("farm", &schedule)]), [Verb::Unchanged]);
    let before = schedule.clone();
    facts::adopt(&mut schedule, &right("farm"));
    assert_eq!(schedule, before);
}

#[test]
fn a_pause_made_by_a_person_is_kept_through_updates_and_standings() {
    for standing in [Standing::Open, Standing::Done] {
        let steps = verbs(&[matter("farm", standing)], &[paused("farm", "harvest")]);
        assert_eq!(steps, [Verb::Keep { why: "paused by a person: harvest".into() }]);
    }
    let mut drifted = paused("farm", "harvest");
    drifted.contents = Contents::Described(Facts::of(&right("garden")));
    assert!(matches!(verbs(&[matter("farm", Standing::Open)], &[drifted])[..], [Verb::Update { .. }]));
}

#[test]
fn a_done_matter_is_paused_and_resumed_when_it_is_open_again() {
    let running = described("farm", &right("farm"));
    assert_eq!(verbs(&[matter("farm", Standing::Done)], &[running]), [Verb::Pause]);
    assert_eq!(verbs(&[matter("farm", Standing::Done)], &[paused("farm", DONE_NOTE)]), [Verb::Unchanged]);
    assert_eq!(verbs(&[matter("farm", Standing::Open)], &[paused("farm", DONE_NOTE)]), [Verb::Resume]);
}

#[test]
fn an_update_and_a_pause_of_one_schedule_follow_one_another() {
    let steps = verbs(
        &[matter("farm", Standing::Done)],
        &[described("farm", &facts::desired(&path("farm"), 60, &Settings::default()))],
    );
    assert!(matches!(steps[..], [Verb::Update { .. }, Verb::Pause]), "{steps:?}");
}

#[test]
fn schedules_of_archived_and_deleted_matters_are_deleted() {
    let known = [described("old", &right("old")), described("gone", &right("gone"))];
    let plan = plan(&[matter("farm", Standing::Open), matter("old", Standing::Archived)], &known, &Settings::default());
    let verbs: Vec<(&str, &Verb)> = plan.steps.iter().map(|step| (step.matter.slug(), &step.verb)).collect();
    assert_eq!(verbs, [("farm", &Verb::Create { paused: false }), ("gone", &Verb::Delete), ("old", &Verb::Delete)]);
}

#[test]
fn the_schedule_of_an_unreadable_matter_is_not_touched() {
    let wrong = described("farm", &right("garden"));
    let steps = verbs(&[matter("farm", Standing::Unreadable)], &[wrong]);
    assert_eq!(steps, [Verb::Keep { why: "matter/farm.md cannot be read".into() }]);
}

#[test]
fn an_empty_list_of_matters_does_nothing_and_warns_even_when_confirmed() {
    let settings = Settings { operator_confirmed: true, ..Settings::default() };
    let plan = plan(&[], &[described("farm", &right("farm"))], &settings);
    assert!(plan.steps.is_empty());
    assert_eq!(plan.warnings.len(), 1);
}

#[test]
fn deletions_above_the_budget_wait_and_the_rest_goes_on() {
    let known: Vec<KnownSchedule> = ["a", "b", "c", "d"].iter().map(|slug| described(slug, &right(slug))).collect();
    let matters = [matter("new", Standing::Open)];
    let held = plan(&matters, &known, &Settings::default());
    let refused = held.refused.clone().unwrap();
    assert_eq!((refused.ids.len(), refused.budget, refused.known), (4, 3, 4));
    assert!(refused.mend.contains("steward schedules apply --confirm-deletions"));
    assert!(held.steps.iter().all(|step| step.verb != Verb::Delete));
    assert!(held.steps.iter().any(|step| step.verb == Verb::Create { paused: false }));

    let three = plan(&matters, &known[..3], &Settings::default());
    assert_eq!(three.steps.iter().filter(|step| step.verb == Verb::Delete).count(), 3);
    let confirmed = plan(&matters, &known, &Settings { operator_confirmed: true, ..Settings::default() });
    assert_eq!(confirmed.steps.iter().filter(|step| step.verb == Verb::Delete).count(), 4);
    assert_eq!(confirmed.refused, None);
}

#[test]
fn a_schedule_of_another_workflow_type_is_left_alone_and_warned_of() {
    for name in ["BackupWorkflow", ""] {
        let foreign = |slug: &str| KnownSchedule { workflow_type: name.into(), ..described(slug, &right(slug)) };
        let plan = plan(&[matter("farm", Standing::Open)], &[foreign("farm"), foreign("gone")], &Settings::default());
        assert!(matches!(&plan.steps[..], [Step { verb: Verb::Keep { .. }, .. }]), "{:?}", plan.steps);
        assert_eq!(plan.warnings.len(), 2, "{:?}", plan.warnings);
    }
}

#[test]
fn a_schedule_whose_id_no_matter_can_have_is_left_alone() {
    let odd = KnownSchedule { id: "al-steward-../etc".into(), ..described("farm", &right("farm")) };
    let plan = plan(&[matter("farm", Standing::Open)], &[odd], &Settings::default());
    assert!(matches!(&plan.steps[..], [Step { verb: Verb::Create { .. }, .. }]));
    assert_eq!(plan.warnings.len(), 1);
}

#[test]
fn a_matter_that_is_there_twice_and_does_not_agree_keeps_its_schedule() {
    let matters = [matter("farm", Standing::Archived), matter("farm", Standing::Open)];
    let steps = verbs(&matters, &[described("farm", &right("farm"))]);
    assert!(matches!(steps[..], [Verb::Keep { .. }]), "{steps:?}");
}

#[test]
fn a_listing_is_enough_when_its_cadence_and_its_mark_are_right() {
    let matters = [matter("farm", Standing::Open)];
    let needs = |known: KnownSchedule, settings: &Settings| needs_description(&matters, &[known], settings).len();
    let settings = Settings::default();
    let good = listed("farm", &right("farm"));
    assert_eq!(needs(good.clone(), &settings), 0);
    assert_eq!(needs(good.clone(), &Settings { describe_all: true, ..Settings::default() }), 1);
    assert_eq!(needs(good.clone(), &Settings { task_queue: "other".into(), ..Settings::default() }), 1);
    assert_eq!(needs(KnownSchedule { mark: None, ..good.clone() }, &settings), 1);
    assert_eq!(needs(KnownSchedule { workflow_type: String::new(), ..good.clone() }, &settings), 1);
    let moved = Contents::Listed { cadence: "every 60 s, offset 0 s".into() };
    assert_eq!(needs(KnownSchedule { contents: moved, ..good.clone() }, &settings), 1);
    assert_eq!(needs(KnownSchedule { id: "al-steward-gone".into(), mark: None, ..good }, &settings), 0);
}

#[test]
fn a_schedule_that_could_not_be_looked_at_is_left_alone_and_warned_of() {
    let unread = Contents::Unread("the server is away".into());
    for contents in [unread, Contents::Listed { cadence: "none".into() }] {
        let known = KnownSchedule { contents, ..described("farm", &right("farm")) };
        let plan = plan(&[matter("farm", Standing::Done)], &[known], &Settings::default());
        assert!(matches!(&plan.steps[..], [Step { verb: Verb::Keep { .. }, .. }]), "{plan:?}");
        assert_eq!(plan.warnings.len(), 1);
    }
}

#[test]
fn a_mark_is_replaced_and_calendars_of_people_stay() {
    let mut schedule = right("farm");
    let theirs = spb::StructuredCalendarSpec { comment: "no Sundays".into(), ..Default::default() };
    schedule.spec.get_or_insert_default().exclude_structured_calendar.insert(0, theirs.clone());
    facts::set_cadence(&mut schedule, "farm", 3600);
    let old = facts::mark_of(schedule.spec.as_ref());
    facts::set_mark(&mut schedule, "al-steward-farm", None);
    assert_ne!(facts::mark_of(schedule.spec.as_ref()), old);
    let excluded = schedule.spec.unwrap().exclude_structured_calendar;
    assert_eq!((excluded.len(), &excluded[0]), (2, &theirs));
    assert!(excluded[1].month.is_empty(), "a calendar without ranges matches nothing");
}

fn settings_of(last: u8) -> Settings {
    let id = format!("6f2c1a2e-8d3b-4c5f-9a7e-0123456789{last:02x}").parse().unwrap();
    let place = VaultPlace { folder: "/vault".into(), host: "host".into(), file: "1-1.1".into() };
    Settings { owner: Some(VaultIdentity { id, place }), ..Settings::default() }
}

#[test]
fn what_names_another_vault_is_kept_whatever_the_matter_says_and_counts_for_no_budget() {
    let theirs = |slug: &str| facts::desired(&path(slug), 60, &settings_of(2));
    let known: Vec<KnownSchedule> =
        ["farm", "gone", "done", "old"].iter().map(|slug| listed(slug, &theirs(slug))).collect();
    let matters = [matter("farm", Standing::Open), matter("done", Standing::Done), matter("old", Standing::Archived)];
    assert_eq!(needs_description(&matters, &known, &settings_of(1)), Vec::<String>::new());
    let confirmed = Settings { operator_confirmed: true, ..settings_of(1) };
    for settings in [settings_of(1), confirmed, Settings::default()] {
        let plan = plan(&matters, &known, &settings);
        let kept = |step: &Step| matches!(&step.verb, Verb::Keep { why } if why.contains("another vault"));
        assert!(plan.steps.len() == 3 && plan.steps.iter().all(kept), "{plan:?}");
        assert!(plan.refused.is_none() && plan.warnings.iter().any(|w| w.contains("al-steward-gone")), "{plan:?}");
    }
    let own = plan(&matters, &known, &settings_of(2));
    assert!(own.steps.iter().any(|step| step.verb == Verb::Delete), "{own:?}");
}

#[test]
fn a_schedule_that_names_no_vault_is_given_the_id_of_ours_and_a_move_changes_none_of_a_matter() {
    let matters = [matter("farm", Standing::Open)];
    let unmarked = listed("farm", &right("farm"));
    assert_eq!(needs_description(&matters, &[unmarked], &settings_of(1)), ["al-steward-farm"]);
    let plan_of = |known| plan(&matters, &[known], &settings_of(1)).steps.remove(0).verb;
    assert!(matches!(plan_of(described("farm", &right("farm"))), Verb::Update { .. }));
    let mut before = settings_of(1);
    before.owner.as_mut().unwrap().place.folder = "/elsewhere".into();
    assert_eq!(plan_of(listed("farm", &facts::desired(&path("farm"), 1800, &before))), Verb::Unchanged);
}

#[test]
fn the_phase_of_a_matter_never_changes() {
    let phases: Vec<u32> =
        ["eagle-farm", "a", "renew-passport"].iter().map(|slug| facts::phase_seconds(slug, 1800)).collect();
    assert_eq!(phases, [1040, 250, 291]);
    for slug in ["eagle-farm", "a", "renew-passport"] {
        assert_eq!(facts::phase_seconds(slug, 3600) % 1800, facts::phase_seconds(slug, 1800));
    }
    let spread: std::collections::BTreeSet<u32> =
        (0..500).map(|n| facts::phase_seconds(&format!("matter-{n}"), 1800) / 300).collect();
    assert_eq!(spread.len(), 6, "every five minutes of the half hour have matters");
}

// Any vault against any server.

const SLUGS: u8 = 14;

fn slug(number: u8) -> String {
    format!("m{number}")
}

fn standing() -> impl Strategy<Value = Standing> {
    prop_oneof![
        3 => Just(Standing::Open),
        1 => Just(Standing::Done),
        1 => Just(Standing::Archived),
        1 => Just(Standing::Unreadable),
    ]
}

fn any_matter() -> impl Strategy<Value = WantedMatter> {
    let interval = prop_oneof![Just(0), Just(1800), Just(3600), Just(1), any::<u32>()];
    (0..SLUGS, standing(), interval).prop_map(|(number, standing, interval_seconds)| WantedMatter {
        path: path(&slug(number)),
        standing,
        interval_seconds,
    })
}

fn any_schedule(number: u8) -> impl Strategy<Value = spb::Schedule> {
    let state = prop_oneof![
        3 => Just((false, "")),
        1 => Just((true, "harvest")),
        1 => Just((true, "")),
        1 => Just((true, DONE_NOTE)),
        1 => Just((false, REOPENED_NOTE)),
        1 => Just((false, "back again")),
    ];
    let contents = (any::<bool>(), prop_oneof![Just("steward"), Just("other")], prop_oneof![Just(1800), Just(60)]);
    (state, contents, 0..3_u8, 0..8_u8).prop_map(move |((paused, notes), (right, queue, interval), mark, kind)| {
        let subject = if right { slug(number) } else { "elsewhere".to_owned() };
        let settings = Settings { task_queue: queue.into(), ..Settings::default() };
        let mut schedule = facts::desired(&path(&subject), interval, &settings);
        schedule.state = Some(spb::ScheduleState { paused, notes: notes.into(), ..Default::default() });
        if kind == 0 {
            schedule.action = None;
        }
        let excluded = &mut schedule.spec.get_or_insert_default().exclude_structured_calendar;
        match mark {
            0 => excluded.clear(),
            1 => excluded[0].comment.push('0'),
            _ => {}
        }
        schedule
    })
}

/// A server by slug; the second of a pair says that the schedule is described without need, too.
type Server = BTreeMap<String, (spb::Schedule, bool)>;

fn any_server() -> impl Strategy<Value = Server> {
    btree_map(0..SLUGS, any::<bool>(), 0..14).prop_flat_map(|numbers| {
        let schedules: Vec<_> = numbers
            .into_iter()
            .map(|(number, full)| (Just(slug(number)), (any_schedule(number), Just(full))))
            .collect();
        schedules.prop_map(|schedules| schedules.into_iter().collect())
    })
}

/// What the registrar gets to see: a listing, and a description where one is needed or was asked for.
fn look(server: &Server, matters: &[WantedMatter], settings: &Settings) -> Vec<KnownSchedule> {
    let list: Vec<KnownSchedule> = server.iter().map(|(slug, (schedule, _))| listed(slug, schedule)).collect();
    let unclear = needs_description(matters, &list, settings);
    let look = |(slug, (schedule, full)): (&String, &(spb::Schedule, bool))| {
        let describe = *full || unclear.contains(&facts::schedule_id(slug));
        if describe { described(slug, schedule) } else { listed(slug, schedule) }
    };
    server.iter().map(look).collect()
}

/// Does to the model what the executor does to a server.
fn carry_out(server: &mut Server, plan: &SchedulePlan, settings: &Settings) {
    for step in &plan.steps {
        let slug = step.matter.slug().to_owned();
        let wanted = facts::desired(&step.matter, step.interval_seconds, settings);
        let mut edit = |change: &dyn Fn(&mut spb::Schedule)| {
            let schedule = &mut server.get_mut(&slug).unwrap().0;
            change(schedule);
            facts::set_mark(schedule, &facts::schedule_id(&slug), settings.owner.as_ref());
        };
        match &step.verb {
            Verb::Update { .. } => edit(&|schedule| facts::adopt(schedule, &wanted)),
            Verb::Pause => edit(&apply::pause),
            Verb::Resume => edit(&apply::resume),
            Verb::Delete => drop(server.remove(&slug).unwrap()),
            Verb::Create { paused } => {
                let state = Some(apply::first_state(*paused));
                server.insert(slug, (spb::Schedule { state, ..wanted }, false));
            }
            Verb::Unchanged | Verb::Keep { .. } => {}
        }
    }
}

proptest! {
    #[test]
    fn the_schedule_of_an_open_done_or_unreadable_matter_is_never_deleted(
        matters in vec(any_matter(), 0..20), server in any_server(), operator_confirmed: bool,
    ) {
        let settings = Settings { operator_confirmed, ..Settings::default() };
        for step in plan(&matters, &look(&server, &matters, &settings), &settings).steps {
            if step.verb == Verb::Delete {
                let there = matters.iter().filter(|matter| matter.path == step.matter);
                prop_assert!(there.into_iter().all(|matter| matter.standing == Standing::Archived), "{step:?}");
            }
        }
    }

    #[test]
    fn a_plan_carried_out_leaves_nothing_to_do(
        matters in vec(any_matter(), 0..20), mut server in any_server(), operator_confirmed: bool,
    ) {
        let settings = Settings { operator_confirmed, ..Settings::default() };
        let first = plan(&matters, &look(&server, &matters, &settings), &settings);
        carry_out(&mut server, &first, &settings);
        let second = plan(&matters, &look(&server, &matters, &settings), &settings);
        for step in &second.steps {
            prop_assert!(matches!(step.verb, Verb::Unchanged | Verb::Keep { .. }), "{step:?} after {first:?}");
        }
    }

    #[test]
    fn unconfirmed_deletions_are_within_the_budget(
        matters in vec(any_matter(), 0..20), server in any_server(), deletion_percent in 0..=100_u8, deletion_floor in 0..6_usize,
    ) {
        let settings = Settings { deletion_percent, deletion_floor, ..Settings::default() };
        let known = look(&server, &matters, &settings);
        let plan = plan(&matters, &known, &settings);
        let deletions = plan.steps.iter().filter(|step| step.verb == Verb::Delete).count();
        prop_assert!(deletions <= (known.len() * usize::from(deletion_percent) / 100).max(deletion_floor));
        prop_assert!(plan.refused.is_none() || deletions == 0);
    }

    #[test]
    fn a_pause_made_by_a_person_stays_with_its_note(matters in vec(any_matter(), 0..20), mut server in any_server()) {
        let before = server.clone();
        let settings = Settings::default();
        let plan = plan(&matters, &look(&server, &matters, &settings), &settings);
        carry_out(&mut server, &plan, &settings);
        for (slug, (was, _)) in before {
            let state = was.state.unwrap();
            if let Some((is, _)) = server.get(&slug).filter(|_| state.paused && state.notes != DONE_NOTE) {
                prop_assert_eq!(is.state.as_ref(), Some(&state), "{}", slug);
            }
        }
    }
}
