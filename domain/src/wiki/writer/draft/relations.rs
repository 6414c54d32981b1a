//! The relations that a writer notes between pages.
//!
//! They are looked up when everything is written, because a page may come after its relations. What leads to no page is left out: it is
//! no error of the run.

use super::super::tools::NotedRelation;
use super::RunDraft;
use crate::record::plain_text::count_noun;
use crate::wiki::graph::PageRelation;
use crate::wiki::lint::PageNames;

/// The most relations that a run may note.
const MAX_RELATIONS: usize = 50;

impl RunDraft<'_> {
    /// Keeps relations for the end, and says how many of them join two pages so far.
    pub(super) fn note_relations(&mut self, noted: Vec<NotedRelation>) -> String {
        let names = PageNames::new(&self.state.pages);
        let joined = noted.iter().filter(|relation| self.find_relation(&names, relation).is_some()).count();
        let left = noted.len() - joined;
        for relation in noted {
            if self.state.noted_relations.len() < MAX_RELATIONS && !self.state.noted_relations.contains(&relation) {
                self.state.noted_relations.push(relation);
            }
        }
        let reply = format!("Noted {}", count_noun(joined as u64, "relation"));
        match left {
            0 => reply,
            _ => format!("{reply}; {left} more will be left out unless both ends are pages and the relation is a word"),
        }
    }

    /// The relations between pages as they are now, each once.
    #[must_use]
    pub fn list_relations(&self) -> Vec<PageRelation> {
        let names = PageNames::new(&self.state.pages);
        let mut found: Vec<PageRelation> = Vec::new();
        for relation in self.state.noted_relations.iter().filter_map(|noted| self.find_relation(&names, noted)) {
            if !found.contains(&relation) {
                found.push(relation);
            }
        }
        found
    }

    fn find_relation(&self, names: &PageNames<'_>, noted: &NotedRelation) -> Option<PageRelation> {
        let find = |name: &str| {
            let name = name.trim().trim_start_matches("[[").trim_end_matches("]]");
            let page = &self.state.pages[names.find(name.split('|').next().unwrap_or(name).trim())?];
            (!page.is_report()).then_some(page.slug.as_str())
        };
        PageRelation::new(find(&noted.subject)?, &noted.relation, find(&noted.object)?)
    }
}
