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
    for (key, value) in table {
        let alone = Table::from_iter([(key.clone(), value.clone())]);
        let Err(e) = alone.try_into::<super::RawConfig>() else { continue };
        let line = find_line(text, std::slice::from_ref(key)).unwrap_or(1);
        let what = describe_fault(e.message(), key, |known| known.to_owned());
        bail!("{}:{line}: `{key}`: {what} docs/reference/configuration.md", path.display());
    }
    Ok(())
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
        let what = describe_fault(e.message(), &name, |known| format!("{PREFIX}{}", known.to_ascii_uppercase()));
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
    let known = SETTINGS.iter().map(|setting| setting.key.replace('.', "_"));
    match find_alike(key, known) {
        Some(known) => format!("{bare}; did you mean `{}`? See", show(&known)),
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
}
