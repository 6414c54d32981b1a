//! The pages of a wiki by what a link may call them.
//!
//! A link means a page by its slug, its title or an alias, or by the path of its file. [`LooseNames`] knows which page a link that
//! means none must have meant: the only one whose name differs in case, blanks, hyphens and underscores alone.

use super::links::{modernize_path, resolve_path};
use crate::wiki::page::{LinkTarget, WikiPage};
use crate::wiki::page_keys::NameKey;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Positions of pages by a name, sorted by it.
#[derive(Debug, Default)]
struct NameTable<'p>(Vec<(Cow<'p, str>, Option<usize>)>);

impl<'p> NameTable<'p> {
    /// The first page that has a name counts.
    fn list_first(names: impl Iterator<Item = (&'p str, usize)>) -> Self {
        let mut names: Vec<_> = names.map(|(name, page)| (Cow::Borrowed(name), Some(page))).collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        names.dedup_by(|later, first| later.0 == first.0);
        Self(names)
    }

    /// A name that several pages have means none.
    fn list_unambiguous(names: impl Iterator<Item = (String, usize)>) -> Self {
        let mut names: Vec<(Cow<str>, _)> = names.map(|(name, page)| (Cow::Owned(name), Some(page))).collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        names.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            if is_same && later.1 != first.1 {
                first.1 = None;
            }
            is_same
        });
        Self(names)
    }

    fn find(&self, name: &str) -> Option<usize> {
        let at = self.0.binary_search_by(|(known, _)| known.as_ref().cmp(name)).ok()?;
        self.0.get(at).and_then(|(_, page)| *page)
    }
}

/// The pages of a wiki by what a link may call them.
#[derive(Debug, Default)]
pub(in crate::wiki) struct PageNames<'p> {
    slugs: NameTable<'p>,
    /// Titles and aliases in lower case.
    titles: NameTable<'p>,
    files: NameTable<'p>,
}

impl<'p> PageNames<'p> {
    pub(in crate::wiki) fn new(pages: &'p [WikiPage]) -> Self {
        let pages = || pages.iter().enumerate();
        let titles = pages().flat_map(|(at, page)| page.names().map(move |title| (title.to_lowercase(), at)));
        Self {
            slugs: NameTable::list_first(pages().map(|(at, page)| (page.slug.as_str(), at))),
            titles: NameTable::list_unambiguous(titles),
            files: NameTable::list_first(pages().map(|(at, page)| (page.file.as_str(), at))),
        }
    }

    /// Only the pages that one of these names could mean, without their files. For a few names that is faster than all.
    pub(super) fn choose(pages: &'p [WikiPage], names: &[&str]) -> Self {
        let spellings: BTreeSet<&str> = names.iter().flat_map(|name| [name, split_heading(name).0.trim()]).collect();
        let titles: Vec<NameKey> = spellings.iter().map(|name| NameKey::new(name)).collect();
        let lasts = spellings.iter().filter_map(|name| find_last_part(name)).map(NameKey::new);
        let slugs: Vec<NameKey> = titles.iter().cloned().chain(lasts).collect();
        let pages = || pages.iter().enumerate();
        let named = pages().filter(|(_, page)| slugs.iter().any(|key| page.has_slug(key)));
        let titled = pages().flat_map(|(at, page)| {
            let held = titles.iter().filter(|key| page.has_title(key) || page.has_alias(key));
            held.map(move |key| (key.lower.clone(), at))
        });
        Self {
            slugs: NameTable::list_first(named.map(|(at, page)| (page.slug.as_str(), at))),
            titles: NameTable::list_unambiguous(titled),
            files: NameTable::default(),
        }
    }

    /// The position of the page in a file.
    pub(super) fn find_file(&self, file: &str) -> Option<usize> {
        self.files.find(file)
    }

    /// The position of the page that a name means: a slug, or else a title, or the last part of a path. What follows a `#` may be
    /// a heading or a part of the name.
    pub(in crate::wiki) fn find(&self, name: &str) -> Option<usize> {
        self.find_exactly(name).or_else(|| self.find_exactly(split_heading(name).0.trim()))
    }

    fn find_exactly(&self, name: &str) -> Option<usize> {
        let by_slug = |name: &str| self.slugs.find(name);
        let by_title = || self.titles.find(&name.to_lowercase());
        by_slug(name).or_else(by_title).or_else(|| find_last_part(name).and_then(by_slug))
    }

    /// The positions of the pages that a page links to, also by a name that only one page can mean.
    pub(super) fn list_linked(&self, loose: &LooseNames, page: &WikiPage) -> BTreeSet<usize> {
        let find_name = |name: &str| self.find(name).or_else(|| loose.find(name).map(|meant| meant.page));
        let by_link = page.body.links.iter().filter_map(|link| match &link.target {
            LinkTarget::Name(name) => find_name(name),
            LinkTarget::Path(path) => self.find_file(&modernize_path(&resolve_path(&page.file, path)?)),
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

/// The name of the file at the end of a path; `None` if it is no path.
fn find_last_part(name: &str) -> Option<&str> {
    let (_, last) = name.rsplit_once('/')?;
    Some(last.strip_suffix(".md").unwrap_or(last))
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

    #[test]
    fn a_few_names_mean_the_same_pages_as_among_all() {
        let pages = [
            page("plot-12", "Plot 12"),
            page("tcp", "TCP/IP"),
            page("one", "Same"),
            page("two", "same"),
            page("c", "C#"),
        ];
        let names = PageNames::new(&pages);
        let asked = [
            "plot-12",
            "Plot-12",
            "PLOT 12",
            "plot 12 (old)",
            "entities/plot-12.md",
            "Plot 12#The lease",
            "x/tcp",
            "tcp/ip",
            "TCP/IP#a",
            "same",
            "SAME (old)",
            "one",
            "C#",
            "c#",
            "c# (OLD)",
            "İ",
            "",
            "#",
            "nobody",
            "entities/nobody.md",
        ];
        for name in asked {
            assert_eq!(PageNames::choose(&pages, &[name]).find(name), names.find(name), "{name}");
            assert_eq!(PageNames::choose(&pages, &asked).find(name), names.find(name), "{name}");
        }
        assert_eq!((names.find("x/tcp"), names.find("same"), names.find("C#")), (Some(1), None, Some(4)));
    }
}
