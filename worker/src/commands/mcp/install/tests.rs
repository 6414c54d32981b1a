//! Tests of what is printed for each client: it is read back as the client would.

use super::*;
use serde_json::Value;

const FOLDER: &str = "/srv/My \"vault\"";

fn rights(workspace: Option<&str>, allow: AllowArg) -> McpRightsArgs {
    McpRightsArgs { workspace: workspace.map(str::to_owned), tools: Vec::new(), allow }
}

fn process(rights: &McpRightsArgs) -> Connection {
    Connection::Process { command: "/opt/my tools/steward".to_owned(), arguments: list_arguments(FOLDER, rights) }
}

fn http() -> Connection {
    Connection::Http { url: "http://127.0.0.1:8420/mcp".to_owned() }
}

fn show(client: McpClientArg, connection: &Connection, rights: &McpRightsArgs) -> String {
    describe_installation(client, connection, rights).text
}

#[test]
fn each_client_starts_the_same_command_whatever_its_path_holds() {
    let rights = rights(None, AllowArg::Write);
    let expected = ["/opt/my tools/steward", "mcp", "serve", "--vault", FOLDER];
    let connection = process(&rights);
    let shell = show(McpClientArg::ClaudeCode, &connection, &rights);
    let words = shlex::split(&shell).unwrap();
    assert_eq!(words[..5], ["claude", "mcp", "add", "steward", "--"]);
    assert_eq!(words[5..], expected);
    for (client, list) in [
        (McpClientArg::ClaudeDesktop, "mcpServers"),
        (McpClientArg::Cursor, "mcpServers"),
        (McpClientArg::Vscode, "servers"),
    ] {
        let value: Value = serde_json::from_str(&show(client, &connection, &rights)).unwrap();
        let server = &value[list]["steward"];
        assert_eq!((&server["command"], &server["args"]), (&json!(expected[0]), &json!(expected[1..])), "{client:?}");
    }
    let value: toml::Table = show(McpClientArg::Codex, &connection, &rights).parse().unwrap();
    let server = &value["mcp_servers"]["steward"];
    assert_eq!(server["command"].as_str(), Some(expected[0]));
    assert_eq!(server["args"], toml::Value::from(expected[1..].to_vec()));
}

#[test]
fn what_is_allowed_stands_in_the_command_and_in_the_token() {
    let narrow = McpRightsArgs { tools: vec![ToolsetArg::Wiki], ..rights(Some("allotment"), AllowArg::Read) };
    let words = list_arguments("/v", &narrow);
    assert_eq!(words[4..], ["--workspace", "allotment", "--tools", "wiki", "--allow", "read"]);
    let shown = describe_installation(McpClientArg::Cursor, &http(), &narrow);
    let make = "steward token create --scope read --wiki read --workspace allotment --tools wiki --name cursor";
    assert!(shown.notes[0].ends_with(make), "{:?}", shown.notes);
    assert!(shown.text.contains("\"allotment\""), "the server has the name of its wiki");
    let act = describe_installation(McpClientArg::Codex, &http(), &rights(None, AllowArg::Act));
    assert!(act.notes[0].contains("--scope act"));
}

#[test]
fn over_http_each_client_has_the_address_and_takes_the_token_from_elsewhere() {
    let rights = rights(None, AllowArg::Write);
    for client in [McpClientArg::ClaudeCode, McpClientArg::Vscode, McpClientArg::Cursor, McpClientArg::Codex] {
        let text = show(client, &http(), &rights);
        assert!(text.contains("http://127.0.0.1:8420/mcp") && !text.contains("steward_"), "{text}");
        let source = if client == McpClientArg::Vscode { "${input:steward}" } else { TOKEN_VARIABLE };
        assert!(text.contains(source), "{text}");
    }
}
