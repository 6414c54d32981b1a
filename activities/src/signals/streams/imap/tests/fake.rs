//! A small IMAP server that fails at a chosen step.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// How an answer fails.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    No,
    Bad,
    /// The connection closes before any answer.
    HangUp,
    /// The connection closes after half of the answer.
    Midway,
    /// The connection closes after the whole answer, before its tagged end.
    AtTheEnd,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) mails: BTreeMap<u32, String>,
    /// The fault at a step: `EXAMINE`, `UID SEARCH`, `RFC822.SIZE` or `BODY.PEEK`.
    pub(super) fault: Option<(&'static str, Fault)>,
    /// A mail that is listed, and the value of it that is never returned.
    pub(super) kept_back: Option<(u32, &'static str)>,
    /// A mail that is listed and gone when it is fetched.
    pub(super) gone: Option<u32>,
    /// The step whose answer announces a further mail, once.
    pub(super) arrives_at: Option<(&'static str, String)>,
    /// The server ends IDLE at once.
    pub(super) ends_idle: bool,
    /// All mails are older than the searched time, and the server gives no next number.
    pub(super) is_old: bool,
}

pub(super) struct Fake {
    pub(super) port: u16,
    pub(super) state: Arc<Mutex<State>>,
}

impl Fake {
    pub(super) async fn start(state: State) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, state) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(state)));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((wire, _)) = listener.accept().await {
                tokio::spawn(serve(wire, Arc::clone(&shared)));
            }
        });
        Self { port, state }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }
}

async fn serve(wire: TcpStream, state: Arc<Mutex<State>>) {
    let mut wire = BufReader::new(wire);
    wire.get_mut().write_all(b"* OK hello\r\n").await.unwrap();
    let (mut line, mut idles) = (String::new(), String::new());
    while wire.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let (tag, command) = line.trim_end().split_once(' ').unwrap_or((idles.as_str(), "DONE"));
        let (answer, hangs_up) = state.lock().unwrap().answer(tag, command);
        if wire.get_mut().write_all(answer.as_bytes()).await.is_err() || hangs_up {
            return;
        }
        idles = tag.to_owned();
        line.clear();
    }
}

impl State {
    /// The answer to a command, and whether the connection closes afterwards.
    fn answer(&mut self, tag: &str, command: &str) -> (String, bool) {
        let mut lines = self.lines(command);
        if let Some((_, mail)) = self.arrives_at.take_if(|(step, _)| command.contains(*step)) {
            let uid = self.mails.last_key_value().map_or(1, |(uid, _)| uid + 1);
            self.mails.insert(uid, mail);
            lines.push(format!("* {} EXISTS\r\n", self.mails.len()));
        }
        let fault = self.fault.filter(|(step, _)| command.contains(step)).map(|(_, fault)| fault);
        let end = match (command, self.ends_idle) {
            ("IDLE", false) => "+ idling\r\n".to_owned(),
            ("IDLE", true) => format!("+ idling\r\n{tag} OK enough\r\n"),
            _ => format!("{tag} OK done\r\n"),
        };
        match fault {
            None => (lines.concat() + &end, false),
            Some(Fault::No) => (format!("{tag} NO [UNAVAILABLE] later\r\n"), false),
            Some(Fault::Bad) => (format!("{tag} BAD what\r\n"), false),
            Some(Fault::HangUp) => (String::new(), true),
            Some(Fault::Midway) => (lines[..lines.len() / 2].concat(), true),
            Some(Fault::AtTheEnd) => (lines.concat(), true),
        }
    }

    fn lines(&self, command: &str) -> Vec<String> {
        if command == "CAPABILITY" {
            return vec!["* CAPABILITY IMAP4rev1 IDLE\r\n".into()];
        }
        if command.starts_with("EXAMINE") {
            let next = self.mails.last_key_value().map_or(1, |(uid, _)| uid + 1);
            let next = if self.is_old { String::new() } else { format!("* OK [UIDNEXT {next}] next\r\n") };
            let exist = format!("* {} EXISTS\r\n", self.mails.len());
            return vec![exist, "* OK [UIDVALIDITY 7] valid\r\n".into(), next];
        }
        if let Some(query) = command.strip_prefix("UID SEARCH ") {
            if self.is_old && query.starts_with("SINCE") {
                return Vec::new();
            }
            let found = self.asked(query.strip_prefix("UID ").unwrap_or("1:*"));
            let is_gone = |uid: &u32| self.gone == Some(*uid) && !query.contains(':') && query.starts_with("UID");
            return found.into_iter().filter(|uid| !is_gone(uid)).map(|uid| format!("* SEARCH {uid}\r\n")).collect();
        }
        let Some((uids, what)) = command.strip_prefix("UID FETCH ").and_then(|rest| rest.split_once(' ')) else {
            return Vec::new();
        };
        let is_given = |uid: &u32| {
            self.gone != Some(*uid) && self.kept_back.is_none_or(|(kept, step)| kept != *uid || !what.contains(step))
        };
        let one = |uid: u32| {
            let mail = &self.mails[&uid];
            if what.contains("SIZE") {
                format!("* {uid} FETCH (UID {uid} RFC822.SIZE {})\r\n", mail.len())
            } else {
                format!("* {uid} FETCH (UID {uid} BODY[]<0> {{{}}}\r\n{mail})\r\n", mail.len())
            }
        };
        self.asked(uids).into_iter().filter(is_given).map(one).collect()
    }

    /// The mails in a set such as `1,2` or `3:*`.
    fn asked(&self, set: &str) -> Vec<u32> {
        let uids = self.mails.keys().copied();
        match set.split_once(':') {
            Some((from, _)) => uids.filter(|uid| *uid >= from.parse().unwrap()).collect(),
            None => uids.filter(|uid| set.split(',').any(|one| one.parse() == Ok(*uid))).collect(),
        }
    }
}
