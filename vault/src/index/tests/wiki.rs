use super::*;
use crate::action::journal::AttemptKey;
use crate::action::journal::{
    ChangeIntent, ContentChange, FileChange, IntentKind, RecordFiling, remove_intent, write_intent,
};
use crate::index::store::check::{DifferenceKind, IndexDifference};
use crate::wiki::folder::WikiFolder;
use crate::wiki::search::search_indexed;
use steward_domain::wiki::path::PagePath;
use steward_domain::wiki::search::{PageFilter, PageHit, search_pages};

const MANIFEST: &str = "---\nschema: knowledge.workspace/v1\n---\n";

impl Bench {
    fn page(&self, wiki: &str, slug: &str, more: &str, body: &str) {
        self.put(&format!("wiki/{wiki}/KNOWLEDGE.md"), MANIFEST);
        let text = format!(
            "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: The {slug}\nupdated_at: \"2026-11-22T09:15:04Z\"\n{more}---\n{body}\n"
        );
        self.put(&format!("wiki/{wiki}/entities/{slug}.md"), text);
    }

    async fn find_indexed(&self, wiki: &str, query: &str, filter: &PageFilter) -> Vec<PageHit> {
        search_indexed(&self.index, &self.root, wiki, query, filter, 10).await.unwrap().unwrap()
    }

    async fn find_slugs(&self, wiki: &str, query: &str) -> Vec<String> {
        self.find_indexed(wiki, query, &PageFilter::default()).await.into_iter().map(|hit| hit.slug).collect()
    }

    fn find_in_files(&self, wiki: &str, query: &str, filter: &PageFilter) -> Vec<PageHit> {
        let folder = WikiFolder::open(&self.full(&format!("wiki/{wiki}"))).unwrap();
        search_pages(&folder.read().pages, query, filter, 10)
    }
}

/// Words of many scripts. A few are on most of the pages.
const WORDS: [&str; 24] = [
    "lease",
    "plot",
    "water",
    "council",
    "the",
    "Käse",
    "kase",
    "naïve",
    "日本語",
    "東京",
    "हिन्दी",
    "İstanbul",
    "ﬁne",
    "Straße",
    "²",
    "AND",
    "12",
    "3.5",
    "c'est",
    "don’t",
    "ΣΊΣΥΦΟΣ",
    "Ελλάδα",
    "ǅ",
    "\u{1F600}",
];

/// Numbers that look random and are the same on every run.
struct Lottery(u64);

