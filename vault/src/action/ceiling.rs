//! Sets the ceiling of a source in its instincts, as a person wished.
//!
//! Usually a source has one instinct. If a person wrote several, each is changed with a record and an undo recipe of its
//! own. A stop does not hold it back, because no note changes. Whether the source may act is decided before.

use crate::action::apply::convert_prepare_error;
use crate::action::create::CreateError;
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use serde_json::json;
use steward_domain::record::frontmatter::{self, RecordFields};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteSchema;
use steward_domain::trust::ceiling::CeilingRequest;

impl VaultWriter {
    /// Sets the ceiling in these instincts of the source, or in a new one if there are none. An instinct that has it
    /// already stays as it is. Repeated calls change it once and return the same receipts.
    ///
    /// # Errors
    /// [`ApplyError::Record`] names an instinct that cannot be read; then none is changed. Calling again is safe.
    pub fn set_ceiling(
        &self,
        request: &CeilingRequest<'_>,
        instincts: &[RecordPath],
    ) -> Result<Vec<ActionReceipt>, ApplyError> {
        let mut paths = instincts.to_vec();
        if paths.is_empty() {
            paths.push(self.create_instinct(request)?);
        }
        let mut state = self.lock_state()?;
        let mut wishes = Vec::with_capacity(paths.len());
        for path in &paths {
            let current = self.root().read_file(path)?;
            let fields = frontmatter::read_document(&current.bytes)
                .map_err(|e| convert_prepare_error(path, e.into()))?
                .into_fields();
            wishes.push((request.is_set_in(&fields), request.plan_for_instinct(path, &fields)));
        }
        let mut receipts = Vec::with_capacity(wishes.len());
        for (is_set, plan) in wishes {
            let filed = self.find_record_name(&plan)?.receipt;
            match filed {
                Some(receipt) => receipts.push(receipt),
                None if is_set => {}
                // No mapping says how an instinct is read.
                None => receipts.push(self.write_plan_once(&mut state, &plan, None, &NoteSchema::default())?),
            }
        }
        Ok(receipts)
    }

    fn create_instinct(&self, request: &CeilingRequest<'_>) -> Result<RecordPath, ApplyError> {
        let path =
            RecordPath::new(RecordKind::Instinct, request.source).map_err(|e| ApplyError::Form(e.to_string()))?;
        let mut fields = RecordFields::new();
        fields.insert("type".into(), json!("instinct"));
        fields.insert("source".into(), json!(request.name));
        match self.create_file(&path, frontmatter::render_document(&fields, "").as_bytes()) {
            // A file that a person made meanwhile is used as it is.
            Ok(_) | Err(CreateError::Taken { .. }) => Ok(path),
            Err(e @ CreateError::Kind { .. }) => Err(ApplyError::Form(e.to_string())),
            Err(CreateError::Disk(e)) => Err(e),
        }
    }
}
