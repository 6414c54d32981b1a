//! The runbook of a fleet, followed on a machine with systemd, a real Postgres and a real Temporal server.
//!
//! Each step is a command of the page. What the page leaves to the operator, such as addresses, is filled in here.

use crate::machine::Machine;
use crate::marked_commands;
use serde_json::Value;
use steward_tests::former::{Build, FormerBuild};
use steward_tests::postgres;
use steward_tests::server::TestServer;
use steward_tests::vault::{Signal, Vault};
use steward_tests::{run, wait};

const PAGE: &str = "runbooks/fleet.md";
/// Tenants beside the two of the page.
const OTHERS: usize = 18;

/// A machine whose operator has written the file of the page's first step.
async fn prepare(server: &TestServer, namespace: &str) -> (Machine, String) {
    let (folder, _) = run::new_folder();
    let machine = Machine::boot_without_vault(&folder).await;
    let url = postgres::server().await.create_database();
    let (login, place) = url.trim_start_matches("postgres://").split_once('@').unwrap();
    let (role, password) = login.split_once(':').unwrap();
    let temporal = server.address();
    machine.run_inside(&format!(
        "mkdir -p /etc/steward; umask 077
         echo '*:*:*:{role}:{password}' > /etc/steward/operator.pgpass
         printf '%s\n' STEWARD_FLEET_DB=postgres://{role}@{place} PGPASSFILE=/etc/steward/operator.pgpass \
           TEMPORAL_ADDRESS={temporal} TEMPORAL_NAMESPACE={namespace} > /etc/steward/operator.env"
    ));
    machine.run_inside(&marked_commands(PAGE, "add-tenant-script"));
    (machine, url)
}

/// Runs a step of the page in a shell of an operator.
fn follow(machine: &Machine, mark: &str) -> String {
    operate(machine, &marked_commands(PAGE, mark))
}

fn operate(machine: &Machine, script: &str) -> String {
    machine.run_inside(&format!("{}\n{script}", marked_commands(PAGE, "operator")))
}

/// The ports of this machine are shared, so the page's cannot be used.
fn with_free_ports(script: &str) -> String {
    ["8430", "8431", "8432"]
        .iter()
        .fold(script.to_owned(), |script, port| script.replace(port, &run::free_port().to_string()))
}

/// Waits until all tenants have an owner that fits.
async fn wait_for_owners(machine: &Machine, what: &str, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
    wait::until(what, async || {
        // Exit 4 says that a process has another mode than expected.
        let rows: Vec<Value> = serde_json::from_str(&operate(machine, "steward fleet status --json || true")).unwrap();
        (rows.len() == 2 + OTHERS && rows.iter().all(|row| fits(&row["owner"]))).then_some(rows)
    })
    .await
}

/// Adds the other tenants of the machine, as the page adds two. They stay in shadow.
async fn add_others(machine: &Machine) {
    let names: Vec<String> = (0..OTHERS).map(|n| format!("other-{n}")).collect();
    for name in &names {
        let port = run::free_port();
        operate(machine, &format!("add-tenant {name} {name}.example.org {port} --bucket model"));
        machine.place_vault(name);
    }
    operate(machine, &format!("systemctl enable --now steward@{}", names.join(" steward@")));
    let rows = wait_for_owners(machine, "all tenants to be served", |owner| owner["mode"].is_string()).await;
    let in_shadow = rows.iter().filter(|row| row["owner"]["mode"] == "shadow").count();
    assert_eq!(in_shadow, 1 + OTHERS, "{rows:#?}");
}

/// How often a tenant's vault was started or taken.
fn find_epoch(machine: &Machine, tenant: &str) -> u64 {
    let rows: Vec<Value> = serde_json::from_str(&operate(machine, "steward fleet status --json || true")).unwrap();
    rows.iter().find(|row| row["id"] == tenant).unwrap()["owner"]["epoch"].as_u64().unwrap()
}

/// A process that dies is started again.
async fn kill_birch(machine: &Machine) {
    let before = find_epoch(machine, "birch");
    operate(machine, "systemctl kill --signal KILL steward@birch");
    wait::until("birch to be started again", async || (find_epoch(machine, "birch") > before).then_some(())).await;
}

