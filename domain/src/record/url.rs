//! Paths as addresses of the dashboard hold them.
//!
//! Every byte but those of plain names is encoded, so that a foreign name cannot end a path or begin a query. The dashboard and the
//! details of runs in the Temporal UI use the same encoding.

/// Encodes a path for a URL. Slashes stay.
#[must_use]
pub fn encode_path(path: &str) -> String {
    path.split('/').map(encode_path_segment).collect::<Vec<_>>().join("/")
}

/// Encodes any text as one segment of a URL's path.
#[must_use]
pub fn encode_path_segment(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}
