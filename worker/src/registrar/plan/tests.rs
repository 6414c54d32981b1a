//! Tests the planner with tables, and with arbitrary vaults and servers.

use super::super::apply;
use super::*;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use steward_domain::record::path::RecordKind;
use steward_vault::files::identity::{VaultIdentity, VaultPlace};
use temporalio_common::protos::temporal::api::schedule::v1 as spb;

fn path(slug: &str) -> RecordPath {
    RecordPath::new(RecordKind::Matter, slug).unwrap()
}

fn matter(slug: &str, standing: MatterScheduleStatus) -> WantedMatter {
    WantedMatter { path: path(slug), status: standing, interval_seconds: 0, former_paths: Vec::new() }
}

fn right(slug: &str) -> spb::Schedule {
    facts::build_matter_schedule(&path(slug), 1800, &ScheduleSettings::default())
}

fn described(slug: &str, schedule: &spb::Schedule) -> KnownSchedule {
    let state = schedule.state.clone().unwrap_or_default();
    KnownSchedule {
        id: facts::schedule_id(&path(slug)),
        workflow_type: facts::find_workflow_type(schedule).to_owned(),
        paused: state.paused,
        note: state.notes,
        mark: facts::find_mark(schedule.spec.as_ref()),
        contents: ScheduleContents::Described(ScheduleFacts::from_schedule(schedule)),
    }
}

fn listed(slug: &str, schedule: &spb::Schedule) -> KnownSchedule {
    let cadence = facts::describe_cadence(schedule.spec.as_ref());
    KnownSchedule { contents: ScheduleContents::Listed { cadence }, ..described(slug, schedule) }
}

fn paused(slug: &str, note: &str) -> KnownSchedule {
    KnownSchedule { paused: true, note: note.to_owned(), ..described(slug, &right(slug)) }
}

fn verbs(matters: &[WantedMatter], known: &[KnownSchedule]) -> Vec<ScheduleStepVerb> {
    plan_matter_schedules(matters, known, &ScheduleSettings::default())
        .steps
        .into_iter()
        .map(|step| step.verb)
        .collect()
}

#[test]
fn a_matter_without_a_schedule_gets_one_and_a_done_one_a_paused_one() {
    assert_eq!(verbs(&[matter("farm", MatterScheduleStatus::Open)], &[]), [ScheduleStepVerb::Create { paused: false }]);
    assert_eq!(verbs(&[matter("farm", MatterScheduleStatus::Done)], &[]), [ScheduleStepVerb::Create { paused: true }]);
    assert_eq!(verbs(&[matter("farm", MatterScheduleStatus::Archived)], &[]), []);
    assert!(matches!(
        verbs(&[matter("farm", MatterScheduleStatus::Unreadable)], &[])[..],
        [ScheduleStepVerb::Keep { .. }]
    ));
}

#[test]
fn two_matters_that_would_share_a_schedule_are_both_named_and_neither_is_changed() {
    let named = |name: &str| WantedMatter { path: path(name), ..matter("farm", MatterScheduleStatus::Open) };
    let twins = [named("caf\u{e9}"), named("cafe\u{301}")];
    let plan = plan_matter_schedules(&twins, &[], &ScheduleSettings::default());
    assert!(matches!(&plan.steps[..], [ScheduleStep { verb: ScheduleStepVerb::Keep { .. }, .. }]), "{plan:?}");
    assert!(twins.iter().all(|twin| plan.warnings[0].contains(twin.path.as_str())), "{:?}", plan.warnings);
}

#[test]
fn a_schedule_that_is_right_is_unchanged() {
    for known in [described("farm", &right("farm")), listed("farm", &right("farm"))] {
        assert_eq!(verbs(&[matter("farm", MatterScheduleStatus::Open)], &[known]), [ScheduleStepVerb::Unchanged]);
    }
}

