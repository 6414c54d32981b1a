//! What a token opens: each scope and each limit against each tool, and against every other interface.
//!
//! One server answers all of them. Nothing is undone by a token that may not, and the same action is undone by one that may.

use self::ToolGroup::{OwnRuns, ReadSteward, ReadWiki, Resolve, WriteWiki};
use crate::mcp_clients::{HttpClient, NO_SUCH_TOOL, find_refusal};
use crate::wiki_runs::LEASE;
use serde_json::json;
use steward_proto::v1;
use steward_proto::v1::actions_service_client::ActionsServiceClient;
use steward_tests::api::{self, Api};
use steward_tests::rpc::{self, refusal};
use steward_tests::steward::Running;
use steward_tests::wait;
use steward_tests::world::World;
use tonic::Code;

pub(crate) const WIKI_TOOLS: [&str; 19] = [
    "guide",
    "overview",
    "list",
    "grep",
    "search",
    "read",
    "follow",
    "history",
    "write",
    "delete",
    "sources",
    "subscriptions",
    "events",
    "timeline",
    "eval",
    "git_log",
    "git_show",
    "git_blame",
    "why",
];
const STEWARD_TOOLS: [&str; 12] = [
    "steward_status",
    "steward_today",
    "steward_matters",
    "steward_tasks",
    "steward_signals",
    "steward_actions",
    "steward_why",
    "steward_preview",
    "steward_undo",
    "steward_dismiss",
    "steward_confirm",
    "steward_stop",
];
/// Both addresses: that of all wikis, and that of one.
const WHOLE: &str = "/mcp";
const PINNED: &str = "/mcp/allotment";

/// Tools that a caller has together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolGroup {
    ReadWiki,
    WriteWiki,
    ReadSteward,
    /// To undo one's own runs, and to stop.
    OwnRuns,
    /// To resolve any action, and to stop.
    Resolve,
}

impl ToolGroup {
    fn holds(self, tool: &str) -> bool {
        let writes = ["write", "delete"].contains(&tool);
        let resolves = ["steward_undo", "steward_dismiss", "steward_confirm", "steward_stop"].contains(&tool);
        match self {
            Self::ReadWiki => WIKI_TOOLS.contains(&tool) && !writes,
            Self::WriteWiki => writes,
            Self::ReadSteward => STEWARD_TOOLS.contains(&tool) && !resolves,
            Self::OwnRuns => ["steward_undo", "steward_stop"].contains(&tool),
            Self::Resolve => resolves,
        }
    }
}

/// A token, and the tools that it opens at both addresses.
struct TokenCase {
    scope: &'static str,
    limits: &'static [&'static str],
    whole: &'static [ToolGroup],
    pinned: &'static [ToolGroup],
}

const CASES: [TokenCase; 15] = [
    TokenCase { scope: "read", limits: &[], whole: &[ReadWiki, ReadSteward], pinned: &[ReadWiki] },
    TokenCase {
        scope: "act",
        limits: &[],
        whole: &[ReadWiki, WriteWiki, ReadSteward, Resolve],
        pinned: &[ReadWiki, WriteWiki, OwnRuns],
    },
    TokenCase { scope: "read", limits: &["--tools", "wiki"], whole: &[ReadWiki], pinned: &[ReadWiki] },
    TokenCase {
        scope: "act",
        limits: &["--tools", "wiki"],
        whole: &[ReadWiki, WriteWiki, OwnRuns],
        pinned: &[ReadWiki, WriteWiki, OwnRuns],
    },
    TokenCase { scope: "read", limits: &["--tools", "steward"], whole: &[ReadSteward], pinned: &[] },
    TokenCase { scope: "act", limits: &["--tools", "steward"], whole: &[ReadSteward, Resolve], pinned: &[] },
    TokenCase {
        scope: "act",
        limits: &["--tools", "wiki,steward"],
        whole: &[ReadWiki, WriteWiki, ReadSteward, Resolve],
        pinned: &[ReadWiki, WriteWiki, OwnRuns],
    },
    TokenCase { scope: "read", limits: &["--workspace", "allotment"], whole: &[ReadWiki], pinned: &[ReadWiki] },
    TokenCase {
        scope: "act",
        limits: &["--workspace", "allotment"],
        whole: &[ReadWiki, WriteWiki, OwnRuns],
        pinned: &[ReadWiki, WriteWiki, OwnRuns],
    },
    TokenCase {
        scope: "read",
        limits: &["--wiki", "write"],
        whole: &[ReadWiki, WriteWiki, ReadSteward, OwnRuns],
        pinned: &[ReadWiki, WriteWiki, OwnRuns],
    },
    TokenCase {
        scope: "act",
        limits: &["--wiki", "read"],
        whole: &[ReadWiki, ReadSteward, Resolve],
        pinned: &[ReadWiki],
    },
    TokenCase { scope: "act", limits: &["--tools", "wiki", "--wiki", "read"], whole: &[ReadWiki], pinned: &[ReadWiki] },
    TokenCase {
        scope: "read",
        limits: &["--tools", "wiki", "--wiki", "write"],
        whole: &[ReadWiki, WriteWiki, OwnRuns],
        pinned: &[ReadWiki, WriteWiki, OwnRuns],
    },
    TokenCase {
        scope: "act",
        limits: &["--workspace", "allotment", "--wiki", "read"],
        whole: &[ReadWiki],
        pinned: &[ReadWiki],
    },
    TokenCase {
        scope: "read",
        limits: &["--workspace", "allotment", "--wiki", "write"],
        whole: &[ReadWiki, WriteWiki, OwnRuns],
        pinned: &[ReadWiki, WriteWiki, OwnRuns],
    },
];

