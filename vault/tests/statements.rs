//! Every SQL statement in the sources of this crate is prepared on the real tables.
//!
//! The statements are found in the sources, with `concat!` and the macros of SQL fragments evaluated. So a statement
//! that no test runs is checked too, and a wrong column fails here by name. Statements that are built from parts at run
//! time are counted by file.
#![allow(clippy::unwrap_used, reason = "tests")]

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Executor};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steward_domain::fleet::provider_gate::{GateDebt, GateGrant, GateMark, GateRequest};
use steward_domain::steward::guard::{CallCaps, GuardRefusal};
use steward_vault::index::Index;
use steward_vault::steward::guard::{Ledger, ProviderGate};

/// The beginnings of statements. The tables themselves are made when the files are opened.
const VERBS: [&str; 8] = ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH ", "PRAGMA ", "REPLACE ", "VACUUM "];

/// The files with beginnings of queries that are built at run time, and their number. The tests of the index run them.
const BUILT: [(&str, usize); 11] = [
    ("src/index/actions/clusters.rs", 2),
    ("src/index/actions/list.rs", 2),
    ("src/index/actions/waiting.rs", 1),
    ("src/index/cursors/snoozes.rs", 1),
    ("src/index/read/matters.rs", 1),
    ("src/index/read/overview.rs", 2),
    ("src/index/read/questions.rs", 1),
    ("src/index/read/search.rs", 1),
    ("src/index/read/signals.rs", 1),
    ("src/index/store/moves.rs", 3),
    ("src/index/wiki/sync.rs", 6),
];

/// The folders whose statements belong to `ledger.db`. All others belong to `state.db`.
const LEDGER: &str = "src/steward/guard";

/// The macros of SQL fragments, by name: the parameter, if there is one, and the body.
type Fragments = BTreeMap<String, (Option<String>, TokenStream)>;

/// With a gate the ledger makes the tables of what it owes.
#[derive(Debug)]
struct OpenGate;

impl ProviderGate for OpenGate {
    fn reserve(&self, _: GateRequest) -> BoxFuture<'_, Result<GateGrant, GuardRefusal>> {
        unreachable!("nothing is reserved")
    }

    fn settle(&self, _: GateDebt) -> BoxFuture<'_, Result<Option<GateMark>, String>> {
        unreachable!("nothing is settled")
    }

    fn find_refusal(&self) -> BoxFuture<'_, Option<GuardRefusal>> {
        std::future::ready(None).boxed()
    }
}

#[tokio::test]
async fn every_statement_can_be_prepared() {
    let dir = tempfile::tempdir().unwrap();
    let ledger_file = dir.path().join("ledger.db");
    Index::open(dir.path()).await.unwrap().close().await;
    // The ledger makes its file when it is first used.
    let opened = Ledger::open(&ledger_file, CallCaps::default(), &dir.path().join("ledger.json")).unwrap();
    let opened = opened.with_gate(Some(Arc::new(OpenGate)));
    assert!(opened.status(chrono::Utc::now()).await.refusal.is_none());
    let mut index = connect(&dir.path().join("state.db")).await;
    let mut ledger = connect(&ledger_file).await;
    let (mut prepared, mut built, mut complaints) = (0, BTreeMap::new(), Vec::new());
    for (file, statement) in list_statements() {
        if statement.contains('{') || statement.ends_with(' ') {
            *built.entry(file).or_default() += 1;
            continue;
        }
        let database = if file.starts_with(LEDGER) { &mut ledger } else { &mut index };
        match database.prepare(sqlx::SqlStr::from_static(statement.clone().leak())).await {
            Ok(_) => prepared += 1,
            Err(e) => complaints.push(format!("{file}: {e}: {statement}")),
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert_eq!(built, BUILT.map(|(file, count)| (file.to_owned(), count)).into());
    assert!(prepared > 150, "only {prepared} statements were found");
}

async fn connect(file: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(file).connect().await.unwrap()
}

/// Every statement, with the file that has it.
fn list_statements() -> Vec<(String, String)> {
    let mut sources = Vec::new();
    read_sources(Path::new("src"), &mut sources);
    let mut fragments = Fragments::new();
    for (_, tokens) in &sources {
        collect_fragments(tokens.clone(), &mut fragments);
    }
    let mut statements = Vec::new();
    for (file, tokens) in sources {
        visit_texts(tokens, &fragments, &mut |text| {
            if VERBS.iter().any(|verb| text.trim_start().starts_with(verb)) {
                statements.push((file.clone(), text));
            }
        });
    }
    statements
}

fn read_sources(folder: &Path, sources: &mut Vec<(String, TokenStream)>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            read_sources(&path, sources);
        } else {
            let tokens = std::fs::read_to_string(&path).unwrap().parse().unwrap();
            sources.push((path.to_str().unwrap().to_owned(), tokens));
        }
    }
}

