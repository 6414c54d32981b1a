//! Tests the registrar against a real Temporal dev server: one server for all tests, a namespace for each.

use super::edit::ScheduleEditOutcome;
use super::facts::ScheduleFacts;
use super::owner::ConflictReason;
use super::plan::DONE_NOTE;
use super::*;
use dev_server::{client, run_cli};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_server::views::schedules::ScheduleListingError;
use temporalio_client::tonic::IntoRequest;
use temporalio_common::protos::temporal::api::common::v1::WorkflowType;
use temporalio_common::protos::temporal::api::schedule::v1 as spb;
use temporalio_common::protos::temporal::api::workflowservice::v1 as svc;

mod dev_server;
mod owners;

fn path(slug: &str) -> RecordPath {
    RecordPath::new(RecordKind::Matter, slug).unwrap()
}

fn matter(slug: &str, standing: MatterScheduleStatus) -> WantedMatter {
    WantedMatter { path: path(slug), status: standing, interval_seconds: 0, former_paths: Vec::new() }
}

fn open(slugs: &[&str]) -> Vec<WantedMatter> {
    slugs.iter().map(|slug| matter(slug, MatterScheduleStatus::Open)).collect()
}

async fn registrar(namespace: &str) -> ScheduleRegistrar {
    ScheduleRegistrar::new(client(namespace).await, ScheduleSettings::default())
}

impl ScheduleRegistrar {
    fn with(&self, change: impl FnOnce(&mut ScheduleSettings)) -> Self {
        let mut other = self.clone();
        change(&mut other.settings);
        other
    }

    /// The schedules of matters that the server lists.
    async fn known(&self) -> Result<Vec<KnownSchedule>, RegistrarError> {
        let entries = self.list_entries().await?.into_iter();
        Ok(entries
            .filter(|entry| entry.schedule_id.starts_with(facts::ID_PREFIX))
            .map(server::known_from_listing)
            .collect())
    }

    async fn round(&self, matters: &[WantedMatter]) -> RegistrationOutcome {
        let plan = self.plan_matters(matters).await.unwrap();
        self.apply_steps(plan).await
    }

    async fn schedule(&self, slug: &str) -> spb::Schedule {
        self.describe_schedule(&facts::schedule_id(&path(slug))).await.unwrap().unwrap().schedule.unwrap()
    }

    async fn state(&self, slug: &str) -> (bool, String) {
        let state = self.schedule(slug).await.state.unwrap_or_default();
        (state.paused, state.notes)
    }

    /// Waits until the listing, which may lag behind, shows what a test has done.
    async fn until_listed(&self, shows: impl Fn(&[KnownSchedule]) -> bool) {
        dev_server::eventually(async || shows(&self.known().await.unwrap()).then_some(())).await;
    }

    /// Runs that are open, as the server's visibility store knows them.
    async fn open_runs(&self, slug: &str) -> usize {
        let info = self.describe_schedule(&facts::schedule_id(&path(slug))).await.unwrap().unwrap().info.unwrap();
        info.running_workflows.len()
    }
}

async fn create_foreign(registrar: &ScheduleRegistrar, slug: &str, workflow: &str) {
    let mut schedule = registrar.build_matter_schedule(&path(slug), 1800);
    if let Some(spb::schedule_action::Action::StartWorkflow(action)) =
        schedule.action.as_mut().and_then(|action| action.action.as_mut())
    {
        action.workflow_type = Some(WorkflowType { name: workflow.to_owned() });
    }
    let request = svc::CreateScheduleRequest {
        namespace: registrar.namespace(),
        schedule_id: facts::schedule_id(&path(slug)),
        schedule: Some(schedule),
        request_id: slug.to_owned(),
        ..Default::default()
    };
    registrar.client.connection().workflow_service().create_schedule(request.into_request()).await.unwrap();
}

