//! Edits by people at exactly the wrong moment of a timestamp write-back.

use super::desk::{timestamped, timestamps};
use super::*;
use crate::steward::timestamps::{TimestampWriteError, TimestampWriteOutcome};

fn write_timestamps_of_pay(writer: &VaultWriter) -> Result<TimestampWriteOutcome, TimestampWriteError> {
    let done = writer.write_timestamps(&task("pay"), &timestamps());
    assert!(hook::all_met(), "a moment that this test is about did not come");
    done
}

/// Checks that nothing was filed and that, once settled, nothing is left.
fn is_clean(desk: &Desk, writer: &VaultWriter) {
    settle(writer);
    assert_eq!((desk.records().len(), desk.conflicts().len()), (0, 0));
    desk.is_tidy();
}

#[test]
fn an_edit_just_before_a_stamp_lands_stands_and_the_next_stamp_takes_it_up() {
    for save in SAVES {
        for point in ["after-staging-content", "after-journal", "before-swap"] {
            let desk = Desk::new();
            let (writer, path) = (desk.writer(), pay(&desk));
            hook::at(point, move || save(&path, TASK.replace("ann", "bob").as_str()));
            let error = write_timestamps_of_pay(&writer).unwrap_err();
            assert!(matches!(error, TimestampWriteError::ChangedMeanwhile { .. }), "{error}");
            assert_eq!(desk.read("task/pay.md"), TASK.replace("ann", "bob"), "{point}");
            assert_eq!(write_timestamps_of_pay(&writer).unwrap(), TimestampWriteOutcome::Written);
            assert_eq!(desk.read("task/pay.md"), timestamped(&TASK.replace("ann", "bob")), "{point}");
            is_clean(&desk, &writer);
        }
    }
}

#[test]
fn an_edit_on_top_of_a_stamp_stands() {
    for save in SAVES {
        let desk = Desk::new();
        let (writer, path) = (desk.writer(), pay(&desk));
        hook::at("after-swap", move || save(&path, &timestamped(TASK).replace("ann", "bob")));
        assert_eq!(write_timestamps_of_pay(&writer).unwrap(), TimestampWriteOutcome::Written);
        assert_eq!(desk.read("task/pay.md"), timestamped(TASK).replace("ann", "bob"));
        is_clean(&desk, &writer);
    }
}

#[test]
fn an_edit_through_an_open_handle_is_back_in_place_at_once() {
    let desk = Desk::new();
    let writer = desk.writer();
    let mut editor = OpenOptions::new().write(true).open(pay(&desk)).unwrap();
    hook::at("after-swap", move || {
        editor.set_len(0).unwrap();
        editor.write_all(BOB.as_bytes()).unwrap();
    });
    let error = write_timestamps_of_pay(&writer).unwrap_err();
    assert!(matches!(error, TimestampWriteError::ChangedMeanwhile { .. }), "{error}");
    assert_eq!(desk.read("task/pay.md"), BOB);
    is_clean(&desk, &writer);
    assert_eq!(desk.read("task/pay.md"), BOB);
}

#[test]
fn an_editor_that_had_the_file_open_saves_over_a_stamp() {
    let desk = Desk::new();
    let writer = desk.writer();
    let mut editor = OpenOptions::new().append(true).open(pay(&desk)).unwrap();
    assert_eq!(write_timestamps_of_pay(&writer).unwrap(), TimestampWriteOutcome::Written);
    editor.write_all(b"late words\n").unwrap();
    assert_eq!(writer.settle_swaps().unwrap(), [task("pay").into()]);
    assert_eq!(desk.read("task/pay.md"), format!("{TASK}late words\n"));
    is_clean(&desk, &writer);
}
