//! How resources are named: `wiki://<workspace>/<page>`, `raw://<workspace>/<document>`, `lint://<workspace>` and `guide://<workspace>`; of the stewards
//! `steward://today`, `steward://matter/<name>` and `steward://action/<id>`.
//!
//! A name is percent-encoded byte by byte, all but letters, digits and `-._~`. What is read back must be a plain address: no query, no
//! fragment, no slash that was encoded. Whether a path leads out of the wiki is decided where all paths are ([`super::super::paths`]).

use crate::mcp::paths::to_file;
use std::fmt::{self, Display};

/// The longest address, in bytes: a path of 512 bytes and a name, all of it encoded.
const MAX_URI: usize = 2_048;
const LINT: &str = "lint";
const GUIDE: &str = "guide";
const STEWARD: &str = "steward";

/// What an address means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ResourceUri {
    /// A file by its path, such as `wiki/concepts/x.md`.
    File { workspace: String, path: String },
    /// What a check of the wiki finds now.
    Lint { workspace: String },
    /// What a model reads first.
    Guide { workspace: String },
    /// What the stewards did in the last 24 hours.
    Today,
    /// A matter by the name of its note in `matter/`, or by its whole path.
    Matter { name: String },
    /// An action by its id.
    Action { id: String },
}

impl ResourceUri {
    /// Reads an address; `None` if it is none of ours.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        let (scheme, rest) = uri.split_once("://").filter(|_| uri.len() <= MAX_URI)?;
        match scheme {
            LINT => Some(Self::Lint { workspace: decode_name(rest)? }),
            GUIDE => Some(Self::Guide { workspace: decode_name(rest)? }),
            STEWARD => match rest.split_once('/') {
                None if rest == "today" => Some(Self::Today),
                Some(("matter", name)) => {
                    let parts: Option<Vec<String>> = name.split('/').map(decode_name).collect();
                    let name = parts?.join("/");
                    // Only a whole path has several parts.
                    (!name.contains('/') || name.ends_with(".md")).then_some(Self::Matter { name })
                }
                Some(("action", id)) => Some(Self::Action { id: decode_name(id)? }),
                _ => None,
            },
            "wiki" | "raw" => {
                let (workspace, path) = rest.split_once('/')?;
                let parts: Option<Vec<String>> = path.split('/').map(decode_name).collect();
                let path = format!("{scheme}/{}", parts?.join("/"));
                to_file(&path).ok()?;
                Some(Self::File { workspace: decode_name(workspace)?, path })
            }
            _ => None,
        }
    }

    /// The wiki that it belongs to; `None` for what the stewards of the vault say.
    pub(crate) fn workspace(&self) -> Option<&str> {
        match self {
            Self::File { workspace, .. } | Self::Lint { workspace } | Self::Guide { workspace } => Some(workspace),
            Self::Today | Self::Matter { .. } | Self::Action { .. } => None,
        }
    }
}

impl Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { workspace, path } => {
                let workspace = encode_name(workspace);
                let (scheme, rest) = path.split_once('/').unwrap_or((path, ""));
                let parts: Vec<String> = rest.split('/').map(encode_name).collect();
                write!(f, "{scheme}://{workspace}/{}", parts.join("/"))
            }
            Self::Lint { workspace } => write!(f, "{LINT}://{}", encode_name(workspace)),
            Self::Guide { workspace } => write!(f, "{GUIDE}://{}", encode_name(workspace)),
            Self::Today => write!(f, "{STEWARD}://today"),
            Self::Matter { name } => {
                let parts: Vec<String> = name.split('/').map(encode_name).collect();
                write!(f, "{STEWARD}://matter/{}", parts.join("/"))
            }
            Self::Action { id } => write!(f, "{STEWARD}://action/{}", encode_name(id)),
        }
    }
}

/// The folder of matters in a vault without a mapping.
const MATTERS: &str = "matter/";

/// The name of a matter in an address, by the path of its note.
pub(crate) fn name_matter(path: &str) -> &str {
    let name = path.strip_prefix(MATTERS).and_then(|rest| rest.strip_suffix(".md"));
    name.filter(|name| !name.contains('/')).unwrap_or(path)
}

/// The path of the note of a matter, by its name in an address.
pub(crate) fn find_matter_path(name: &str) -> String {
    if name.ends_with(".md") { name.to_owned() } else { format!("{MATTERS}{name}.md") }
}

