//! Says which setting is wrong, in a file by its line and in the environment by its variable.
//!
//! What is named is the first fault alone. In place of a list of all settings, the one is named that was probably meant. No value is
//! shown, because it may be a secret.

use super::mapping::find_line;
use super::settings::SETTINGS;
use super::sources::{EnvironmentVariables, PREFIX, merge_variables};
use crate::cli::alike::find_alike;
use anyhow::bail;
use std::path::Path;
use toml::Table;

/// The longest reason that is shown as it is, in bytes.
const MAX_REASON: usize = 120;

/// Checks that a file holds settings alone, with values of their types.
///
/// # Errors
/// Names the file, the line and the key of the first fault.
pub(super) fn check_settings(path: &Path, text: &str, table: &Table) -> anyhow::Result<()> {
    for (setting, alone) in part_settings(table) {
        let Err(e) = alone.try_into::<super::RawConfig>() else { continue };
        let line = find_line(text, &setting).unwrap_or(1);
        let key = setting.join(".");
        let what = describe_fault(e.message(), &key.replace('.', "_"), str::to_owned);
        bail!("{}:{line}: `{key}`: {what} docs/reference/configuration.md", path.display());
    }
    Ok(())
}

/// Each setting of a file, as the names that lead to it and as a file that holds it alone.
fn part_settings(table: &Table) -> Vec<(Vec<String>, Table)> {
    let mut parts = Vec::new();
    for (key, value) in table {
        let heads_settings = SETTINGS.iter().any(|s| s.key.split_once('.').is_some_and(|(head, _)| head == key));
        let inner = value.as_table().filter(|inner| heads_settings && !inner.is_empty());
        let Some(inner) = inner else {
            parts.push((vec![key.clone()], Table::from_iter([(key.clone(), value.clone())])));
            continue;
        };
        parts.extend(inner.iter().map(|(name, value)| {
            let inner = Table::from_iter([(name.clone(), value.clone())]);
            (vec![key.clone(), name.clone()], Table::from_iter([(key.clone(), inner.into())]))
        }));
    }
    parts
}

/// Checks that each variable is a setting, with a value of its type.
///
/// # Errors
/// Names the variable of the first fault.
pub(super) fn check_variables(variables: &EnvironmentVariables) -> anyhow::Result<()> {
    for (variable, value) in variables {
        let table = merge_variables(Table::new(), vec![(variable.clone(), value.clone())])?;
        let Err(e) = table.try_into::<super::RawConfig>() else { continue };
        let name = variable.strip_prefix(PREFIX).unwrap_or(variable).to_ascii_lowercase();
        let what = describe_fault(e.message(), &name, |known| {
            format!("{PREFIX}{}", known.replace('.', "_").to_ascii_uppercase())
        });
        bail!("the environment variable {variable}: {what} docs/reference/configuration.md");
    }
    Ok(())
}

/// What is wrong with a setting. In place of all settings the one is named that was meant, if there is one like it.
fn describe_fault(message: &str, key: &str, show: impl Fn(&str) -> String) -> String {
    let what = message.lines().next().unwrap_or_default();
    if what.len() < MAX_REASON {
        return format!("{what}: see");
    }
    let bare = what.split(", expected one of").next().unwrap_or_default();
    let bare = if bare.starts_with("unknown field") { "not a setting" } else { bare };
    let meant = SETTINGS.iter().map(|setting| setting.key.replace('.', "_"));
    let meant = find_alike(key, meant).and_then(|alike| SETTINGS.iter().find(|s| s.key.replace('.', "_") == alike));
    match meant {
        Some(setting) => format!("{bare}; did you mean `{}`? See", show(setting.key)),
        None => format!("{bare}: see"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_no_setting_is_named_with_the_one_that_was_meant() {
        let check = |name: &str, value: &str| {
            let checked = check_variables(&vec![(name.to_owned(), value.to_owned())]);
            checked.err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert_eq!(check("STEWARD_CLERK_MODEL", "x"), "");
        assert_eq!(check("STEWARD_CADENCE_MATTER_SECONDS", "900"), "");
        let unknown = check("STEWARD_CLERK_MODELS", "x");
        assert_eq!(
            unknown,
            "the environment variable STEWARD_CLERK_MODELS: not a setting; did you mean `STEWARD_CLERK_MODEL`? See \
             docs/reference/configuration.md"
        );
        let strange = check("STEWARD_XYZZY", "x");
        assert!(!strange.contains("did you mean") && strange.contains("STEWARD_XYZZY"), "{strange}");
        let wrong = check("STEWARD_SCAN_SECONDS", "soon");
        assert!(wrong.contains("STEWARD_SCAN_SECONDS") && !wrong.contains("expected one of"), "{wrong}");
    }

    #[test]
    fn a_key_of_a_table_in_the_file_is_named_with_its_table_and_its_line() {
        let check = |text: &str| {
            let table = toml::from_str(text).expect("the text is TOML");
            let checked = check_settings(Path::new("steward.toml"), text, &table);
            checked.err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert_eq!(check("scan_seconds = 5\n[caps]\nper_day = 9\n[cadence]\n"), "");
        assert_eq!(
            check("[caps]\nper_day = 9\nper_hours = 1\n"),
            "steward.toml:3: `caps.per_hours`: not a setting; did you mean `caps.per_hour`? See docs/reference/configuration.md"
        );
        let wrong = check("[caps]\nper_day = \"many\"\n");
        assert!(wrong.starts_with("steward.toml:2: `caps.per_day`: ") && !wrong.contains("not a setting"), "{wrong}");
        let unknown = check("[xyzzy]\nper_day = 1\n");
        assert!(unknown.starts_with("steward.toml:1: `xyzzy`: ") && !unknown.contains("did you mean"), "{unknown}");
    }
}