#[tokio::test]
async fn schedules_are_created_left_updated_and_deleted() {
    let registrar = registrar("life").await;
    let two = open(&["eagle-farm", "renew-passport"]);
    let outcome = registrar.round(&two).await;
    assert_eq!((outcome.created, outcome.errors.len()), (2, 0), "{outcome:?}");

    registrar.until_listed(|known| known.len() == 2 && known.iter().all(|each| each.mark.is_some())).await;
    let again = registrar.plan_matters(&two).await.unwrap();
    assert!(again.steps.iter().all(|step| step.verb == ScheduleStepVerb::Unchanged), "{again:?}");
    let full = registrar.with(|settings| settings.describe_all = true).plan_matters(&two).await.unwrap();
    assert!(full.steps.iter().all(|step| step.verb == ScheduleStepVerb::Unchanged), "{full:?}");

    let moved = registrar.with(|settings| settings.task_queue = "elsewhere".to_owned());
    let plan = moved.plan_matters(&two).await.unwrap();
    let named = ScheduleStepVerb::Update { differences: vec!["task queue: steward → elsewhere".to_owned()] };
    assert!(plan.steps.iter().all(|step| step.verb == named), "{plan:?}");
    assert_eq!(moved.apply_steps(plan).await.updated, 2);
    let differences = ScheduleFacts::from_schedule(&moved.schedule("eagle-farm").await)
        .list_differences(&ScheduleFacts::from_schedule(&moved.build_matter_schedule(&two[0].path, 1800)));
    assert!(differences.is_empty(), "{differences:?}");
    assert_eq!(moved.round(&two).await.unchanged, 2);

    let outcome = moved.round(&two[..1]).await;
    assert_eq!((outcome.deleted, outcome.unchanged), (1, 1), "{outcome:?}");
    assert!(moved.describe_schedule("al-steward-renew-passport").await.unwrap().is_none());
}

#[tokio::test]
async fn an_outdated_plan_does_no_harm() {
    let registrar = registrar("overtaken").await;
    let matters = open(&["farm", "garden"]);
    let create = registrar.plan_matters(&matters).await.unwrap();
    registrar.apply_steps(create.clone()).await;
    let outcome = registrar.apply_steps(create).await;
    assert_eq!((outcome.overtaken, outcome.errors.len()), (2, 0), "{outcome:?}");

    registrar.until_listed(|known| known.len() == 2).await;
    let delete = registrar.plan_matters(&matters[..1]).await.unwrap();
    registrar.apply_steps(delete.clone()).await;
    let outcome = registrar.apply_steps(delete).await;
    assert_eq!((outcome.overtaken, outcome.errors.len()), (1, 0), "{outcome:?}");
}

#[tokio::test]
async fn a_schedule_that_a_person_rewrote_shows_in_the_listing() {
    let registrar = registrar("drift").await;
    let matters = open(&["farm"]);
    registrar.round(&matters).await;
    let cadence = format!("30m/{}s", phase_of("farm"));
    let common = ["schedule", "update", "--schedule-id", "al-steward-farm", "--workflow-id", "al-steward-farm"];
    let rest = ["--interval", &cadence, "--type", "StewardWorkflow", "--task-queue", "theirs", "--input", "\"x\""];
    run_cli("drift", &[&common[..], &rest[..]].concat());
    registrar.until_listed(|known| known.iter().any(|each| each.mark.is_none())).await;
    let plan = registrar.plan_matters(&matters).await.unwrap();
    let [ScheduleStep { verb: ScheduleStepVerb::Update { differences }, .. }] = &plan.steps[..] else {
        panic!("{plan:?}")
    };
    let named: Vec<&str> = differences.iter().filter_map(|line| line.split(':').next()).collect();
    let theirs = ["argument", "task queue", "execution timeout", "run timeout", "catch-up window", "summary"];
    assert!(theirs.iter().all(|name| named.contains(name)), "{differences:?}");
    assert_eq!(registrar.apply_steps(plan).await.updated, 1);
    let is = ScheduleFacts::from_schedule(&registrar.schedule("farm").await);
    assert_eq!(is, ScheduleFacts::from_schedule(&registrar.build_matter_schedule(&matters[0].path, 1800)));
}

