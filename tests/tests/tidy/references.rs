//! Comments cite only rules that are in the repository.

use crate::tree::{Source, hold, nothing_wrong, root, tracked};

const RULES: &str = "docs/reference/rules.md";

fn cites_only_known_rules(file: &Source, rules: &str) -> Vec<String> {
    if !file.is_rust() || file.is_sample() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let Some((_, comment)) = line.split_once("//") else { continue };
        for id in comment.split(|c: char| !c.is_alphanumeric() && c != '-').filter(|word| word.starts_with("S3-")) {
            if !rules.contains(id) {
                found.push(format!("{}:{number}: {id} is not in {RULES}", file.path));
            }
        }
        let mut words = comment.split(|c: char| !c.is_alphanumeric());
        if words.any(|word| word == "section") && words.next().is_some_and(|word| word.parse::<u32>().is_ok()) {
            found.push(format!("{}:{number}: a section of what? Name the rule or the page", file.path));
        }
    }
    found
}

#[test]
fn comments_cite_only_rules_of_the_repository() {
    let rules = std::fs::read_to_string(root().join(RULES)).unwrap();
    hold(|file| cites_only_known_rules(file, &rules));
}

#[test]
fn a_rule_that_is_nowhere_is_caught() {
    let found = |line: &str| cites_only_known_rules(&Source::new("vault/src/a.rs", line), "S3-10 S3-20").len();
    assert_eq!(found("/// As in S3-99."), 1);
    assert_eq!(found("/// By section 5."), 1);
    nothing_wrong(&cites_only_known_rules(
        &Source::new("vault/src/a.rs", "/// S3-10 to S3-20, a section."),
        "S3-10 S3-20",
    ));
}

/// The tests and commands that hold a rule, by the last column of its row.
fn list_holders(rules: &str) -> Vec<&str> {
    let rows = rules.lines().filter(|line| line.starts_with("| S0-"));
    let cells = rows.filter_map(|row| row.trim_end_matches('|').trim_end().rsplit('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn each_rule_of_assistants_is_held_by_what_exists() {
    let rules = std::fs::read_to_string(root().join(RULES)).unwrap();
    let targets = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let sources: Vec<Source> = tracked().into_iter().filter(Source::is_rust).collect();
    let exists = |holder: &str| match holder.strip_prefix("make ") {
        Some(target) => targets.contains(&format!("\n{target}:")),
        None => sources.iter().any(|source| source.text.contains(&format!("fn {holder}("))),
    };
    let holders = list_holders(&rules);
    let missing: Vec<String> = holders.iter().filter(|holder| !exists(holder)).map(ToString::to_string).collect();
    nothing_wrong(&missing);
    let numbers: Vec<String> =
        (1..=25).map(|number| format!("S0-{number:02}")).filter(|id| !rules.contains(id)).collect();
    nothing_wrong(&numbers);
    assert!(holders.len() > 25, "{holders:?}");
}
