//! The progress of a delivery is kept until it is removed, and a damaged file is named with the fix.

use super::*;
use chrono::TimeDelta;

fn vault() -> (tempfile::TempDir, VaultWriter) {
    let dir = tempfile::tempdir().unwrap();
    let writer = VaultWriter::lock(VaultRoot::open(dir.path()).unwrap()).unwrap();
    (dir, writer)
}

#[test]
fn the_progress_is_kept_until_it_is_removed() {
    let (_dir, writer) = vault();
    let id = ActionId::derive(&["a"]);
    assert_eq!(read_delivery_progress(writer.root(), &id).unwrap(), None);
    writer.remove_delivery_progress(&id).unwrap();
    let state = TrackerId::parse("1b4e28ba-2fa1-41d2-883f-0016d3cca427").unwrap();
    let now = steward_domain::time::parse("2026-11-22T10:00:00Z").unwrap();
    let mut progress = DeliveryProgress { begun: true, from: Some(state), tries: 2, ..DeliveryProgress::default() };
    progress.next_try = Some(now + TimeDelta::seconds(20));
    for _ in 0..2 {
        writer.write_delivery_progress(&id, &progress).unwrap();
        assert_eq!(read_delivery_progress(writer.root(), &id).unwrap(), Some(progress.clone()));
        progress.tries += 1;
    }
    writer.remove_delivery_progress(&id).unwrap();
    assert_eq!(read_delivery_progress(writer.root(), &id).unwrap(), None);
}

#[test]
fn a_progress_file_that_cannot_be_read_is_named_with_the_fix() {
    let (dir, writer) = vault();
    let id = ActionId::derive(&["a"]);
    writer.write_delivery_progress(&id, &DeliveryProgress::default()).unwrap();
    let file = dir.path().join(format!(".steward/outbox/{id}.json"));
    for bad in ["", "{\"from\": \"../../x\"}", "7"] {
        std::fs::write(&file, bad).unwrap();
        let message = read_delivery_progress(writer.root(), &id).unwrap_err().to_string();
        assert!(
            message.contains(&format!(".steward/outbox/{id}.json")) && message.contains("move it away"),
            "{message}"
        );
    }
}
