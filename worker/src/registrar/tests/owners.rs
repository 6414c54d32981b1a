//! Tests two vaults in one namespace against a real server.

use super::*;
use steward_vault::files::identity::{VaultIdentity, VaultPlace};

async fn vault(namespace: &str, last: u8) -> ScheduleRegistrar {
    let id = format!("6f2c1a2e-8d3b-4c5f-9a7e-0123456789{last:02x}").parse().unwrap();
    let place = VaultPlace { folder: format!("/vault-{last}"), host: "host".into(), file: format!("{last}-1.1") };
    registrar(namespace).await.with(|settings| settings.owner = Some(VaultIdentity::new(id, place)))
}

impl ScheduleRegistrar {
    async fn whole_round(&self, matters: &[WantedMatter]) -> RegistrationOutcome {
        let routines = self.plan_routines().await.unwrap();
        self.apply_steps(SchedulePlan { routines, ..self.plan_matters(matters).await.unwrap() }).await
    }
}

#[tokio::test]
async fn of_two_vaults_that_start_at_the_same_moment_one_gets_the_namespace() {
    let (one, other) = (vault("claims", 1).await, vault("claims", 2).await);
    let (first, second) = tokio::join!(one.claim_namespace(), other.claim_namespace());
    let (winner, refused) = if first.is_ok() { (one, second) } else { (other, first) };
    let error = refused.unwrap_err();
    let RegistrarError::Conflict(conflict) = &error else { panic!("{error}") };
    let owner = winner.settings.owner.clone().unwrap();
    let expected = ConflictReason::AnotherVault { vault: owner.id, place: Some(owner.place) };
    assert_eq!(conflict.reason, expected, "the folder of the other vault is named");
    winner.claim_namespace().await.unwrap();
}

#[tokio::test]
async fn schedules_of_another_vault_are_neither_changed_nor_deleted_nor_triggered() {
    let (ours, theirs) = (vault("another", 1).await, vault("another", 2).await);
    theirs.whole_round(&open(&["farm", "garden"])).await;
    theirs.until_listed(|known| known.len() == 2).await;
    let all = theirs.list_entries().await.unwrap();
    let mut before = Vec::new();
    for entry in &all {
        before.push(theirs.describe_schedule(&entry.schedule_id).await.unwrap().unwrap().schedule);
    }
    let changed = ours.with(|settings| settings.task_queue = "elsewhere".to_owned());
    let matters = [matter("farm", MatterScheduleStatus::Done)];
    let plan = changed.plan_matters(&matters).await.unwrap();
    assert!(plan.conflict.is_some(), "{plan:?}");
    let outcome = changed.whole_round(&matters).await;
    assert_eq!((outcome.updated, outcome.paused, outcome.deleted, outcome.routines_changed), (0, 0, 0, 0));
    // Steps from an old listing are refused too.
    for verb in
        [ScheduleStepVerb::Delete, ScheduleStepVerb::Pause, ScheduleStepVerb::Update { differences: Vec::new() }]
    {
        let path = matters[0].path.clone();
        let step = ScheduleStep { id: "al-steward-farm".into(), matter: path, interval_seconds: 60, verb };
        let outcome = changed.apply_steps(SchedulePlan { steps: vec![step], ..SchedulePlan::default() }).await;
        assert!(outcome.errors[0].message.contains("another vault"), "{outcome:?}");
    }
    assert!(ours.set_matter_interval(&path("farm"), 60).await.is_err());
    assert_eq!(ours.trigger_matter(&path("farm")).await.unwrap(), ScheduleTriggerOutcome::OfAnother);
    assert_eq!(ours.trigger_schedule("al-signal-router").await.unwrap(), ScheduleTriggerOutcome::OfAnother);
    assert!(ours.list_schedules(chrono::Utc::now()).await.unwrap().is_empty());
    let mut after = Vec::new();
    for entry in &all {
        after.push(theirs.describe_schedule(&entry.schedule_id).await.unwrap().unwrap().schedule);
    }
    assert_eq!(after, before);
}

#[tokio::test]
async fn adopted_schedules_are_ours_and_keep_what_people_set() {
    let (ours, theirs) = (vault("adopted", 1).await, vault("adopted", 2).await);
    theirs.whole_round(&open(&["farm", "garden"])).await;
    run_cli("adopted", &["schedule", "toggle", "--schedule-id", "al-steward-farm", "--pause", "--reason", "harvest"]);
    let routines = super::routine::ROUTINES.len() - 1;
    theirs.until_listed(|known| known.len() == 2 && known.iter().any(|each| each.paused)).await;
    let found = ours.list_adoptable().await.unwrap();
    assert_eq!(found.len(), 2 + routines);
    assert!(found.iter().all(|each| each.vault == theirs.settings.owner.as_ref().map(|owner| owner.id)), "{found:?}");
    let errors = ours.adopt_all(found.into_iter().map(|each| each.id).collect()).await;
    assert!(errors.is_empty(), "{errors:?}");
    dev_server::eventually(async || ours.list_adoptable().await.unwrap().is_empty().then_some(())).await;
    ours.claim_namespace().await.unwrap();
    let outcome = ours.whole_round(&open(&["farm", "garden"])).await;
    assert_eq!((outcome.kept, outcome.unchanged, outcome.routines_changed), (1, 1, 0), "{outcome:?}");
    assert_eq!(ours.state("farm").await, (true, "harvest".to_owned()));
    assert!(matches!(theirs.claim_namespace().await, Err(RegistrarError::Conflict(_))));
}