/// Encodes one part of a path.
fn encode_name(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(encode).collect()
}

/// Decodes one part of a path; `None` if it is empty, or not as the standard for addresses says.
fn decode_name(part: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), part.bytes());
    while let Some(byte) = rest.next() {
        let decoded = match byte {
            b'%' => {
                let (high, low) = (hex_digit(rest.next()?)?, hex_digit(rest.next()?)?);
                Some(high * 16 + low).filter(|byte| *byte != b'/')?
            }
            _ if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte) => byte,
            _ => return None,
        };
        bytes.push(decoded);
    }
    String::from_utf8(bytes).ok().filter(|name| !name.is_empty())
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_as_it_was() {
        for (workspace, path, uri) in [
            ("acme", "wiki/concepts/token.md", "wiki://acme/concepts/token.md"),
            ("my wiki", "raw/2026/Jörg #1?.pdf", "raw://my%20wiki/2026/J%C3%B6rg%20%231%3F.pdf"),
            ("acme", "wiki/index.md", "wiki://acme/index.md"),
            ("acme", "wiki/100%25.md", "wiki://acme/100%2525.md"),
            ("acme", "wiki/%2e%2e.md", "wiki://acme/%252e%252e.md"),
        ] {
            let named = ResourceUri::File { workspace: workspace.to_owned(), path: path.to_owned() };
            assert_eq!(named.to_string(), uri);
            assert_eq!(ResourceUri::parse(uri), Some(named));
        }
        for workspace in ["a b", "é"] {
            let named = ResourceUri::Lint { workspace: workspace.to_owned() };
            assert_eq!(ResourceUri::parse(&named.to_string()), Some(named));
        }
        for (named, uri) in [
            (ResourceUri::Guide { workspace: "a b".to_owned() }, "guide://a%20b"),
            (ResourceUri::Today, "steward://today"),
            (ResourceUri::Matter { name: "my house".to_owned() }, "steward://matter/my%20house"),
            (ResourceUri::Matter { name: "Home/My house.md".to_owned() }, "steward://matter/Home/My%20house.md"),
            (ResourceUri::Action { id: "3f9a1c22b07d4e51".to_owned() }, "steward://action/3f9a1c22b07d4e51"),
        ] {
            assert_eq!((named.to_string().as_str(), ResourceUri::parse(uri)), (uri, Some(named)));
        }
        let lenient = ResourceUri::parse("wiki://acme/a(b)%2dc.md").unwrap();
        assert_eq!(lenient, ResourceUri::File { workspace: "acme".to_owned(), path: "wiki/a(b)-c.md".to_owned() });
    }

    #[test]
    fn nothing_else_is_an_address() {
        for uri in [
            "",
            "wiki:",
            "wiki://",
            "wiki://acme",
            "wiki://acme/",
            "wiki:///x.md",
            "WIKI://acme/x.md",
            "file:///etc/passwd",
            "test://nonexistent",
            "wiki://acme/../x.md",
            "wiki://acme/%2e%2e/x.md",
            "wiki://acme/a%2F..%2Fx.md",
            "wiki://acme/a%2fx.md",
            "wiki://acme/a%5Cx.md",
            "wiki://acme//x.md",
            "wiki://acme/x.md?raw",
            "wiki://acme/x.md#top",
            "wiki://acme/x y.md",
            "wiki://acme/Jörg.md",
            "wiki://acme/%ff.md",
            "wiki://acme/%4.md",
            "wiki://acme/%zz.md",
            "wiki://acme/%+1.md",
            "wiki://acme/%00.md",
            "wiki://acme/a%0Ab.md",
            "wiki://acme/a%E2%80%AEb.md",
            "wiki://acme/.trash/x.md",
            "wiki://acme/sources/x.md",
            "raw://acme/key.enc",
            "raw://acme/.git/config",
            "lint://",
            "lint://acme/x",
            "lint://a%2Fb",
            "guide://",
            "guide://acme/x",
            "steward://",
            "steward://yesterday",
            "steward://today/x",
            "steward://matter/",
            "steward://matter/a/b",
            "steward://matter//a.md",
            "steward://matter/a%2Fb",
            "steward://action",
        ] {
            assert_eq!(ResourceUri::parse(uri), None, "{uri}");
        }
        assert_eq!(ResourceUri::parse(&format!("wiki://acme/{}.md", "x".repeat(3_000))), None);
    }
}
