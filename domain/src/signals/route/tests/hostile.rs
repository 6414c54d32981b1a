//! Tests hostile values on oddly written records: every accepted change can be undone.

use super::*;
use serde_json::json;

/// Words with a meaning in YAML, in Markdown or in a display.
const WORDS: [&str; 44] = [
    "|",
    "[[",
    "]]",
    "[",
    "]",
    "#",
    "^",
    ".md",
    " ",
    "\u{200b}",
    "\u{200c}",
    "\u{ad}",
    "\u{85}",
    "\u{2028}",
    "\u{2029}",
    "\u{a0}",
    "a",
    "b",
    "Acme",
    "'",
    "\"",
    ": ",
    ":",
    "- ",
    "-",
    "{",
    "}",
    ", ",
    "&",
    "*",
    "!",
    "%",
    "@",
    "`",
    "~",
    "null",
    "true",
    "0x1F",
    "1e3",
    "2026-11-01",
    "---",
    "...",
    "\\",
    "日本",
];

fn value() -> BoxedStrategy<String> {
    proptest::collection::vec(select(WORDS.to_vec()), 1..6).prop_map(|words| words.concat()).boxed()
}

/// The lines of a set, as people and other tools leave them.
const SETS: [&str; 13] = [
    "",
    "related_to:\n",
    "related_to: # none\n",
    "related_to: []\n",
    "related_to: [a, \"[[b]]\"] # two\n",
    "related_to: [\n  a,\n  Acme\n  ]\n",
    "related_to:\n  - a\n  - \"[[a.md]]\" # the same\n",
    "related_to:\n- a\n-\n- [[b]]\n- 7\n",
    "related_to: [[[a]], '|', \"[[#h]]\", '']\n",
    "related_to:\n  - '| a'\n  - a\n\n  # last\n  - \"[[[[a]]|b]]\"\n",
    "related_to:\n    - Acme\n    - a .md\n    - a.md.md\n",
    "related_to: ['\u{200b}', \"\\u0085\", null, ~]\n",
    "related_to: a\n",
];

fn proposal() -> BoxedStrategy<Value> {
    let part = select(vec!["add", "remove"]);
    prop_oneof![
        3 => (part, value()).prop_map(|(part, value)| json!({"class": "related", part: {"related_to": value}})),
        1 => (select(ContextField::ALL.to_vec()), value())
            .prop_map(|(field, value)| json!({"class": "context_edit", "set": {field.as_str(): value}})),
        1 => value().prop_map(|value| json!({"class": "parent_matter", "set": {"parent_matter": value}})),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn whatever_is_taken_lands_with_a_recipe_that_an_undo_follows_to_the_byte(
        proposal in proposal(),
        set in select(SETS.to_vec()),
        matter in any::<bool>(),
    ) {
        let Ok(mutation) = Mutation::from_proposal(&proposal) else { return Ok(()) };
        let (name, text) = if matter || mutation.class() == MutationClass::ContextEdit {
            ("matter/house.md", format!("---\ntype: matter\nname: House\nowner: \"\" # nobody\n{set}---\nbody\n"))
        } else {
            ("task/pay.md", format!("---\ntype: task\nname: Pay\nparent_matter: \"[[house#Top|x]]\"\n{set}---\nbody\n"))
        };
        let RouteDecision::Planned(plan) = Wide::about(name, &text, mutation.clone()).route() else { return Ok(()) };
        if plan.prepare(text.as_bytes(), NoteAccess::unmapped()).is_err() {
            return Ok(());
        }
        let (after, record) = carry_out(&plan, &text);
        if after == text {
            prop_assert!(record.undo_recipe.is_none());
            return Ok(());
        }
        let undo = ask(ResolutionKind::Undo, &record);
        prop_assert!(undo.is_ok(), "{mutation:?} on {set:?}: {undo:?}");
        prop_assert_eq!(carry_out(&undo.unwrap(), &after).0, text, "{:?}", mutation);
    }
}
