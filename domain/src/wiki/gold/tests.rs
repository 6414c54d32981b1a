use super::*;
use crate::wiki::page::read_page;
use crate::wiki::query::Citation;
use crate::wiki::quote::Anchor;

fn page(slug: &str, topic: &str) -> WikiPage {
    let text = format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: {slug}\ntags: [{topic}]\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n# {slug}\n"
    );
    read_page(&format!("entities/{slug}.md"), text.as_bytes()).page.unwrap()
}

fn pages() -> [WikiPage; 3] {
    [page("plot", "lease"), page("rent", "lease"), page("water", "winter")]
}

/// An answer that read these pages and cites these quotes.
fn answer(slugs: &[&str], quotes: &[&str]) -> WikiAnswer {
    let cite = |quote: &&str| Citation {
        page: "plot".into(),
        anchor: Anchor::new("letter", quote),
        is_disputed: false,
        fault: None,
        superseded_by: None,
    };
    WikiAnswer {
        id: "1a2b3c4d".into(),
        wiki: "allotment".into(),
        by: "ann".into(),
        at: "2026-11-22T09:15:04Z".parse().unwrap(),
        question: "When does the lease end?".into(),
        text: String::new(),
        writer: "rules".into(),
        pages: slugs.iter().map(|slug| format!("entities/{slug}.md")).collect(),
        sources: Vec::new(),
        citations: quotes.iter().map(cite).collect(),
        unknown: Vec::new(),
        clerk: None,
    }
}

fn keep(slugs: &[&str], quotes: &[&str]) -> Option<GoldQuery> {
    GoldQuery::new(&answer(slugs, quotes), &pages(), "ann".into(), "2026-11-22T09:15:04Z".parse().unwrap())
}

fn report(scores: &[f64], before: Option<f64>) -> GoldReport {
    let score = |value: &f64| GoldScore {
        id: String::new(),
        question: String::new(),
        topics: *value,
        citations: 1.0,
        lost: BTreeSet::new(),
    };
    let answers: Vec<GoldScore> = scores.iter().map(score).collect();
    GoldReport {
        id: "00000001".into(),
        wiki: "allotment".into(),
        at: "2026-11-22T09:15:04Z".parse().unwrap(),
        by: "ann".into(),
        model: "rules".into(),
        score: find_mean(&answers),
        before,
        answers,
        tokens: TokenUsage::default(),
    }
}

#[test]
fn an_answer_is_scored_by_topics_and_quotes_and_not_by_its_words() {
    let gold = keep(&["plot", "water"], &["It ends in March.", "It is dry."]).unwrap();
    assert_eq!(gold.topics.iter().collect::<Vec<_>>(), ["lease", "winter"]);
    let score = |slugs: &[&str], quotes: &[&str]| gold.score(&answer(slugs, quotes), &pages());
    // Another page of the same topic, and the same quotes in another order.
    let same = score(&["water", "rent"], &["It is dry.", "It ends in March."]);
    assert_eq!((same.value(), same.lost.len()), (1.0, 0));
    let less = score(&["plot"], &["It ends in March.", "It is old."]);
    assert_eq!((less.topics, less.citations), (0.5, 1.0 / 3.0));
    assert_eq!(less.value(), 0.5 / 3.0);
    assert_eq!(less.lost.into_iter().collect::<Vec<_>>(), [Anchor::new("letter", "It is dry.").label]);
    assert_eq!(score(&[], &[]).value(), 0.0);
    assert_eq!(keep(&["plot"], &[]), None, "nothing could be compared");
}

#[test]
fn the_same_thirty_are_asked_each_time() {
    let many = (0..40).map(|n| GoldQuery { id: format!("{:08x}", n * 7_919 % 40), ..keep(&[], &["A."]).unwrap() });
    let all: Vec<GoldQuery> = many.collect();
    let chosen = choose_gold(all.clone());
    assert_eq!(chosen.len(), MAX_GOLD);
    assert_eq!(chosen, choose_gold(all.into_iter().rev().collect()));
}

#[test]
fn a_fall_breaks_it_until_the_score_comes_back() {
    let states = [
        (report(&[0.96; 10], None), MetricState::Healthy),
        (report(&[0.70; 10], None), MetricState::Degraded),
        (report(&[0.96; 9], Some(1.0)), MetricState::Unknown),
        (report(&[0.0; 9], Some(1.0)), MetricState::Unknown),
        (report(&[0.85; 10], Some(0.90)), MetricState::Healthy),
        (report(&[0.78; 10], Some(0.81)), MetricState::Degraded),
        (report(&[0.84; 10], Some(0.90)), MetricState::Broken),
        (report(&[0.60; 10], Some(0.70)), MetricState::Broken),
    ];
    for (report, state) in &states {
        assert_eq!(report.state(), *state, "{} after {:?}", report.score, report.before);
    }
    let first = report(&[1.0; 10], None);
    assert_eq!(find_reference([&first].into_iter(), "rules"), Some(1.0));
    let fallen = report(&[0.5; 10], find_reference([&first].into_iter(), "rules"));
    assert_eq!(fallen.state(), MetricState::Broken);
    // Measured once more, it is no better. A measurement of too few questions says nothing.
    let few = report(&[0.5; 3], None);
    let again = report(&[0.5; 10], find_reference([&first, &fallen, &few].into_iter(), "rules"));
    assert_eq!(again.state(), MetricState::Broken);
    let recovered = report(&[0.97; 10], find_reference([&first, &fallen, &again].into_iter(), "rules"));
    assert_eq!(recovered.state(), MetricState::Healthy);
    assert_eq!(find_reference([&fallen, &recovered].into_iter(), "rules"), Some(recovered.score));
    assert_eq!(find_reference([].into_iter(), "rules"), None);
}
