use super::super::IntakeTally;
use super::super::StreamConfig;
use super::super::tests::{StreamFixture, config};
use super::*;
use serde_json::json;

fn put(bench: &StreamFixture, path: &str, id: u32) {
    let mail = format!("From: ann@example.org\r\nMessage-ID: <{id}@example.org>\r\n\r\nmail {id}\r\n");
    bench.put(&format!("../mails/{path}"), mail);
}

fn age(bench: &StreamFixture, path: &str, days: u64) {
    let then = SystemTime::now() - Duration::from_secs(days * 86_400);
    let file = std::fs::File::options().write(true).open(bench.at(&format!("../mails/{path}"))).unwrap();
    file.set_modified(then).unwrap();
}

async fn bench() -> (StreamFixture, StreamConfig) {
    let bench = StreamFixture::new().await;
    for folder in ["new", "cur", "tmp"] {
        std::fs::create_dir_all(bench.at(&format!("../mails/{folder}"))).unwrap();
    }
    let config = config("post", json!({"kind": "maildir", "path": bench.at("../mails")})).unwrap();
    (bench, config)
}

#[tokio::test]
async fn new_mails_are_taken_in_once_and_left_where_they_are() {
    let (bench, config) = bench().await;
    put(&bench, "new/1.host", 1);
    put(&bench, "cur/2.host:2,S", 2);
    put(&bench, "tmp/3.host", 3);
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 2, known: 0, refused: 0 });
    std::fs::rename(bench.at("../mails/new/1.host"), bench.at("../mails/cur/1.host:2,RS")).unwrap();
    put(&bench, "new/4.host", 4);
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 1, known: 0, refused: 0 });
    assert_eq!(bench.names("../mails/cur"), ["1.host:2,RS", "2.host:2,S"]);
    assert!(bench.events("post").iter().all(|e| e.pattern == "mail:ann@example.org"));
}

#[tokio::test]
async fn what_is_old_large_or_no_file_is_not_taken_in() {
    let (bench, config) = bench().await;
    put(&bench, "cur/old", 1);
    age(&bench, "cur/old", 8);
    bench.put("../mails/new/large", vec![b'x'; 2_000_000]);
    bench.put("../mails/new/none", "no mail");
    std::os::unix::fs::symlink("/etc/hostname", bench.at("../mails/new/link")).unwrap();
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 0, known: 0, refused: 2 });
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally::default(), "each is refused once");
}

#[tokio::test]
async fn a_mail_that_the_machine_does_not_give_us_is_left_and_named_and_the_others_are_read() {
    let (bench, _) = bench().await;
    put(&bench, "new/good", 1);
    let path = bench.at("../mails");
    let settings = MaildirSettings { path, since_days: 7, trusted_authserv: None };
    // No system opens such a name. The error stands for a failing disk or a full file table.
    let mails =
        ["new\0name", "good"].map(|name| MailFile { key: name.into(), folder: "new", name: name.into(), size: 1 });
    let (batch, failed) = read_batch(&settings, &mails, 1_000);
    assert_eq!((batch.keys, batch.found.len(), batch.refused), (vec!["good".to_owned()], 1, 0));
    assert!(failed.unwrap().to_string().contains("mails/new/new"));
}

#[tokio::test]
async fn a_maildir_that_is_not_there_is_named() {
    let bench = StreamFixture::new().await;
    let config = config("post", json!({"kind": "maildir", "path": "/nowhere/mails"})).unwrap();
    let message = bench.round(&config).await.unwrap_err().to_string();
    assert!(message.contains("/nowhere/mails"), "{message}");
}

#[tokio::test]
async fn a_stream_that_trusts_a_server_takes_no_sender_by_their_own_word() {
    let (bench, _) = bench().await;
    put(&bench, "new/forged", 1);
    let vouched =
        "Authentication-Results: mx.example.org; dmarc=pass\r\nFrom: bob@example.org\r\nMessage-ID: <2@b>\r\n\r\nx";
    bench.put("../mails/new/vouched", vouched);
    let keys = json!({"kind": "maildir", "path": bench.at("../mails"), "trusted_authserv": "mx.example.org"});
    bench.round(&config("post", keys).unwrap()).await.unwrap();
    let mut patterns: Vec<String> = bench.events("post").into_iter().map(|e| e.pattern).collect();
    patterns.sort_unstable();
    assert_eq!(patterns, ["mail:ann@example.org:unverified", "mail:bob@example.org"]);
}

#[tokio::test]
async fn what_came_while_nobody_looked_is_taken_in_and_what_was_too_old_at_first_stays_out() {
    let (bench, config) = bench().await;
    put(&bench, "cur/old", 1);
    age(&bench, "cur/old", 50);
    put(&bench, "cur/first", 2);
    age(&bench, "cur/first", 41);
    // The first read was 40 days ago, and the last one soon after it.
    let path = bench.at("../mails").display().to_string();
    let first = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() - 47 * 86_400;
    let cursor = Some(format!("{first} {path}"));
    let keys = vec!["maildir:first".to_owned()];
    bench.intake("post").ingest_batch(IntakeBatch { keys, cursor, ..IntakeBatch::default() }).await.unwrap();
    put(&bench, "new/late", 3);
    age(&bench, "new/late", 20);
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 1, known: 0, refused: 0 });
    assert_eq!(bench.events("post")[0].source_id, "<3@example.org>");
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally::default());
}

#[tokio::test]
async fn where_the_first_look_began_is_remembered_with_its_folder() {
    let (bench, config) = bench().await;
    put(&bench, "cur/old", 1);
    age(&bench, "cur/old", 8);
    bench.round(&config).await.unwrap();
    let cursor = bench.intake("post").read_cursor().await.unwrap().unwrap();
    let path = bench.at("../mails").display().to_string();
    let at = parse_cursor(&cursor, &path).unwrap();
    assert!(SystemTime::now().duration_since(at).unwrap() < Duration::from_secs(7 * 86_400 + 3_600));
    assert_eq!(parse_cursor(&cursor, "/var/mail/bob"), None, "another folder is looked at for the first time");
    bench.round(&config).await.unwrap();
    assert_eq!(bench.intake("post").read_cursor().await.unwrap(), Some(cursor), "it does not move on");
}
