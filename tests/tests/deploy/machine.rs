//! A Debian with a real systemd that boots in a container, prepared by the commands of `deploy/README.md`.
//!
//! It shares the network of this machine, so its ports are free ones.

use crate::{bash, deploy, install_binary, make_debian, marked_commands};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use steward_tests::api::{Answer, Api};
use steward_tests::vault::{Signal, Vault};
use steward_tests::{run, wait};
use tokio::process::{Child, Command};

/// What boots, and what the pages ask for.
const PACKAGES: &str = "systemd,systemd-sysv,dbus,postgresql-client,openssl,curl";

/// A container whose first process is systemd. It shares the network of this machine.
pub(crate) struct Machine {
    pub(crate) root: PathBuf,
    pid: u32,
    _container: Child,
    api: Api,
}

impl Machine {
    /// A Debian with the programs that the README asks for, and its commands done.
    fn install(folder: &Path, port: Option<u16>) -> PathBuf {
        let root = folder.join("root");
        fs::create_dir(&root).unwrap();
        bash(&format!("tar -xf {} -C {}", make_debian("machine", PACKAGES).display(), root.display()));
        let source = root.join("source");
        fs::create_dir_all(source.join("target/release")).unwrap();
        install_binary(&source.join("target/release/steward"));
        bash(&format!("cp -r {} {}", deploy().display(), source.join("deploy").display()));
        fs::copy(run::temporal_cli(), root.join("usr/local/bin/temporal")).unwrap();
        let mut script = marked_commands("README.md", "install");
        if let Some(port) = port {
            // The ports of this machine are shared, so the test cannot have the usual ones.
            let ports = format!("temporal_port = {}\ntemporal_ui_port = {}\n", run::free_port(), run::free_port());
            let vault = marked_commands("README.md", "vault");
            script += &vault.replace("127.0.0.1:8420\"\n", &format!("127.0.0.1:{port}\"\n{ports}"));
        }
        fs::write(source.join("install.sh"), script).unwrap();
        bash(&format!("chroot {} bash -euc 'cd /source && . ./install.sh'", root.display()));
        root
    }

    /// Boots, puts a vault in its place and starts it.
    pub(crate) async fn boot(folder: &Path) -> Self {
        let machine = Self::boot_installed(folder, Some(run::free_port())).await;
        machine.place_vault("home");
        machine.run_inside(
            "for name in home other; do install -D -o steward-home -m 400 /dev/null /etc/steward/secrets/$name/key; done
             echo secret > /etc/steward/secrets/home/key",
        );
        // It ends when the unit says that it has started.
        machine.run_inside(&marked_commands("README.md", "start"));
        machine
    }

    /// Puts a vault with one task in the place of a unit's.
    pub(crate) fn place_vault(&self, name: &str) {
        let vault = Vault::new(self.root.join("source").join(name));
        vault.matter("house");
        vault.task("rent", "house");
        vault.signal("s1", &Signal::done("rent"));
        self.run_inside(&format!(
            "cp -r /source/{name}/. /srv/steward/{name}/ && chown -R steward-{name}: /srv/steward/{name}"
        ));
    }

    /// Boots without any vault.
    pub(crate) async fn boot_without_vault(folder: &Path) -> Self {
        Self::boot_installed(folder, None).await
    }

    async fn boot_installed(folder: &Path, port: Option<u16>) -> Self {
        let root = Self::install(folder, port);
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
        let machine = Self {
            root,
            pid,
            _container: container,
            api: Api::new(&format!("http://127.0.0.1:{}", port.unwrap_or_default())),
        };
        wait::until("systemd to take commands", async || machine.is_booted().then_some(())).await;
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
    pub(crate) fn run_inside(&self, script: &str) -> String {
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
    pub(crate) async fn ready(&self) -> u32 {
        wait::until("the unit to be ready", async || {
            self.get("/readyz").await.filter(|answer| answer.body == "ready").map(drop)
        })
        .await;
        self.find_process().expect("a process that is ready")
    }

    /// The process of the unit: it runs the program of this root.
    pub(crate) fn find_process(&self) -> Option<u32> {
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

    pub(crate) fn task(&self) -> String {
        self.read_task("home")
    }

    pub(crate) fn read_task(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(format!("srv/steward/{name}/task/rent.md"))).unwrap()
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