/// A live vault with an action of a steward and a run of a wiki, and the server.
struct Vault {
    _up: Running,
    world: World,
    api: Api,
    /// The action of the steward, and that of the run.
    actions: [String; 2],
}

impl Vault {
    async fn new() -> Self {
        let world = World::with_one_done().await.live();
        let (up, api) = api::up(&world).await;
        world.tick("house").await;
        let action = world.live_action();
        for wiki in ["allotment", "other"] {
            world.run(&["wiki", "init", wiki]).await.expect(0);
        }
        let document = world.folder.join("2026-11-20-lease.md");
        std::fs::write(&document, LEASE).unwrap();
        world.run(&["wiki", "ingest", "allotment", document.to_str().unwrap()]).await.expect(0);
        let client = HttpClient::new(&api.token(&world, "read").await, WHOLE);
        let run = wait::until("the run to be among the actions", async || {
            let listed = client.call("steward_actions", json!({})).await;
            let actions = listed["result"]["structuredContent"]["actions"].as_array().unwrap().clone();
            let run = actions.into_iter().find(|it| it["kind"] == "steward-wiki")?;
            Some(run["id"].as_str().unwrap().to_owned())
        })
        .await;
        Self { _up: up, world, api, actions: [action, run] }
    }

    async fn make_token(&self, scope: &str, limits: &[&str]) -> String {
        let made =
            self.world.json(&[&["token", "create", "--scope", scope, "--name", "matrix"], limits].concat()).await;
        made["token"].as_str().unwrap().to_owned()
    }

    fn open(&self, token: &str) -> Api {
        self.api.with("authorization", &format!("Bearer {token}"))
    }

    fn is_changed(&self) -> bool {
        let page = self.world.vault.path().join("wiki/allotment/concepts/stopcock.md");
        self.world.vault.state("rent") != "done" || !page.exists()
    }
}

/// Checks that a token has these tools at an address, and is refused the others.
async fn check_tools(vault: &Vault, client: &HttpClient, groups: &[ToolGroup], place: &str) {
    let (shown, hidden): (Vec<&str>, Vec<&str>) =
        WIKI_TOOLS.into_iter().chain(STEWARD_TOOLS).partition(|tool| groups.iter().any(|group| group.holds(tool)));
    let listed = client.exchange("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{place}: {listed:#}"));
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, shown, "{place}");
    for tool in hidden {
        // Rights refuse a tool of a toolset that is there. A tool of another one is not there.
        let has_toolset = groups.contains(if tool.starts_with("steward_") { &ReadSteward } else { &ReadWiki });
        let expected = if has_toolset { "scope_too_small" } else { NO_SUCH_TOOL };
        let refused = find_refusal(&client.call(tool, json!({"workspace": "allotment"})).await);
        assert_eq!(refused.as_deref(), Some(expected), "{place}: {tool}");
    }
    if groups.contains(&OwnRuns) {
        for action in &vault.actions {
            let undo = json!({"action": action, "reason": "it is not mine"});
            let refused = find_refusal(&client.call("steward_undo", undo).await);
            assert_eq!(refused.as_deref(), Some("scope_too_small"), "{place}: undo of {action}");
        }
    }
    assert!(!vault.is_changed(), "{place}");
}

