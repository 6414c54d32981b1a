//! Reads the sources of a wiki: their registry, their files and the texts that are kept beside them.
//!
//! A wiki without a registry has the sources that describe themselves. Nothing outside of `sources/` is read as one.

use super::listing::ListedFile;
use super::{HASH, ReadFault, WikiContents, WikiFolder, is_source, report};
use crate::files::read_cache::KeptWiki;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use steward_domain::record::frontmatter;
use steward_domain::wiki::finding::FindingCode;
use steward_domain::wiki::registry::{
    KeptText, RegistryReading, WikiSource, hash_content, read_provenance, read_registry,
};
use steward_domain::wiki::standard::Doctype;
use steward_domain::wiki::{MAX_GENERATED_BYTES, MAX_SOURCE_BYTES, PROVENANCE_FILE, SOURCES_FILE};

impl WikiFolder {
    /// Reads the registry, or the sources that describe themselves; `None` if it cannot be read.
    pub(super) fn read_registered(&self, wiki: &mut WikiContents) -> Option<BTreeMap<String, WikiSource>> {
        let registry = match self.read_text(SOURCES_FILE, MAX_GENERATED_BYTES) {
            Ok(Some(text)) => {
                wiki.has_registry = true;
                read_registry(&text)
            }
            Ok(None) => self.read_own_descriptions(&wiki.files),
            Err(fault) => {
                wiki.findings.push(report(
                    SOURCES_FILE,
                    FindingCode::SourceInvalid,
                    &fault.to_string(),
                    "restore the file",
                ));
                return None;
            }
        };
        wiki.findings.extend(registry.findings);
        Some(registry.sources)
    }

    /// Reads what is known of the sources, and hashes their files unless they are as they were.
    pub(super) fn read_sources(
        &self,
        wiki: &mut WikiContents,
        listed: &[ListedFile],
        known: &KeptWiki,
        kept: &mut KeptWiki,
    ) {
        let Some(sources) = self.read_registered(wiki) else { return };
        for source in sources.values() {
            // The hash of another algorithm is not compared, but its file must be there.
            if !source.content_hash.starts_with(HASH) {
                if !wiki.files.contains(&source.path) {
                    wiki.source_hashes.insert(source.path.clone(), None);
                }
                continue;
            }
            match self.hash_unless_known(&source.path, listed, known, kept) {
                Ok(hash) => drop(wiki.source_hashes.insert(source.path.clone(), hash)),
                Err(fault) => {
                    let (code, fix) = (FindingCode::SourceInvalid, "a source is a file in sources/ of at most 32 MiB");
                    wiki.findings.push(report(&source.path, code, &fault.to_string(), fix));
                }
            }
        }
        wiki.sources = sources;
        self.read_provenance_file(wiki);
    }

    /// Reads what is known of the sources, without a look at their files.
    pub(super) fn read_registry(&self, wiki: &mut WikiContents) {
        let Some(sources) = self.read_registered(wiki) else { return };
        wiki.sources = sources;
        self.read_provenance_file(wiki);
    }

    /// Reads which sources became pages.
    fn read_provenance_file(&self, wiki: &mut WikiContents) {
        match self.read_text(PROVENANCE_FILE, MAX_GENERATED_BYTES) {
            Ok(None) => {}
            Ok(Some(text)) => match read_provenance(&text) {
                Ok(provenance) => wiki.provenance = provenance,
                Err(finding) => wiki.findings.push(finding),
            },
            Err(fault) => {
                let code = FindingCode::SourceInvalid;
                wiki.findings.push(report(PROVENANCE_FILE, code, &fault.to_string(), "restore the file"));
            }
        }
    }

    /// The sources of a wiki without a registry: each may describe itself in its frontmatter.
    fn read_own_descriptions(&self, files: &BTreeSet<String>) -> RegistryReading {
        let mut registry = RegistryReading::default();
        for file in files.iter().filter(|file| is_source(file) && file.ends_with(".md")) {
            let Ok(bytes) = self.read_bytes(file, MAX_SOURCE_BYTES) else { continue };
            // Its bytes are anything; a frontmatter that cannot be read is text.
            let Ok(document) = frontmatter::read_document(&bytes) else { continue };
            if Doctype::read(document.fields()) == Some(Doctype::Source) {
                registry.add_source("the frontmatter", file, document.fields());
            }
        }
        registry
    }

    fn hash_unless_known(
        &self,
        file: &str,
        listed: &[ListedFile],
        known: &KeptWiki,
        kept: &mut KeptWiki,
    ) -> Result<Option<String>, ReadFault> {
        // The list is of now, and thousands of files take long to look at once more.
        let at = listed.binary_search_by(|listed| listed.path.as_str().cmp(file)).ok();
        let stamp = at.and_then(|at| listed.get(at)?.stamp);
        let found = stamp.and_then(|stamp| known.find_hash(file, stamp));
        let hash = match found {
            Some(hash) => Some(hash),
            None => self.hash_source(file)?,
        };
        if let Some((stamp, hash)) = stamp.zip(hash.as_deref()) {
            kept.add_hash(file, stamp, hash);
        }
        Ok(hash)
    }

    /// The hash of a source, as `sha256:<hex>`; `None` if the file is not there.
    ///
    /// # Errors
    /// [`ReadFault`], also if the path leaves `sources/`.
    pub fn hash_source(&self, file: &str) -> Result<Option<String>, ReadFault> {
        Ok(self.read_source(file)?.map(|bytes| hash_content(&bytes)))
    }

    /// The bytes of a source; `None` if the file is not there.
    ///
    /// # Errors
    /// [`ReadFault`], also if the path leaves `sources/`.
    pub fn read_source(&self, file: &str) -> Result<Option<Vec<u8>>, ReadFault> {
        let is_inside = file.strip_prefix("sources/").is_some_and(|rest| !rest.split('/').any(|part| part == ".."));
        if !is_inside {
            return Err(ReadFault::NotAFile);
        }
        match self.read_bytes(file, MAX_SOURCE_BYTES) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(ReadFault::Io(e)) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// The file with the text of a source; `None` if it is not there.
    ///
    /// # Errors
    /// [`ReadFault`].
    pub(crate) fn read_kept_text(&self, kept: &KeptText) -> Result<Option<Vec<u8>>, ReadFault> {
        match self.read_bytes(&kept.path, MAX_SOURCE_BYTES) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(ReadFault::Io(e)) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}
