use super::super::IntakeTally;
use super::super::StreamConfig;
use super::super::tests::StreamFixture;
use super::*;
use std::fs;

const MAIL: &str =
    "From: Ann <ann@example.org>\r\nMessage-ID: <1@example.org>\r\nSubject: hello\r\n\r\nIt is paid.\r\n";

async fn round(bench: &StreamFixture) -> (IntakeTally, NextRound) {
    bench.round(&StreamConfig::default_inbox().unwrap()).await.unwrap()
}

#[tokio::test]
async fn files_of_every_kind_are_taken_in_and_put_away() {
    let bench = StreamFixture::new().await;
    bench.put("inbox/a.eml", MAIL);
    bench.put("inbox/b.jsonl", "{\"text\":\"one\"}\nbad\n{\"text\":\"two\"}\n");
    bench.put("inbox/C.MD", "# Note\nthree");
    bench.put("inbox/d.pdf", "x");
    bench.put("inbox/e.eml", "no mail at all");
    bench.put("inbox/f.jsonl", "bad\n");
    bench.put("inbox/g.eml", vec![b'x'; 2_000_000]);
    std::os::unix::fs::symlink("/etc/hostname", bench.at("inbox/h.eml")).unwrap();
    let (tally, next) = round(&bench).await;
    assert_eq!((tally, next), (IntakeTally { stored: 4, known: 0, refused: 6 }, NextRound::Usual));
    let texts: Vec<String> = bench.events("inbox").into_iter().map(|e| e.text).collect();
    assert!(
        ["It is paid.", "one", "two", "# Note\nthree"].iter().all(|t| texts.contains(&(*t).to_owned())),
        "{texts:?}"
    );
    let today = Utc::now().date_naive();
    assert_eq!(bench.names(&format!("inbox/done/{today}")), ["C.MD", "a.eml", "b.jsonl"]);
    let refused = bench.names("inbox/refused");
    for name in ["b.jsonl.reason.txt", "d.pdf", "e.eml", "e.eml.reason.txt", "f.jsonl", "g.eml", "h.eml"] {
        assert!(refused.contains(&name.to_owned()), "{name} is not in {refused:?}");
    }
    let reason = |name: &str| fs::read_to_string(bench.at(&format!("inbox/refused/{name}.reason.txt"))).unwrap();
    assert!(reason("b.jsonl").contains("b.jsonl, line 2: "), "{}", reason("b.jsonl"));
    assert!(reason("g.eml").contains("max_message_bytes"), "{}", reason("g.eml"));
    assert_eq!(round(&bench).await.0, IntakeTally::default());
}

#[tokio::test]
async fn a_file_that_is_being_written_waits_a_second() {
    let (bench, (tally, next)) = loop {
        let (bench, begun) = (StreamFixture::new().await, Instant::now());
        fs::write(bench.at("inbox/a.eml"), MAIL).unwrap();
        let found = round(&bench).await;
        // On a slow machine the file may count as quiet already, so the test tries again.
        if begun.elapsed() < Duration::from_secs(1) {
            break (bench, found);
        }
    };
    assert_eq!((tally, next), (IntakeTally::default(), NextRound::Within(Duration::from_secs(1))));
    bench.put("inbox/a.eml", MAIL);
    assert_eq!(round(&bench).await.0.stored, 1);
}

#[tokio::test]
async fn a_file_from_the_future_is_taken_in_when_it_has_stood_still() {
    let bench = StreamFixture::new().await;
    bench.put("inbox/a.eml", MAIL);
    let future = std::time::SystemTime::now() + Duration::from_secs(3600);
    fs::File::options().write(true).open(bench.at("inbox/a.eml")).unwrap().set_modified(future).unwrap();
    let mut folder = DropFolder::new(bench.writer.root(), 1000);
    let mut intake = bench.intake("inbox");
    assert_ne!(folder.read_folder(&mut intake).await.unwrap(), NextRound::Usual);
    for (_, since) in folder.first_seen.values_mut() {
        *since = since.checked_sub(Duration::from_secs(2)).unwrap();
    }
    folder.read_folder(&mut intake).await.unwrap();
    assert_eq!(intake.current_tally().stored, 1);
}