/// The exporter shows all tenants. Its port of the page is taken by this machine, perhaps.
fn watch(machine: &Machine, url: &str) {
    let (_, place) = url.split_once('@').unwrap();
    let role = marked_commands(PAGE, "watch-role");
    operate(machine, &role.replace("db.example/steward", place));
    let port = run::free_port().to_string();
    let start = marked_commands(PAGE, "watch").replace("8430", &port);
    // It serves before `systemctl` returns.
    let drop_in = format!(
        "mkdir /etc/systemd/system/steward-fleet-export.service.d
         printf '[Service]\nExecStart=\nExecStart=/usr/bin/steward fleet export --listen 127.0.0.1:{port}\n' \
           > /etc/systemd/system/steward-fleet-export.service.d/test.conf\n"
    );
    assert!(operate(machine, &(drop_in + &start)).contains("steward_fleet_up 1"));
    let hidden = "runuser -u steward-acme -- cat /etc/steward/export.pgpass 2>&1 || true";
    assert!(machine.run_inside(hidden).contains("Permission denied"));
}

/// An operator's own role does what the page says, and the log names it.
fn be_ann(machine: &Machine, url: &str) {
    let (_, place) = url.split_once('@').unwrap();
    let role = marked_commands(PAGE, "operator-role");
    let as_ann = format!(
        "{role}\nexport STEWARD_OPERATOR=ann STEWARD_FLEET_DB=postgres://ann:$new@{place}; unset PGPASSFILE
        steward fleet tenant set birch --max-mode shadow --reason mine
        steward stop --fleet --tenant birch && steward resume --fleet --tenant birch
        steward fleet log; steward fleet status
        steward fleet tenant add another 2>&1 && exit 1 || true"
    );
    let shown = operate(machine, &as_ann);
    assert!(shown.lines().any(|line| line.contains("ann") && line.contains("mine")), "{shown}");
    assert!(shown.contains("permission denied to create role"), "{shown}");
}

/// A run of birch that this build cannot continue: it is named before the upgrade, and holds it.
async fn meet_a_run_of_another_build(machine: &Machine, server: &TestServer, namespace: &str) {
    operate(machine, "systemctl stop steward@birch");
    let client = server.open_namespace(namespace).await;
    let former = FormerBuild { client: &client, tenant: "birch", build: Build::Removed, observed: &Value::Null };
    let run = former.begin_run().await;
    let asked = operate(machine, &format!("{} || test $? -eq 4", marked_commands(PAGE, "preflight").trim_end()));
    assert!(asked.contains(&run), "{asked}");
    operate(machine, "systemctl start steward@birch");
    let held = wait::until("the process to be held", async || {
        let shown = machine.run_inside("steward-as birch status 2>&1 || true");
        shown.contains(&run).then_some(shown)
    })
    .await;
    assert!(held.contains("does not poll yet: this build would break open runs"), "{held}");
    operate(machine, &format!("run={run}; {}", marked_commands(PAGE, "terminate")));
    wait::until("the process to go on", async || {
        let shown = machine.run_inside("steward-as birch status 2>&1 || true");
        (!shown.contains(&run)).then_some(())
    })
    .await;
}

