//! Certificates of a test's own, made by openssl.

use std::path::{Path, PathBuf};

/// A certificate for a name, with its key. A second one for the same name takes its place.
pub async fn create_certificate(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (cert, key) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    let mut command = tokio::process::Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9"]);
    command.args(["-subj", "/CN=test", "-addext", &format!("subjectAltName=DNS:{name}")]);
    // It is its own issuer, but a certificate of a server: clients accept no authority as a server.
    command.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"]);
    let made = command.arg(&key).arg("-out").arg(&cert).output().await.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (cert, key)
}