#[tokio::test]
async fn the_same_mail_in_two_files_is_one_event() {
    let bench = StreamFixture::new().await;
    bench.put("inbox/a.eml", MAIL);
    bench.put("inbox/b.eml", MAIL);
    assert_eq!(round(&bench).await.0, IntakeTally { stored: 1, known: 1, refused: 0 });
    bench.put("inbox/a.eml", MAIL);
    assert_eq!(round(&bench).await.0, IntakeTally { stored: 0, known: 1, refused: 0 });
    assert!(bench.names("inbox").iter().all(|name| !name.ends_with("eml")));
}

#[tokio::test]
async fn a_rehearsal_leaves_the_files_where_they_are() {
    let bench = StreamFixture::new().await;
    bench.put("inbox/a.eml", MAIL);
    bench.put("inbox/b.pdf", "x");
    let mut intake = Intake::new_dry("inbox", bench.writer.root().clone(), Arc::clone(&bench.index));
    let StreamSource::Polled(mut adapter) = StreamConfig::default_inbox().unwrap().open(bench.writer.root()).unwrap()
    else {
        panic!()
    };
    adapter.read_round(&mut intake).await.unwrap();
    assert_eq!(intake.would_store().len(), 1);
    assert_eq!(bench.names("inbox"), ["a.eml", "b.pdf"]);
}

#[tokio::test]
async fn thousands_of_lines_are_taken_in_once_also_after_a_crash_in_the_middle() {
    let bench = StreamFixture::new().await;
    let text: String = (0..2_000).map(|n| format!("{{\"id\":\"{n}\",\"text\":\"event {n}\"}}\n")).collect();
    // The lines that were stored before the crash.
    bench.put("inbox/a.jsonl", text.lines().take(300).fold(String::new(), |all, line| all + line + "\n"));
    round(&bench).await;
    bench.put("inbox/b.jsonl", &text);
    assert_eq!(round(&bench).await.0, IntakeTally { stored: 1_700, known: 300, refused: 0 });
    assert_eq!(bench.names("stream/inbox").len(), 2_000);
}

#[tokio::test]
async fn a_file_that_is_written_on_meanwhile_is_left_for_the_next_round() {
    let bench = StreamFixture::new().await;
    let mut folder = DropFolder::new(bench.writer.root(), 1000);
    bench.put("inbox/a.jsonl", "{\"text\":\"one\"}\n{\"te");
    bench.put("inbox/b.eml", &MAIL[..60]);
    let inbox = Arc::new(Inbox::open(&folder.root).unwrap());
    let listed = inbox.list_waiting_files().unwrap();
    bench.put("inbox/a.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n");
    bench.put("inbox/b.eml", MAIL);
    let mut intake = bench.intake("inbox");
    assert!(matches!(read_small_file(&inbox, &listed[1], 1000).unwrap(), SmallFileRead::Gone));
    folder.ingest_lines_file(&inbox, listed[0].clone(), &mut intake).await.unwrap();
    // As if both had been read before the further writes.
    folder.move_files(&inbox, listed, Vec::new()).await.unwrap();
    assert_eq!(bench.names("inbox"), ["a.jsonl", "b.eml", "done"]);
    assert_eq!(round(&bench).await.0, IntakeTally { stored: 3, known: 0, refused: 0 });
    assert_eq!(bench.names("inbox"), ["done"]);
}

#[tokio::test]
async fn a_mail_whose_writer_only_paused_is_read_whole() {
    let bench = StreamFixture::new().await;
    let mut folder = DropFolder::new(bench.writer.root(), 1000);
    let mut intake = bench.intake("inbox");
    let half = MAIL.len() - 5;
    bench.put("inbox/a.eml", &MAIL[..half]);
    let mut writer = fs::File::options().append(true).open(bench.at("inbox/a.eml")).unwrap();
    folder.read_folder(&mut intake).await.unwrap();
    assert_eq!(bench.names("inbox"), ["done"]);
    std::io::Write::write_all(&mut writer, &MAIL.as_bytes()[half..]).unwrap();
    writer.set_modified(std::time::SystemTime::now() - Duration::from_secs(2)).unwrap();
    folder.read_folder(&mut intake).await.unwrap();
    assert!(bench.events("inbox").iter().any(|event| event.text == "It is paid."));
    folder.read_folder(&mut intake).await.unwrap();
    assert_eq!((intake.current_tally().stored, bench.names("inbox")), (2, vec!["done".to_owned()]));
}
