//! A person renames a note and undoes a change of it at once: nobody has told the index yet.

use super::*;

#[tokio::test]
async fn an_undo_right_after_a_rename_reaches_the_note_and_not_the_new_one_at_its_path() {
    let bench = VaultFixture::new(Mode::Live).await;
    let before = bench.task();
    let action = bench.changed("").await;
    let (old, new) = (bench.dir.path().join("task/pay.md"), bench.dir.path().join("task/paid.md"));
    let done = bench.task();
    assert_ne!(done, before);
    std::fs::rename(&old, &new).unwrap();
    std::fs::write(&old, &done).unwrap();
    let resolved = bench.undone(&action, "u/1").await;
    assert!(matches!(resolved, ResolveOutput::Done { .. }), "{resolved:?}");
    assert_eq!(std::fs::read_to_string(&new).unwrap(), before);
    assert_eq!(bench.task(), done, "the new note stays as it is");
}
