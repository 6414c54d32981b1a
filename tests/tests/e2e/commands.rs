//! Every command: its JSON and its exit code.

use serde_json::{Value, json};
use steward_tests::world::World;

/// Asserts that an object has these fields.
fn has(value: &Value, fields: &[&str]) {
    let object = value.as_object().unwrap_or_else(|| panic!("no object: {value}"));
    for field in fields {
        assert!(object.contains_key(*field), "`{field}` is not in {value:#}");
    }
}

#[tokio::test]
async fn commands_that_look_print_one_json_value_with_their_fields() {
    let world = World::with_one_done().await.live();
    let _worker = world.worker().await;
    let report = world.json(&["tick", "house", "--wait"]).await;
    has(&report, &["matter", "evaluated", "quiet", "skipped", "left_due", "signals", "interval_seconds"]);
    has(&report["evaluated"][0], &["task", "end", "decision", "confidence", "disposition", "action_id"]);
    has(&world.json(&["tick", "matter/house.md", "--shadow"]).await, &["workflow_id"]);

    let status = world.json(&["status"]).await;
    let fields =
        ["vault", "policy", "stop", "clerk", "running", "counts", "looks_today", "guard", "problems", "warnings"];
    has(&status, &fields);
    assert_eq!(status["counts"]["actions"], json!(1));
    assert_eq!(status["policy"]["mode"], json!("live"));
    let doctor = world.run(&["doctor", "--json"]).await.json();
    doctor.as_array().unwrap().iter().for_each(|finding| has(finding, &["check", "ok", "found"]));

    let listed = world.json(&["audit", "list"]).await;
    has(
        &listed[0],
        &["path", "id", "kind", "target", "at", "decision", "confidence", "disposition", "resolution", "seq"],
    );
    let action = listed[0]["id"].as_str().unwrap();
    let shown = world.json(&["audit", "show", &action[..6]]).await;
    has(&shown, &["path", "record", "reasoning"]);
    let record = [
        "type",
        "id",
        "timestamp",
        "target",
        "target_kind",
        "class",
        "decision",
        "confidence",
        "mode",
        "gates",
        "prior_state",
        "prior_frontmatter",
        "pending_confirmation",
        "partially_applied",
        "evidence",
        "source_contributions",
        "plane_action",
        "undo_recipe",
        "clerk",
        "workflow",
        "prev_sha256",
    ];
    has(&shown["record"], &record);
    assert_eq!(
        world.json(&["audit", "list", "--task", "task/rent.md", "--limit", "5"]).await.as_array().unwrap().len(),
        1
    );
    assert_eq!(world.json(&["audit", "list", "--task", "task/other.md"]).await, json!([]));
    has(&world.json(&["audit", "verify"]).await, &["records", "faults", "head_unknown"]);

    has(&world.json(&["schedules", "plan"]).await, &["steps", "warnings"]);
    has(&world.json(&["schedules", "apply"]).await, &["plan", "outcome"]);
    let schedules = world.json(&["schedules", "list"]).await;
    has(&schedules[0], &["id", "matter", "interval_seconds", "phase_seconds", "paused", "note", "next_run", "recent"]);
    assert_eq!(world.json(&["index", "check"]).await, json!([]));
    has(&world.json(&["undo", action]).await, &["kind", "action_id", "record", "target"]);
    assert_eq!(world.json(&["stop", "--reason", "why not"]).await["stop"]["reason"], json!("why not"));
    assert_eq!(world.json(&["resume"]).await, json!({"stopped": false, "was_stopped": true}));
    assert_eq!(world.json(&["resume"]).await, json!({"stopped": false, "was_stopped": false}));
}

