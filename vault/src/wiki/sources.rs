//! Adds a source to a wiki: the file, its entry in the registry, and an entry of the log, in one transaction.
//!
//! A source is created exclusively and never changed. Bytes that are a source already are not added again. That one source
//! replaces another is noted in the registry alone: what rests on the old one stays.

use crate::action::writer::{ActionReceipt, VaultWriter};
use crate::wiki::request::{WikiRunError, WikiRunRequest};
use crate::wiki::state::{ReadWiki, find_wiki_folder, read_current, read_wiki};
use std::collections::BTreeMap;
use steward_domain::action::audit::ActionKind;
use steward_domain::record::plain_text::escape_one_line;
use steward_domain::time::format_seconds;
use steward_domain::wiki::SOURCES_FILE;
use steward_domain::wiki::assemble::{RunReport, assemble_run};
use steward_domain::wiki::names::name_unnamed_source;
use steward_domain::wiki::path::{PagePath, WikiFileKind};
use steward_domain::wiki::plan::{RunFile, WikiRun, close};
use steward_domain::wiki::registry::{
    KeptText, NewSource, WikiSource, add_to_registry, hash_content, note_superseded, read_registry,
};
use steward_domain::wiki::run::{RunSource, WikiRunType};
use steward_domain::wiki::source_text::{
    DecodedText, SourceDescription, SourceTextError, check_text, decode_text, describe_source, render_text_file,
};

/// A source that was added, or was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedSource {
    pub source: RunSource,
    pub title: String,
    /// `None` if these bytes were a source already.
    pub receipt: Option<ActionReceipt>,
    /// Why no page can be made of it.
    pub unreadable: Option<String>,
}

/// A document that is to be a source.
#[derive(Clone, Debug)]
pub struct SourceDocument<'a> {
    /// Relative to the wiki.
    pub path: &'a str,
    /// Of a new file, or of the one that is there. Without them the file is there.
    pub bytes: Option<Vec<u8>>,
    /// What a reader took from these bytes, or why it took nothing. Only HTML and PDF need a reader.
    pub decoded: Option<Result<DecodedText, String>>,
}

impl VaultWriter {
    /// Adds a source.
    ///
    /// # Errors
    /// [`WikiRunError`]; it is refused if another source has the id or another file the path.
    pub fn add_source(
        &self,
        request: &WikiRunRequest<'_>,
        document: SourceDocument<'_>,
    ) -> Result<AddedSource, WikiRunError> {
        let SourceDocument { path, bytes, decoded } = document;
        let folder = find_wiki_folder(self.root(), request.wiki)?;
        let file = PagePath::new(&folder, path)?;
        if file.kind() != WikiFileKind::Source {
            return Err(WikiRunError::refuse(format!("{file} does not lie in sources/")));
        }
        let current = read_current(self.root(), &file).map_err(WikiRunError::Refused)?;
        let is_taken = current.is_some() && bytes.is_some() && current != bytes;
        let Some(content) = bytes.or_else(|| current.clone()) else {
            return Err(WikiRunError::refuse(format!("{file} is not there")));
        };
        let registry = PagePath::new(&folder, SOURCES_FILE)?;
        // Before the wiki is read: if another one adds a source meanwhile, the commit fails and a repeat finds it.
        let before = read_current(self.root(), &registry).map_err(WikiRunError::Refused)?;
        let wiki = read_wiki(self.root(), request.wiki, &folder)?;
        let hash = hash_content(&content);
        if let Some(known) = wiki.contents.sources.values().find(|known| known.content_hash == hash) {
            return Ok(describe_known(known, &content));
        }
        if content.iter().all(u8::is_ascii_whitespace) {
            return Err(WikiRunError::refuse(format!("{file} is empty")));
        }
        let (decoded, unreadable) = match choose_text(path, &content, decoded) {
            Ok(decoded) => (decoded, None),
            Err(reason) => (None, Some(reason)),
        };
        if is_taken {
            let fix = "a changed document is a new source: give it another name, such as one with its date";
            return Err(WikiRunError::refuse(format!("{file} is there with other bytes: {fix}")));
        }
        let described = describe_source(path, &content, decoded.as_ref());
        let text = decoded.map(|decoded| render_text_file(&decoded, &hash).into_bytes());
        let new = describe_new(request, path, described, NewBytes { hash, text: text.as_deref() }, &wiki)?;
        let run = describe_run(request, &folder, &new);
        let source = run.mark.source.clone();
        let mut files = vec![RunFile { path: file, before: current, after: Some(content.clone()) }];
        files.extend(self.write_text(&folder, &new, text)?);
        let text = before.as_deref().map(String::from_utf8_lossy);
        let after = add_to_registry(text.as_deref(), &new).map_err(WikiRunError::Refused)?;
        // What the standard would refuse could never be cited.
        if let Some(finding) = read_registry(&after).findings.into_iter().find(|it| it.problem.contains(&new.id)) {
            return Err(WikiRunError::refuse(format!("{}: {}", finding.code, finding.problem)));
        }
        files.push(RunFile { path: registry, before, after: Some(after.into_bytes()) });
        let bullets = vec![
            format!("run: {}", run.mark.run),
            format!("source: {}, {}", escape_one_line(&new.id), escape_one_line(path)),
        ];
        let report = RunReport::manual(&run.mark.run, request.at, format!("Added {}", new.title), bullets);
        let report = RunReport { added_sources: 1, ..report };
        let assembled = assemble_run(wiki.state, files, &report)?;
        let receipt = self.commit_run(&close(run, assembled.files)?)?;
        let source = source.unwrap_or(RunSource { id: new.id, path: new.path, content_hash: new.content_hash });
        Ok(AddedSource { source, title: new.title, receipt: Some(receipt), unreadable })
    }

