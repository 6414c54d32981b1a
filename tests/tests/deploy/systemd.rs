//! The units, in a real systemd that boots in a container, installed by the commands of `deploy/README.md`. What restic's
//! unit runs also runs here without a sandbox.

use crate::machine::Machine;
use crate::{bash, check_restored, deploy, make_backups, marked_commands, prepare_restic, read_file};
use std::fs;
use std::path::{Path, PathBuf};
use steward_tests::{run, wait};

#[test]
fn the_units_are_valid_and_locked_up() {
    let (folder, _) = run::new_folder();
    for name in [
        "steward@.service",
        "steward-restic@.service",
        "steward-restic@.timer",
        "steward-fleet-export.service",
        "steward-fleet-dump.service",
        "steward-fleet-dump.timer",
    ] {
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
    machine.run_inside(&marked_commands("runbooks/restore.md", "verify"));
    machine.run_inside(&marked_commands("runbooks/restore.md", "clear"));
    assert!(!machine.root.join("srv/steward/home/task/rent.md").exists());
    let restored = machine.run_inside(&marked_commands("runbooks/restore.md", "restore"));
    assert!(restored.contains("1. start the process"), "{restored}");
    let accepted = machine.run_inside(&marked_commands("runbooks/restore.md", "accept"));
    assert!(accepted.contains("allows calls"), "{accepted}");
    machine.ready().await;
    assert!(machine.task().contains("state: open"), "the vault is back");
    machine.run_inside(&format!("NEW_KEY=new; {}", marked_commands("runbooks/keys.md", "key")));
    machine.ready().await;
    let key = machine.run_inside("cat /etc/steward/secrets/home/clerk_key");
    assert_eq!(key.trim(), "new");
    // All of the vault's state is there.
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
    assert_eq!(commands.len(), 6);
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
