//! The units, in a real systemd that boots in a container, installed by the commands of `deploy/README.md`. What restic's
//! unit runs also runs here without a sandbox.

use crate::{
    bash, check_restored, deploy, install_binary, make_backups, make_debian, marked_commands, prepare_restic, read_file,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use steward_tests::api::{Answer, Api};
use steward_tests::vault::{Signal, Vault};
use steward_tests::{run, wait};
use tokio::process::{Child, Command};

/// A container whose first process is systemd. It shares the network of this machine.
struct Machine {
    root: PathBuf,
    pid: u32,
    _container: Child,
    api: Api,
}

impl Machine {
    /// A Debian with the programs that the README asks for, and its commands done.
    fn install(folder: &Path, port: u16) -> PathBuf {
        let root = folder.join("root");
        fs::create_dir(&root).unwrap();
        bash(&format!("tar -xf {} -C {}", make_debian().display(), root.display()));
        let source = root.join("source");
        fs::create_dir_all(source.join("target/release")).unwrap();
        install_binary(&source.join("target/release/steward"));
        bash(&format!("cp -r {} {}", deploy().display(), source.join("deploy").display()));
        fs::copy(run::temporal_cli(), root.join("usr/local/bin/temporal")).unwrap();
        // The ports of this machine are shared, so the test cannot have the usual ones.
        let ports = format!("temporal_port = {}\ntemporal_ui_port = {}\n", run::free_port(), run::free_port());
        let script = marked_commands("README.md", "install")
            .replace("127.0.0.1:8420\"\n", &format!("127.0.0.1:{port}\"\n{ports}"));
        fs::write(source.join("install.sh"), script).unwrap();
        bash(&format!("chroot {} bash -euc 'cd /source && . ./install.sh'", root.display()));
        root
    }

    /// Puts a vault in its place and boots.
    async fn boot(folder: &Path) -> Self {
        let port = run::free_port();
        let root = Self::install(folder, port);
        let vault = Vault::new(folder.join("vault"));
        vault.matter("house");
        vault.task("rent", "house");
        vault.signal("s1", &Signal::done("rent"));
        bash(&format!("cp -r {}/. {}/srv/steward/home/", vault.path().display(), root.display()));
        bash(&format!("chroot {} chown -R steward-home:steward-home /srv/steward/home", root.display()));
        // A hanging process is found in a minute; the test waits less long.
        let drop_in = root.join("etc/systemd/system/steward@.service.d");
        fs::create_dir(&drop_in).unwrap();
        fs::write(drop_in.join("test.conf"), "[Service]\nWatchdogSec=6\n").unwrap();
        let log = fs::File::create(folder.join("machine.log")).unwrap();
        let container = Command::new("systemd-nspawn")
            .args(["--quiet", "--register=no", "--keep-unit", "--boot", "--directory"])
            .arg(&root)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("systemd-nspawn; `make deploy-test` installs it");
        let pid = container.id().unwrap();
        run::note(pid);
        let machine = Self { root, pid, _container: container, api: Api::new(&format!("http://127.0.0.1:{port}")) };
        wait::until("systemd to take commands", async || machine.is_booted().then_some(())).await;
        machine.run_inside(
            "for name in home other; do install -D -o steward-home -m 400 /dev/null /etc/steward/secrets/$name/key; done
             echo secret > /etc/steward/secrets/home/key",
        );
        // It ends when the unit says that it has started.
        machine.run_inside(&marked_commands("README.md", "start"));
        machine
    }

    /// The first process of the container.
    fn find_init(&self) -> Option<u32> {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid)).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    fn is_booted(&self) -> bool {
        let Some(init) = self.find_init() else { return false };
        fs::metadata(format!("/proc/{init}/root/run/systemd/private")).is_ok()
    }

    /// Runs commands as root inside the container, and returns their output.
    fn run_inside(&self, script: &str) -> String {
        let init = self.find_init().expect("a container that runs");
        let file = self.root.join("source/inside.sh");
        fs::write(&file, script).unwrap();
        bash(&format!(
            "nsenter --target {init} --mount --uts --ipc --pid --root --wd bash -euc 'cd /source && . ./inside.sh'"
        ))
    }

    async fn get(&self, path: &str) -> Option<Answer> {
        let address = self.api.base.trim_start_matches("http://").parse().unwrap();
        std::net::TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
        Some(self.api.get(path).await)
    }

    /// Waits until the process is ready, and returns its id.
    async fn ready(&self) -> u32 {
        wait::until("the unit to be ready", async || {
            self.get("/readyz").await.filter(|answer| answer.body == "ready").map(drop)
        })
        .await;
        self.find_process().expect("a process that is ready")
    }

    /// The process of the unit: it runs the program of this root.
    fn find_process(&self) -> Option<u32> {
        let pids =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let is_ours = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"/usr/bin/steward\0up\0")
                && fs::read_link(format!("/proc/{pid}/root")).is_ok()
                && fs::metadata(format!("/proc/{pid}/root/source/install.sh")).is_ok()
        };
        pids.into_iter().find(is_ours)
    }

    fn task(&self) -> String {
        fs::read_to_string(self.root.join("srv/steward/home/task/rent.md")).unwrap()
    }
}

