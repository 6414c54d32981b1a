//! A real IMAP server for one test: Debian's Dovecot with a configuration of its own.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use steward_tests::wait::PATIENCE;

const BINARY: &str = "/usr/sbin/dovecot";
const PASSWORD: &str = "correct-horse";
/// The owner of the mails when the tests run as root, because Dovecot serves no mail to root.
const NOBODY: u32 = 65_534;

/// Runs until it is dropped.
pub(super) struct Dovecot {
    dir: tempfile::TempDir,
    pub(super) plain: u16,
    pub(super) encrypted: u16,
    child: Child,
}

impl Dovecot {
    /// Starts a server with one empty folder; `None`, with a message, if Dovecot is not installed.
    pub(super) fn start() -> Option<Self> {
        if !Path::new(BINARY).exists() {
            let _ = writeln!(std::io::stderr(), "skipped: there is no dovecot; `make tools` installs it");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (plain, encrypted) = (free_port(), free_port());
        make_certificate(dir.path());
        write_secret(&dir.path().join("password"), PASSWORD);
        fs::create_dir(dir.path().join("mail")).unwrap();
        let as_root = rustix::process::getuid().is_root();
        if as_root {
            chown(dir.path().join("mail"), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let conf = configuration(dir.path(), (plain, encrypted), as_root);
        fs::write(dir.path().join("dovecot.conf"), conf).unwrap();
        let child = Command::new(BINARY)
            .args(["-F", "-c"])
            .arg(dir.path().join("dovecot.conf"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { dir, plain, encrypted, child };
        server.wait_until_it_greets();
        Some(server)
    }

    pub(super) fn password_file(&self) -> PathBuf {
        self.dir.path().join("password")
    }

    pub(super) fn certificate(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    pub(super) fn change_password(&self, to: &str) {
        write_secret(&self.password_file(), to);
    }

    /// Puts a mail into the folder, as a client would.
    pub(super) fn deliver(&self, mail: &str) {
        let mut talk = Talk::login(self.plain);
        talk.say(&format!("a APPEND INBOX {{{}+}}\r\n{mail}", mail.len()), "a OK");
    }

    /// Makes the server renumber its mails, as after a restored backup.
    pub(super) fn number_anew(&self) {
        for entry in fs::read_dir(self.dir.path().join("mail")).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // The remaining file holds the number that must not be given twice.
            if name.starts_with("dovecot") && !name.starts_with("dovecot-uidvalidity") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }

    pub(super) fn nothing_was_seen(&self) -> bool {
        let mut talk = Talk::login(self.plain);
        talk.say("a EXAMINE INBOX", "a OK");
        talk.say("b SEARCH SEEN", "b OK").iter().any(|line| line.trim() == "* SEARCH")
    }

    fn wait_until_it_greets(&self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let greets = TcpStream::connect(("127.0.0.1", self.plain)).is_ok_and(|stream| {
                let mut line = String::new();
                BufReader::new(stream).read_line(&mut line).is_ok() && line.starts_with("* OK")
            });
            if greets {
                return;
            }
            std::thread::yield_now();
        }
        panic!("dovecot did not start: {}", fs::read_to_string(self.dir.path().join("log")).unwrap_or_default());
    }
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// A minimal IMAP client, other than the one under test.
struct Talk {
    stream: BufReader<TcpStream>,
}

impl Talk {
    fn login(port: u16) -> Self {
        let stream = BufReader::new(TcpStream::connect(("127.0.0.1", port)).unwrap());
        let mut talk = Self { stream };
        talk.until("* OK");
        talk.say(&format!("l LOGIN ann {PASSWORD}"), "l OK");
        talk
    }

    fn say(&mut self, line: &str, expected: &str) -> Vec<String> {
        self.stream.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
        self.until(expected)
    }

    fn until(&mut self, expected: &str) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        while lines.last().is_none_or(|line| !line.starts_with(expected)) {
            let mut line = String::new();
            assert!(self.stream.read_line(&mut line).unwrap() > 0, "hung up after {lines:?}");
            lines.push(line);
        }
        lines
    }
}

pub(super) fn write_secret(path: &Path, secret: &str) {
    fs::write(path, secret).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn make_certificate(dir: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-addext",
            "basicConstraints=CA:FALSE",
        ])
        .arg("-keyout")
        .arg(dir.join("key.pem"))
        .arg("-out")
        .arg(dir.join("cert.pem"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn configuration(dir: &Path, ports: (u16, u16), as_root: bool) -> String {
    let me = rustix::process::getuid().as_raw();
    let (uid, user) = if as_root { (NOBODY, "nobody".to_owned()) } else { (me, std::env::var("USER").unwrap()) };
    let dir = dir.display();
    let (plain, encrypted) = ports;
    let group = if as_root { "default_internal_group = nogroup\n" } else { "" };
    format!(
        "base_dir = {dir}/run\nstate_dir = {dir}/run\nlog_path = {dir}/log\nprotocols = imap\nlisten = 127.0.0.1\n\
         ssl = yes\nssl_cert = <{dir}/cert.pem\nssl_key = <{dir}/key.pem\ndisable_plaintext_auth = no\n\
         default_internal_user = {user}\ndefault_login_user = {user}\n{group}first_valid_uid = 0\nfirst_valid_gid = 0\n\
         mail_location = maildir:{dir}/mail\n\
         passdb {{\n  driver = static\n  args = password={PASSWORD}\n}}\n\
         userdb {{\n  driver = static\n  args = uid={uid} gid={uid} home={dir}/mail\n}}\n\
         service imap-login {{\n  chroot =\n  inet_listener imap {{\n    port = {plain}\n  }}\n  \
         inet_listener imaps {{\n    port = {encrypted}\n    ssl = yes\n  }}\n}}\n\
         service anvil {{\n  chroot =\n}}\nservice stats {{\n  chroot =\n}}\n"
    )
}
