//! The ceiling of a source, set by a person in every instinct of the source.

use crate::desk::{Click, Desk, names, noon, settle};
use steward_domain::action::audit::{AuditRecord, WorkflowRef};
use steward_domain::action::undo::ResolutionKind;
use steward_domain::gates::mode::{Ceiling, Mode};
use steward_domain::record::path::RecordPath;
use steward_domain::trust::ceiling::CeilingRequest;
use steward_vault::action::writer::ApplyError;

const GMAIL: &str = "---\r\ntype: instinct\r\nobservations: 7 # mine\r\n---\r\nDry.\r\n";
const OTHER: &str = "---\ntype: instinct\nsource: Gmail\nceiling: confirm # for now\n---\n";

pub(crate) fn request(to: Ceiling) -> CeilingRequest<'static> {
    CeilingRequest {
        source: "gmail",
        name: "Gmail",
        to,
        by: "ann",
        at: noon(),
        mode: Mode::Live,
        workflow: WorkflowRef { id: "ceiling".into(), run_id: "run".into() },
    }
}

pub(crate) fn paths() -> [RecordPath; 2] {
    ["instinct/gmail.md", "instinct/my-mail.md"].map(|path| RecordPath::parse(path).unwrap())
}

pub(crate) fn write_instincts(desk: &Desk) {
    std::fs::create_dir_all(desk.file("instinct")).unwrap();
    desk.write("instinct/gmail.md", GMAIL.replace('\r', "").as_bytes());
    desk.write("instinct/my-mail.md", OTHER.as_bytes());
}

/// The records of ceilings, by the order of their names.
pub(crate) fn records(desk: &Desk) -> Vec<(RecordPath, AuditRecord)> {
    let all = names(&desk.file("event")).into_iter().filter(|name| name.starts_with("steward-ceiling-set"));
    let read = |name: String| {
        let path = format!("event/{name}");
        (RecordPath::parse(&path).unwrap(), AuditRecord::parse(desk.read(&path).as_bytes()).unwrap())
    };
    all.map(read).collect()
}

#[test]
fn every_instinct_of_a_source_is_set_once_and_undone_to_the_byte() {
    let desk = Desk::new();
    write_instincts(&desk);
    desk.write("instinct/gmail.md", GMAIL.as_bytes());
    let writer = desk.writer();
    let set = writer.set_ceiling(&request(Ceiling::Act), &paths()).unwrap();
    assert_eq!((set.len(), set.iter().any(|receipt| receipt.repeated)), (2, false));
    assert!(desk.read("instinct/gmail.md").contains("observations: 7 # mine\r\nceiling: act\r\n---\r\nDry.\r\n"));
    assert_eq!(desk.read("instinct/my-mail.md"), OTHER.replace("confirm", "act"));
    let again = writer.set_ceiling(&request(Ceiling::Act), &paths()).unwrap();
    assert!(again.iter().all(|receipt| receipt.repeated) && again.len() == 2, "{again:?}");
    assert_eq!(records(&desk).len(), 2);

    for (path, record) in records(&desk) {
        let undo = Click::new(ResolutionKind::Undo, &path, "undo").ask(&writer).unwrap();
        assert!(!undo.repeated, "{}", record.draft.target);
        assert_eq!(Click::new(ResolutionKind::Undo, &path, "other").refused(&writer), 409);
    }
    assert_eq!((desk.read("instinct/gmail.md"), desk.read("instinct/my-mail.md")), (GMAIL.into(), OTHER.into()));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn of_two_settings_the_newer_is_undone_first_and_a_persons_own_line_is_kept() {
    let desk = Desk::new();
    write_instincts(&desk);
    let writer = desk.writer();
    let one = &paths()[..1];
    let later = CeilingRequest { at: noon() + chrono::TimeDelta::minutes(1), ..request(Ceiling::Ask) };
    writer.set_ceiling(&request(Ceiling::Confirm), one).unwrap();
    writer.set_ceiling(&later, one).unwrap();
    let [(first, _), (second, _)] = &records(&desk)[..] else { panic!() };
    assert_eq!(Click::new(ResolutionKind::Undo, first, "run").refused(&writer), 409);
    desk.write("instinct/gmail.md", desk.read("instinct/gmail.md").replace("ceiling: ask", "ceiling: act").as_bytes());
    assert_eq!(Click::new(ResolutionKind::Undo, second, "run").refused(&writer), 409, "a person wrote another one");
    assert!(desk.read("instinct/gmail.md").contains("ceiling: act\n"));
}

#[test]
fn a_source_without_an_instinct_gets_one_and_a_broken_one_leaves_all_as_they_are() {
    let desk = Desk::new();
    let writer = desk.writer();
    writer.set_ceiling(&request(Ceiling::Confirm), &[]).unwrap();
    assert_eq!(desk.read("instinct/gmail.md"), "---\ntype: instinct\nsource: Gmail\nceiling: confirm\n---\n");
    desk.write("instinct/my-mail.md", b"---\nceiling: [act\n---\n");
    let refused = writer.set_ceiling(&request(Ceiling::Act), &paths()).unwrap_err();
    assert!(matches!(&refused, ApplyError::Record { path, .. } if path.as_str() == "instinct/my-mail.md"), "{refused}");
    assert!(desk.read("instinct/gmail.md").contains("ceiling: confirm"));
    assert_eq!(records(&desk).len(), 1);
    settle(&writer);
    desk.is_tidy();
}
