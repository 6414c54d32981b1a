use super::*;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use steward_domain::record::frontmatter;
use steward_domain::signals::stream::StreamEvent;
use steward_vault::action::writer::VaultWriter;
use steward_vault::index::Index;

mod crash;

/// A vault with an index, for the adapters' tests.
pub(super) struct StreamFixture {
    pub(super) dir: tempfile::TempDir,
    pub(super) writer: Arc<VaultWriter>,
    pub(super) index: Arc<Index>,
}

impl StreamFixture {
    pub(super) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("vault/inbox")).unwrap();
        let writer = Arc::new(VaultWriter::lock(VaultRoot::open(&dir.path().join("vault")).unwrap()).unwrap());
        let index = Arc::new(Index::open(&dir.path().join("state")).await.unwrap());
        Self { dir, writer, index }
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("vault").join(path)
    }

    /// Writes a file with an old time, so that it counts as quiet.
    pub(super) fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), bytes).unwrap();
        let then = std::time::SystemTime::now() - Duration::from_secs(90);
        fs::File::options().write(true).open(self.at(path)).unwrap().set_modified(then).unwrap();
    }

    pub(super) fn intake(&self, stream: &str) -> Intake {
        Intake::new(stream, Arc::clone(&self.writer), Arc::clone(&self.index))
    }

    /// Opens a configured stream and runs one round.
    pub(super) async fn round(&self, config: &StreamConfig) -> Result<(IntakeTally, NextRound), StreamError> {
        let StreamSource::Polled(mut adapter) = config.open(self.writer.root())? else { panic!("it is not polled") };
        let mut intake = self.intake(&config.name);
        let next = adapter.read_round(&mut intake).await?;
        Ok((intake.current_tally(), next))
    }

    /// The events of a stream, in the order of their names.
    pub(super) fn events(&self, stream: &str) -> Vec<StreamEvent> {
        self.names(&format!("stream/{stream}"))
            .iter()
            .map(|name| {
                let bytes = fs::read(self.at(&format!("stream/{stream}/{name}"))).unwrap();
                let document = frontmatter::read_document(&bytes).unwrap();
                StreamEvent::read(document.fields(), document.body()).unwrap()
            })
            .collect()
    }

    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

pub(super) fn config(name: &str, table: serde_json::Value) -> Result<StreamConfig, StreamError> {
    let serde_json::Value::Object(table) = table else { panic!("a table is an object") };
    StreamConfig::read(name, table)
}

fn found(id: &str, text: &str) -> FoundMessage {
    FoundMessage { source_id: id.into(), pattern: "x:y".into(), text: text.into(), ..FoundMessage::default() }
}

#[tokio::test]
async fn what_is_delivered_twice_is_stored_once_whatever_happened_in_between() {
    let bench = StreamFixture::new().await;
    let mut intake = bench.intake("mail");
    let batch = |cursor: &str| IntakeBatch {
        found: vec![found("1", "a"), found("2", "b"), found("1", "a")],
        cursor: Some(cursor.into()),
        ..IntakeBatch::default()
    };
    intake.ingest_batch(batch("7")).await.unwrap();
    assert_eq!(intake.current_tally(), IntakeTally { stored: 2, known: 1, refused: 0 });
    intake.ingest_batch(batch("8")).await.unwrap();
    assert_eq!(intake.current_tally(), IntakeTally { stored: 2, known: 4, refused: 0 });
    assert_eq!(intake.read_cursor().await.unwrap().as_deref(), Some("8"));
    // Purged.
    fs::remove_dir_all(bench.at("stream")).unwrap();
    intake.ingest_batch(batch("9")).await.unwrap();
    assert_eq!(bench.events("mail").len(), 0);
}

#[tokio::test]
async fn a_crash_between_the_files_and_the_cursor_stores_nothing_twice() {
    let bench = StreamFixture::new().await;
    bench
        .intake("mail")
        .ingest_batch(IntakeBatch { found: vec![found("1", "a")], ..IntakeBatch::default() })
        .await
        .unwrap();
    let before = bench.names("stream/mail");
    // The index does not know the file, as with the state of another vault.
    let other = Arc::new(Index::open(&bench.dir.path().join("other")).await.unwrap());
    let mut intake = Intake::new("mail", Arc::clone(&bench.writer), other);
    intake
        .ingest_batch(IntakeBatch { found: vec![found("1", "a"), found("2", "b")], ..IntakeBatch::default() })
        .await
        .unwrap();
    assert_eq!(intake.current_tally(), IntakeTally { stored: 1, known: 1, refused: 0 });
    assert!(before.iter().all(|name| bench.names("stream/mail").contains(name)));
}

