//! The form of a Rust file: its length, its first lines, and words that must not stay in it.

use crate::tree::{Source, hold, nothing_wrong};

/// Longest file outside the tests, in lines.
const MAX_LINES: usize = 400;

/// Length of a module's documentation, in lines.
const DOC_LINES: std::ops::RangeInclusive<usize> = 3..=15;

/// The macro's declarations are bodies that are never called.
const DECLARATIONS: [&str; 2] = ["workflows/src/activities.rs", "tests/tests/replay/variants.rs"];

fn not_too_long(file: &Source) -> Vec<String> {
    let lines = file.text.lines().count();
    if file.is_rust() && !file.is_test() && lines > MAX_LINES {
        return vec![format!("{}: {lines} lines, at most {MAX_LINES}: part it", file.path)];
    }
    Vec::new()
}

fn begins_with_its_purpose(file: &Source) -> Vec<String> {
    let lines = file.text.lines().take_while(|line| line.starts_with("//!")).count();
    let is_module = file.is_rust() && !file.is_test() && file.path.contains("/src/");
    if is_module && !DOC_LINES.contains(&lines) {
        return vec![format!(
            "{}: begins with {lines} lines of `//!`, not 3 to 15: what it is, what it must not do, where its data goes",
            file.path
        )];
    }
    Vec::new()
}

fn leaves_nothing_behind(file: &Source) -> Vec<String> {
    let mut words = vec!["#[ignore", "todo!", "dbg!"];
    if !DECLARATIONS.contains(&file.path.as_str()) {
        words.push("unimplemented!");
    }
    forbidden(file, code(&file.text), &words)
}

fn tests_do_not_sleep(file: &Source) -> Vec<String> {
    let whole = code(&file.text);
    let tests = whole.clone().skip_while(|(_, line)| !file.is_test() && !line.starts_with("mod tests {"));
    forbidden(file, tests, &["thread::sleep", "time::sleep"])
}

/// A tuple has no field names: parameters that belong together are a struct, others stand alone.
fn has_no_tuple_parameters(file: &Source) -> Vec<String> {
    if !file.is_rust() || file.is_test() || file.is_sample() {
        return Vec::new();
    }
    let shipped = code(&file.text).take_while(|(_, line)| !line.starts_with("mod tests {"));
    let starts_tuple = |line: &str| {
        let Some((before, _)) = line.split_once("): (") else { return false };
        let Some((head, names)) = before.rsplit_once('(') else { return false };
        let are_names = names.contains(", ") && names.chars().all(|c| c.is_ascii_lowercase() || "_, ".contains(c));
        let head = head.trim_end();
        are_names && (head.is_empty() || head.ends_with('(') || head.ends_with(','))
    };
    shipped
        .filter(|(_, line)| starts_tuple(line))
        .map(|(number, _)| format!("{}:{number}: a tuple as a parameter: name its parts", file.path))
        .collect()
}

/// The numbered lines that are not comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> + Clone {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn forbidden<'a>(file: &Source, lines: impl Iterator<Item = (usize, &'a str)>, words: &[&str]) -> Vec<String> {
    if !file.is_rust() || file.is_sample() {
        return Vec::new();
    }
    let bad = |line: &str| words.iter().find(|word| line.contains(**word)).copied();
    lines.filter_map(|(number, line)| Some(format!("{}:{number}: `{}`", file.path, bad(line)?))).collect()
}

#[test]
fn no_file_is_too_long() {
    hold(not_too_long);
    let long = "\n".repeat(MAX_LINES + 1);
    assert_eq!(not_too_long(&Source::new("vault/src/a.rs", &*long)).len(), 1, "a bad one is caught");
    nothing_wrong(&not_too_long(&Source::new("vault/src/a/tests.rs", &*long)));
    nothing_wrong(&not_too_long(&Source::new("vault/src/a.rs", "\n".repeat(MAX_LINES))));
}

#[test]
fn every_module_begins_with_its_purpose() {
    hold(begins_with_its_purpose);
}

#[test]
fn a_module_without_a_purpose_is_caught() {
    for text in ["use a;\n", "//! Short.\n", "use a;\n//!\n//!\n//!\n", &"//! Long.\n".repeat(16)] {
        assert_eq!(begins_with_its_purpose(&Source::new("vault/src/a.rs", text)).len(), 1, "{text}");
    }
    nothing_wrong(&begins_with_its_purpose(&Source::new("vault/src/a.rs", "//! One.\n//!\n//! Two.\n")));
    nothing_wrong(&begins_with_its_purpose(&Source::new("vault/src/a/tests.rs", "")));
}

#[test]
fn nothing_is_left_undone_or_ignored() {
    hold(leaves_nothing_behind);
}

#[test]
fn what_is_left_undone_or_ignored_is_caught() {
    for line in ["#[ignore]", "#[ignore = \"slow\"]", "    todo!()", "dbg!(a);", "unimplemented!()"] {
        assert_eq!(leaves_nothing_behind(&Source::new("vault/src/a.rs", line)).len(), 1, "{line}");
    }
    nothing_wrong(&leaves_nothing_behind(&Source::new(DECLARATIONS[0], "unimplemented!()")));
    nothing_wrong(&leaves_nothing_behind(&Source::new("vault/src/a.rs", "// never todo! here")));
}

#[test]
fn no_test_sleeps() {
    hold(tests_do_not_sleep);
}

#[test]
fn a_test_that_sleeps_is_caught() {
    let line = "    std::thread::sleep(a);\n";
    assert_eq!(tests_do_not_sleep(&Source::new("vault/tests/a.rs", line)).len(), 1);
    assert_eq!(tests_do_not_sleep(&Source::new("vault/src/a.rs", format!("mod tests {{\n{line}}}"))).len(), 1);
    assert_eq!(tests_do_not_sleep(&Source::new("vault/tests/a.rs", "tokio::time::sleep(a).await;")).len(), 1);
    nothing_wrong(&tests_do_not_sleep(&Source::new("vault/src/a.rs", line)));
}

#[test]
fn no_parameter_is_a_tuple() {
    hold(has_no_tuple_parameters);
}

#[test]
fn a_tuple_parameter_is_caught() {
    for line in [
        "fn land(plan: Plan, (mode, budget): (Mode, f64)) {}",
        "    (mode, budget): (Mode, f64),",
        "pub fn land((a, b): (u8, u8)) {}",
    ] {
        assert_eq!(has_no_tuple_parameters(&Source::new("vault/src/a.rs", line)).len(), 1, "{line}");
        nothing_wrong(&has_no_tuple_parameters(&Source::new("vault/src/a/tests.rs", line)));
    }
    for line in ["let (a, b): (u8, u8) = c;", "rows.map(|(a, b): (u8, u8)| a);", "fn land(pair: (u8, u8)) {}"] {
        nothing_wrong(&has_no_tuple_parameters(&Source::new("vault/src/a.rs", line)));
    }
}
