//! Tests which vault may use a namespace, from tables.

use super::*;

fn place(host: &str, folder: &str, file: &str) -> VaultPlace {
    VaultPlace { folder: folder.into(), host: host.into(), file: file.into() }
}

fn id(last: u8) -> VaultId {
    format!("6f2c1a2e-8d3b-4c5f-9a7e-0123456789{last:02x}").parse().unwrap()
}

fn schedule(vault: Option<VaultId>, place: Option<VaultPlace>) -> OwnedSchedule {
    OwnedSchedule { id: "al-signal-router".into(), paused: false, vault, place }
}

fn here() -> VaultIdentity {
    VaultIdentity::new(id(1), place("here", "/vault", "1-1.1"))
}

/// With `/twin` as the one folder that holds another vault of the same id.
fn conflict(listed: &[OwnedSchedule]) -> Option<ConflictReason> {
    find_conflict(listed, Some(&here()), |folder| folder == Path::new("/twin"))
}

#[test]
fn an_empty_namespace_and_our_own_can_be_used() {
    assert_eq!(conflict(&[]), None);
    assert_eq!(find_conflict(&[], None, |_| true), None);
    assert_eq!(conflict(&[schedule(Some(id(1)), None), schedule(Some(id(1)), Some(here().place))]), None);
}

#[test]
fn a_namespace_with_one_schedule_of_another_vault_is_refused_with_its_folder() {
    let theirs = place("there", "/theirs", "2-2.2");
    let listed =
        [schedule(Some(id(1)), None), schedule(Some(id(2)), None), schedule(Some(id(2)), Some(theirs.clone()))];
    let expected = ConflictReason::AnotherVault { vault: id(2), place: Some(theirs) };
    assert_eq!(conflict(&listed), Some(expected.clone()));
    assert_eq!(find_conflict(&listed[1..], None, |_| false), Some(expected.clone()), "a vault without an id yet");
    let refusal = NamespaceConflict { reason: expected, namespace: "n".into(), folder: "/vault".into() };
    let text = refusal.to_string();
    for part in ["`n`", "/theirs on host there", "/vault", "TEMPORAL_NAMESPACE", "`steward schedules adopt`"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn schedules_that_name_no_vault_are_refused_unless_one_bears_our_id() {
    let unmarked = schedule(None, None);
    let two = [unmarked.clone(), unmarked.clone()];
    assert_eq!(conflict(&two), Some(ConflictReason::Unmarked { schedules: 2 }));
    assert_eq!(find_conflict(&two, None, |_| false), Some(ConflictReason::Unmarked { schedules: 2 }));
    // A person has rewritten one schedule in our namespace.
    assert_eq!(conflict(&[unmarked, schedule(Some(id(1)), None)]), None);
}

#[test]
fn a_vault_that_moved_or_whose_machine_has_another_name_goes_on_and_a_copy_is_refused() {
    let at = |there: VaultPlace| conflict(&[schedule(Some(id(1)), Some(there))]);
    assert_eq!(at(place("here", "/vault", "9-9.9")), None, "restored from a backup in its place");
    assert_eq!(at(place("other", "/vault", "1-1.1")), None, "the machine was renamed");
    assert_eq!(at(place("other", "/elsewhere", "1-1.1")), None, "another machine mounts the same files");
    assert_eq!(at(place("here", "/gone", "9-9.9")), None, "moved to another file system");
    let twin = place("here", "/twin", "9-9.9");
    assert_eq!(at(twin.clone()), Some(ConflictReason::Copy { place: twin }));
    for folder in ["/vault", "/elsewhere"] {
        let far = place("other", folder, "9-9.9");
        assert_eq!(at(far.clone()), Some(ConflictReason::OtherHost { place: far }), "it cannot be decided");
    }
}