#[tokio::test]
async fn other_words_under_the_same_id_are_another_event() {
    let bench = StreamFixture::new().await;
    let batch = IntakeBatch { found: vec![found("1", "a"), found("1", "b")], ..IntakeBatch::default() };
    bench.intake("mail").ingest_batch(batch).await.unwrap();
    assert_eq!(bench.events("mail").len(), 2, "nobody can silence a message by sending its id first");
}

#[tokio::test]
async fn a_rehearsal_stores_nothing_and_moves_nothing() {
    let bench = StreamFixture::new().await;
    let mut intake = Intake::new_dry("mail", bench.writer.root().clone(), Arc::clone(&bench.index));
    let batch = IntakeBatch { found: vec![found("1", "a")], cursor: Some("7".into()), ..IntakeBatch::default() };
    intake.ingest_batch(batch).await.unwrap();
    assert_eq!(intake.would_store().len(), 1);
    assert_eq!((intake.read_cursor().await.unwrap(), bench.names("stream")), (None, Vec::new()));
}

#[test]
fn a_table_that_is_not_understood_names_the_stream_and_the_key() {
    for (table, part) in [
        (json!({"kind": "imap", "host": "h", "user": "u", "password": "p"}), "password"),
        (json!({"kind": "imap", "host": "h", "user": "u"}), "password_env"),
        (
            json!({"kind": "imap", "host": "mail.example", "user": "u", "password_env": "P", "tls": false}),
            "in the clear",
        ),
        (json!({"kind": "inbox", "path": "x"}), "path"),
        (json!({"kind": "maildir"}), "path"),
        (json!({"kind": "maildir", "path": "x", "since_days": 31}), "at most 30"),
        (json!({"kind": "imap", "host": "h", "user": "u", "password_env": "P", "since_days": 31}), "at most 30"),
        (json!({"kind": "imap", "host": "h", "user": "u", "password_env": "P", "folder": "a\r\nb"}), "folder"),
        (json!({"kind": "ics"}), "`path`, `url`, `url_env` and `url_file`"),
        (json!({"kind": "ics", "path": "x", "url_env": "U"}), "exactly one of"),
        (json!({"kind": "ics", "url": "ftp://x/y"}), "https://"),
        (json!({"kind": "webhook", "vendor": "slack"}), "secret_env"),
        (json!({"kind": "webhook", "vendor": "acme", "secret_env": "S"}), "acme"),
        (json!({"kind": "fax"}), "inbox, maildir, ics, imap, webhook"),
        (json!({"kind": "inbox", "interval_seconds": 0}), "interval_seconds"),
        (json!({}), "kind"),
    ] {
        let message = config("office", table).unwrap_err().to_string();
        assert!(message.starts_with("streams.office: ") && message.contains(part), "{message}");
    }
    assert!(config("../x", json!({"kind": "inbox"})).is_err());
    assert!(StreamConfig::default_inbox().is_ok());
}

#[test]
fn a_secret_that_others_may_read_is_refused_and_none_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("secret");
    fs::write(&file, "hunter2hunter2\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let table = json!({"kind": "webhook", "secret_file": file});
    let root = VaultRoot::open(dir.path()).unwrap();
    let config = config("hook", table).unwrap();
    let message = config.open(&root).map(drop).unwrap_err().to_string();
    assert!(message.contains("chmod 600") && !message.contains("hunter2"), "{message}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let StreamSource::Pushed(hook) = config.open(&root).unwrap() else { panic!("a webhook is pushed") };
    assert!(!format!("{hook:?} {config:?}").contains("hunter2"));
}

#[test]
fn a_secret_that_is_not_set_names_its_variable() {
    let dir = tempfile::tempdir().unwrap();
    let config = config("hook", json!({"kind": "webhook", "secret_env": "NO_SUCH_SECRET"})).unwrap();
    let message = config.open(&VaultRoot::open(dir.path()).unwrap()).map(drop).unwrap_err().to_string();
    assert!(message.contains("NO_SUCH_SECRET is not set"), "{message}");
}
