//! The hidden command `steward read-document`: takes the text out of a document, within limits on its memory.
//!
//! The process that adds a document to a wiki starts it, gives it the bytes and ends it if it takes too long. It starts no
//! thread of its own and opens nothing.

use rustix::process::{Resource, Rlimit, setrlimit};
use std::io::{Read, Write};
use std::process::ExitCode;
use steward_activities::wiki::document::read_document;
use steward_activities::wiki::reader::MAX_MEMORY;
use steward_domain::wiki::MAX_SOURCE_BYTES;
use steward_domain::wiki::source_text::SourceFormat;

pub(crate) fn run(format: SourceFormat) -> ExitCode {
    let limit = Rlimit { current: Some(MAX_MEMORY), maximum: Some(MAX_MEMORY) };
    let no_file = Rlimit { current: Some(0), maximum: Some(0) };
    // Without its limits it must not read what may be hostile.
    if setrlimit(Resource::Data, limit).and_then(|()| setrlimit(Resource::Fsize, no_file)).is_err() {
        return ExitCode::FAILURE;
    }
    let mut bytes = Vec::new();
    if std::io::stdin().lock().take(MAX_SOURCE_BYTES as u64).read_to_end(&mut bytes).is_err() {
        return ExitCode::FAILURE;
    }
    let printed = serde_json::to_vec(&read_document(format, &bytes)).map(|json| std::io::stdout().write_all(&json));
    if matches!(printed, Ok(Ok(()))) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
