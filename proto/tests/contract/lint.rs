//! buf's own rules, by the binary that `make tools` fetches.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn contract() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn lint(folder: &Path) -> Output {
    let buf: PathBuf = contract().parent().unwrap().join(".tools/buf/bin/buf");
    assert!(buf.exists(), "{} is not there: run `make tools`", buf.display());
    Command::new(buf).args(["lint", "--error-format", "text"]).current_dir(folder).output().unwrap()
}

#[test]
fn buf_finds_no_fault_with_the_contract() {
    let output = lint(contract());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_field_without_a_comment_and_an_enum_without_a_zero_are_caught() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(contract().join("buf.yaml"), dir.path().join("buf.yaml")).unwrap();
    let folder = dir.path().join("steward/v1");
    std::fs::create_dir_all(&folder).unwrap();
    let bad = "syntax = \"proto3\";\npackage steward.v1;\n// A.\nmessage A {\n  string b = 1;\n}\n\
               // C.\nenum C {\n  // D.\n  C_D = 0;\n}\n";
    std::fs::write(folder.join("bad.proto"), bad).unwrap();
    let output = lint(dir.path());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success());
    assert!(said.contains("Field \"b\" should have") && said.contains("\"_UNSPECIFIED\""), "{said}");
}
