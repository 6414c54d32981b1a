//! The tracked files of the workspace, as input of the rules.

use std::path::Path;
use std::process::Command;

/// A tracked text file.
pub(crate) struct Source {
    /// The path from the workspace's root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), text: text.into() }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it holds only tests.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    /// Whether it belongs to this test, whose bad samples are intentional.
    pub(crate) fn is_sample(&self) -> bool {
        self.path.starts_with("tests/tests/tidy/")
    }
}

/// The workspace's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Every tracked file that exists and is text.
pub(crate) fn tracked() -> Vec<Source> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().unwrap();
    assert!(listed.status.success(), "failed to list the tracked files: {}", String::from_utf8_lossy(&listed.stderr));
    let paths = String::from_utf8(listed.stdout).unwrap();
    let read = |path: &str| Some(Source::new(path, std::fs::read_to_string(root().join(path)).ok()?));
    paths.split_terminator('\0').filter_map(read).collect()
}

/// Fails with every complaint of a rule about the tracked files.
pub(crate) fn hold(rule: impl Fn(&Source) -> Vec<String>) {
    let files = tracked();
    assert!(files.len() > 100, "only {} files are tracked", files.len());
    nothing_wrong(&files.iter().flat_map(rule).collect::<Vec<_>>());
}

/// Fails with every complaint, one line each.
pub(crate) fn nothing_wrong(complaints: &[String]) {
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn the_tree_is_the_whole_workspace() {
    let files = tracked();
    for wanted in ["Cargo.lock", "Cargo.toml", "domain/src/lib.rs", "worker/src/main.rs"] {
        assert!(files.iter().any(|file| file.path == wanted), "{wanted} is not tracked");
    }
}
