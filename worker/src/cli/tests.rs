//! Keeps the reference of the command line in the documents equal to what the binary prints.

use super::Cli;
use clap::{Command, CommandFactory};
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# The command line\n\nThe help of every command, as `--help` prints it. The options \
                    `--vault`, `--json`, `--long`, `--color` and\n`--help` of the first section belong to every command and are not \
                    repeated.\n";

/// Appends the help of a command and of the commands below it.
fn append_help(page: &mut String, command: &Command, path: &str) {
    let is_root = !path.contains(' ');
    let shown = command.clone().bin_name(path).term_width(120).mut_args(|arg| {
        let is_repeated = !is_root && ["vault", "json", "long", "color", "help"].contains(&arg.get_id().as_str());
        if is_repeated { arg.hide(true) } else { arg }
    });
    let help = shown.clone().render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    write!(page, "\n## `{path}`\n\n```text\n{}\n```\n", lines.join("\n")).unwrap();
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        append_help(page, below, &format!("{path} {}", below.get_name()));
    }
}

#[test]
fn the_reference_of_the_command_line_is_what_the_binary_prints() {
    let mut command = Cli::command().disable_version_flag(true);
    command.build();
    let mut page = HEAD.to_owned();
    append_help(&mut page, &command, "steward");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/cli.md");
    if std::env::var("STEWARD_WRITE_DOCS").is_ok_and(|it| it == "1") {
        std::fs::write(&file, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == page, "docs/reference/cli.md is old: `make reference` writes it");
}
