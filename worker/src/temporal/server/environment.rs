//! What the Temporal CLI inherits of our environment: what it needs, and none of our secrets.
//!
//! Names that are passed on are listed; a secret may have any name. Proxies and certificates are not among them: the
//! server talks to nobody but this machine.

use std::ffi::{OsStr, OsString};

/// Where programs, the person's files and temporary files are, who they are, and how times and words are written.
const NAMES: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE"];
const PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// The variables that are passed on.
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
