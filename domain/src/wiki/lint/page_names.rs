//! The pages of a wiki by what a link may call them.
//!
//! A link means a page by its slug, its title or an alias, or by the path of its file. [`LooseNames`] knows which page a link that
//! means none must have meant: the only one whose name differs in case, blanks, hyphens and underscores alone.

use super::links::{modernize_path, resolve_path};
use crate::wiki::page::{LinkTarget, WikiPage};
use std::collections::{BTreeMap, BTreeSet};

/// The pages of a wiki by what a link may call them.
#[derive(Debug, Default)]
pub(in crate::wiki) struct PageNames<'p> {
    slugs: BTreeMap<&'p str, usize>,
    /// Titles and aliases in lower case; `None` if several pages have it.
    titles: BTreeMap<String, Option<usize>>,
    pub(super) files: BTreeMap<&'p str, usize>,
}

impl<'p> PageNames<'p> {
    pub(in crate::wiki) fn new(pages: &'p [WikiPage]) -> Self {
        let mut names = Self::default();
        for (at, page) in pages.iter().enumerate() {
            names.slugs.entry(&page.slug).or_insert(at);
            names.files.insert(&page.file, at);
            for title in std::iter::once(&page.title).chain(&page.aliases) {
                let known = names.titles.entry(title.to_lowercase()).or_insert(Some(at));
                *known = known.filter(|other| *other == at);
            }
        }
        names
    }

    /// The position of the page that a name means: a slug, or else a title, or the last part of a path. What follows a `#` may be
    /// a heading or a part of the name.
    pub(in crate::wiki) fn find(&self, name: &str) -> Option<usize> {
        self.find_exactly(name).or_else(|| self.find_exactly(split_heading(name).0.trim()))
    }

    fn find_exactly(&self, name: &str) -> Option<usize> {
        let by_slug = |name: &str| self.slugs.get(name).copied();
        let last = name.rsplit_once('/').map(|(_, last)| last.strip_suffix(".md").unwrap_or(last));
        let by_title = || self.titles.get(&name.to_lowercase()).copied().flatten();
        by_slug(name).or_else(by_title).or_else(|| last.and_then(by_slug))
    }

    /// The positions of the pages that a page links to, also by a name that only one page can mean.
    pub(super) fn list_linked(&self, loose: &LooseNames, page: &WikiPage) -> BTreeSet<usize> {
        let find_name = |name: &str| self.find(name).or_else(|| loose.find(name).map(|meant| meant.page));
        let by_link = page.body.links.iter().filter_map(|link| match &link.target {
            LinkTarget::Name(name) => find_name(name),
            LinkTarget::Path(path) => {
                self.files.get(modernize_path(&resolve_path(&page.file, path)?).as_str()).copied()
            }
        });
        let by_field = page.references.iter().filter_map(|(_, slug)| find_name(slug));
        by_link.chain(by_field).collect()
    }
}

/// The pages by their slugs, titles and aliases, of which case, blanks, hyphens and underscores do not count; `None` if several
/// pages have it.
#[derive(Debug, Default)]
pub(in crate::wiki) struct LooseNames(BTreeMap<String, Option<usize>>);

/// The one page that a name can mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wiki) struct MeantPage<'n> {
    pub(in crate::wiki) page: usize,
    /// With its `#`; empty if the name has none.
    pub(in crate::wiki) heading: &'n str,
}

impl LooseNames {
    pub(in crate::wiki) fn new(pages: &[WikiPage]) -> Self {
        let mut names: BTreeMap<String, Option<usize>> = BTreeMap::new();
        for (at, page) in pages.iter().enumerate() {
            for name in [&page.slug, &page.title].into_iter().chain(&page.aliases) {
                let known = names.entry(fold_name(name)).or_insert(Some(at));
                *known = known.filter(|other| *other == at);
            }
        }
        Self(names)
    }

    /// The one page that a name can mean. The folder and the ending of a file do not count either.
    pub(in crate::wiki) fn find<'n>(&self, name: &'n str) -> Option<MeantPage<'n>> {
        let (bare, heading) = split_heading(name);
        let with = |heading: &'n str| move |page: usize| MeantPage { page, heading };
        self.find_one(name).map(with("")).or_else(|| self.find_one(bare).map(with(heading)))
    }

    fn find_one(&self, name: &str) -> Option<usize> {
        let whole = name.trim();
        let stem = [".md", ".markdown"].iter().find_map(|ending| strip_ending(whole, ending)).unwrap_or(whole);
        let last = stem.rsplit('/').next().unwrap_or(stem);
        let keys = [stem, last].map(fold_name);
        let mut found = keys.iter().filter(|key| !key.is_empty()).filter_map(|key| self.0.get(key));
        let first = (*found.next()?)?;
        found.all(|other| *other == Some(first)).then_some(first)
    }
}

/// A name and the heading behind it.
fn split_heading(name: &str) -> (&str, &str) {
    name.split_at(name.find(['#', '^']).unwrap_or(name.len()))
}

fn strip_ending<'n>(name: &'n str, ending: &str) -> Option<&'n str> {
    let (stem, found) = name.split_at_checked(name.len().checked_sub(ending.len())?)?;
    found.eq_ignore_ascii_case(ending).then_some(stem)
}

/// Separators stay, as one sign: without them `2026-11-2` and `2026-1-12` would be one name.
fn fold_name(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| c.is_whitespace() || matches!(c, '-' | '_')).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::page::read_page;

    fn page(slug: &str, title: &str) -> WikiPage {
        let text = format!(
            "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: {title}\nmetadata: {{steward: {{aliases: [\"{title} (old)\"]}}}}\n---\nA.\n"
        );
        read_page(&format!("entities/{slug}.md"), text.as_bytes()).page.unwrap()
    }

    #[test]
    fn a_name_means_a_page_only_if_no_other_page_could_be_meant() {
        let pages = [page("plot-12", "Plot 12"), page("tcp", "TCP/IP"), page("a-b", "One"), page("ab", "A b")];
        let loose = LooseNames::new(&pages);
        for (name, expected) in [
            ("Plot_12", Some((0, ""))),
            ("PLOT 12.md", Some((0, ""))),
            ("entities/plot 12.MD#The lease", Some((0, "#The lease"))),
            ("plot 12 (OLD)", Some((0, ""))),
            ("tcp/ip", Some((1, ""))),
            // Two pages are called so.
            ("A_B", None),
            ("plot-1-2", None),
            ("PLOT12", None),
            ("plot-13", None),
            ("-", None),
            ("é.md", None),
        ] {
            assert_eq!(loose.find(name).map(|meant| (meant.page, meant.heading)), expected, "{name}");
        }
    }
}
