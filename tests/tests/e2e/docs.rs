//! Every command in the documents is one that the binary accepts.

use steward_tests::run;
use steward_tests::world::World;

/// README, CONTRIBUTING and every page under `docs/`, with their paths.
fn pages() -> Vec<(String, String)> {
    let mut folders = vec![run::project().join("docs")];
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
            '>' => {
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
