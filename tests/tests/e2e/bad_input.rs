//! Unusable records: each is named with its fix, and everything else continues.

use serde_json::Value;
use steward_domain::action::plan::Disposition;
use steward_domain::steward::tick::TaskCheckOutcome;
use steward_tests::vault::Signal;
use steward_tests::world::World;

struct Bad {
    path: &'static str,
    bytes: Vec<u8>,
    /// The text that its message must contain.
    says: &'static [&'static str],
}

fn bad(path: &'static str, bytes: impl AsRef<[u8]>, says: &'static [&'static str]) -> Bad {
    Bad { path, bytes: bytes.as_ref().to_vec(), says }
}

fn task(lines: &str) -> String {
    format!("---\ntype: task\nname: n\n{lines}---\n")
}

/// One invalid record of each kind.
fn all() -> Vec<Bad> {
    let bomb = "---\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]\n---\n";
    let mut huge = task("parent_matter: house\n").into_bytes();
    huge.resize(10_000_000, b'x');
    let mut binary = b"---\ntype: task\n".to_vec();
    binary.extend((0..=255).cycle().take(4096));
    let mut latin = b"---\ntype: task\nname: caf".to_vec();
    latin.extend(b"\xe9\nparent_matter: house\n---\n");
    vec![
        bad("task/broken.md", "---\ntype: task\nname: [unclosed\n---\n", &["line 3", "close"]),
        bad(
            "task/twice.md",
            task("state: open\nstate: done\nparent_matter: house\n"),
            &["line 5", "`state`", "remove one"],
        ),
        bad("task/bomb.md", bomb, &["line 2", "anchor"]),
        bad("task/huge.md", huge, &["10000000 bytes", "1048576", "split"]),
        bad("task/binary.md", binary, &["binary", "move it"]),
        bad("task/latin.md", latin, &["line 3", "not UTF-8", "save"]),
        bad("task/waiting.md", task("state: waiting\nparent_matter: house\n"), &["`state`", "waiting", "`open`"]),
        bad("task/orphan.md", task("parent_matter: nowhere\n"), &["matter/nowhere.md", "does not exist", "create"]),
        bad("task/twin-a.md", task("id: 7\nparent_matter: house\n"), &["`7`", "task/twin-b.md", "its own"]),
        bad("task/twin-b.md", task("id: 7\nparent_matter: house\n"), &["`7`", "task/twin-a.md", "its own"]),
        bad("task/escape.md", task("parent_matter: ../../etc/passwd\n"), &["parent_matter", "cannot be used"]),
        bad("task/with a blank .md", task("parent_matter: house\n"), &["cannot be used", "rename"]),
        bad("task/no-parent.md", task(""), &["`parent_matter`", "missing", "add it"]),
        bad("task/plain.md", "just text", &["line 1", "`---`"]),
        bad("task/empty.md", "", &["line 1", "`---`"]),
        bad("task/unclosed.md", "---\ntype: task\n", &["---"]),
        bad("matter/broken.md", "---\ntype: matter\nname: [x\n---\n", &["line 3", "close"]),
        bad(
            "signal/evil.md",
            "---\ntype: signal\ntarget_kind: task\ntarget_path: ../../etc/passwd\n---\n",
            &["`target_path`", "cannot be used"],
        ),
    ]
}

/// A valid matter among the invalid ones, with files of odd but valid form.
async fn world() -> World {
    let world = World::with_one_done().await.live();
    for one in all() {
        world.vault.write(one.path, one.bytes);
    }
    let dos = "\u{feff}---\r\ntype: task\r\nname: from Windows\r\nstate: open # so far\r\nparent_matter: house\r\n---\r\nbody\r\n";
    world.vault.write("task/dos.md", dos);
    world.vault.signal("about-dos", &Signal::done("dos"));
    std::os::unix::fs::symlink("/etc/passwd", world.vault.path().join("task/link.md")).unwrap();
    std::fs::create_dir(world.vault.path().join("task/folder.md")).unwrap();
    world
}

#[tokio::test]
async fn every_unusable_record_is_named_with_its_mend() {
    let world = world().await;
    world.run(&["index", "rebuild"]).await.expect(0);
    let findings = world.run(&["doctor", "--json"]).await.expect(4).json();
    let found = |path: &str| -> String {
        let findings = findings.as_array().unwrap().iter();
        let about =
            |f: &&Value| f["check"] == "record" && f["found"].as_str().unwrap().starts_with(&format!("{path}: "));
        findings.filter(about).map(|f| f["found"].as_str().unwrap()).collect()
    };
    for one in all() {
        let message = found(one.path);
        assert!(!message.is_empty(), "nothing about {}: {findings:#}", one.path);
        one.says.iter().for_each(|word| assert!(message.contains(word), "{}: no `{word}` in: {message}", one.path));
    }
    assert!(found("task/link.md").contains("symbolic link") && found("task/folder.md").contains("regular file"));
    assert_eq!(found("task/rent.md") + &found("task/dos.md") + &found("matter/house.md"), "");
    let status = world.run(&["status"]).await.expect(0);
    assert!(status.out.contains("task/broken.md") && status.out.contains("signal/evil.md"), "{status}");
}

#[tokio::test]
async fn the_good_records_go_on_and_the_bad_ones_are_never_rewritten() {
    let world = world().await;
    let before = world.vault.files();
    let mut worker = world.worker().await;
    let report = world.tick("house").await;
    let decided = report
        .evaluated
        .iter()
        .filter(|t| matches!(t.ended, TaskCheckOutcome::Decided { disposition: Disposition::Live, .. }));
    let decided: Vec<&str> = decided.map(|t| t.task.slug()).collect();
    assert_eq!(decided, ["dos", "rent"], "{report:?}");
    assert!(report.errors.iter().any(|e| e.contains("task/twin-a.md")), "{report:?}");
    let dos = String::from_utf8(world.vault.read("task/dos.md")).unwrap();
    let expected = "\u{feff}---\r\ntype: task\r\nname: from Windows\r\nstate: done # so far\r\nparent_matter: house\r\n---\r\nbody\r\n";
    assert_eq!(dos, expected, "byte order mark, line ends and comment stay");
    let mut changed = world.vault.files().since_but_events(&before);
    changed.sort();
    assert_eq!(changed, ["~ task/dos.md", "~ task/rent.md"]);

    let broken = world.tick("broken").await;
    assert!(broken.evaluated.is_empty() && broken.errors.iter().any(|e| e.contains("matter/broken.md")), "{broken:?}");
    let missing = world.tick("no-such-matter").await;
    assert!(missing.errors.iter().any(|e| e.contains("matter/no-such-matter.md")), "{missing:?}");
    assert!(worker.status().is_none(), "it runs on");
    world.verify_chain().await;
}

#[tokio::test]
async fn a_record_that_is_mended_takes_part_again() {
    let world = World::with_one_done().await.live();
    world.vault.write("task/rent.md", "---\ntype: task\nstate: [open\nparent_matter: house\n---\n");
    let _worker = world.worker().await;
    assert!(world.tick("house").await.evaluated.is_empty());
    world.vault.task("rent", "house");
    let done = async || {
        world.tick("house").await;
        (world.vault.state("rent") == "done").then_some(())
    };
    steward_tests::wait::until("the mended task to be done", done).await;
    assert_eq!(world.live_actions().len(), 1);
}

#[tokio::test]
async fn a_name_that_no_file_may_have_is_refused_on_the_command_line() {
    let world = World::with_one_done().await;
    for name in ["../x", "x/../y", ".hidden", "", "a\nb"] {
        let said = world.run(&["tick", "--wait", "--", name]).await;
        assert_eq!(said.code, Some(1), "{name}: {said}");
        assert!(said.err.contains("cannot be used"), "{name}: {said}");
    }
    let said = world.run(&["tick", "task/rent.md"]).await.expect(1);
    assert!(said.err.contains("not a matter") && !said.err.contains("rename"), "{said}");
    for (arguments, file) in [
        (&["tick", "nosuch"][..], "nosuch"),
        (&["tick", "nosuch", "--wait"], "nosuch"),
        (&["tick", "--", "-x"], "-x"),
        (&["tick", "no such"], "no such"),
    ] {
        let said = world.run(arguments).await.expect(1);
        assert!(said.err.contains(&format!("matter/{file}.md is not in the vault")), "{said}");
    }
    for path in ["../../etc/passwd", "../../etc/passwd.md"] {
        let said = world.run(&["audit", "list", "--task", path]).await.expect(1);
        assert!(said.err.contains("cannot be used"), "{said}");
    }
    let said = world.run(&["audit", "list", "--task", "nosuch"]).await.expect(2);
    assert!(said.err.contains("no task, matter or action is called `nosuch`"), "{said}");
}
