//! Throw-away addresses with one undone change each demote all unknown sources, and no source that was right before.

use super::*;
use steward_domain::action::mutation::MutationClass;
use steward_domain::trust::mark::TrustSubject;

impl VaultFixture {
    async fn lands(&self, ask: ApplyInput) -> (Disposition, ActionId) {
        let applied = self.steward().apply_decision(ask).await.unwrap();
        match &applied {
            ApplyOutput::Filed { action_id, .. } => (self.disposition(&applied), action_id.clone()),
            other => panic!("{other:?}"),
        }
    }

    /// Undoes two actions, and returns the demotions that the second undo reports.
    async fn both_undone(&self, ids: &[ActionId]) -> Vec<String> {
        let mut told = Vec::new();
        for (n, id) in ids.iter().enumerate() {
            match self.undone(id, &format!("undo-{n}")).await {
                ResolveOutput::Done { lowered, .. } => told = lowered,
                other => panic!("{other:?}"),
            }
        }
        told
    }
}

#[tokio::test]
async fn unknown_sources_answer_together_before_the_class_and_until_a_human_raises_them() {
    let said = ["mail:a", "mail:b", "mail:c", "mail:d", "bank"].map(|source| vec![source]);
    let mut bench = VaultFixture::of_tasks(&said).await;
    bench.context.settings.live_per_source_day = 20;
    bench.context.settings.policy.mode = Mode::LiveHighConfidenceOnly;
    let mut asks = bench.asks().await;
    let (bank, last, other) = (asks.remove(4), asks.remove(3), asks.remove(2));
    let mut undone = Vec::new();
    for ask in asks {
        let (disposition, id) = bench.lands(ask).await;
        assert_eq!(disposition, Disposition::Live);
        undone.push(id);
    }
    let told = bench.both_undone(&undone).await.join("\n");
    let expected = "unknown_sources (all sources that were never right before) went from live_high_confidence_only to shadow: 2 of 2";
    assert!(told.starts_with(expected), "{told}");
    let caps = bench.context.index.trust().read_mode_caps().await.unwrap();
    assert_eq!(caps.keys().collect::<Vec<_>>(), [&TrustSubject::UnknownSources], "no class, no source");

    let held = other.clone();
    assert_eq!(bench.lands(other).await.0, Disposition::Shadow, "an address that was never seen before");
    assert_eq!(bench.lands(bank).await.0, Disposition::Live, "one that was right before goes on");
    let record = std::fs::read_dir(bench.dir.path().join("event")).unwrap().map(|e| e.unwrap().path());
    let texts: Vec<String> = record.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let gate = "`steward trust raise unknown_sources`";
    assert!(texts.iter().any(|text| text.contains(held.plan.id().as_str()) && text.contains(gate)), "{texts:?}");

    let lowered = bench.context.index.trust().find_last_demotion(&TrustSubject::UnknownSources).await.unwrap().unwrap();
    let raise = ResolveInput {
        kind: ResolutionKind::Raise,
        action: lowered.to_string(),
        by: "ann".into(),
        reason: None,
        edited: None,
        batch_id: None,
        resolved_by: Default::default(),
    };
    let click = WorkflowRef { id: "raise".into(), run_id: "click".into() };
    assert!(matches!(bench.context.handle_resolution(raise, click).await.unwrap(), ResolveOutput::Done { .. }));
    assert_eq!(bench.lands(last).await.0, Disposition::Live);
    bench.context.index.rebuild(bench.context.writer.root(), Utc::now()).await.unwrap();
    assert_eq!(
        bench.context.index.trust().read_mode_caps().await.unwrap()[&TrustSubject::UnknownSources].mode,
        None,
        "the records say so"
    );
}

#[tokio::test]
async fn sources_that_were_right_before_still_answer_with_their_class() {
    let bench = VaultFixture::of_tasks(&[vec!["bank"], vec!["post"], vec!["mail:a"]]).await;
    std::fs::write(bench.dir.path().join("instinct/post.md"), "---\ntype: instinct\nobservations: 50\n---\n").unwrap();
    bench.context.index.sync_all(bench.context.writer.root(), Utc::now()).await.unwrap();
    let mut asks = bench.asks().await;
    asks.truncate(2);
    let mut undone = Vec::new();
    for ask in asks {
        undone.push(bench.lands(ask).await.1);
    }
    bench.both_undone(&undone).await;
    let caps = bench.context.index.trust().read_mode_caps().await.unwrap();
    assert_eq!(caps.keys().collect::<Vec<_>>(), [&TrustSubject::Class(MutationClass::StateChange)]);
}