    /// Notes that one source replaces another. Returns `None` if that is noted already.
    ///
    /// # Errors
    /// [`WikiRunError`]; it is refused if one of the two is not registered.
    pub fn supersede_source(
        &self,
        request: &WikiRunRequest<'_>,
        old: &str,
        new: &str,
    ) -> Result<Option<ActionReceipt>, WikiRunError> {
        let folder = find_wiki_folder(self.root(), request.wiki)?;
        let registry = PagePath::new(&folder, SOURCES_FILE)?;
        let before = read_current(self.root(), &registry).map_err(WikiRunError::Refused)?;
        let wiki = read_wiki(self.root(), request.wiki, &folder)?;
        let text = before.as_deref().map_or_else(|| "[]".into(), String::from_utf8_lossy);
        let after = note_superseded(&text, old, new).map_err(WikiRunError::Refused)?;
        if wiki.contents.sources.get(old).is_some_and(|known| known.superseded_by.as_deref() == Some(new)) {
            return Ok(None);
        }
        let parts = ["supersede", old, new];
        let mut run = request.describe(ActionKind::WikiSource, &folder, WikiRunType::Manual, &parts);
        run.reasoning = format!("{} noted that the source {new} replaces {old}.", request.by);
        let [old, new] = [old, new].map(escape_one_line);
        let bullets = vec![format!("run: {}", run.mark.run)];
        let report = RunReport::manual(&run.mark.run, request.at, format!("{new} replaces {old}"), bullets);
        let files = vec![RunFile { path: registry, before, after: Some(after.into_bytes()) }];
        let assembled = assemble_run(wiki.state, files, &report)?;
        Ok(Some(self.commit_run(&close(run, assembled.files)?)?))
    }

    /// The file with the text of a source whose bytes are not the text themselves.
    fn write_text(
        &self,
        folder: &str,
        new: &NewSource,
        after: Option<Vec<u8>>,
    ) -> Result<Option<RunFile>, WikiRunError> {
        let Some(kept) = &new.text_file else { return Ok(None) };
        let path = PagePath::new(folder, &kept.path)?;
        let before = read_current(self.root(), &path).map_err(WikiRunError::Refused)?;
        match before == after {
            true => Ok(None),
            false if before.is_some() => Err(WikiRunError::refuse(format!("{path} is there already: remove it"))),
            false => Ok(Some(RunFile { path, before, after })),
        }
    }
}

/// The text that is kept beside a source; `None` if its bytes are its text.
fn choose_text(
    path: &str,
    content: &[u8],
    decoded: Option<Result<DecodedText, String>>,
) -> Result<Option<DecodedText>, String> {
    match decoded {
        Some(decoded) => decoded.and_then(|it| check_text(&it.text).map(|()| Some(it)).map_err(|e| e.to_string())),
        None => decode_text(path, content).map_err(|e| e.to_string()),
    }
}

/// The hash of a new source, and the file with its text.
struct NewBytes<'a> {
    hash: String,
    text: Option<&'a [u8]>,
}

fn describe_known(known: &WikiSource, content: &[u8]) -> AddedSource {
    let unreadable = match decode_text(&known.path, content) {
        _ if known.text_file.is_some() => None,
        Ok(None) => None,
        Ok(Some(_)) => Some(SourceTextError::Unread.to_string()),
        Err(e) => Some(e.to_string()),
    };
    let WikiSource { id, path, title, content_hash, .. } = known.clone();
    AddedSource { source: RunSource { id, path, content_hash }, title, receipt: None, unreadable }
}

fn describe_new(
    request: &WikiRunRequest<'_>,
    path: &str,
    described: SourceDescription,
    bytes: NewBytes<'_>,
    wiki: &ReadWiki,
) -> Result<NewSource, WikiRunError> {
    let id = described.id.unwrap_or_else(|| name_unnamed_source(path));
    let sources: BTreeMap<String, &WikiSource> =
        wiki.contents.sources.iter().map(|(id, source)| (id.to_lowercase(), source)).collect();
    if let Some(known) = sources.get(&id.to_lowercase()) {
        let fix = if known.path == path {
            "restore its bytes; a changed document is a new source"
        } else {
            "rename the file"
        };
        return Err(WikiRunError::refuse(format!("duplicate_id: {} is the source `{id}` already: {fix}", known.path)));
    }
    let text_file = bytes.text.map(|text| KeptText { path: format!("_text/{id}.txt"), hash: hash_content(text) });
    Ok(NewSource {
        id,
        path: path.to_owned(),
        title: described.title.chars().filter(|c| !c.is_control()).take(200).collect(),
        captured_at: described.captured_at.unwrap_or_else(|| format_seconds(request.at)),
        content_hash: bytes.hash,
        text_file,
    })
}

fn describe_run(request: &WikiRunRequest<'_>, folder: &str, new: &NewSource) -> WikiRun {
    let mut run = request.describe(ActionKind::WikiSource, folder, WikiRunType::Manual, &["source", &new.id]);
    run.mark.source =
        Some(RunSource { id: new.id.clone(), path: new.path.clone(), content_hash: new.content_hash.clone() });
    run.reasoning = format!("{} added the source {} from {}.", request.by, new.id, new.path);
    run
}