#[test]
fn every_real_difference_is_updated_and_named() {
    let settings = ScheduleSettings { task_queue: "other".into(), ..ScheduleSettings::default() };
    let mut schedule = facts::build_matter_schedule(&path("garden"), 3600, &settings);
    schedule.policies.get_or_insert_default().catchup_window = None;
    let [ScheduleStepVerb::Update { differences }] =
        &verbs(&[matter("farm", MatterScheduleStatus::Open)], &[described("farm", &schedule)])[..]
    else {
        panic!("not an update");
    };
    let named: Vec<&str> = differences.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(named, ["cadence", "workflow id", "argument", "task queue", "catch-up window", "summary"]);
    assert!(differences.contains(&"task queue: other → steward".to_owned()), "{differences:?}");
    assert!(differences.contains(&r#"argument: "matter/garden.md" → "matter/farm.md""#.to_owned()), "{differences:?}");
}

#[test]
fn every_own_field_is_compared_and_copied() {
    let wanted = right("farm");
    let mut empty = spb::Schedule::default();
    assert_eq!(ScheduleFacts::from_schedule(&empty).list_differences(&ScheduleFacts::from_schedule(&wanted)).len(), 11);
    facts::copy_own_fields(&mut empty, &wanted);
    assert_eq!(ScheduleFacts::from_schedule(&empty), ScheduleFacts::from_schedule(&wanted));
    let mut other = facts::build_matter_schedule(
        &path("garden"),
        60,
        &ScheduleSettings { task_queue: "other".into(), ..ScheduleSettings::default() },
    );
    facts::copy_own_fields(&mut other, &wanted);
    facts::set_mark(&mut other, None);
    assert_eq!(other, wanted);
}

#[test]
fn settings_of_people_are_neither_compared_nor_changed() {
    let mut schedule = right("farm");
    schedule.spec.get_or_insert_default().jitter = std::time::Duration::from_secs(60).try_into().ok();
    schedule.policies.get_or_insert_default().pause_on_failure = true;
    schedule.state = Some(spb::ScheduleState { limited_actions: true, remaining_actions: 3, ..Default::default() });
    assert_eq!(
        verbs(&[matter("farm", MatterScheduleStatus::Open)], &[described("farm", &schedule)]),
        [ScheduleStepVerb::Unchanged]
    );
    let before = schedule.clone();
    facts::copy_own_fields(&mut schedule, &right("farm"));
    assert_eq!(schedule, before);
}

#[test]
fn a_pause_made_by_a_person_is_kept_through_updates_and_every_status() {
    for standing in [MatterScheduleStatus::Open, MatterScheduleStatus::Done] {
        let steps = verbs(&[matter("farm", standing)], &[paused("farm", "harvest")]);
        assert_eq!(steps, [ScheduleStepVerb::Keep { why: "paused by a person: harvest".into() }]);
    }
    let mut drifted = paused("farm", "harvest");
    drifted.contents = ScheduleContents::Described(ScheduleFacts::from_schedule(&right("garden")));
    assert!(matches!(
        verbs(&[matter("farm", MatterScheduleStatus::Open)], &[drifted])[..],
        [ScheduleStepVerb::Update { .. }]
    ));
}

#[test]
fn a_done_matter_is_paused_and_resumed_when_it_is_open_again() {
    let running = described("farm", &right("farm"));
    assert_eq!(verbs(&[matter("farm", MatterScheduleStatus::Done)], &[running]), [ScheduleStepVerb::Pause]);
    assert_eq!(
        verbs(&[matter("farm", MatterScheduleStatus::Done)], &[paused("farm", DONE_NOTE)]),
        [ScheduleStepVerb::Unchanged]
    );
    assert_eq!(
        verbs(&[matter("farm", MatterScheduleStatus::Open)], &[paused("farm", DONE_NOTE)]),
        [ScheduleStepVerb::Resume]
    );
}

#[test]
fn an_update_and_a_pause_of_one_schedule_follow_one_another() {
    let steps = verbs(
        &[matter("farm", MatterScheduleStatus::Done)],
        &[described("farm", &facts::build_matter_schedule(&path("farm"), 60, &ScheduleSettings::default()))],
    );
    assert!(matches!(steps[..], [ScheduleStepVerb::Update { .. }, ScheduleStepVerb::Pause]), "{steps:?}");
}

#[test]
fn schedules_of_archived_and_deleted_matters_are_deleted() {
    let known = [described("old", &right("old")), described("gone", &right("gone"))];
    let plan = plan_matter_schedules(
        &[matter("farm", MatterScheduleStatus::Open), matter("old", MatterScheduleStatus::Archived)],
        &known,
        &ScheduleSettings::default(),
    );
    let verbs: Vec<(&str, &ScheduleStepVerb)> =
        plan.steps.iter().map(|step| (step.matter.slug(), &step.verb)).collect();
    assert_eq!(
        verbs,
        [
            ("farm", &ScheduleStepVerb::Create { paused: false }),
            ("gone", &ScheduleStepVerb::Delete),
            ("old", &ScheduleStepVerb::Delete)
        ]
    );
}

#[test]
fn the_schedule_of_an_unreadable_matter_is_not_touched() {
    let wrong = described("farm", &right("garden"));
    let steps = verbs(&[matter("farm", MatterScheduleStatus::Unreadable)], &[wrong]);
    assert_eq!(steps, [ScheduleStepVerb::Keep { why: "matter/farm.md cannot be read".into() }]);
}

#[test]
fn an_empty_list_of_matters_does_nothing_and_warns_even_when_confirmed() {
    let settings = ScheduleSettings { operator_confirmed: true, ..ScheduleSettings::default() };
    let plan = plan_matter_schedules(&[], &[described("farm", &right("farm"))], &settings);
    assert!(plan.steps.is_empty());
    assert_eq!(plan.warnings.len(), 1);
}

#[test]
fn deletions_above_the_budget_wait_and_the_rest_is_applied() {
    let known: Vec<KnownSchedule> = ["a", "b", "c", "d"].iter().map(|slug| described(slug, &right(slug))).collect();
    let matters = [matter("new", MatterScheduleStatus::Open)];
    let held = plan_matter_schedules(&matters, &known, &ScheduleSettings::default());
    let refused = held.refused.clone().unwrap();
    assert_eq!((refused.ids.len(), refused.budget, refused.known), (4, 3, 4));
    assert!(refused.hint.contains("steward schedules apply --confirm-deletions"));
    assert!(held.steps.iter().all(|step| step.verb != ScheduleStepVerb::Delete));
    assert!(held.steps.iter().any(|step| step.verb == ScheduleStepVerb::Create { paused: false }));

    let three = plan_matter_schedules(&matters, &known[..3], &ScheduleSettings::default());
    assert_eq!(three.steps.iter().filter(|step| step.verb == ScheduleStepVerb::Delete).count(), 3);
    let confirmed = plan_matter_schedules(
        &matters,
        &known,
        &ScheduleSettings { operator_confirmed: true, ..ScheduleSettings::default() },
    );
    assert_eq!(confirmed.steps.iter().filter(|step| step.verb == ScheduleStepVerb::Delete).count(), 4);
    assert_eq!(confirmed.refused, None);
}

#[test]
fn a_schedule_of_another_workflow_type_is_kept_with_a_warning() {
    for name in ["BackupWorkflow", ""] {
        let foreign = |slug: &str| KnownSchedule { workflow_type: name.into(), ..described(slug, &right(slug)) };
        let plan = plan_matter_schedules(
            &[matter("farm", MatterScheduleStatus::Open)],
            &[foreign("farm"), foreign("gone")],
            &ScheduleSettings::default(),
        );
        assert!(
            matches!(&plan.steps[..], [ScheduleStep { verb: ScheduleStepVerb::Keep { .. }, .. }]),
            "{:?}",
            plan.steps
        );
        assert_eq!(plan.warnings.len(), 2, "{:?}", plan.warnings);
    }
}

#[test]
fn a_schedule_that_names_no_matter_is_kept() {
    let odd = KnownSchedule { id: "al-steward-barn".into(), mark: None, ..described("farm", &right("farm")) };
    let plan =
        plan_matter_schedules(&[matter("farm", MatterScheduleStatus::Open)], &[odd], &ScheduleSettings::default());
    assert!(matches!(&plan.steps[..], [ScheduleStep { verb: ScheduleStepVerb::Create { .. }, .. }]));
    assert_eq!(plan.warnings.len(), 1);
}

#[test]
fn a_matter_that_is_listed_twice_with_different_values_keeps_its_schedule() {
    let matters = [matter("farm", MatterScheduleStatus::Archived), matter("farm", MatterScheduleStatus::Open)];
    let steps = verbs(&matters, &[described("farm", &right("farm"))]);
    assert!(matches!(steps[..], [ScheduleStepVerb::Keep { .. }]), "{steps:?}");
}

#[test]
fn a_listing_is_enough_when_its_cadence_and_its_mark_are_right() {
    let matters = [matter("farm", MatterScheduleStatus::Open)];
    let needs =
        |known: KnownSchedule, settings: &ScheduleSettings| find_undescribed(&matters, &[known], settings).len();
    let settings = ScheduleSettings::default();
    let good = listed("farm", &right("farm"));
    assert_eq!(needs(good.clone(), &settings), 0);
    assert_eq!(needs(good.clone(), &ScheduleSettings { describe_all: true, ..ScheduleSettings::default() }), 1);
    assert_eq!(needs(good.clone(), &ScheduleSettings { task_queue: "other".into(), ..ScheduleSettings::default() }), 1);
    assert_eq!(needs(KnownSchedule { mark: None, ..good.clone() }, &settings), 1);
    assert_eq!(needs(KnownSchedule { workflow_type: String::new(), ..good.clone() }, &settings), 1);
    let moved = ScheduleContents::Listed { cadence: "every 60 s, offset 0 s".into() };
    assert_eq!(needs(KnownSchedule { contents: moved, ..good.clone() }, &settings), 1);
    assert_eq!(needs(KnownSchedule { id: "al-steward-gone".into(), mark: None, ..good }, &settings), 0);
}

#[test]
fn a_schedule_that_could_not_be_read_is_kept_with_a_warning() {
    let unread = ScheduleContents::Unread("the server is away".into());
    for contents in [unread, ScheduleContents::Listed { cadence: "none".into() }] {
        let known = KnownSchedule { contents, ..described("farm", &right("farm")) };
        let plan = plan_matter_schedules(
            &[matter("farm", MatterScheduleStatus::Done)],
            &[known],
            &ScheduleSettings::default(),
        );
        assert!(matches!(&plan.steps[..], [ScheduleStep { verb: ScheduleStepVerb::Keep { .. }, .. }]), "{plan:?}");
        assert_eq!(plan.warnings.len(), 1);
    }
}

#[test]
fn a_mark_is_replaced_and_calendars_of_people_stay() {
    let mut schedule = right("farm");
    let theirs = spb::StructuredCalendarSpec { comment: "no Sundays".into(), ..Default::default() };
    schedule.spec.get_or_insert_default().exclude_structured_calendar.insert(0, theirs.clone());
    facts::set_cadence(&mut schedule, &path("farm"), 3600);
    let old = facts::find_mark(schedule.spec.as_ref());
    facts::set_mark(&mut schedule, None);
    assert_ne!(facts::find_mark(schedule.spec.as_ref()), old);
    let excluded = schedule.spec.unwrap().exclude_structured_calendar;
    assert_eq!((excluded.len(), &excluded[0]), (2, &theirs));
    assert!(excluded[1].month.is_empty(), "a calendar without ranges matches nothing");
}

fn settings_of(last: u8) -> ScheduleSettings {
    let id = format!("6f2c1a2e-8d3b-4c5f-9a7e-0123456789{last:02x}").parse().unwrap();
    let place = VaultPlace { folder: "/vault".into(), host: "host".into(), file: "1-1.1".into() };
    ScheduleSettings { owner: Some(VaultIdentity::new(id, place)), ..ScheduleSettings::default() }
}

#[test]
fn a_schedule_of_another_vault_is_kept_whatever_the_matter_and_counts_for_no_budget() {
    let theirs = |slug: &str| facts::build_matter_schedule(&path(slug), 60, &settings_of(2));
    let known: Vec<KnownSchedule> =
        ["farm", "gone", "done", "old"].iter().map(|slug| listed(slug, &theirs(slug))).collect();
    let matters = [
        matter("farm", MatterScheduleStatus::Open),
        matter("done", MatterScheduleStatus::Done),
        matter("old", MatterScheduleStatus::Archived),
    ];
    assert_eq!(find_undescribed(&matters, &known, &settings_of(1)), Vec::<String>::new());
    let confirmed = ScheduleSettings { operator_confirmed: true, ..settings_of(1) };
    for settings in [settings_of(1), confirmed, ScheduleSettings::default()] {
        let plan = plan_matter_schedules(&matters, &known, &settings);
        let kept =
            |step: &ScheduleStep| matches!(&step.verb, ScheduleStepVerb::Keep { why } if why.contains("another vault"));
        assert!(plan.steps.len() == 3 && plan.steps.iter().all(kept), "{plan:?}");
        assert!(plan.refused.is_none() && plan.warnings.iter().any(|w| w.contains("al-steward-gone")), "{plan:?}");
    }
    let own = plan_matter_schedules(&matters, &known, &settings_of(2));
    assert!(own.steps.iter().any(|step| step.verb == ScheduleStepVerb::Delete), "{own:?}");
}

#[test]
fn a_schedule_without_a_vault_gets_our_id_and_a_move_changes_no_schedule_of_a_matter() {
    let matters = [matter("farm", MatterScheduleStatus::Open)];
    let unmarked = listed("farm", &right("farm"));
    assert_eq!(find_undescribed(&matters, &[unmarked], &settings_of(1)), ["al-steward-farm"]);
    let plan_of = |known| plan_matter_schedules(&matters, &[known], &settings_of(1)).steps.remove(0).verb;
    assert!(matches!(plan_of(described("farm", &right("farm"))), ScheduleStepVerb::Update { .. }));
    let mut before = settings_of(1);
    before.owner.as_mut().unwrap().place.folder = "/elsewhere".into();
    assert_eq!(
        plan_of(listed("farm", &facts::build_matter_schedule(&path("farm"), 1800, &before))),
        ScheduleStepVerb::Unchanged
    );
}

#[test]
fn the_phase_of_a_matter_never_changes() {
    let phases: Vec<u32> =
        ["eagle-farm", "a", "renew-passport"].iter().map(|slug| facts::compute_phase_seconds(slug, 1800)).collect();
    assert_eq!(phases, [1040, 250, 291]);
    for slug in ["eagle-farm", "a", "renew-passport"] {
        assert_eq!(facts::compute_phase_seconds(slug, 3600) % 1800, facts::compute_phase_seconds(slug, 1800));
    }
    let spread: std::collections::BTreeSet<u32> =
        (0..500).map(|n| facts::compute_phase_seconds(&format!("matter-{n}"), 1800) / 300).collect();
    assert_eq!(spread.len(), 6, "every five minutes of the half hour have matters");
}

// Arbitrary vaults and servers.

const SLUGS: u8 = 14;

fn slug(number: u8) -> String {
    format!("m{number}")
}

fn standing() -> impl Strategy<Value = MatterScheduleStatus> {
    prop_oneof![
        3 => Just(MatterScheduleStatus::Open),
        1 => Just(MatterScheduleStatus::Done),
        1 => Just(MatterScheduleStatus::Archived),
        1 => Just(MatterScheduleStatus::Unreadable),
        1 => Just(MatterScheduleStatus::Lost),
    ]
}

fn any_matter() -> impl Strategy<Value = WantedMatter> {
    let interval = prop_oneof![Just(0), Just(1800), Just(3600), Just(1), any::<u32>()];
    (0..SLUGS, standing(), interval, vec(0..SLUGS, 0..2)).prop_map(|(number, standing, interval_seconds, former)| {
        let former = former.into_iter().filter(|former| *former != number);
        WantedMatter {
            path: path(&slug(number)),
            status: standing,
            interval_seconds,
            former_paths: former.map(|former| path(&slug(former))).collect(),
        }
    })
}

fn any_schedule(number: u8) -> impl Strategy<Value = spb::Schedule> {
    let state = prop_oneof![
        3 => Just((false, "")),
        1 => Just((true, "harvest")),
        1 => Just((true, "")),
        1 => Just((true, DONE_NOTE)),
        1 => Just((true, DRAIN_NOTE)),
        1 => Just((false, REOPENED_NOTE)),
        1 => Just((false, "back again")),
    ];
    let contents = (any::<bool>(), prop_oneof![Just("steward"), Just("other")], prop_oneof![Just(1800), Just(60)]);
    (state, contents, 0..3_u8, 0..8_u8).prop_map(move |((paused, notes), (right, queue, interval), mark, kind)| {
        let subject = if right { slug(number) } else { "elsewhere".to_owned() };
        let settings = ScheduleSettings { task_queue: queue.into(), ..ScheduleSettings::default() };
        let mut schedule = facts::build_matter_schedule(&path(&subject), interval, &settings);
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

/// The schedules of a server by slug. The flag says that a schedule is described even if that is not needed.
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

/// What the registrar sees: a listing, and a description if one is needed or the flag is set.
fn read_server(server: &Server, matters: &[WantedMatter], settings: &ScheduleSettings) -> Vec<KnownSchedule> {
    let list: Vec<KnownSchedule> = server.iter().map(|(slug, (schedule, _))| listed(slug, schedule)).collect();
    let undescribed = find_undescribed(matters, &list, settings);
    let read = |(slug, (schedule, full)): (&String, &(spb::Schedule, bool))| {
        let describe = *full || undescribed.contains(&facts::schedule_id(&path(slug)));
        if describe { described(slug, schedule) } else { listed(slug, schedule) }
    };
    server.iter().map(read).collect()
}

/// Applies a plan to the model as [`apply`] applies it to a server.
fn carry_out(server: &mut Server, plan: &SchedulePlan, settings: &ScheduleSettings) {
    for step in &plan.steps {
        let slug = step.id.strip_prefix(facts::ID_PREFIX).unwrap().to_owned();
        let wanted = facts::build_matter_schedule(&step.matter, step.interval_seconds, settings);
        let mut edit = |change: &dyn Fn(&mut spb::Schedule)| {
            let schedule = &mut server.get_mut(&slug).unwrap().0;
            change(schedule);
            facts::set_mark(schedule, settings.owner.as_ref());
        };
        match &step.verb {
            ScheduleStepVerb::Update { .. } => edit(&|schedule| facts::copy_own_fields(schedule, &wanted)),
            ScheduleStepVerb::Pause => edit(&apply::pause_schedule),
            ScheduleStepVerb::Drain => edit(&apply::drain_schedule),
            ScheduleStepVerb::Resume => edit(&apply::resume_schedule),
            ScheduleStepVerb::Delete => drop(server.remove(&slug).unwrap()),
            ScheduleStepVerb::Move { from_id, paused, note, old_stays } => {
                let state = Some(spb::ScheduleState { paused: *paused, notes: note.clone(), ..Default::default() });
                server.insert(slug, (spb::Schedule { state, ..wanted }, false));
                if !old_stays {
                    server.remove(from_id.strip_prefix(facts::ID_PREFIX).unwrap()).unwrap();
                }
            }
            ScheduleStepVerb::Create { paused } => {
                let state = Some(apply::initial_state(*paused, settings.draining));
                server.insert(slug, (spb::Schedule { state, ..wanted }, false));
            }
            ScheduleStepVerb::Unchanged | ScheduleStepVerb::Keep { .. } => {}
        }
    }
}

proptest! {
    #[test]
    fn the_schedule_of_an_open_done_or_unreadable_matter_is_never_deleted(
        matters in vec(any_matter(), 0..20), server in any_server(), operator_confirmed: bool,
    ) {
        let settings = ScheduleSettings { operator_confirmed, ..ScheduleSettings::default() };
        for step in plan_matter_schedules(&matters, &read_server(&server, &matters, &settings), &settings).steps {
            if step.verb == ScheduleStepVerb::Delete {
                let there = matters.iter().filter(|matter| matter.path == step.matter);
                let has_none = |matter: &WantedMatter| {
                    matches!(matter.status, MatterScheduleStatus::Archived | MatterScheduleStatus::Lost)
                };
                prop_assert!(there.into_iter().all(has_none), "{step:?}");
            }
        }
    }

    #[test]
    fn an_applied_plan_leaves_nothing_to_do(
        matters in vec(any_matter(), 0..20), mut server in any_server(), operator_confirmed: bool, draining: bool,
    ) {
        let settings = ScheduleSettings { operator_confirmed, draining, ..ScheduleSettings::default() };
        let first = plan_matter_schedules(&matters, &read_server(&server, &matters, &settings), &settings);
        carry_out(&mut server, &first, &settings);
        let second = plan_matter_schedules(&matters, &read_server(&server, &matters, &settings), &settings);
        for step in &second.steps {
            prop_assert!(matches!(step.verb, ScheduleStepVerb::Unchanged | ScheduleStepVerb::Keep { .. }), "{step:?} after {first:?}");
        }
    }

    #[test]
    fn unconfirmed_deletions_are_within_the_budget(
        matters in vec(any_matter(), 0..20), server in any_server(), deletion_percent in 0..=100_u8, deletion_floor in 0..6_usize,
    ) {
        let settings = ScheduleSettings { deletion_percent, deletion_floor, ..ScheduleSettings::default() };
        let known = read_server(&server, &matters, &settings);
        let plan = plan_matter_schedules(&matters, &known, &settings);
        // What was moved is deleted under its old path, and is not lost.
        let former: Vec<&RecordPath> = matters.iter().flat_map(|matter| &matter.former_paths).collect();
        let is_deletion = |step: &&ScheduleStep| step.verb == ScheduleStepVerb::Delete && !former.contains(&&step.matter);
        let deletions = plan.steps.iter().filter(is_deletion).count();
        prop_assert!(deletions <= (known.len() * usize::from(deletion_percent) / 100).max(deletion_floor));
        prop_assert!(plan.refused.is_none() || deletions == 0);
    }

    #[test]
    fn a_drain_pauses_every_schedule_of_a_matter_and_its_end_resumes_what_it_paused(
        matters in vec(any_matter(), 1..20), mut server in any_server(),
    ) {
        let normal = ScheduleSettings::default();
        let drained = ScheduleSettings { draining: true, ..normal.clone() };
        let wanted: BTreeSet<String> = matters.iter().map(|matter| facts::schedule_id(&matter.path)).collect();
        let of_matters = |server: &Server, settings: &ScheduleSettings| -> Vec<KnownSchedule> {
            let known = read_server(server, &matters, settings);
            known.into_iter().filter(|each| wanted.contains(&each.id) && is_ours(each, settings)).collect()
        };
        let plan = plan_matter_schedules(&matters, &read_server(&server, &matters, &drained), &drained);
        carry_out(&mut server, &plan, &drained);
        prop_assume!(matters.iter().any(|matter| matter.status != MatterScheduleStatus::Lost));
        let kept = |id: &str| plan.refused.as_ref().is_some_and(|refused| refused.ids.iter().any(|each| each == id));
        for schedule in of_matters(&server, &drained) {
            prop_assert!(schedule.paused || kept(&schedule.id), "{schedule:?} after {plan:?}");
        }
        let plan = plan_matter_schedules(&matters, &read_server(&server, &matters, &normal), &normal);
        carry_out(&mut server, &plan, &normal);
        for schedule in of_matters(&server, &normal) {
            let stays = schedule.paused && schedule.note == DRAIN_NOTE && !kept(&schedule.id);
            prop_assert!(!stays, "{schedule:?} after {plan:?}");
        }
    }

    #[test]
    fn a_pause_made_by_a_person_stays_with_its_note(matters in vec(any_matter(), 0..20), mut server in any_server()) {
        let before = server.clone();
        let settings = ScheduleSettings::default();
        let plan = plan_matter_schedules(&matters, &read_server(&server, &matters, &settings), &settings);
        carry_out(&mut server, &plan, &settings);
        for (slug, (was, _)) in before {
            let state = was.state.unwrap();
            if !state.paused || is_our_pause(&state.notes) {
                continue;
            }
            if let Some((is, _)) = server.get(&slug) {
                prop_assert_eq!(is.state.as_ref(), Some(&state), "{}", slug);
            }
            let from = facts::schedule_id(&path(&slug));
            let moved = |step: &&ScheduleStep| matches!(&step.verb, ScheduleStepVerb::Move { from_id, .. } if *from_id == from);
            if let Some(step) = plan.steps.iter().find(moved) {
                let (is, _) = &server[step.id.strip_prefix(facts::ID_PREFIX).unwrap()];
                let is = is.state.clone().unwrap_or_default();
                prop_assert_eq!((is.paused, is.notes), (true, state.notes.clone()), "{} moved", slug);
            }
        }
    }
}

#[test]
fn a_renamed_matter_keeps_its_pause_and_its_note() {
    let settings = ScheduleSettings::default();
    let old = path("old-name");
    let mut schedule = facts::build_matter_schedule(&old, 1800, &settings);
    schedule.state = Some(spb::ScheduleState { paused: true, notes: "on holiday".into(), ..Default::default() });
    let known = [listed("old-name", &schedule)];
    let renamed = WantedMatter { former_paths: vec![old], ..matter("new-name", MatterScheduleStatus::Open) };
    let plan = plan_matter_schedules(std::slice::from_ref(&renamed), &known, &settings);
    let [step] = plan.steps.as_slice() else { panic!("{plan:?}") };
    let from_id = "al-steward-old-name".to_owned();
    let expected = ScheduleStepVerb::Move { from_id, paused: true, note: "on holiday".into(), old_stays: false };
    assert_eq!((step.id.as_str(), &step.verb), ("al-steward-new-name", &expected));

    // A note that took the old path at once may not end the pause either.
    let taken = plan_matter_schedules(&[renamed, matter("old-name", MatterScheduleStatus::Open)], &known, &settings);
    let [new, old] = taken.steps.as_slice() else { panic!("{taken:?}") };
    assert!(matches!(&new.verb, ScheduleStepVerb::Move { paused: true, old_stays: true, .. }), "{new:?}");
    assert!(matches!(&old.verb, ScheduleStepVerb::Keep { .. }), "{old:?}");
}

#[test]
fn the_schedule_of_a_renamed_matter_that_cannot_be_read_is_kept() {
    let settings = ScheduleSettings::default();
    let old = path("old-name");
    let known = [listed("old-name", &facts::build_matter_schedule(&old, 1800, &settings))];
    let renamed = WantedMatter { former_paths: vec![old], ..matter("new-name", MatterScheduleStatus::Unreadable) };
    let plan = plan_matter_schedules(&[renamed], &known, &settings);
    assert!(plan.steps.iter().all(|step| matches!(step.verb, ScheduleStepVerb::Keep { .. })), "{plan:?}");
}

#[test]
fn a_paused_schedule_waits_for_a_matter_whose_note_is_gone() {
    let settings = ScheduleSettings::default();
    let lost = matter("lost", MatterScheduleStatus::Lost);
    for (note, is_kept) in [("on holiday", true), (DONE_NOTE, false)] {
        let mut schedule = facts::build_matter_schedule(&lost.path, 1800, &settings);
        schedule.state = Some(spb::ScheduleState { paused: true, notes: note.into(), ..Default::default() });
        let plan = plan_matter_schedules(
            &[lost.clone(), matter("farm", MatterScheduleStatus::Open)],
            &[listed("lost", &schedule)],
            &settings,
        );
        let step = plan.steps.iter().find(|step| step.id == "al-steward-lost").unwrap();
        assert_eq!(matches!(step.verb, ScheduleStepVerb::Keep { .. }), is_kept, "{note}: {step:?}");
    }
}

#[test]
fn what_a_person_wrote_stays_below_the_note_of_steward() {
    let mut notes = CREATED_NOTE.to_owned();
    for (own, expected) in [(DONE_NOTE, DONE_NOTE.to_owned()), (REOPENED_NOTE, REOPENED_NOTE.to_owned())] {
        replace_own_note(&mut notes, own);
        assert_eq!(notes, expected);
    }
    "ask Ann first\n\nand Ben".clone_into(&mut notes);
    replace_own_note(&mut notes, DRAIN_NOTE);
    assert!(is_our_pause(&notes) && is_drain_pause(&notes), "{notes}");
    replace_own_note(&mut notes, DRAINED_NOTE);
    assert_eq!(notes, format!("{DRAINED_NOTE}\n\nask Ann first\n\nand Ben"));
    assert!(!is_our_pause(&notes) && !is_our_pause(CREATED_NOTE));
}