#[tokio::test]
async fn commands_that_need_no_worker_print_their_json_without_one() {
    let world = World::with_one_done().await;
    let rebuilt = world.json(&["index", "rebuild"]).await;
    has(&rebuilt, &["read", "problems"]);
    assert_eq!(rebuilt["read"], json!(3));
    let folder = world.folder.join("example");
    let written = world.json(&["example", folder.to_str().unwrap()]).await;
    has(&written, &["matters", "tasks", "signals"]);
    let said = world.run(&["example", folder.to_str().unwrap()]).await.expect(1);
    assert!(said.err.contains("example") && said.out.is_empty(), "{said}");
}

#[tokio::test]
async fn exit_codes_tell_failure_wrong_usage_refusal_and_faults_apart() {
    let world = World::with_one_done().await;
    let worker = world.worker().await;
    world.tick("house").await;
    world.run(&["audit", "verify"]).await.expect(0);
    world.run(&["no-such-command"]).await.expect(2);
    world.run(&["tick"]).await.expect(2);
    world.run(&["audit", "show", "ffff"]).await.expect(1);
    world.run(&["undo", "ffffffff"]).await.expect(3);
    worker.stop().await;

    let no_vault = world.steward.without("STEWARD_VAULT").run(&["status"]).await.expect(1);
    assert!(no_vault.err.contains("--vault") && no_vault.err.contains("STEWARD_VAULT"), "{no_vault}");
    let record = std::fs::read_dir(world.vault.path().join("event")).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replace("likely_done", "still_active")).unwrap();
    let found = world.run(&["audit", "verify", "--json"]).await.expect(4).json();
    assert!(found["faults"][0].as_str().unwrap().contains("event/"), "{found}");
    world.run(&["doctor"]).await.expect(4);
    std::fs::remove_file(&record).unwrap();
    world.run(&["audit", "verify"]).await.expect(4);
}

/// The commands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // The second line of a description is indented further.
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

#[tokio::test]
async fn help_has_an_example_for_every_command() {
    let world = World::new().await;
    let mut left: Vec<Vec<String>> = vec![Vec::new()];
    let mut seen = Vec::new();
    while let Some(command) = left.pop() {
        let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        arguments.push("--help");
        let said = world.run(&arguments).await.expect(0);
        if command.is_empty() {
            assert!(said.out.contains("Exit codes"), "{said}");
        } else {
            assert!(said.out.contains("Example") && said.out.contains("steward "), "{command:?}: {said}");
        }
        left.extend(listed(&said.out).into_iter().map(|name| [command.clone(), vec![name]].concat()));
        seen.push(command.join(" "));
    }
    // The loop above must have found commands.
    for known in ["up", "schedules", "schedules apply", "audit verify", "index check", "preflight"] {
        assert!(seen.iter().any(|command| command == known), "{known} is not among {seen:?}");
    }
}

#[tokio::test]
async fn an_error_is_one_json_value_for_who_asked_for_json() {
    let world = World::with_one_done().await;
    for (arguments, code) in [
        (&["audit", "show", "ffff", "--json"][..], 1),
        (&["--json", "tick", "nosuch"], 1),
        (&["--json", "no-such-command"], 2),
        (&["tick", "--json"], 2),
    ] {
        let said = world.run(arguments).await.expect(code);
        let value = said.json();
        assert!(!value["error"].as_str().unwrap().is_empty() && !said.err.is_empty(), "{said}");
    }
    let said = world.steward.without("STEWARD_VAULT").run(&["status", "--json"]).await.expect(1);
    assert!(said.json()["error"].as_str().unwrap().contains("--vault"), "{said}");
    assert!(world.run(&["--json", "--help"]).await.expect(0).out.contains("Usage"));
}

#[tokio::test]
async fn an_empty_vault_has_no_chain_and_an_empty_name_is_no_vault() {
    let world = World::new().await;
    let said = world.run(&["audit", "verify"]).await.expect(0);
    assert!(said.out.contains("no chain yet") && !said.out.contains("whole"), "{said}");
    let said = world.steward.with("STEWARD_VAULT", "").run(&["status"]).await.expect(1);
    assert!(said.err.contains("no vault is set"), "{said}");
}
