use super::*;
use crate::vault::tests::VaultFixture;
use chrono::TimeDelta;
use steward_domain::gates::mode::Mode;

fn wish(ceiling: Ceiling, at: chrono::DateTime<Utc>) -> SetCeilingInput {
    SetCeilingInput { source: "bank".into(), ceiling, by: "ann".into(), at }
}

async fn set(bench: &VaultFixture, wish: SetCeilingInput) -> SetCeilingOutput {
    let workflow = WorkflowRef { id: "ceiling".into(), run_id: "run".into() };
    set_ceiling(&bench.context, wish, workflow).await.unwrap()
}

fn read(bench: &VaultFixture, path: &str) -> String {
    std::fs::read_to_string(bench.dir.path().join(path)).unwrap()
}

#[tokio::test]
async fn of_two_wishes_the_later_one_holds_whichever_ends_last() {
    let bench = VaultFixture::new(Mode::Live).await;
    bench.changed("").await;
    let now = Utc::now();
    let early = wish(Ceiling::Confirm, now - TimeDelta::seconds(3));
    assert!(
        matches!(set(&bench, wish(Ceiling::Ask, now)).await, SetCeilingOutput::Set { actions } if actions.len() == 1)
    );
    let SetCeilingOutput::Refused { status, message, .. } = set(&bench, early).await else {
        panic!("it came too late")
    };
    assert_eq!(status, 409);
    assert!(message.contains("it was set again at"), "{message}");
    assert!(read(&bench, "instinct/bank.md").contains("ceiling: ask\n"));
    // The same wish again is found, and changes nothing.
    assert!(
        matches!(set(&bench, wish(Ceiling::Ask, now)).await, SetCeilingOutput::Set { actions } if actions.len() == 1)
    );
    let later = wish(Ceiling::Confirm, now + TimeDelta::seconds(3));
    assert!(matches!(set(&bench, later).await, SetCeilingOutput::Set { .. }));
    assert!(read(&bench, "instinct/bank.md").contains("ceiling: confirm\n"));
}

#[tokio::test]
async fn an_instinct_that_names_another_source_is_never_changed() {
    let bench = VaultFixture::new(Mode::Live).await;
    bench.changed("").await;
    let other = "---\ntype: instinct\nsource: other\n---\n";
    std::fs::create_dir_all(bench.dir.path().join("instinct")).unwrap();
    std::fs::write(bench.dir.path().join("instinct/bank.md"), other).unwrap();
    let set = set(&bench, wish(Ceiling::Ask, Utc::now())).await;
    assert!(matches!(set, SetCeilingOutput::Set { actions } if actions.len() == 1));
    assert_eq!(read(&bench, "instinct/bank.md"), other);
    assert_eq!(read(&bench, "instinct/bank-2.md"), "---\ntype: instinct\nsource: bank\nceiling: ask\n---\n");
}

#[tokio::test]
async fn a_sender_with_too_few_cases_is_refused_with_their_number_and_an_unknown_one_is_not_found() {
    let bench = VaultFixture::new(Mode::Live).await;
    bench.changed("").await;
    let SetCeilingOutput::Refused { status, missing_cases, message } =
        set(&bench, wish(Ceiling::Act, Utc::now())).await
    else {
        panic!("nothing supports it")
    };
    assert_eq!((status, missing_cases), (409, Some(73)), "{message}");
    let nobody = SetCeilingInput { source: "nobody".into(), ..wish(Ceiling::Ask, Utc::now()) };
    assert!(matches!(set(&bench, nobody).await, SetCeilingOutput::Refused { status: 404, .. }));
    assert!(!bench.dir.path().join("instinct").join("nobody.md").exists());
}