#[tokio::test]
async fn a_change_that_our_mark_does_not_show_is_found_by_a_full_description() {
    let registrar = registrar("beneath").await;
    let matters = open(&["farm"]);
    registrar.round(&matters).await;
    let mut schedule = registrar.schedule("farm").await;
    schedule.policies.get_or_insert_default().catchup_window = None;
    let request = svc::UpdateScheduleRequest {
        namespace: registrar.namespace(),
        schedule_id: "al-steward-farm".to_owned(),
        schedule: Some(schedule),
        request_id: "beneath".to_owned(),
        ..Default::default()
    };
    registrar.client.connection().workflow_service().update_schedule(request.into_request()).await.unwrap();
    registrar.until_listed(|known| known.len() == 1).await;
    let full = registrar.with(|settings| settings.describe_all = true).plan_matters(&matters).await.unwrap();
    let [ScheduleStep { verb: ScheduleStepVerb::Update { differences }, .. }] = &full.steps[..] else {
        panic!("{full:?}")
    };
    assert_eq!(differences[..], ["catch-up window: 31536000 s → 1800 s"]);
}

fn phase_of(slug: &str) -> u32 {
    facts::compute_phase_seconds(slug, 1800)
}

#[tokio::test]
async fn a_persons_pause_survives_an_update_and_a_change_of_interval() {
    let registrar = registrar("pause").await;
    let matters = open(&["farm"]);
    registrar.round(&matters).await;
    run_cli("pause", &["schedule", "toggle", "--schedule-id", "al-steward-farm", "--pause", "--reason", "harvest"]);
    let kept = (true, "harvest".to_owned());
    registrar.until_listed(|known| known.iter().any(|each| each.paused && each.note == "harvest")).await;
    let outcome = registrar.round(&matters).await;
    assert_eq!((outcome.kept, outcome.errors.len()), (1, 0), "{outcome:?}");

    let moved = registrar.with(|settings| settings.task_queue = "elsewhere".to_owned());
    assert_eq!(moved.round(&matters).await.updated, 1);
    assert_eq!(moved.state("farm").await, kept);
    assert_eq!(moved.set_matter_interval(&path("farm"), 3600).await.unwrap(), ScheduleEditOutcome::Changed);
    assert_eq!(moved.state("farm").await, kept);
    assert!(facts::describe_cadence(moved.schedule("farm").await.spec.as_ref()).starts_with("every 3600 s"));
    let done = moved.round(&[matter("farm", MatterScheduleStatus::Done)]).await;
    assert_eq!((done.paused, done.errors.len()), (0, 0), "{done:?}");
    assert_eq!(moved.state("farm").await, kept);
}

#[tokio::test]
async fn a_pause_that_the_listing_does_not_show_yet_is_kept_too() {
    let registrar = registrar("late").await;
    let matters = [matter("farm", MatterScheduleStatus::Done)];
    registrar.round(&open(&["farm"])).await;
    registrar.until_listed(|known| known.len() == 1).await;
    let plan = registrar.plan_matters(&matters).await.unwrap();
    assert!(matches!(&plan.steps[..], [ScheduleStep { verb: ScheduleStepVerb::Pause, .. }]), "{plan:?}");
    run_cli("late", &["schedule", "toggle", "--schedule-id", "al-steward-farm", "--pause", "--reason", "harvest"]);
    assert_eq!(registrar.apply_steps(plan).await.overtaken, 1);
    assert_eq!(registrar.state("farm").await, (true, "harvest".to_owned()));
}

