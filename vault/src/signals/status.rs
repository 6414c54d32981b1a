//! Writes the status of our own records into their fields.
//!
//! A stream event is new, extracted or parked. A signal is unrouted, applied or skipped. A status is bookkeeping and
//! not a decision, so no audit record is filed. The file still changes by the one write path, because a person may have
//! it open.

use crate::action::new_content::NewContent;
use crate::action::ownership::ChangeNeeds;
use crate::action::writer::{ApplyError, VaultWriter};
use steward_domain::action::plan::PreparePlanError;
use steward_domain::record::frontmatter::{self, FieldEdit};
use steward_domain::record::path::{RecordKind, RecordPath};

impl VaultWriter {
    /// Changes fields of a stream event, a signal or an instinct; returns whether anything was written.
    ///
    /// # Errors
    /// [`ApplyError`], also for any other kind of record. Calling again is safe.
    pub fn update_status_fields(&self, target: &RecordPath, edits: &[FieldEdit]) -> Result<bool, ApplyError> {
        if !target.own_kind().is_some_and(RecordKind::has_status) {
            return Err(ApplyError::Form(format!("{target}: not a stream event, signal or instinct")));
        }
        let mut state = self.lock_state()?;
        let current = self.root().read_file(target)?;
        // As in the rest of the file, no value holds a link.
        let edits: Vec<FieldEdit> = edits.iter().cloned().map(FieldEdit::unlink).collect();
        let edited = frontmatter::edit_fields(&current.bytes, &edits)
            .map_err(|e| ApplyError::Record { path: target.clone(), source: PreparePlanError::Frontmatter(e) })?;
        if edited == current.bytes {
            return Ok(false);
        }
        let intent = self.stage_unrecorded_change(&mut state, NewContent::new(target.clone(), &current, edited))?;
        self.commit_intent(&mut state, intent, ChangeNeeds::Ownership)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::root::VaultRoot;
    use serde_json::json;

    fn vault() -> (tempfile::TempDir, VaultWriter) {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["signal", "task", "stream/mail"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for path in ["signal/s.md", "task/t.md", "stream/mail/e.md"] {
            std::fs::write(dir.path().join(path), "---\nstatus: new  # as it came\nkept: 1\n---\nwords\n").unwrap();
        }
        let writer = VaultWriter::lock(VaultRoot::open(dir.path()).unwrap()).unwrap();
        (dir, writer)
    }

    fn done() -> FieldEdit {
        FieldEdit { field: "status".into(), value: Some(json!("done")) }
    }

    #[test]
    fn the_status_of_a_signal_and_of_an_event_is_written_once_and_nothing_is_filed() {
        let (dir, writer) = vault();
        for path in ["signal/s.md", "stream/mail/e.md"] {
            let record = RecordPath::parse(path).unwrap();
            assert!(writer.update_status_fields(&record, &[done()]).unwrap());
            assert!(!writer.update_status_fields(&record, &[done()]).unwrap());
            let text = std::fs::read_to_string(dir.path().join(path)).unwrap();
            assert_eq!(text, "---\nstatus: done  # as it came\nkept: 1\n---\nwords\n");
        }
        assert!(!dir.path().join("event").exists());
    }

    #[test]
    fn a_humans_record_is_never_changed_without_an_audit_record() {
        let (dir, writer) = vault();
        let task = RecordPath::parse("task/t.md").unwrap();
        assert!(matches!(writer.update_status_fields(&task, &[done()]), Err(ApplyError::Form(_))));
        assert!(std::fs::read_to_string(dir.path().join("task/t.md")).unwrap().contains("status: new"));
    }
}
