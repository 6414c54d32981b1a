//! F10: tenants are apart: their tokens, the roles of their database, and the words of their notes, mails and keys.
//!
//! The endpoints are those of the server's own description. An endpoint that is open to everybody, as a health check, must say
//! the same with and without a token. Words are searched in whole logs, pages, metrics, histories, audit records, arguments and a
//! dump of the database, also encoded and packed; the same search must find a tenant's words in its own pages and histories,
//! and each of the leaks that are planted.

use prost::Message;
use reqwest::Method;
use std::collections::BTreeMap;
use std::time::Duration;
use steward_tests::api::{Answer, Api};
use steward_tests::fleet::{Fleet, Tenant};
use steward_tests::leaks::{has_leak, plant_leaks};
use steward_tests::provider::{Provider, Reply};
use steward_tests::rehearsal::{Form, Report};
use steward_tests::supervisor::Supervised;
use steward_tests::vault::Signal;
use steward_tests::{postgres, runs, wait};

/// A refusal is sent at once.
const REFUSAL: Duration = Duration::from_secs(10);
const REFUSALS: [u16; 3] = [401, 403, 421];
/// Pages that the description does not name.
const PAGES: [&str; 7] = ["/", "/trust", "/fleet", "/matters", "/charts", "/search?q=canary", "/records/task/rent.md"];
/// What else people reach without a page of its own.
const STREAM: &str = "/live";
const FORMS: [&str; 3] = ["/stop", "/check", "/snooze"];

struct Member {
    tenant: Tenant,
    process: Supervised,
    /// Its server without a token, and with its own.
    open: Api,
    own: Api,
    action: String,
}

impl Member {
    fn words(&self) -> [String; 2] {
        ["note", "mail"].map(|kind| canary(kind, &self.tenant.id))
    }

    /// Its key, and the password of its database.
    fn secrets(&self) -> [String; 2] {
        let url = self.tenant.steward.variable("STEWARD_FLEET_DB").unwrap();
        let password = url.split_once('@').unwrap().0.rsplit_once(':').unwrap().1;
        [canary("key", &self.tenant.id), password.to_owned()]
    }
}

fn canary(kind: &str, id: &str) -> String {
    format!("canary-{kind}-of-{id}-7f3a9c")
}

async fn create_member(fleet: &Fleet, id: &str, provider: &Provider) -> Member {
    fleet.run(&["fleet", "bucket", "set", id, "--calls", "1000/min"]).await;
    let mut tenant = fleet.add_tenant(id, &["house"]).await;
    fleet.run(&["fleet", "tenant", "set", id, "--bucket", id]).await;
    tenant.ask(provider);
    tenant.steward.set("STEWARD_CLERK_API_KEY", canary("key", id));
    tenant.vault.task_with("rent", "house", &format!("note: {}\n", canary("note", id)));
    let text = tenant.vault.read("task/rent.md");
    let name = String::from_utf8(text).unwrap().replace("name: rent", &format!("name: {}", canary("note", id)));
    tenant.vault.write("task/rent.md", name);
    let quote = format!("It is finished, with thanks. {}", canary("mail", id));
    tenant.vault.signal("s1", &Signal { quote: &quote, ..Signal::done("rent") });
    let process = Supervised::start(&tenant.steward);
    process.serves().await;
    let open = process.open_api();
    let made = tenant.steward.run(&["--json", "token", "create", "--scope", "operate", "--name", "own"]).await;
    let token = made.expect(0).json()["token"].as_str().unwrap().to_owned();
    let own = open.with("authorization", &format!("Bearer {token}"));
    wait::until("a change", async || tenant.is_done("rent").then_some(())).await;
    let action = wait::until("its record", async || {
        tenant
            .vault
            .records()
            .iter()
            .find(|record| record.undo_recipe.is_some())
            .map(|record| record.draft.id.to_string())
    });
    let action = action.await;
    Member { tenant, process, open, own, action }
}

