use super::*;
use crate::vault::tests::VaultFixture;
use proptest::prelude::*;
use steward_domain::gates::mode::Mode;
use steward_domain::trust::confidence::SourceConfidence;

fn run() -> WorkflowRef {
    WorkflowRef { id: "calibrate".into(), run_id: "run".into() }
}

/// Writes an instinct of `bank`, before there are records about it.
fn write_instinct(bench: &VaultFixture, lines: &str) -> std::path::PathBuf {
    let file = bench.dir.path().join("instinct/bank.md");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, format!("---\ntype: instinct\nsource: bank\n{lines}---\nDry and right.\n")).unwrap();
    file
}

fn read_fields(file: &std::path::Path) -> RecordFields {
    frontmatter::read_document(&std::fs::read(file).unwrap()).unwrap().fields().clone()
}

#[tokio::test]
async fn what_a_human_wrote_of_a_source_survives_the_first_calibration_and_every_later_one() {
    let bench = VaultFixture::new(Mode::Live).await;
    let file = write_instinct(&bench, "observations: 62\nconfidence: 0.82\n");
    bench.changed("").await;
    run_calibration(&bench.context, CallDeadline::from_now, run(), Utc::now()).await.unwrap();
    let first = read_fields(&file);
    assert_eq!((&first["observations"], &first["counted"]), (&json!(62), &json!(0)));
    let confidence = first["confidence"].as_f64().unwrap();
    assert!((confidence - (0.9 * 0.82 + 0.1 * 0.99)).abs() < 0.001, "one judgement from 0.82: {confidence}");
    assert_eq!(
        run_calibration(&bench.context, CallDeadline::from_now, run(), Utc::now()).await.unwrap(),
        CalibrateOutput::default()
    );
    bench.context.index.rebuild(bench.context.writer.root(), Utc::now()).await.unwrap();
    assert_eq!(
        run_calibration(&bench.context, CallDeadline::from_now, run(), Utc::now()).await.unwrap(),
        CalibrateOutput::default()
    );
    assert_eq!(read_fields(&file), first, "the start is not taken a second time");
    // A change that stays for a week counts as right, and our observations are added.
    let in_a_week = Utc::now() + chrono::TimeDelta::days(8);
    run_calibration(&bench.context, CallDeadline::from_now, run(), in_a_week).await.unwrap();
    let later = read_fields(&file);
    assert_eq!((&later["observations"], &later["counted"]), (&json!(63), &json!(1)));
    assert_eq!(later["confidence"], first["confidence"], "nobody judged since");
}

proptest! {
    #[test]
    fn whatever_a_human_wrote_first_is_kept_beside_what_was_counted_since(
        given in prop::option::of(0_u32..1_000),
        start in prop::option::of(0.0..=1.0_f64),
        counts in prop::collection::vec((0_u32..50, 0.0..=1.0_f64), 1..6),
    ) {
        let mut fields = RecordFields::new();
        if let Some(given) = given {
            fields.insert("observations".into(), json!(given));
        }
        if let Some(start) = start {
            fields.insert("confidence".into(), json!(start));
        }
        for (observations, value) in counts {
            let confidence = SourceConfidence::from_value(value);
            let trust = SourceTrust { observations, confidence, ..SourceTrust::default() };
            for edit in plan_instinct_edits(&fields, &trust) {
                fields.insert(edit.field, edit.value.unwrap());
            }
            prop_assert!(plan_instinct_edits(&fields, &trust).is_empty(), "twice is once");
            prop_assert_eq!(&fields["observations"], &json!(given.unwrap_or(0) + observations));
            prop_assert_eq!(&fields["counted"], &json!(observations));
            prop_assert_eq!(Instinct::read(&fields).start, start);
        }
    }
}

fn out_of_time() -> CallDeadline {
    CallDeadline(Instant::now())
}