impl Lottery {
    fn draw(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    fn words(&mut self, count: usize) -> String {
        // Squared, so that the first words are the most common.
        (0..count)
            .map(|_| WORDS[self.draw(WORDS.len()) * self.draw(WORDS.len()) / WORDS.len()])
            .collect::<Vec<_>>()
            .join(" ")
    }
}

#[tokio::test]
async fn index_and_files_find_the_same_pages_with_the_same_scores() {
    let bench = Bench::scanned().await;
    let mut lottery = Lottery(12);
    for number in 0..60 {
        let (more, count) = (if number % 3 == 0 { "tags: [garden]\n" } else { "" }, 1 + lottery.draw(40));
        let body = lottery.words(count);
        bench.page("plots", &format!("page-{number:03}"), more, &body);
    }
    bench.page("other", "elsewhere", "", "lease lease lease water");
    let all = PageFilter::default();
    let tagged = PageFilter { tag: Some("garden".to_owned()), ..PageFilter::default() };
    let below = PageFilter { path: Some("entities/page-0".to_owned()), ..PageFilter::default() };
    let none = PageFilter { kind: Some("concept".to_owned()), ..PageFilter::default() };
    for number in 0..80 {
        let count = 1 + lottery.draw(4);
        let query = lottery.words(count);
        let filter = [&all, &tagged, &below, &none][number % 4];
        let (indexed, read) =
            (bench.find_indexed("plots", &query, filter).await, bench.find_in_files("plots", &query, filter));
        assert_eq!(indexed.len(), read.len(), "{query}");
        for (one, other) in indexed.iter().zip(&read) {
            assert!((one.score - other.score).abs() < 1e-9, "{query}: {one:?} {other:?}");
            assert_eq!(PageHit { score: 0.0, ..one.clone() }, PageHit { score: 0.0, ..other.clone() }, "{query}");
        }
    }
    assert_eq!(
        bench.find_slugs("plots", "\"') OR * NOT {").await,
        bench
            .find_in_files("plots", "or not", &PageFilter::default())
            .into_iter()
            .map(|hit| hit.slug)
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn the_index_follows_the_pages_and_a_quiet_wiki_writes_nothing() {
    let bench = Bench::scanned().await;
    bench.page("plots", "water", "", "The stopcock is behind the shed.");
    bench.page("plots", "lease", "", "The lease ends in March.");
    bench.put("wiki/plots/readme.md", "A stopcock that is no page.");
    bench.put("wiki/plots/entities/broken.md", "---\nschema: knowledge.entry/v1\ntitle: [stopcock\n---\nstopcock\n");
    bench.sync("01:00:00").await;
    assert_eq!(bench.find_slugs("plots", "stopcock").await, ["water"]);
    let mut watcher = bench.index.read().open_watcher().await.unwrap();
    let before = watcher.current_revision().await.unwrap().revision;
    bench.index.sync_wiki(&bench.root, "plots").await.unwrap();
    assert_eq!(watcher.current_revision().await.unwrap().revision, before);
    bench.page("plots", "water", "", "The tap is behind the shed.");
    bench.page("plots", "shed", "", "The stopcock of the shed.");
    bench.remove("wiki/plots/entities/lease.md");
    assert_eq!(bench.find_slugs("plots", "stopcock").await, ["shed"]);
    assert_eq!(bench.find_slugs("plots", "lease").await, Vec::<String>::new());
    assert_eq!(bench.find_slugs("plots", "tap").await, ["water"]);
    bench.page("plots", "broken", "", "A stopcock, repaired.");
    assert_eq!(bench.find_slugs("plots", "stopcock").await.len(), 2);
}

#[tokio::test]
async fn a_wiki_that_leaves_the_vault_and_returns_as_it_was_is_found_again() {
    let bench = Bench::scanned().await;
    bench.page("plots", "water", "", "A stopcock.");
    bench.sync("01:00:00").await;
    assert_eq!(bench.find_slugs("plots", "stopcock").await, ["water"]);
    let (wiki, away) = (bench.root.path().join("wiki/plots"), bench.root.path().join(".away"));
    std::fs::rename(&wiki, &away).unwrap();
    bench.sync("02:00:00").await;
    std::fs::rename(&away, &wiki).unwrap();
    bench.sync("03:00:00").await;
    assert_eq!(bench.find_slugs("plots", "stopcock").await, ["water"]);
}

#[tokio::test]
async fn of_pages_with_one_rank_those_with_the_first_slugs_are_shown() {
    let bench = Bench::scanned().await;
    for slug in ["tap-c", "tap-a", "tap-d", "tap-b"] {
        bench.page("plots", slug, "", "A stopcock.");
    }
    bench.page("plots", "valve", "", "A stopcock, a stopcock.");
    bench.sync("01:00:00").await;
    let find = async |limit: usize| -> Vec<String> {
        let found =
            bench.index.wiki().search("plots", "stopcock", &PageFilter::default(), limit).await.unwrap().unwrap();
        found.into_iter().map(|page| page.slug).collect()
    };
    assert_eq!(find(3).await, ["valve", "tap-a", "tap-b"]);
    assert_eq!(find(5).await, ["valve", "tap-a", "tap-b", "tap-c", "tap-d"]);
    assert_eq!(find(1).await, ["valve"]);
    assert_eq!(find(0).await, [""; 0]);
}

#[tokio::test]
async fn the_overview_is_not_found_because_it_only_repeats() {
    let bench = Bench::scanned().await;
    bench.page("plots", "water", "", "A stopcock.");
    let overview = "---\nschema: knowledge.entry/v1\nslug: overview\nkind: overview\ntitle: Overview\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\nstopcock stopcock\n";
    bench.put("wiki/plots/overview.md", overview);
    assert_eq!(bench.find_slugs("plots", "stopcock").await, ["water"]);
    bench.put("wiki/plots/overview.md", overview.replace("stopcock stopcock", "a stopcock"));
    assert_eq!(bench.find_slugs("plots", "stopcock").await, ["water"]);
}

#[tokio::test]
async fn pages_are_found_by_what_they_are_called_and_by_their_sources() {
    let bench = Bench::scanned().await;
    let body =
        "It ends.[^c6107d23f]\n\n[^c6107d23f]: 2024-03-02-lease — \"The lease of plot 12 ends on 31 March 2027.\"";
    bench.page("plots", "plot-12", "tags: [garden]\nmetadata: {steward: {aliases: [Our Plot]}}\n", body);
    bench.page("plots", "shed", "", "The shed.");
    bench.sync("01:00:00").await;
    for name in ["plot-12", "THE PLOT-12", "our plot", "garden", "2024-03-02-lease", "entities/plot-12.md"] {
        let found = bench.index.wiki().find_named("plots", name).await.unwrap();
        assert_eq!(found, Some(vec!["entities/plot-12.md".to_owned()]), "{name}");
    }
    assert_eq!(bench.index.wiki().find_named("plots", "Garden").await.unwrap(), Some(Vec::new()), "tags have one case");
    assert_eq!(bench.index.wiki().find_named("nowhere", "shed").await.unwrap(), None);
    let citing = bench.index.wiki().list_citing("plots", "c6107d23f").await.unwrap();
    assert_eq!(citing, Some(vec!["entities/plot-12.md".to_owned()]));
    assert_eq!(bench.index.wiki().list_citing("nowhere", "c6107d23f").await.unwrap(), None);
    bench.page("plots", "plot-12", "", "No quote any more.");
    bench.sync("01:01:00").await;
    assert_eq!(bench.index.wiki().list_citing("plots", "c6107d23f").await.unwrap(), Some(Vec::new()));
    assert_eq!(bench.index.wiki().find_named("plots", "2024-03-02-lease").await.unwrap(), Some(Vec::new()));
}

#[tokio::test]
async fn a_lost_index_is_filled_again_and_a_wiki_that_is_gone_is_forgotten() {
    let bench = Bench::scanned().await;
    bench.page("plots", "water", "", "A stopcock.");
    bench.page("garden", "rake", "", "A rake.");
    bench.sync("01:00:00").await;
    let fresh = Index::open(&bench.dir.path().join("fresh")).await.unwrap();
    fresh.sync_all(&bench.root, noon("02:00:00")).await.unwrap();
    let found = fresh.wiki().search("plots", "stopcock", &PageFilter::default(), 10).await.unwrap().unwrap();
    assert_eq!(found.len(), 1);
    fs::remove_dir_all(bench.full("wiki/garden")).unwrap();
    bench.sync("01:01:00").await;
    assert_eq!(bench.index.wiki().search("garden", "rake", &PageFilter::default(), 10).await.unwrap(), None);
    assert_eq!(bench.find_slugs("plots", "stopcock").await, ["water"]);
    bench.index.rebuild(&bench.root, noon("03:00:00")).await.unwrap();
    assert_eq!(bench.find_slugs("plots", "stopcock").await, ["water"]);
}

#[tokio::test]
async fn a_check_names_the_pages_that_differ_and_a_content_scan_reads_them() {
    let bench = Bench::scanned().await;
    bench.page("plots", "water", "", "aaa");
    bench.page("plots", "gone", "", "x");
    bench.sync("01:00:00").await;
    assert_eq!(bench.index.compare_with_files(&bench.root).await.unwrap(), []);
    let full = bench.full("wiki/plots/entities/water.md");
    let modified = fs::metadata(&full).unwrap().modified().unwrap();
    fs::write(&full, fs::read_to_string(&full).unwrap().replace("aaa", "bbb")).unwrap();
    File::options().write(true).open(&full).unwrap().set_modified(modified).unwrap();
    bench.remove("wiki/plots/entities/gone.md");
    bench.page("plots", "new", "", "x");
    let named = |file: &str, differs| IndexDifference { path: format!("wiki/plots/entities/{file}.md"), differs };
    let expected = [
        named("new", DifferenceKind::NotIndexed),
        named("water", DifferenceKind::Content),
        named("gone", DifferenceKind::Gone),
    ];
    assert_eq!(bench.index.compare_with_files(&bench.root).await.unwrap(), expected);
    bench.index.sync_contents(&bench.root, noon("02:00:00")).await.unwrap();
    assert_eq!(bench.index.compare_with_files(&bench.root).await.unwrap(), []);
    assert_eq!(bench.find_slugs("plots", "bbb").await, ["water"]);
}

#[tokio::test]
async fn nothing_of_a_commit_is_shown_before_its_record_is_filed() {
    let bench = Bench::scanned().await;
    bench.page("plots", "water", "", "The stopcock.");
    bench.sync("01:00:00").await;
    let hash = ContentHash::hash_bytes(b"x");
    let filing = RecordFiling { record: path("event/steward-wiki-one.md"), seq: 1, sha256: hash.clone() };
    let target = PagePath::new("wiki/plots", "entities/water.md").unwrap().into();
    let changes = vec![FileChange { target, content: ContentChange::Create { after: hash } }];
    let key = AttemptKey::new(1, &ActionId::derive(&["one"]));
    let intent = ChangeIntent { key, work: IntentKind::Action { filing, changes }, reverted: false };
    write_intent(&bench.root, &intent).unwrap();
    bench.page("plots", "water", "", "The tap.");
    assert_eq!(bench.find_slugs("plots", "stopcock tap").await, ["water"]);
    assert_eq!(bench.index.wiki().search("plots", "tap", &PageFilter::default(), 10).await.unwrap(), Some(Vec::new()));
    // The record that ends the commit.
    bench.put("event/steward-wiki-one.md", "filed");
    assert_eq!(bench.find_slugs("plots", "tap").await, ["water"]);
    remove_intent(&bench.root, &intent).unwrap();
}