#[tokio::test]
async fn a_done_matter_is_paused_and_resumed_when_it_is_open_again() {
    let registrar = registrar("done").await;
    let done = [matter("farm", MatterScheduleStatus::Done), matter("old", MatterScheduleStatus::Done)];
    registrar.round(&open(&["farm"])).await;
    registrar.until_listed(|known| known.len() == 1).await;
    let outcome = registrar.round(&done).await;
    assert_eq!((outcome.paused, outcome.created), (1, 1), "{outcome:?}");
    for slug in ["farm", "old"] {
        assert_eq!(registrar.state(slug).await, (true, DONE_NOTE.to_owned()));
    }
    assert_eq!(registrar.trigger_matter(&path("farm")).await.unwrap(), ScheduleTriggerOutcome::PausedByUs);
    assert_eq!(registrar.open_runs("farm").await, 0);

    registrar.until_listed(|known| known.len() == 2 && known.iter().all(|each| each.paused)).await;
    assert_eq!(registrar.round(&open(&["farm", "old"])).await.resumed, 2);
    assert!(!registrar.state("farm").await.0);
}

#[tokio::test]
async fn phase_and_catch_up_and_timeouts_are_in_the_schedule() {
    let registrar = registrar("phase").await;
    registrar.round(&open(&["eagle-farm"])).await;
    let shown = run_cli("phase", &["schedule", "describe", "--schedule-id", "al-steward-eagle-farm", "-o", "json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let schedule = &shown["schedule"];
    let interval = &schedule["spec"]["interval"][0];
    assert_eq!(interval["interval"], "1800s");
    assert_eq!(interval["phase"], format!("{}s", phase_of("eagle-farm")));
    assert_eq!(schedule["policies"]["catchupWindow"], "1800s");
    assert_eq!(schedule["policies"]["overlapPolicy"], "SCHEDULE_OVERLAP_POLICY_SKIP");
    let action = &schedule["action"]["startWorkflow"];
    assert_eq!(action["workflowType"]["name"], "StewardWorkflow");
    assert_eq!(action["taskQueue"]["name"], "steward");
    assert_eq!(action["workflowExecutionTimeout"], "300s");
    assert_eq!(action["workflowRunTimeout"], "300s");
    assert_eq!(action["workflowTaskTimeout"], "10s");
    let is = ScheduleFacts::from_schedule(&registrar.schedule("eagle-farm").await);
    assert!(format!("{is:?}").contains("Steward of matter/eagle-farm.md"), "{is:?}");

    assert_eq!(registrar.set_matter_interval(&path("eagle-farm"), 14400).await.unwrap(), ScheduleEditOutcome::Changed);
    assert_eq!(registrar.set_matter_interval(&path("eagle-farm"), 14400).await.unwrap(), ScheduleEditOutcome::Same);
    let wanted = registrar.build_matter_schedule(&open(&["eagle-farm"])[0].path, 14400);
    assert_eq!(
        ScheduleFacts::from_schedule(&registrar.schedule("eagle-farm").await),
        ScheduleFacts::from_schedule(&wanted)
    );
    assert_eq!(registrar.set_matter_interval(&path("nobody"), 14400).await.unwrap(), ScheduleEditOutcome::Missing);

    let backed_off = [WantedMatter { interval_seconds: 14400, ..matter("eagle-farm", MatterScheduleStatus::Open) }];
    registrar.until_listed(|known| plan::find_undescribed(&backed_off, known, &registrar.settings).is_empty()).await;
    assert_eq!(registrar.round(&backed_off).await.unchanged, 1);
}

#[tokio::test]
async fn deletions_above_the_budget_are_not_done_until_an_operator_confirms() {
    let registrar = registrar("budget").await;
    let all = open(&["a", "b", "c", "d", "e"]);
    registrar.round(&all).await;
    registrar.until_listed(|known| known.len() == 5).await;
    let few = open(&["a", "new"]);
    let outcome = registrar.round(&few).await;
    assert_eq!((outcome.deleted, outcome.created, outcome.kept), (0, 1, 4), "{outcome:?}");
    assert_eq!(outcome.refused.unwrap().ids.len(), 4);
    registrar.until_listed(|known| known.len() == 6).await;
    let confirmed = registrar.with(|settings| settings.operator_confirmed = true);
    assert_eq!(confirmed.round(&few).await.deleted, 4);
}

#[tokio::test]
async fn an_empty_list_of_matters_leaves_every_schedule() {
    let registrar = registrar("empty").await;
    registrar.round(&open(&["farm"])).await;
    registrar.until_listed(|known| known.len() == 1).await;
    let plan = registrar.plan_matters(&[]).await.unwrap();
    assert_eq!(plan.warnings.len(), 1);
    registrar.apply_steps(plan).await;
    assert!(registrar.describe_schedule("al-steward-farm").await.unwrap().is_some());
}

#[tokio::test]
async fn a_trigger_starts_a_run_at_once_and_further_ones_add_one_buffered_run() {
    let registrar = registrar("wake").await;
    registrar.round(&open(&["farm"])).await;
    assert_eq!(registrar.trigger_matter(&path("nobody")).await.unwrap(), ScheduleTriggerOutcome::Missing);
    assert_eq!(registrar.trigger_matter(&path("farm")).await.unwrap(), ScheduleTriggerOutcome::Triggered);
    dev_server::eventually(async || (registrar.open_runs("farm").await == 1).then_some(())).await;
    for _ in 0..3 {
        assert_eq!(registrar.trigger_matter(&path("farm")).await.unwrap(), ScheduleTriggerOutcome::Triggered);
    }
    let buffered = async || {
        let info = registrar.describe_schedule("al-steward-farm").await.unwrap().unwrap().info.unwrap();
        (info.buffer_size == 1 && info.buffer_dropped + info.overlap_skipped >= 2).then_some(info.action_count)
    };
    assert_eq!(dev_server::eventually(buffered).await, 1);
    assert_eq!(registrar.open_runs("farm").await, 1);
    let rows = dev_server::eventually(async || {
        let rows = registrar.list_schedules(chrono::Utc::now()).await.unwrap();
        rows.iter().any(|row| !row.recent.is_empty()).then_some(rows)
    })
    .await;
    assert_eq!(rows[0].matter.as_deref(), Some("matter/farm.md"));
    assert_eq!((rows[0].interval_seconds, rows[0].phase_seconds), (1800, phase_of("farm").into()));
    assert_eq!(rows[0].recent[0].status, "started");
    assert!(rows[0].next_run.is_some_and(|at| at > chrono::Utc::now()));
}

#[tokio::test]
async fn a_schedule_of_another_workflow_type_is_left_alone() {
    let registrar = registrar("foreign").await;
    create_foreign(&registrar, "farm", "BackupWorkflow").await;
    create_foreign(&registrar, "gone", "BackupWorkflow").await;
    registrar.until_listed(|known| known.len() == 2).await;
    let plan = registrar.plan_matters(&open(&["farm", "garden"])).await.unwrap();
    assert_eq!(plan.warnings.len(), 2, "{plan:?}");
    let outcome = registrar.apply_steps(plan).await;
    assert_eq!((outcome.created, outcome.kept, outcome.deleted), (1, 1, 0), "{outcome:?}");
    for slug in ["farm", "gone"] {
        assert_eq!(facts::find_workflow_type(&registrar.schedule(slug).await), "BackupWorkflow");
    }
}

#[tokio::test]
async fn a_matter_whose_schedule_cannot_be_created_does_not_stop_the_others() {
    let registrar = registrar("bad").await;
    let mut plan = registrar.plan_matters(&open(&["farm", "garden", "orchard"])).await.unwrap();
    plan.steps[1].interval_seconds = 0;
    let outcome = registrar.apply_steps(plan).await;
    assert_eq!((outcome.created, outcome.errors.len()), (2, 1), "{outcome:?}");
    let error = &outcome.errors[0];
    assert_eq!(error.id, "al-steward-garden");
    assert!(error.message.starts_with("create schedule al-steward-garden: "), "{}", error.message);
}

#[tokio::test]
async fn an_edit_that_another_writer_overtakes_is_repeated_and_both_stay() {
    let registrar = registrar("race").await;
    registrar.round(&open(&["farm"])).await;
    let other = registrar.clone();
    let raced = std::sync::atomic::AtomicBool::new(false);
    let result = registrar
        .edit_own_schedule("al-steward-farm", |schedule| {
            if !raced.swap(true, std::sync::atomic::Ordering::SeqCst) {
                // Somebody pauses the schedule between the reading and the writing of this edit.
                let toggle =
                    ["schedule", "toggle", "--schedule-id", "al-steward-farm", "--pause", "--reason", "harvest"];
                run_cli("race", &toggle);
            }
            facts::set_cadence(schedule, &path("farm"), 7200);
        })
        .await;
    assert_eq!(result.unwrap(), ScheduleEditOutcome::Changed);
    assert_eq!(other.state("farm").await, (true, "harvest".to_owned()));
    assert!(facts::describe_cadence(other.schedule("farm").await.spec.as_ref()).starts_with("every 7200 s"));
}

#[tokio::test]
async fn a_listing_that_breaks_off_or_repeats_a_page_ends_the_round() {
    let answers = |token: &'static [u8]| {
        dev_server::fake_listing(move |page| match (page, token) {
            (0, _) | (_, b"same") => {
                Some(svc::ListSchedulesResponse { next_page_token: token.to_vec(), ..Default::default() })
            }
            _ => None,
        })
    };
    let broken = ScheduleRegistrar::new(answers(b"next").await, ScheduleSettings::default());
    let error = broken.plan_matters(&open(&["farm"])).await.unwrap_err();
    assert!(matches!(error, RegistrarError::Listing(ScheduleListingError::Broken { page: 2, .. })), "{error}");
    let round = ScheduleRegistrar::new(answers(b"same").await, ScheduleSettings::default());
    let error = round.plan_matters(&open(&["farm"])).await.unwrap_err();
    assert!(matches!(error, RegistrarError::Listing(ScheduleListingError::Repeats { page: 2 })), "{error}");
}

#[tokio::test]
async fn routines_are_created_once_updated_if_they_differ_and_left_paused() {
    let registrar = registrar("routines").await.with(|settings| settings.tracker = true);
    let apply = async |registrar: &ScheduleRegistrar| {
        let mut changed = 0;
        for step in registrar.plan_routines().await.unwrap() {
            changed += usize::from(registrar.apply_routine(&step).await.unwrap());
        }
        changed
    };
    let all = super::routine::ROUTINES.len();
    assert_eq!((apply(&registrar).await, apply(&registrar).await), (all, 0));
    let id = "al-signal-extract";
    assert_eq!(registrar.trigger_schedule(id).await.unwrap(), ScheduleTriggerOutcome::Triggered);
    run_cli("routines", &["schedule", "toggle", "--schedule-id", id, "--pause", "--reason", "harvest"]);
    assert_eq!(registrar.trigger_schedule(id).await.unwrap(), ScheduleTriggerOutcome::Paused);
    assert_eq!(apply(&registrar).await, 0);
    let moved = registrar.with(|settings| settings.task_queue = "elsewhere".to_owned());
    assert_eq!(apply(&moved).await, all);
    let state = moved.describe_schedule(id).await.unwrap().unwrap().schedule.unwrap().state.unwrap();
    assert!(state.paused && state.notes == "harvest", "{state:?}");
    // The tracker's routine is removed with the tracker.
    let without = moved.with(|settings| settings.tracker = false);
    assert_eq!((apply(&without).await, apply(&without).await), (1, 0));
    assert!(moved.describe_schedule("al-tracker-outbox").await.unwrap().is_none());
    // The routines stay when all matters are archived.
    moved.round(&open(&["farm"])).await;
    moved.until_listed(|known| known.len() == 1).await;
    moved.round(&[matter("farm", MatterScheduleStatus::Archived)]).await;
    assert!(moved.describe_schedule(id).await.unwrap().is_some());
    assert_eq!(moved.trigger_schedule("al-nobody").await.unwrap(), ScheduleTriggerOutcome::Missing);
}