fn collect_fragments(tokens: TokenStream, fragments: &mut Fragments) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let [_, TokenTree::Punct(_), TokenTree::Ident(name), TokenTree::Group(rules), ..] = &tokens[at..] else {
            continue;
        };
        if token.to_string() != "macro_rules" {
            continue;
        }
        let rule: Vec<TokenTree> = rules.stream().into_iter().collect();
        if let [TokenTree::Group(pattern), _, _, TokenTree::Group(body), ..] = &rule[..] {
            let parameter = pattern.stream().into_iter().nth(1).map(|name| name.to_string());
            fragments.insert(name.to_string(), (parameter, body.stream()));
        }
    }
}

/// Visits every outermost text: a literal, a `concat!`, or a macro of a fragment.
fn visit_texts(tokens: TokenStream, fragments: &Fragments, visit: &mut impl FnMut(String)) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at..] {
            [TokenTree::Ident(name), TokenTree::Punct(_), TokenTree::Ident(_), TokenTree::Group(_), ..]
                if name == "macro_rules" =>
            {
                at += 4;
            }
            [TokenTree::Punct(hash), TokenTree::Group(_), ..] if hash.as_char() == '#' => at += 2,
            [first, ..] => {
                match evaluate_text(&tokens[at..], fragments, &BTreeMap::new()) {
                    Some((text, used)) => {
                        visit(text);
                        at += used;
                        continue;
                    }
                    None => {
                        if let TokenTree::Group(group) = first {
                            visit_texts(group.stream(), fragments, visit);
                        }
                    }
                }
                at += 1;
            }
            [] => {}
        }
    }
}

/// The text that begins at the first token, and how many tokens it has.
fn evaluate_text(
    tokens: &[TokenTree],
    fragments: &Fragments,
    arguments: &BTreeMap<String, String>,
) -> Option<(String, usize)> {
    match tokens {
        [TokenTree::Literal(literal), ..] => {
            let text = syn::parse_str::<syn::LitStr>(&literal.to_string()).ok()?.value();
            Some((text, 1))
        }
        [TokenTree::Punct(dollar), TokenTree::Ident(name), ..] if dollar.as_char() == '$' && name != "crate" => {
            Some((arguments.get(&name.to_string())?.clone(), 2))
        }
        [TokenTree::Ident(name), TokenTree::Punct(mark), TokenTree::Group(group), ..]
            if mark.as_char() == '!' && group.delimiter() == Delimiter::Parenthesis =>
        {
            if name == "concat" {
                return Some((join_texts(group.stream(), fragments, arguments)?, 3));
            }
            let (parameter, body) = fragments.get(&name.to_string())?;
            let argument = join_texts(group.stream(), fragments, arguments)?;
            let own = parameter.iter().map(|name| (name.clone(), argument.clone())).collect();
            Some((join_texts(body.clone(), fragments, &own)?, 3))
        }
        _ => None,
    }
}

/// Joins texts that are separated by commas. The path in front of a macro is skipped.
fn join_texts(tokens: TokenStream, fragments: &Fragments, arguments: &BTreeMap<String, String>) -> Option<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut joined, mut at) = (String::new(), 0);
    while at < tokens.len() {
        if let Some((text, used)) = evaluate_text(&tokens[at..], fragments, arguments) {
            joined += &text;
            at += used;
        } else if matches!(&tokens[at], TokenTree::Punct(_) | TokenTree::Ident(_)) {
            at += 1;
        } else {
            return None;
        }
    }
    Some(joined)
}