/// Ends the container: its first process outlives the program that started it.
impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(init) = self.find_init() {
            bash(&format!("kill -KILL {init}"));
        }
    }
}

#[test]
fn the_units_are_valid_and_locked_up() {
    let (folder, _) = run::new_folder();
    for name in ["steward@.service", "steward-restic@.service", "steward-restic@.timer"] {
        // A unit is only valid where its program is.
        let program = format!("{} ", run::binary().display());
        fs::write(folder.join(name), read_file(&format!("systemd/{name}")).replace("/usr/bin/steward ", &program))
            .unwrap();
        if name.ends_with(".service") {
            let unit = deploy().join("systemd").join(name);
            bash(&format!("systemd-analyze security --offline=true --threshold=20 {}", unit.display()));
        }
    }
    assert_eq!(bash(&format!("systemd-analyze verify {}/*", folder.display())), "");
}

#[tokio::test]
async fn the_unit_starts_checks_restarts_what_died_or_hangs_and_ends() {
    let (folder, _) = run::new_folder();
    let machine = Machine::boot(&folder).await;
    let first = machine.ready().await;
    let status = fs::read_to_string(format!("/proc/{first}/status")).unwrap();
    for locked in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"] {
        assert!(status.contains(locked), "{locked} is missing in\n{status}");
    }
    let records = machine.root.join("srv/steward/home/event");
    wait::until("a decision in shadow", async || fs::read_dir(&records).ok()?.next().map(drop)).await;
    assert!(machine.task().contains("state: open"), "shadow changes nothing");

    let look =
        |path: &str| format!("nsenter --target $(systemctl show --value -p MainPID steward@home) --mount {path}");
    let key = machine.run_inside(&look("runuser -u steward-home -- cat /etc/steward/secrets/home/key"));
    assert_eq!(key.trim(), "secret", "the process can read its key");
    assert_eq!(machine.run_inside(&look("ls /etc/steward/secrets")).trim(), "home", "and sees no other");
    let link = machine.run_inside(&marked_commands("README.md", "login"));
    assert!(link.contains("https://steward.example.org/login?link="), "{link}");
    let as_root = "STEWARD_CONFIG=/etc/steward/home.toml /usr/bin/steward login 2>&1 || echo refused";
    assert!(machine.run_inside(as_root).contains("you are root"), "root would write what nobody else can read");

    bash(&format!("kill -KILL {first}"));
    let second = wait::until("another process", async || machine.find_process().filter(|pid| *pid != first)).await;
    assert_eq!(machine.ready().await, second);

    // It hangs: it is there, and its loop does not turn.
    bash(&format!("kill -STOP {second}"));
    let third = wait::until("the watchdog", async || machine.find_process().filter(|pid| *pid != second)).await;
    assert_eq!(machine.ready().await, third);
    machine.run_inside(&marked_commands("runbooks/upgrade.md", "ask"));
    machine.run_inside(&marked_commands("runbooks/upgrade.md", "replace"));
    machine.ready().await;
    let status = machine.run_inside(&marked_commands("runbooks/mode-and-stop.md", "mode"));
    assert!(status.contains("Act when sure"), "{status}");
    machine.ready().await;
    let stopped = machine.run_inside(&marked_commands("runbooks/mode-and-stop.md", "stop"));
    assert!(stopped.contains("resume"), "{stopped}");
    // All of the vault's state has survived.
    let state = machine.root.join("var/lib/steward/home");
    assert!(state.join("temporal.db").is_file() && state.join("ledger.db").is_file());
    machine.run_inside("systemctl stop steward@home");
    assert_eq!(machine.find_process(), None, "a stopped unit stays stopped");
}

