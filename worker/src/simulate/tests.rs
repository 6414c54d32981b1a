//! Tests that a simulated month depends only on its seed, keeps its truth out of the vault, and has right labels.

use super::SimulationOptions;
use super::SimulationSummary;
use super::calendar;
use super::household::{RELATED_BY, SOURCES};
use super::write_simulation;
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::Disposition;
use steward_domain::time;
use steward_domain::trust::outcome::ProposalHistory;
use steward_vault::action::chain;
use steward_vault::files::root::VaultRoot;

fn options(days: u32, seed: u64) -> SimulationOptions {
    SimulationOptions { days, seed, now: time::parse("2026-11-22T18:00:00.987Z").unwrap() }
}

async fn simulated(options: &SimulationOptions) -> (tempfile::TempDir, SimulationSummary) {
    let dir = tempfile::tempdir().unwrap();
    let written = write_simulation(&dir.path().join("vault"), options).await.unwrap();
    (dir, written)
}

/// Every file below a folder, except the lock, which names its process.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with(".steward/lock") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn records(vault: &Path) -> Vec<AuditRecord> {
    let all = fs::read_dir(vault.join("event")).unwrap();
    all.map(|entry| AuditRecord::parse(&fs::read(entry.unwrap().path()).unwrap()).unwrap()).collect()
}

/// The history of a proposal according to the records.
fn history(proposal: &AuditRecord, all: &[AuditRecord]) -> ProposalHistory {
    let answer = |kind: ActionKind| {
        let of = |r: &&AuditRecord| {
            r.draft.kind == kind && r.draft.resolution.as_ref().is_some_and(|a| a.action_id == proposal.draft.id)
        };
        all.iter().find(of).map(|r| r.draft.timestamp)
    };
    ProposalHistory {
        confirmed: answer(ActionKind::Confirmed),
        dismissed: answer(ActionKind::Dismissed),
        undone: answer(ActionKind::Reversed),
        done_anyway: answer(ActionKind::DoneAnyway),
        opposed: answer(ActionKind::Opposed),
        ..ProposalHistory::from_disposition(proposal.draft.disposition, proposal.draft.timestamp)
    }
}

#[tokio::test]
async fn the_same_seed_writes_the_same_bytes_and_another_one_others() {
    let (one, written) = simulated(&options(2, 7)).await;
    let (again, _) = simulated(&options(2, 7)).await;
    let (other, _) = simulated(&options(2, 8)).await;
    assert!(written.proposals > 40, "{written:?}");
    let (one, again, other) = (files(one.path()), files(again.path()), files(other.path()));
    assert_eq!(one.keys().collect::<Vec<_>>(), again.keys().collect::<Vec<_>>());
    let differing: Vec<&String> = one.keys().filter(|name| one[*name] != again[*name]).collect();
    assert_eq!(
        differing,
        ["vault/.steward/vault.json"],
        "each vault has a random id of its own, and nothing else differs"
    );
    assert_ne!(one, other);
}

#[tokio::test]
async fn a_label_contradicts_the_truth_only_where_the_principal_erred() {
    let wanted = options(10, 7);
    let (dir, written) = simulated(&wanted).await;
    let vault = dir.path().join("vault");
    assert_eq!(written.truth, dir.path().join("vault.truth.json"));
    let verified = chain::verify_chain(&VaultRoot::open(&vault).unwrap()).unwrap();
    assert!(verified.faults.is_empty(), "{:?}", verified.faults);
    for (name, bytes) in files(&vault) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("reliability") && !text.contains("\"right\""), "{name} holds the truth");
    }
    let truth: Value = serde_json::from_slice(&fs::read(&written.truth).unwrap()).unwrap();
    let truth = truth["actions"].as_object().unwrap();
    let all = records(&vault);
    let proposals: Vec<&AuditRecord> =
        all.iter().filter(|r| r.draft.kind == ActionKind::Action && r.draft.class.is_some()).collect();
    let ids: BTreeSet<&str> = proposals.iter().map(|r| r.draft.id.as_str()).collect();
    assert_eq!(ids, truth.keys().map(String::as_str).collect());
    let (mut agreed, mut wrong, mut open, mut erred) = (0, 0, 0, 0);
    let now: DateTime<Utc> = time::truncate_to_seconds(wanted.now);
    for proposal in &proposals {
        let known = &truth[proposal.draft.id.as_str()];
        match history(proposal, &all).feedback_at(now).0.is_agreement() {
            None => open += 1,
            Some(says) if Some(says) == known["right"].as_bool() => {
                assert_eq!(known["erred"], false, "{known}");
                if says { agreed += 1 } else { wrong += 1 }
            }
            Some(_) => {
                assert_eq!(known["erred"], true, "{known}");
                erred += 1;
            }
        }
    }
    assert_eq!(agreed + wrong + open + erred, written.proposals);
    assert!(agreed > 200 && wrong > 10 && erred < 15, "{agreed} agreed, {wrong} wrong, {open} open, {erred} erred");
    let landed = |disposition| proposals.iter().filter(|r| r.draft.disposition == disposition).count();
    assert!(landed(Disposition::Live) > 5 && landed(Disposition::Pending) > 5 && landed(Disposition::Shadow) > 100);
    for kind in [ActionKind::Confirmed, ActionKind::Dismissed, ActionKind::DoneAnyway, ActionKind::Opposed] {
        assert!(all.iter().any(|r| r.draft.kind == kind), "no {}", kind.as_str());
    }
}

#[tokio::test]
async fn it_refuses_a_folder_that_is_not_empty_and_an_existing_truth() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.md"), "mine").unwrap();
    let refused = write_simulation(dir.path(), &options(1, 7)).await.unwrap_err();
    assert!(refused.to_string().contains("already holds \"a.md\""), "{refused}");
    let vault = dir.path().join("vault");
    fs::write(dir.path().join("vault.truth.json"), "mine").unwrap();
    let refused = write_simulation(&vault, &options(1, 7)).await.unwrap_err();
    assert!(refused.to_string().contains("vault.truth.json already exists"), "{refused}");
    assert!(!vault.exists());
}

#[test]
fn a_month_has_a_source_to_trust_one_to_doubt_and_a_class_of_too_few() {
    for seed in 0..20 {
        let cases = calendar::draw_messages(&options(30, seed));
        assert!((900..=1_200).contains(&cases.len()), "{}", cases.len());
        let of = |class: MutationClass| cases.iter().filter(|c| c.class == class).collect::<Vec<_>>();
        assert_eq!(of(MutationClass::Related).len(), 12);
        assert!(of(MutationClass::Related).iter().all(|c| c.source.name == SOURCES[RELATED_BY].name));
        let states = of(MutationClass::StateChange);
        let (best, worst) = (SOURCES[0].name, "gmail:newsletter@garden-post.example");
        let by = |name: &str| states.iter().filter(|c| c.source.name == name).collect::<Vec<_>>();
        let right = |name: &str| by(name).iter().filter(|c| c.right).count() as f64 / by(name).len() as f64;
        assert!(by(best).len() >= 450, "some of them stay open, and 400 have to be left");
        assert!(right(best) > 0.96 && right(worst) < 0.75, "seed {seed}: {} {}", right(best), right(worst));
        assert!(cases.windows(2).all(|pair| pair[0].at < pair[1].at), "no two at one moment");
    }
}
