//! Sets the ceiling of a source in its instincts, as a person wished.
//!
//! Usually a source has one instinct. If a person wrote several, each is changed with a record and an undo recipe of its
//! own. A stop does not hold it back, because no note changes. Whether the source may act is decided before. It must not
//! change an instinct that names another source by now.

use crate::action::apply::convert_prepare_error;
use crate::action::create::CreateError;
use crate::action::ownership::ChangeNeeds;
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use serde_json::json;
use steward_domain::record::entity::Instinct;
use steward_domain::record::frontmatter::{self, RecordFields};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteSchema;
use steward_domain::trust::ceiling::CeilingRequest;

/// How many names are tried for a new instinct. A person may have given its name to another source.
const NAMES: usize = 100;

impl VaultWriter {
    /// Sets the ceiling in these instincts of the source, or in a new one if there are none. An instinct that has it
    /// already stays as it is. Repeated calls change it once and return the same receipts.
    ///
    /// # Errors
    /// [`ApplyError::Record`] names an instinct that cannot be read, and [`ApplyError::Form`] one that names another
    /// source; then none is changed. Calling again is safe.
    pub fn set_ceiling(
        &self,
        request: &CeilingRequest<'_>,
        instincts: &[RecordPath],
    ) -> Result<Vec<ActionReceipt>, ApplyError> {
        let mut paths = instincts.to_vec();
        if paths.is_empty() {
            paths.push(self.create_instinct(request.source, request.name)?);
        }
        let mut state = self.lock_state()?;
        let mut wishes = Vec::with_capacity(paths.len());
        for path in &paths {
            let fields = self.read_instinct(path)?;
            if !is_instinct_of(path, &fields, request.source) {
                return Err(ApplyError::Form(format!("{path}: names another source by now: try again")));
            }
            wishes.push((request.is_set_in(&fields), request.plan_for_instinct(path, &fields)));
        }
        let mut receipts = Vec::with_capacity(wishes.len());
        for (is_set, plan) in wishes {
            let filed = self.find_record_name(&plan)?.receipt;
            match filed {
                Some(receipt) => receipts.push(receipt),
                None if is_set => {}
                // No mapping says how an instinct is read.
                None => receipts.push(self.write_plan_once(
                    &mut state,
                    &plan,
                    ChangeNeeds::Ownership,
                    None,
                    &NoteSchema::default(),
                )?),
            }
        }
        Ok(receipts)
    }

    /// Reads the fields of an instinct.
    ///
    /// # Errors
    /// [`ApplyError::Record`] if it cannot be read.
    fn read_instinct(&self, path: &RecordPath) -> Result<RecordFields, ApplyError> {
        let current = self.root().read_file(path)?;
        let document = frontmatter::read_document(&current.bytes).map_err(|e| convert_prepare_error(path, e.into()))?;
        Ok(document.into_fields())
    }

    /// Whether a file is an instinct of this source now. One that cannot be read is none.
    #[must_use]
    pub fn is_instinct_of(&self, path: &RecordPath, source: &str) -> bool {
        self.read_instinct(path).is_ok_and(|fields| is_instinct_of(path, &fields, source))
    }

    /// Finds where an instinct of a source without one belongs: a name that is free, or the file of an earlier try.
    ///
    /// # Errors
    /// [`ApplyError::Form`] if a hundred files of other sources have such names.
    pub fn find_instinct_place(&self, source: &str) -> Result<RecordPath, ApplyError> {
        for number in 1..=NAMES {
            let name = if number == 1 { source.to_owned() } else { format!("{source}-{number}") };
            let path = RecordPath::new(RecordKind::Instinct, &name).map_err(|e| ApplyError::Form(e.to_string()))?;
            if !self.root().exists(&path) || self.is_instinct_of(&path, source) {
                return Ok(path);
            }
        }
        Err(ApplyError::Form(format!("{source}: its instinct has no name left: rename some of the others")))
    }

    fn create_instinct(&self, source: &str, name: &str) -> Result<RecordPath, ApplyError> {
        let path = self.find_instinct_place(source)?;
        let mut fields = RecordFields::new();
        fields.insert("type".into(), json!("instinct"));
        fields.insert("source".into(), json!(name));
        match self.create_file(&path, frontmatter::render_document(&fields, "").as_bytes()) {
            // The file of an earlier try, or one that a person made meanwhile. It is checked before it is used.
            Ok(_) | Err(CreateError::Taken { .. }) => Ok(path),
            Err(e @ CreateError::Kind { .. }) => Err(ApplyError::Form(e.to_string())),
            Err(CreateError::Disk(e)) => Err(e),
        }
    }
}

fn is_instinct_of(path: &RecordPath, fields: &RecordFields, source: &str) -> bool {
    Instinct::read(fields).source_key(path.slug()) == source
}
