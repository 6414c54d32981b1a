//! The key is in no log, reason, complaint or reply, whatever the server does with it.

use crate::server::{Behaviour, Server};
use crate::{KEY, ask, completion, config, good_answer};
use serde_json::json;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steward_activities::clerk::openai::Config;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn the_key_appears_in_no_log_and_no_reply() {
    let log = Log::default();
    // For the whole process and with everything that libraries say, as far as they say it.
    tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false).with_writer(log.clone()).init();

    let echo = json!({"error": {"message": format!("Incorrect API key provided: {KEY}")}}).to_string();
    let mut telling = good_answer();
    telling["reasoning"] = json!(format!("the key is {KEY}"));
    let mut servers = vec![
        Server::json(&completion(&telling.to_string())).await,
        Server::json(&completion(&json!({KEY: KEY}).to_string())).await,
        Server::json(&completion(&format!("{KEY} {KEY}"))).await,
        Server::start(Behaviour::Drops).await,
        Server::start(Behaviour::Silent).await,
        Server::status(200, KEY).await,
    ];
    for status in [200, 302, 400, 401, 403, 404, 418, 500] {
        servers.push(Server::status(status, &echo).await);
        servers.push(Server::status(status, &format!("{}{KEY}", "x".repeat(280))).await);
    }
    for server in servers {
        let hasty = Config { timeout: Duration::from_millis(500), ..config(&server.base_url) };
        let reply = ask(hasty).await;
        let said = format!("{reply:?} {}", serde_json::to_string(&reply).unwrap());
        assert!(!said.contains(KEY) && !said.contains("sk-very"), "{said}");
    }
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("clerk asked") && logged.contains("provider=openai"), "{logged}");
    assert!(!logged.contains("sk-very"), "{logged}");
}