/// The commands of restic's unit for the vault `home`, with its backups in another folder.
fn list_restic_commands(backups: &Path) -> Vec<String> {
    let unit = read_file("systemd/steward-restic@.service");
    let commands = unit.lines().filter_map(|line| line.strip_prefix("ExecStart="));
    commands
        .map(|command| {
            command.replace("/var/lib/steward-backup/%i", &backups.display().to_string()).replace("%i", "home")
        })
        .collect()
}

/// Runs them as systemd does: each is one command line, without the help of a shell.
fn run_restic_unit(backups: &Path, variables: &[(&str, PathBuf)]) {
    let commands = list_restic_commands(backups);
    assert_eq!(commands.len(), 4);
    for command in commands {
        let script = format!("set -f; {command}");
        let output =
            std::process::Command::new("bash").args(["-c", &script]).envs(variables.to_vec()).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
    }
}

#[test]
fn restics_unit_copies_complete_backups_and_they_are_restored_to_the_byte() {
    let (folder, _) = run::new_folder();
    let backups = make_backups(&folder.join("backups"));
    let variables = prepare_restic(&folder);
    run_restic_unit(&backups, &variables);
    // The second time the repository is there, and something is new.
    fs::write(backups.join("2026-11-25T22-30-00.000Z/vault/new.md"), "new").unwrap();
    run_restic_unit(&backups, &variables);
    let settings: String = variables.iter().map(|(name, path)| format!("export {name}={}\n", path.display())).collect();
    let snapshots = bash(&format!("{settings}restic snapshots --json"));
    let snapshots: serde_json::Value = serde_json::from_str(snapshots.trim()).unwrap();
    assert_eq!(snapshots.as_array().unwrap().len(), 2, "both are kept for 24 hours: {snapshots}");
    let restored = folder.join("restored");
    bash(&format!("{settings}restic restore latest --target {}; restic check", restored.display()));
    check_restored(&backups, &restored.join(backups.strip_prefix("/").unwrap()));
}

#[tokio::test]
async fn restics_unit_works_in_its_sandbox_and_sees_one_secret() {
    let (folder, _) = run::new_folder();
    let machine = Machine::boot(&folder).await;
    fs::copy("/usr/bin/restic", machine.root.join("usr/bin/restic")).unwrap();
    make_backups(&machine.root.join("var/lib/steward-backup/home"));
    machine.run_inside(
        "install -m 644 deploy/systemd/steward-restic@.service deploy/systemd/steward-restic@.timer /etc/systemd/system/
         install -d -o steward-home -m 700 /srv/restic && chown -R steward-home: /var/lib/steward-backup/home
         echo RESTIC_REPOSITORY=/srv/restic > /etc/steward/home.restic.env && chmod 600 /etc/steward/home.restic.env
         echo secret | install -o steward-home -m 400 /dev/stdin /etc/steward/secrets/home/restic_password
         mkdir /etc/systemd/system/steward-restic@home.service.d
         printf '[Service]\nReadWritePaths=/srv/restic\nExecStart=/bin/sh -c \"ls /etc/steward/secrets/* > /srv/restic/seen\"\n' \
           > /etc/systemd/system/steward-restic@home.service.d/local.conf
         systemctl daemon-reload && systemctl enable --now steward-restic@home.timer
         systemctl is-active steward-restic@home.timer
         systemctl start steward-restic@home || { journalctl --no-pager -u steward-restic@home; false; }",
    );
    let seen = fs::read_to_string(machine.root.join("srv/restic/seen")).unwrap();
    assert_eq!(seen.trim(), "restic_password", "of all secrets it sees its own");
    let restore = "RESTIC_REPOSITORY=/srv/restic RESTIC_PASSWORD=secret RESTIC_CACHE_DIR=/tmp/cache \
        restic restore latest --target /restored";
    machine.run_inside(restore);
    let backups = "var/lib/steward-backup/home";
    check_restored(&machine.root.join(backups), &machine.root.join("restored").join(backups));
}
