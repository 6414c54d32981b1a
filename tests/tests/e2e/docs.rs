//! Every command in the documents is one that the binary accepts, and the first five minutes of the README work.

use steward_tests::files::Files;
use steward_tests::run;
use steward_tests::wait;
use steward_tests::world::World;

/// README, CONTRIBUTING and every page under `docs/` and `deploy/`, with their paths.
fn pages() -> Vec<(String, String)> {
    let mut folders = vec![run::project().join("docs"), run::project().join("deploy")];
    let mut files = vec![run::project().join("README.md"), run::project().join("CONTRIBUTING.md")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.into_iter().map(|path| (path.display().to_string(), std::fs::read_to_string(path).unwrap())).collect()
}

/// The commands of a page: lines of code that begin with `steward`, and code within a line that does.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced || line.starts_with("    ") {
            let code = line.trim().trim_start_matches("$ ");
            found.extend(code.starts_with("steward ").then(|| code.to_owned()));
        } else {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.filter(|span| span.starts_with("steward ")).map(|span| span.replace("\\|", "|")));
        }
    }
    found
}

/// The arguments of a command, once for each alternative of its words; placeholders become plain words.
fn arguments(command: &str) -> Vec<Vec<String>> {
    let mut plain = String::new();
    let (mut is_placeholder, mut is_quoted) = (false, false);
    for c in command.split(" #").next().unwrap().chars() {
        match c {
            '<' => is_placeholder = true,
            '>' if is_placeholder => {
                is_placeholder = false;
                plain.push_str("0123");
            }
            '"' => is_quoted = !is_quoted,
            ' ' if is_quoted => plain.push('_'),
            '[' | ']' | '…' => {}
            c if !is_placeholder => plain.push(c),
            _ => {}
        }
    }
    let mut all = vec![Vec::new()];
    for word in plain.split_whitespace().skip(1).take_while(|word| !matches!(*word, "|" | "||" | "&&" | ">")) {
        let alternatives = word.split('|');
        all = alternatives
            .flat_map(|word| all.iter().map(move |before| [&before[..], &[word.to_owned()]].concat()))
            .collect();
    }
    all
}

#[tokio::test]
async fn every_command_in_the_documents_is_one_that_the_binary_parses() {
    let world = World::new().await;
    let mut wrong = Vec::new();
    let mut count = 0;
    for (page, text) in pages() {
        for command in commands(&text) {
            for mut words in arguments(&command) {
                words.push("--help".to_owned());
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let said = world.run(&words).await;
                count += 1;
                if said.code != Some(0) {
                    wrong.push(format!("{page}: `{command}`: {}", said.err.lines().next().unwrap_or_default()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 50, "only {count} commands were found");
}

#[test]
fn commands_are_found_in_blocks_and_in_lines_with_their_alternatives() {
    let text = "Say `steward undo\\|confirm <id>…`.\n\n    steward trust report --json | jq .choice  # one\n\n```sh\nsteward up\n```\n";
    let found: Vec<_> = commands(text).iter().flat_map(|command| arguments(command)).collect();
    assert_eq!(found, [vec!["undo", "0123"], vec!["confirm", "0123"], vec!["trust", "report", "--json"], vec!["up"]]);
}

/// The preparation and the commands of the README's first five minutes, each line of shell as it stands there.
fn five_minutes() -> (String, Vec<String>) {
    let readme = std::fs::read_to_string(run::project().join("README.md")).unwrap();
    let (_, section) = readme.split_once("## Five minutes of use").unwrap();
    let (_, block) = section.split_once("```sh\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let (commands, preparation): (Vec<&str>, Vec<&str>) = block.lines().partition(|line| line.starts_with("steward "));
    (preparation.join("\n"), commands.into_iter().map(str::to_owned).collect())
}

#[tokio::test]
async fn the_first_five_minutes_of_the_readme_work_as_they_are_written() {
    let world = World::new().await;
    let project = world.folder.join("project");
    std::fs::create_dir_all(project.join("target/debug")).unwrap();
    std::os::unix::fs::symlink(run::binary(), project.join("target/debug/steward")).unwrap();
    let steward = world.without_server().without("STEWARD_VAULT").inside(&project);
    steward.run(&["example", "demo/vault"]).await.expect(0);
    let mut up = steward.with("STEWARD_LIVE_MODE", "live").start(&["up", "--tick-now", "--vault", "demo/vault"]);
    up.says("Ctrl-C").await;
    let holder = std::fs::read(project.join("demo/vault/.steward/up.json")).unwrap();
    let holder: serde_json::Value = serde_json::from_slice(&holder).unwrap();
    run::note(u32::try_from(holder["server_pid"].as_u64().unwrap()).unwrap());

    let (preparation, commands) = five_minutes();
    assert_eq!(commands.len(), 3, "{commands:#?}");
    let function = preparation.lines().last().unwrap().to_owned();
    steward.wrapped(&["bash", "-euc", &preparation]).run(&[]).await.expect(0);
    let shell = async |line: &str| {
        let script = format!("{function}\n{line}");
        steward.wrapped(&["bash", "-euc", &script]).run(&[]).await.expect(0).out
    };
    let quoted = async || shell(&commands[0]).await.contains("Dear Nora").then_some(());
    wait::until("the signal of the mail", quoted).await;
    let decided = async || shell(&commands[1]).await.contains("pending").then_some(());
    wait::until("the decision on it", decided).await;
    assert!(shell(&commands[2]).await.contains("allotment-sign-lease"));

    // The two sentences below the block.
    let vault = project.join("demo/vault");
    let listed = shell("steward audit list --json --limit 5").await;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let is_ours = |row: &&serde_json::Value| row["target"] == "task/allotment-sign-lease.md" && row["pending"] == true;
    let id = listed.as_array().unwrap().iter().find(is_ours).unwrap()["id"].clone();
    let (before, note) = (Files::of(&vault), vault.join("task/allotment-sign-lease.md"));
    let bytes = std::fs::read(&note).unwrap();
    let confirmed = shell(&format!("steward confirm {}", id.as_str().unwrap())).await;
    // The signal may get its status at the same time.
    let changed = Files::of(&vault).since_but_events(&before);
    let others: Vec<&String> = changed.iter().filter(|line| !line.starts_with("~ signal/")).collect();
    assert_eq!(others[0], "~ task/allotment-sign-lease.md", "{changed:?}");
    let undo = confirmed.lines().find_map(|line| line.strip_prefix("undo: ")).unwrap();
    shell(undo).await;
    assert_eq!(std::fs::read(&note).unwrap(), bytes);
    assert!(up.stop().await.success());
}
