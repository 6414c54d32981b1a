//! Chooses the environment variables that the Temporal CLI inherits, so that it gets no secrets.
//!
//! The allowed names are listed, because a secret can have any name. The list must not contain proxies or certificates:
//! the server communicates only with this machine.

use std::ffi::{OsStr, OsString};

/// The locations of programs, home and temporary files, the user's name, the time zone and the language.
const NAMES: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE"];
const PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// Keeps only the variables that are passed on.
pub(super) fn filter_inherited(
    all: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    all.filter(|(name, _)| is_inherited(name))
}

fn is_inherited(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    NAMES.iter().any(|one| one.as_bytes() == name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_needs_is_passed_on_and_nothing_else() {
        let given = [
            "PATH",
            "HOME",
            "LC_ALL",
            "XDG_CONFIG_HOME",
            "TZ",
            "STEWARD_CLERK_API_KEY",
            "TEMPORAL_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "PATHS",
            "IMAP_PASSWORD",
            "https_proxy",
            "LD_PRELOAD",
        ];
        let all = given.map(|name| (OsString::from(name), OsString::from("x")));
        let passed: Vec<OsString> = filter_inherited(all.into_iter()).map(|(name, _)| name).collect();
        assert_eq!(passed, ["PATH", "HOME", "LC_ALL", "XDG_CONFIG_HOME", "TZ"]);
    }
}