/// Checks that the pages, the live stream, the JSON API and gRPC refuse a token with limits, and answer one without.
async fn check_other_interfaces(vault: &Vault, token: &str, is_limited: bool, place: &str) {
    let api = vault.open(token);
    let expected = if is_limited { 403 } else { 200 };
    for path in ["/", "/wikis", "/live?seen=0", "/api/v1/steward/recent-actions"] {
        assert_eq!(api.find_status(path).await, Some(expected), "{place}: {path}");
    }
    let line = rpc::with(&vault.api, token).await;
    let mut actions = ActionsServiceClient::new(line);
    let listed = actions.list_actions(v1::ListActionsRequest::default()).await;
    if !is_limited {
        assert!(listed.is_ok(), "{place}: {listed:?}");
        return;
    }
    let forbidden = (Code::PermissionDenied, "403".to_owned(), String::new());
    assert_eq!(refusal(listed), forbidden, "{place}");
    for action in &vault.actions {
        assert_eq!(api.answer("undo", action).await.status, 403, "{place}");
        let undo = v1::UndoActionRequest { id: action.clone(), ..Default::default() };
        assert_eq!(refusal(actions.undo_action(undo).await), forbidden, "{place}");
    }
    assert!(!vault.is_changed(), "{place}");
}

/// Checks that a token for one wiki sees nothing of another, at either address.
async fn check_pin(vault: &Vault, token: &str, is_pinned: bool, place: &str) {
    let api = vault.open(token).with("accept", "application/json, text/event-stream");
    let other = HttpClient::new(&api, WHOLE).call("list", json!({"workspace": "other"})).await;
    if !is_pinned {
        assert_ne!(find_refusal(&other).as_deref(), Some("workspace_not_accessible"), "{place}");
        return;
    }
    assert_eq!(find_refusal(&other).as_deref(), Some("workspace_not_accessible"), "{place}");
    let own = HttpClient::new(&api, WHOLE).call("list", json!({})).await;
    assert_eq!(find_refusal(&own), None, "{place}: {own:#}");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    // The address of another wiki, one of no wiki, and one that nobody has are the same.
    let [other, nobody, nowhere] = ["/mcp/other", "/mcp/nobody", "/mcp/no/page"];
    let unknown = api.post(nowhere, &list).await.expect(404);
    for path in [other, nobody] {
        assert_eq!(api.post(path, &list).await.expect(404), unknown, "{place}: {path}");
    }
}

#[tokio::test]
async fn each_token_opens_its_tools_alone_and_undoes_nothing_that_is_not_its_own() {
    let vault = Vault::new().await;
    for TokenCase { scope, limits, whole, pinned } in CASES {
        let (token, is_limited) = (vault.make_token(scope, limits).await, !limits.is_empty());
        let api = vault.open(&token);
        for (path, groups) in [(WHOLE, whole), (PINNED, pinned)] {
            let place = format!("{scope} {} at {path}", limits.join(" "));
            check_tools(&vault, &HttpClient::new(&api, path), groups, &place).await;
        }
        let place = format!("{scope} {}", limits.join(" "));
        check_pin(&vault, &token, limits.contains(&"--workspace"), &place).await;
        check_other_interfaces(&vault, &token, is_limited, &place).await;
    }
    let unlimited =
        vault.open(&vault.make_token("act", &[]).await).with("accept", "application/json, text/event-stream");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let unknown = unlimited.post("/mcp/no/page", &list).await.expect(404);
    assert_eq!(unlimited.post("/mcp/nobody", &list).await.expect(404), unknown);
    // The very same calls of a caller who may.
    let stewards = HttpClient::new(&vault.open(&vault.make_token("act", &["--tools", "steward"]).await), WHOLE);
    for action in &vault.actions {
        let undone = stewards.call("steward_undo", json!({"action": action, "reason": "a test"})).await;
        assert_eq!(find_refusal(&undone), None, "{undone:#}");
    }
    assert_eq!(vault.world.vault.state("rent"), "open");
    assert!(!vault.world.vault.path().join("wiki/allotment/concepts/stopcock.md").exists());
    vault.world.verify_chain().await;
}

#[tokio::test]
async fn limits_that_contradict_each_other_make_no_token() {
    let world = World::new().await;
    world.vault.write("wiki/allotment/KNOWLEDGE.md", "---\ntitle: A wiki\n---\n");
    world.json(&["token", "create", "--name", "x", "--scope", "act", "--workspace", "allotment"]).await;
    for arguments in [
        &["--scope", "read", "--workspace", "allotment", "--tools", "steward"][..],
        &["--scope", "act", "--workspace", "allotment", "--tools", "wiki,steward"],
        &["--scope", "operate", "--tools", "wiki"],
        &["--scope", "operate", "--workspace", "allotment"],
        &["--scope", "operate", "--wiki", "read"],
        &["--scope", "read", "--workspace", "nobody"],
    ] {
        let refused = world.run(&[&["token", "create", "--name", "x"], arguments].concat()).await;
        assert!(refused.code != Some(0) && !refused.all().contains("steward_"), "{arguments:?}: {refused}");
    }
    assert_eq!(world.json(&["token", "list"]).await.as_array().map(Vec::len), Some(1));
}
