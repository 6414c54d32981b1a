//! Finds pages among thousands by their files and names.
//!
//! Pages lie anywhere in memory, so a look at each of ten thousand takes milliseconds, and one change of a page needs many such looks.
//! Hashes that lie beside each other tell nearly all of them apart. What has the same hash is compared.

use super::names::is_lowercase_of;
use super::page::{PageContent, WikiPage};
use std::collections::BTreeMap;

/// Hashes of the file and the names of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageKeys {
    file: u64,
    /// Of the slug in lower case.
    slug: u64,
    /// Two bits for the title and each alias, in lower case.
    names: u64,
}

/// A file that is searched.
#[derive(Clone, Copy, Debug)]
pub struct FileKey<'f> {
    file: &'f str,
    hash: u64,
}

/// A name that is searched. Case does not count.
#[derive(Clone, Debug)]
pub struct NameKey {
    pub(super) lower: String,
    hash: u64,
}

impl PageKeys {
    pub(super) fn new(page: &PageContent) -> Self {
        let hash_lower = |name: &String| hash_text(&name.to_lowercase());
        let names = page.names().map(|name| choose_bits(hash_lower(name))).fold(0, |bits, more| bits | more);
        Self { file: hash_text(&page.file), slug: hash_lower(&page.slug), names }
    }
}

impl<'f> FileKey<'f> {
    #[must_use]
    pub fn new(file: &'f str) -> Self {
        Self { file, hash: hash_text(file) }
    }
}

impl NameKey {
    #[must_use]
    pub fn new(name: &str) -> Self {
        let lower = name.to_lowercase();
        Self { hash: hash_text(&lower), lower }
    }
}

impl WikiPage {
    /// Whether it lies in this file.
    #[must_use]
    pub fn has_file(&self, key: &FileKey<'_>) -> bool {
        self.keys.file == key.hash && self.file == key.file
    }

    /// Whether it has this slug.
    #[must_use]
    pub fn has_slug(&self, key: &NameKey) -> bool {
        self.keys.slug == key.hash && is_lowercase_of(&key.lower, &self.slug)
    }

    /// Whether this is its title.
    #[must_use]
    pub fn has_title(&self, key: &NameKey) -> bool {
        self.may_have(key) && is_lowercase_of(&key.lower, &self.title)
    }

    /// Whether this is one of its aliases.
    #[must_use]
    pub fn has_alias(&self, key: &NameKey) -> bool {
        self.may_have(key) && self.aliases.iter().any(|alias| is_lowercase_of(&key.lower, alias))
    }

    fn may_have(&self, key: &NameKey) -> bool {
        let bits = choose_bits(key.hash);
        self.keys.names & bits == bits
    }
}

/// The page in a file.
#[must_use]
pub fn find_page<'p>(pages: &'p [WikiPage], file: &str) -> Option<&'p WikiPage> {
    pages.get(find_position(pages, file)?)
}

/// The position of the page in a file.
#[must_use]
pub fn find_position(pages: &[WikiPage], file: &str) -> Option<usize> {
    let key = FileKey::new(file);
    pages.iter().position(|page| page.has_file(&key))
}

/// The pages of a few files, by file. All pages are gone through once.
#[must_use]
pub fn find_pages<'p, 'f>(
    pages: &'p [WikiPage],
    files: impl Iterator<Item = &'f str>,
) -> BTreeMap<&'p str, &'p WikiPage> {
    let keys: Vec<FileKey<'_>> = files.map(FileKey::new).collect();
    pages
        .iter()
        .filter(|page| keys.iter().any(|key| page.has_file(key)))
        .map(|page| (page.file.as_str(), page))
        .collect()
}

/// The hash FNV-1a. It is kept nowhere.
fn hash_text(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn choose_bits(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << ((hash >> 6) & 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::page::read_page;

    #[test]
    fn a_page_is_found_by_its_file_and_its_names_in_any_case() {
        let read = |slug: &str, title: &str, alias: &str| {
            let text = format!(
                "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: {title}\nmetadata: {{steward: {{aliases: [\"{alias}\"]}}}}\n---\nA.\n"
            );
            read_page(&format!("entities/{slug}.md"), text.as_bytes()).page.unwrap()
        };
        let mut pages: Vec<WikiPage> = (0..300).map(|n| read(&format!("p-{n}"), &format!("Page {n}"), "x")).collect();
        pages.push(read("strasse", "STRAẞE Kelvin", "Die Straße"));
        assert_eq!(find_position(&pages, "entities/p-7.md"), Some(7));
        assert_eq!(find_position(&pages, "entities/P-7.md"), None);
        assert_eq!(find_page(&pages, "entities/strasse.md").unwrap().slug, "strasse");
        let count = |has: fn(&WikiPage, &NameKey) -> bool, name: &str| {
            pages.iter().filter(|page| has(page, &NameKey::new(name))).count()
        };
        assert_eq!((count(WikiPage::has_slug, "P-12"), count(WikiPage::has_slug, "p-300")), (1, 0));
        assert_eq!((count(WikiPage::has_title, "PAGE 299"), count(WikiPage::has_title, "x")), (1, 0));
        assert_eq!((count(WikiPage::has_alias, "X"), count(WikiPage::has_alias, "page 1")), (300, 0));
        // Letters outside of ASCII, and one of them whose small letter is plain.
        assert_eq!(
            (count(WikiPage::has_title, "straße \u{212a}ELVIN"), count(WikiPage::has_alias, "die STRAẞE")),
            (1, 1)
        );
    }
}
