//! A real Postgres server for the tests of the fleet: one for a run, with a database of its own for each test.
//!
//! Postgres refuses to run as root, so then it runs as `nobody`. It checks passwords, as a real one does.

use crate::process_clock::ProcessClock;
use crate::{run, wait};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::OnceCell;

/// The role that may do everything, and its password.
const ADMIN: (&str, &str) = ("admin", "adminpassword");

/// A running server.
pub struct Postgres {
    port: u16,
    bin: PathBuf,
    data: PathBuf,
    /// What its processes have in their environment, beside ours.
    variables: Vec<(&'static str, String)>,
    /// It ends with the run at the latest; see `run`.
    server: Child,
}

static SERVER: OnceCell<Postgres> = OnceCell::const_new();

/// The server of this run; the first call starts it.
pub async fn server() -> &'static Postgres {
    SERVER.get_or_init(Postgres::start).await
}

impl Postgres {
    /// A server of its own, for a test that kills it.
    pub async fn start() -> Self {
        Self::start_with(Vec::new()).await
    }

    /// A server of its own whose processes have this clock.
    pub async fn start_with_clock(clock: &ProcessClock) -> Self {
        Self::start_with(clock.variables().to_vec()).await
    }

    async fn start_with(variables: Vec<(&'static str, String)>) -> Self {
        let bin = find_programs();
        let (folder, _) = run::new_folder();
        // `nobody` must reach its own folder below that of root.
        std::fs::set_permissions(run::folder(), PermissionsExt::from_mode(0o711)).unwrap();
        let password = folder.join("password");
        std::fs::write(&password, ADMIN.1).unwrap();
        own_by_nobody(&folder);
        let data = folder.join("data");
        let port = run::free_port();
        let init = as_nobody(&bin.join("initdb"))
            .args(["--auth=scram-sha-256", "--no-sync", "--encoding=UTF8", "--locale=C", "--username", ADMIN.0])
            .arg("--pwfile")
            .arg(&password)
            .arg(&data)
            .output()
            .unwrap();
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        Self::serve(bin, data, port, variables).await
    }

    /// A copy of this server that follows it under a name, and can take its place.
    pub async fn start_standby(&self, name: &str) -> Self {
        let (folder, _) = run::new_folder();
        own_by_nobody(&folder);
        let (data, port, bin) = (folder.join("data"), run::free_port(), self.bin.clone());
        let primary = format!("{}?application_name={name}", self.url_of("postgres"));
        let copied = as_nobody(&bin.join("pg_basebackup"))
            .args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--dbname", &primary, "--pgdata"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        Self::serve(bin, data, port, self.variables.clone()).await
    }

    /// Sets which standbys must have a commit before it is answered, as `ANY 1 (one, two)`.
    pub fn set_synchronous(&self, standbys: &str) {
        self.sql("postgres", &format!("ALTER SYSTEM SET synchronous_standby_names = '{standbys}'"));
        self.sql("postgres", "SELECT pg_reload_conf()");
    }

    /// Makes a standby the server that is written to.
    pub fn promote(&self) {
        assert_eq!(self.sql("postgres", "SELECT pg_promote(true, 30)"), "t");
    }

    /// `127.0.0.1:<port>`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    async fn serve(bin: PathBuf, data: PathBuf, port: u16, variables: Vec<(&'static str, String)>) -> Self {
        let server = launch(&bin, &data, port, &variables);
        let postgres = Self { port, bin, data, variables, server };
        postgres.wait_until_ready().await;
        postgres
    }

    async fn wait_until_ready(&self) {
        wait::until("Postgres to answer", async || self.try_sql("postgres", "SELECT 1").ok()).await;
    }

    /// Ends the server at once, as a crash of its machine would.
    pub fn kill(&mut self) {
        self.crash();
        self.server.wait().unwrap();
    }

    /// As [`Postgres::kill`], for a server that others refer to. It does not wait, and nobody starts it again.
    pub fn crash(&self) {
        run::strike(self.server.id());
        kill_process(Pid::from_child(&self.server), Signal::QUIT).unwrap();
    }

    /// Starts it again after [`Postgres::kill`].
    pub async fn start_again(&mut self) {
        self.server = launch(&self.bin, &self.data, self.port, &self.variables);
        self.wait_until_ready().await;
    }

    /// A new database, as the URL of the role that may do everything.
    pub fn create_database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("fleet{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        format!("postgres://{}:{}@127.0.0.1:{}/{name}", ADMIN.0, ADMIN.1, self.port)
    }

    /// The same database for another role.
    #[must_use]
    pub fn url_for(url: &str, role: &str, password: &str) -> String {
        let (_, rest) = url.split_once('@').unwrap();
        format!("postgres://{role}:{password}@{rest}")
    }

    /// The output of `pg_dump`, or of `pg_dumpall` with these options, as SQL.
    pub fn dump(&self, database: &str, command: &[&str]) -> Vec<u8> {
        let url = self.url_of(database);
        let output =
            Command::new(self.bin.join(command[0])).args(&command[1..]).args(["--dbname", &url]).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Runs a file of SQL in a database. A role that exists already is no fault.
    pub fn load(&self, database: &str, file: &Path) {
        let mut psql = Command::new(self.bin.join("psql"));
        let output =
            psql.args(["--no-psqlrc", "--quiet", "--file"]).arg(file).arg(self.url_of(database)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let is_fault = |line: &&str| line.contains("ERROR") && !line.contains("already exists");
        let faults: Vec<&str> = said.lines().filter(is_fault).collect();
        assert!(output.status.success() && faults.is_empty(), "{}: {faults:#?}", file.display());
    }

    /// Removes a database, whoever is connected to it.
    pub fn destroy(&self, database: &str) {
        let (_, name) = database.rsplit_once('/').unwrap();
        self.sql("postgres", &format!("DROP DATABASE {name} WITH (FORCE)"));
    }

    fn url_of(&self, database: &str) -> String {
        match database.contains("://") {
            true => database.to_owned(),
            false => format!("postgres://{}:{}@127.0.0.1:{}/{database}", ADMIN.0, ADMIN.1, self.port),
        }
    }

    /// Runs SQL in the database of a URL, as its role, and returns what psql prints.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.try_sql(database, sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    /// As [`Postgres::sql`].
    ///
    /// # Errors
    /// What psql says.
    pub fn try_sql(&self, database: &str, sql: &str) -> Result<String, String> {
        let url = self.url_of(database);
        let output = Command::new(self.bin.join("psql"))
            .args(["--no-psqlrc", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1", "--command", sql, &url])
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }
}

fn launch(bin: &Path, data: &Path, port: u16, variables: &[(&'static str, String)]) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(data.with_file_name("log")).unwrap();
    // Only the server gets the variables, not the program that changes the user.
    let server = as_nobody(Path::new("env"))
        .args(variables.iter().map(|(name, value)| format!("{name}={value}")))
        .arg(bin.join("postgres"))
        .arg("-D")
        .arg(data)
        .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k", "", "-c", "fsync=off", "-c", "max_connections=200"])
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    run::note(server.id());
    server
}

/// The folder of Debian's newest Postgres.
fn find_programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("Postgres; `make tools` installs it");
    let newest =
        versions.filter_map(|entry| Some(entry.ok()?.path().join("bin"))).filter(|bin| bin.join("initdb").is_file());
    newest.max().expect("Postgres' server; `make tools` installs it")
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn own_by_nobody(folder: &Path) {
    if is_root() {
        assert!(Command::new("chown").args(["-R", "nobody"]).arg(folder).status().unwrap().success());
    }
}

fn as_nobody(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(program);
    command
}