/// The endpoints of the description, with the id of an action where it wants one.
async fn list_endpoints(member: &Member) -> Vec<(Method, String)> {
    let described = member.open.get("/api/v1/openapi.json").await.expect(200);
    let pages = PAGES.iter().chain([&STREAM]).map(|page| (Method::GET, (*page).to_owned()));
    let forms = FORMS.iter().map(|form| (Method::POST, (*form).to_owned()));
    let mut found: Vec<(Method, String)> = pages.chain(forms).collect();
    for (path, methods) in described["paths"].as_object().unwrap() {
        let mut filled = path.clone();
        while let (Some(from), Some(to)) = (filled.find('{'), filled.find('}')) {
            filled.replace_range(from..=to, &member.action);
        }
        for method in methods.as_object().unwrap().keys() {
            found.push((method.to_uppercase().parse().unwrap(), filled.clone()));
        }
    }
    found
}

#[derive(Default)]
struct Requests {
    sent: usize,
    open: usize,
    answered: usize,
    own_answered: usize,
}

/// Sends each request to a member with the token of another one.
async fn try_token(of: &Member, at: &Member, found: &mut Requests) {
    let headers = |api: &Api| api.with("content-type", "application/json");
    let mut theirs = of.own.clone();
    theirs.base.clone_from(&at.open.base);
    for (method, path) in list_endpoints(at).await {
        let body = (method == Method::POST).then(|| "{\"reason\": \"a rehearsal\"}".to_owned());
        found.sent += 1;
        // An answer that does not end is a stream of the other tenant's events.
        let request = headers(&theirs);
        let answer = tokio::time::timeout(REFUSAL, request.ask(method.clone(), &path, body.clone())).await;
        let Ok(answer) = answer else {
            eprintln!("F10 {method} {path} answers without an end");
            found.answered += 1;
            continue;
        };
        if REFUSALS.contains(&answer.status) {
            continue;
        }
        let anonymous = headers(&at.open).ask(method.clone(), &path, body).await;
        let is_open = method == Method::GET && is_same(&answer, &anonymous);
        let tells = find_words(answer.body.as_bytes(), &at.words()) + find_words(answer.body.as_bytes(), &at.secrets());
        if is_open && tells == 0 {
            found.open += 1;
        } else {
            eprintln!("F10 {method} {path} answered {}", answer.status);
            found.answered += 1;
        }
    }
}

/// Whether two answers are the same, or both lead to the login.
fn is_same(one: &Answer, other: &Answer) -> bool {
    one.status == other.status && one.body == other.body && one.headers.get("location") == other.headers.get("location")
}

fn find_words(text: &[u8], words: &[String]) -> usize {
    words.iter().filter(|word| has_leak(text, word)).count()
}

/// Planted leaks that the search does not find.
fn count_missed_leaks(members: &[Member]) -> usize {
    let planted = members.iter().flat_map(Member::secrets).flat_map(|secret| {
        plant_leaks(&secret).into_iter().filter(move |leak| !has_leak(leak, &secret)).collect::<Vec<_>>()
    });
    planted.inspect(|leak| eprintln!("F10 not found: {}", String::from_utf8_lossy(leak))).count()
}

/// Everything of a member that others could read, by kind.
async fn collect_texts(fleet: &Fleet, member: &Member) -> BTreeMap<&'static str, Vec<u8>> {
    let mut pages = String::new();
    for page in PAGES.iter().chain(&["/api/v1/steward/recent-actions"]) {
        pages += &member.own.get(page).await.body;
    }
    let mut histories = Vec::new();
    let query = format!("StewardTenant = '{}'", member.tenant.id);
    for run in runs::list_runs(&fleet.client, &query).await {
        for event in runs::fetch_events(&fleet.client, &run.id).await {
            histories.extend(event.encode_to_vec());
        }
    }
    let folder = member.tenant.vault.path().join("event");
    let audit = std::fs::read_dir(folder).unwrap().flat_map(|file| std::fs::read(file.unwrap().path()).unwrap());
    let arguments = std::fs::read(format!("/proc/{}/cmdline", member.process.last().pid)).unwrap();
    BTreeMap::from([
        ("arguments", arguments),
        ("audit records", audit.collect()),
        ("logs", member.process.logs().into_bytes()),
        ("metrics", member.own.get("/metrics").await.body.into_bytes()),
        ("pages", pages.into_bytes()),
        ("histories", histories),
    ])
}

