//! The key is in no log, reason, complaint or reply, whatever the server does with it.

use crate::server::{Behaviour, Server};
use crate::{KEY, WIRES, ask, config, error, good_answer, response};
use serde_json::json;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steward_activities::steward::clerks::remote::RemoteClerkConfig;
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

    let mut telling = good_answer();
    telling["reasoning"] = json!(format!("the key is {KEY}"));
    for wire in WIRES {
        let echo = error(wire, "authentication_error", &format!("Incorrect API key provided: {KEY}")).to_string();
        let mut servers = vec![
            Server::json(&response(wire, &telling.to_string())).await,
            Server::json(&response(wire, &json!({KEY: KEY}).to_string())).await,
            Server::json(&response(wire, &format!("{KEY} {KEY}"))).await,
            Server::start(Behaviour::Drops).await,
            Server::start(Behaviour::Silent).await,
            Server::status(200, KEY).await,
        ];
        for status in [200, 302, 400, 401, 403, 404, 418, 500, 529] {
            servers.push(Server::status(status, &echo).await);
            servers.push(Server::status(status, &format!("{}{KEY}", "x".repeat(280))).await);
        }
        for server in servers {
            let hasty = RemoteClerkConfig { timeout: Duration::from_millis(500), ..config(wire, &server.address) };
            let reply = ask(hasty).await;
            let said = format!("{reply:?} {}", serde_json::to_string(&reply).unwrap());
            assert!(!said.contains(KEY) && !said.contains("sk-very"), "{said}");
        }
    }
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for wire in WIRES {
        assert!(logged.contains("clerk asked") && logged.contains(&format!("provider={}", wire.name)), "{logged}");
    }
    assert!(!logged.contains("sk-very"), "{logged}");
}