/// The restored copy of acme judges and changes what is new.
async fn let_the_restored_act(machine: &Machine) {
    let feed = Vault::open(machine.root.join("srv/steward/acme"));
    feed.task("roof", "house");
    feed.signal("s2", &Signal::done("roof"));
    machine.run_inside("chown -R steward-acme: /srv/steward/acme; steward-as acme tick house --wait || true");
    let roof = machine.root.join("srv/steward/acme/task/roof.md");
    wait::until("the restored copy to act", async || {
        std::fs::read_to_string(&roof).unwrap().contains("state: done").then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_runbook_installs_tenants_lets_one_act_stops_upgrades_and_restores() {
    let server = TestServer::share().await;
    let (machine, url) = prepare(&server, "deploy-fleet").await;
    let said = follow(&machine, "init");
    assert!(said.contains("namespace deploy-fleet are ready"), "{said}");
    operate(&machine, &with_free_ports(&marked_commands(PAGE, "add")));
    for tenant in ["acme", "birch"] {
        machine.place_vault(tenant);
        // Their sender has been right often enough to be let act when sure.
        Vault::open(machine.root.join(format!("srv/steward/{tenant}"))).instinct("mail", 60);
        machine.run_inside(&format!("chown -R steward-{tenant}: /srv/steward/{tenant}"));
    }
    let status = follow(&machine, "start");
    assert!(status.contains("acme") && status.contains("birch"), "{status}");
    for tenant in ["acme", "birch"] {
        let records = machine.root.join(format!("srv/steward/{tenant}/event"));
        wait::until("a decision in shadow", async || std::fs::read_dir(&records).ok()?.next().map(drop)).await;
        assert!(machine.read_task(tenant).contains("state: open"), "shadow changes nothing");
    }
    follow(&machine, "mode");
    let shown = wait::until("the mode", async || {
        let shown = operate(&machine, "steward fleet status --json || true");
        shown.contains("\"mode\": \"live_high_confidence_only\"").then_some(shown)
    })
    .await;
    assert!(shown.contains("\"mode\": \"shadow\""), "the other one stays in shadow: {shown}");
    wait::until("acme to act", async || machine.read_task("acme").contains("state: done").then_some(())).await;
    assert!(machine.read_task("birch").contains("state: open"), "shadow changes nothing");
    operate(&machine, "steward fleet status");
    add_others(&machine).await;
    watch(&machine, &url);
    assert!(follow(&machine, "dump").contains("steward-"));
    be_ann(&machine, &url);
    kill_birch(&machine).await;
    let stopped = follow(&machine, "stop");
    assert!(stopped.contains("all tenants are stopped"), "{stopped}");
    assert!(follow(&machine, "resume").contains("the stop has ended"));
    let checked = follow(&machine, "preflight");
    assert_eq!(checked.matches("This build can continue all of them").count(), 2 + OTHERS, "{checked}");
    follow(&machine, "upgrade");
    operate(&machine, "systemctl restart 'steward@*'");
    wait_for_owners(&machine, "all to be restarted", |owner| owner["epoch"].as_u64() >= Some(2)).await;

    meet_a_run_of_another_build(&machine, &server, "deploy-fleet").await;
    // The machine of acme is lost, and its vault comes back from its backup as another copy.
    machine.run_inside("steward-as acme backup create && cp -a /srv/steward/acme /srv/steward/old-acme");
    for mark in ["clear", "restore"] {
        machine.run_inside(&marked_commands("runbooks/restore.md", mark).replace("home", "acme"));
    }
    let shown = operate(&machine, "steward-as acme fleet take acme || true");
    assert!(shown.contains("has all audit records"), "{shown}");
    machine.run_inside("steward-as acme fleet take acme --yes");
    machine.run_inside(&marked_commands("runbooks/restore.md", "accept").replace("home", "acme"));
    let before = find_epoch(&machine, "acme");
    wait::until("the restored copy to be heard", async || {
        let rows: Vec<Value> = serde_json::from_str(&operate(&machine, "steward fleet status --json || true")).unwrap();
        let acme = rows.into_iter().find(|row| row["id"] == "acme").unwrap();
        acme["silent_seconds"].as_i64().is_some_and(|seconds| seconds < 6).then_some(())
    })
    .await;
    let_the_restored_act(&machine).await;
    let variables = "STEWARD_CONFIG=/etc/steward/acme.toml STEWARD_VAULT=/srv/steward/old-acme STEWARD_STATE_DIR=/tmp/old \
        STEWARD_LISTEN=127.0.0.1:0 HOME=/tmp";
    // The old copy wakes up.
    let old = "set -a; . /etc/steward/acme.env; set +a
        runuser -u steward-acme -- env VARIABLES /usr/bin/steward up 2>&1 && exit 1 || test $? -eq 3";
    let said = machine.run_inside(&old.replace("VARIABLES", variables));
    assert!(said.contains("was shut out"), "{said}");

    operate(&machine, &marked_commands("runbooks/keys.md", "password"));
    wait::until("acme with its new password", async || (find_epoch(&machine, "acme") > before).then_some(())).await;
}

#[tokio::test]
async fn the_script_of_a_new_tenant_refuses_what_would_not_work_and_creates_nothing() {
    let server = TestServer::share().await;
    let (machine, _) = prepare(&server, "deploy-refused").await;
    follow(&machine, "init");
    machine.run_inside("mkdir -p /etc/steward && touch /etc/steward/taken.toml");
    for (arguments, reason) in [
        ("acme acme.example.org", "usage"),
        ("Acme acme.example.org 8431", "is no tenant"),
        ("../etc acme.example.org 8431", "is no tenant"),
        ("acme- acme.example.org 8431", "is no tenant"),
        ("a-name-that-is-far-too-long acme.example.org 8431", "longer than 24"),
        ("acme 'a b' 8431", "is no host name"),
        ("acme acme.example.org port", "is no port"),
        ("taken taken.example.org 8431", "is there already"),
        ("acme acme.example.org 8431 --bucket none", "there is no bucket"),
    ] {
        let said = operate(&machine, &format!("add-tenant {arguments} 2>&1 && exit 1 || true"));
        assert!(said.contains(reason), "{arguments}: {said}");
    }
    let listed = operate(&machine, "steward fleet tenant list; ls /etc/steward");
    assert!(listed.contains("no tenant yet") && !listed.contains("acme.toml"), "{listed}");
}