#[tokio::test]
async fn what_there_was_no_time_for_is_done_by_the_next_call_and_nothing_twice() {
    let bench = VaultFixture::new(Mode::Live).await;
    bench.changed("").await;
    let instinct = bench.dir.path().join("instinct/bank.md");
    let cut = run_calibration(&bench.context, out_of_time, run(), Utc::now()).await.unwrap();
    assert_eq!((cut.written, cut.more, instinct.exists()), (0, true, false));
    let whole = run_calibration(&bench.context, CallDeadline::from_now, run(), Utc::now()).await.unwrap();
    assert_eq!((whole.written, whole.more, instinct.exists()), (1, false, true));
    assert_eq!(
        run_calibration(&bench.context, CallDeadline::from_now, run(), Utc::now()).await.unwrap(),
        CalibrateOutput::default()
    );
    assert_eq!(run_calibration(&bench.context, out_of_time, run(), Utc::now()).await.unwrap().written, 0);
}

#[tokio::test]
async fn a_call_that_was_let_go_keeps_nobody_back() {
    let bench = VaultFixture::new(Mode::Live).await;
    bench.changed("").await;
    for pauses in 0..40 {
        let mut left = pauses;
        let given_up = std::future::poll_fn(|context| {
            left -= i32::from(left >= 0);
            context.waker().wake_by_ref();
            if left < 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        });
        tokio::select! {
            _ = run_calibration(&bench.context, CallDeadline::from_now, run(), Utc::now()) => {}
            () = given_up => {}
        }
    }
    let last = run_calibration(&bench.context, CallDeadline::from_now, run(), Utc::now()).await.unwrap();
    assert_eq!((last.failed, last.more), (0, false));
    assert_eq!(
        run_calibration(&bench.context, CallDeadline::from_now, run(), Utc::now()).await.unwrap(),
        CalibrateOutput::default()
    );
    assert!(bench.dir.path().join("instinct/bank.md").exists());
}

/// The numbers of a person that calibration changed, as `field given value`.
async fn list_changed(bench: &VaultFixture) -> Vec<String> {
    let changed = bench.context.index.trust().list_changed_numbers(Utc::now()).await.unwrap();
    let mut words: Vec<String> =
        changed.into_iter().map(|number| format!("{} {} {}", number.field, number.given, number.value)).collect();
    words.sort();
    words
}

#[tokio::test]
async fn a_number_of_a_person_that_calibration_changes_is_reported_and_our_own_is_not() {
    let bench = VaultFixture::new(Mode::Live).await;
    let file = write_instinct(&bench, "observations: 62\nconfidence: 0.82\n");
    bench.changed("").await;
    let calibrate = async |days: i64| {
        let at = Utc::now() + chrono::TimeDelta::days(days);
        run_calibration(&bench.context, CallDeadline::from_now, run(), at).await.unwrap()
    };
    calibrate(0).await;
    assert_eq!(list_changed(&bench).await, ["confidence 0.82 0.837"], "the observations are as they were");
    // Our own numbers change, and that is no report.
    calibrate(8).await;
    assert_eq!(read_fields(&file)["observations"], json!(63));
    assert_eq!(list_changed(&bench).await, ["confidence 0.82 0.837"]);
    // A person writes over ours. What is computed stays, and the page shows both numbers.
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replace("confidence: 0.837", "confidence: 0.99").replace("status: pending", "status: pinned"),
    )
    .unwrap();
    calibrate(8).await;
    assert_eq!(read_fields(&file)["confidence"], json!(0.837));
    let all = ["confidence 0.99 0.837", "status \"pinned\" \"pending\""];
    assert_eq!(list_changed(&bench).await, all);
    calibrate(8).await;
    assert_eq!(list_changed(&bench).await, all, "nothing new");
    // What is written again by hand as it was is no change.
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap().replace("observations: 63", "observations: 70"))
        .unwrap();
    calibrate(8).await;
    assert_eq!(read_fields(&file)["observations"], json!(70), "seven more are the person's");
    assert_eq!(list_changed(&bench).await, all);
}