/// Tries the database role of one member on the rows of another. Returns how often something was seen or changed.
fn try_role(fleet: &Fleet, of: &Member, at: &Member) -> (usize, usize) {
    let url = of.tenant.steward.variable("STEWARD_FLEET_DB").unwrap();
    let other = &at.tenant.id;
    let tables = [
        ("tenant", "id", "vault_id = 'x'"),
        ("owner", "tenant", "copy = 'x'"),
        ("gate_call", "tenant", "tokens = 0"),
        ("gate_tokens", "tenant", "tokens = 0"),
        ("gate_tenant", "tenant", "entries = 0"),
        ("bucket", "name", "lock = true"),
        ("bucket_state", "bucket", "last_number = 0"),
        ("stop", "scope", "reason = 'x'"),
        ("ops_log", "subject", "reason = 'x'"),
    ];
    let (mut tried, mut reached) = (0, 0);
    for (table, column, change) in tables {
        let rows = format!("{table} WHERE {column} = '{other}'");
        let seen = fleet.sql(&format!("SELECT count(*) FROM {rows}"));
        for sql in [
            format!("SELECT count(*) FROM {rows}"),
            format!(
                "WITH x AS (UPDATE {table} SET {change} WHERE {column} = '{other}' RETURNING 1) SELECT count(*) FROM x"
            ),
            format!("WITH x AS (DELETE FROM {rows} RETURNING 1) SELECT count(*) FROM x"),
        ] {
            tried += 1;
            match fleet.postgres.try_sql(url, &sql) {
                Ok(count) if count == "0" => {}
                Err(refused) if refused.contains("permission denied") => {}
                other => {
                    eprintln!("F10 {sql}: {other:?}");
                    reached += 1;
                }
            }
        }
        assert_eq!(fleet.sql(&format!("SELECT count(*) FROM {rows}")), seen, "{table} has lost rows");
        assert!(seen != "0" || table == "gate_tokens", "no row of {other} in {table}, so nothing was tried");
    }
    (tried, reached)
}

#[tokio::test(flavor = "multi_thread")]
async fn f10_no_tenant_reaches_another_and_no_word_of_one_is_found_at_another() {
    let (form, mut report) = (Form::read(), Report::new("F10"));
    let fleet = Fleet::new("apart", postgres::server().await).await;
    let provider = Provider::start(|_, _, _| Reply::Done(Duration::from_millis(50))).await;
    let mut members = Vec::new();
    for n in 0..form.choose(2, 4) {
        members.push(create_member(&fleet, &format!("apart-{n}"), &provider).await);
        fleet.run(&["stop", "--fleet", "--tenant", &format!("apart-{n}"), "--reason", "so that there is a row"]).await;
    }
    let (mut requests, mut tried, mut reached, mut leaks, mut own_words) = (Requests::default(), 0, 0, 0, 0);
    for at in &members {
        for of in members.iter().filter(|of| of.tenant.id != at.tenant.id) {
            try_token(of, at, &mut requests).await;
            let (attempts, successes) = try_role(&fleet, of, at);
            tried += attempts;
            reached += successes;
        }
        requests.own_answered += usize::from(at.own.get("/api/v1/steward/recent-actions").await.status == 200);
        let texts = collect_texts(&fleet, at).await;
        for other in &members {
            let is_own = other.tenant.id == at.tenant.id;
            for (kind, text) in &texts {
                let (words, secrets) = (find_words(text, &other.words()), find_words(text, &other.secrets()));
                own_words += if is_own { words } else { 0 };
                let wrong = secrets + if is_own { 0 } else { words };
                if wrong > 0 {
                    eprintln!("F10 {wrong} words of {} in the {kind} of {}", other.tenant.id, at.tenant.id);
                }
                leaks += wrong;
            }
        }
    }
    let dump = fleet.postgres.dump(&fleet.database, &["pg_dump"]);
    let in_dump: usize =
        members.iter().map(|one| find_words(&dump, &one.words()) + find_words(&dump, &one.secrets())).sum();

    report
        .add("processes", members.len())
        .add("requests", requests.sent)
        .add("open_to_all", requests.open)
        .must_be("answers_to_other_tokens", requests.answered, 0)
        .must_be("answers_to_own_tokens", requests.own_answered, members.len())
        .add("statements", tried)
        .must_be("rows_reached", reached, 0)
        .must_be("words_at_others", leaks, 0)
        .must_be("words_in_database", in_dump, 0)
        .must_be("planted_leaks_missed", count_missed_leaks(&members), 0)
        .at_least("words_found_at_home", own_words, 2 * members.len());
    report.finish();
}
