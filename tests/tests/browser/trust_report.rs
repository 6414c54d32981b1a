//! The page that `steward trust report --html` writes, opened from the disk.

use steward_tests::browser::Browser;
use steward_tests::run;
use steward_tests::steward::Steward;

#[tokio::test]
async fn everybody_can_use_the_written_report_in_light_and_dark_on_a_phone_and_a_desk() {
    let Some(page) = Browser::open("trust-report", "").await else { return };
    let (folder, _) = run::new_folder();
    let steward = Steward::new(&folder);
    let (month, file) = (folder.join("month"), folder.join("report.html"));
    let (month, file) = (month.to_str().unwrap(), file.to_str().unwrap());
    steward.run(&["simulate", "--days", "5", "--seed", "7", month]).await.expect(0);
    steward.run(&["trust", "report", "--vault", month, "--html", file]).await.expect(0);
    page.goto(&format!("file://{file}")).await;
    assert!(page.text(".headline").await.starts_with("After 5 days: "));
    // What is folded must be usable, too.
    page.run("document.querySelector('details').open = true").await;
    let mut found = Vec::new();
    for (width, dark) in [(390, false), (390, true), (1_200, false), (1_200, true)] {
        page.looks(width, dark).await;
        page.shot(&format!("{width}-{}", if dark { "dark" } else { "light" })).await;
        let told = page.barriers().await.into_iter().chain(page.faults().await);
        found.extend(told.map(|it| format!("{width} dark {dark}: {it}")));
    }
    assert_eq!(found, Vec::<String>::new());
}
