//! Invisible and direction-changing characters: never raw on a terminal or in JSON, and escaped alike in both.

use serde_json::Value;
use steward_domain::record::plain_text::is_unseen;
use steward_tests::vault::Signal;
use steward_tests::world::World;

const NAME: &str = "in\u{200b}voice \u{202e}gpj.exe\u{2066} \u{9b}31m";

/// As YAML can hold it: control characters are written as numbers.
fn escaped(text: &str) -> String {
    text.replace('\u{9b}', "\\u009b")
}

#[tokio::test]
async fn what_does_not_show_is_escaped_for_people_and_for_programs() {
    let world = World::new().await;
    world.vault.matter("house");
    let name = Value::from(NAME);
    let task = format!("---\ntype: task\nname: {name}\nstate: open\nparent_matter: \"[[matter/house]]\"\n---\n");
    world.vault.write("task/rent.md", escaped(&task));
    world.vault.signal("s1", &Signal { quote: NAME, source: "ma\u{200d}il", ..Signal::done("rent") });
    let signal = String::from_utf8(world.vault.read("signal/s1.md")).unwrap();
    world.vault.write("signal/s1.md", escaped(&signal));
    let worker = world.worker().await;
    world.tick("house").await;
    worker.stop().await;

    let commands: [&[&str]; 5] = [
        &["signals", "list"],
        &["signals", "show", "s1"],
        &["signals", "explain", "s1"],
        &["why", "rent"],
        &["status"],
    ];
    for arguments in commands {
        let said = world.run(arguments).await;
        let raw: Vec<char> = said.all().chars().filter(|c| is_unseen(*c) && *c != '\n').collect();
        assert_eq!(raw, Vec::<char>::new(), "{arguments:?}: {said}");
        let said = world.run(&[&["--json"], arguments].concat()).await.expect(0);
        let raw: Vec<char> = said.out.chars().filter(|c| is_unseen(*c) && *c != '\n').collect();
        assert_eq!(raw, Vec::<char>::new(), "{arguments:?} as JSON: {said}");
        let _ = said.json();
    }
    let list = world.run(&["signals", "list"]).await.expect(0);
    assert!(list.out.contains("\\u{202e}"), "{list}");
    let signal = world.json(&["signals", "show", "s1"]).await;
    assert!(signal.to_string().contains("\u{202e}gpj.exe"), "the value itself is what it was: {signal}");

    let wrong = world.run(&["--json", "why", "task/\u{202e}\u{9b}.md"]).await.expect(1);
    assert!(!wrong.all().chars().any(|c| is_unseen(c) && c != '\n'), "{wrong}");
    assert!(wrong.json()["error"].as_str().is_some_and(|e| !e.is_empty()));
}
