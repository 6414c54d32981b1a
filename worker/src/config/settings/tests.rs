//! Keeps the list of settings equal to what is read, and the reference equal to the list.

use super::*;
use crate::config::RawConfig;
use std::path::Path;
use steward_domain::steward::guard::CallCaps;
use steward_domain::steward::tick::Cadence;

/// The keys that serde names when it meets an unknown one.
fn list_accepted_keys() -> Vec<String> {
    let error = toml::from_str::<RawConfig>("no_such_key = 1").unwrap_err().to_string();
    let (_, keys) = error.split_once("expected one of").unwrap();
    keys.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_key_that_is_read_is_listed_and_no_other() {
    let mut listed: Vec<&str> = SETTINGS.iter().map(|it| it.key.split('.').next().unwrap()).collect();
    listed.dedup();
    listed.sort_unstable();
    let mut accepted = list_accepted_keys();
    accepted.sort_unstable();
    assert_eq!(listed, accepted);
}

#[test]
fn the_listed_defaults_of_cadence_and_caps_are_those_in_force() {
    let tables = [
        ("cadence", serde_json::to_value(Cadence::default()).unwrap()),
        ("caps", serde_json::to_value(CallCaps::default()).unwrap()),
    ];
    for (table, values) in tables {
        let listed =
            SETTINGS.iter().filter_map(|it| Some((it.key.strip_prefix(table)?.strip_prefix('.')?, it.default)));
        let expected: Vec<(&str, String)> =
            values.as_object().unwrap().iter().map(|(key, value)| (key.as_str(), value.to_string())).collect();
        let mut listed: Vec<(&str, String)> = listed.map(|(key, default)| (key, default.to_owned())).collect();
        listed.sort();
        let mut sorted = expected.clone();
        sorted.sort();
        assert_eq!(listed, sorted, "{table}");
    }
}

#[test]
fn the_reference_of_the_configuration_is_written_from_the_list() {
    let rows = SETTINGS.iter().map(|it| {
        let default = if it.default.is_empty() { "–" } else { it.default };
        let place = if it.is_trusted { "no" } else { "yes" };
        // A table of tables has no variable.
        let variable =
            if ["streams", "wiki"].contains(&it.key) { "–".to_owned() } else { format!("`{}`", it.variable()) };
        format!("| `{}` | {variable} | {default} | {place} | {} |\n", it.key, it.meaning)
    });
    let table = format!(
        "\n| key | variable | default | in the vault | meaning |\n|---|---|---|---|---|\n{}",
        rows.collect::<String>()
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/configuration.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (head, rest) = page.split_once("<!-- settings -->\n").unwrap();
    let (kept, foot) = rest.split_once("\n<!-- end of settings -->").unwrap();
    if std::env::var("STEWARD_WRITE_DOCS").is_ok_and(|it| it == "1") {
        std::fs::write(&file, format!("{head}<!-- settings -->\n{table}\n<!-- end of settings -->{foot}")).unwrap();
        return;
    }
    assert!(kept == table, "docs/reference/configuration.md is old: `make reference` writes it");
}
