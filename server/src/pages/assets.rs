//! The style, the scripts and the icon: inside the binary, under names that change with their content.
//!
//! So a browser may keep them for good. They hold nothing of a vault, and are given to anybody who asks by a name of ours.

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// Where each is.
pub(crate) struct Assets {
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) htmx: String,
    pub(crate) sse: String,
    pub(crate) icon: String,
}

struct File {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const STYLE: File = File { name: "steward.css", kind: "text/css", bytes: include_bytes!("../../assets/steward.css") };
const SCRIPT: File = script("steward.js", include_bytes!("../../assets/steward.js"));
// htmx 4.0.1 and its extension, as npm has them (Zero-Clause BSD).
const HTMX: File = script("htmx.min.js", include_bytes!("../../assets/htmx.min.js"));
const SSE: File = script("hx-sse.min.js", include_bytes!("../../assets/hx-sse.min.js"));
const ICON: File = File { name: "icon.svg", kind: "image/svg+xml", bytes: include_bytes!("../../assets/icon.svg") };
const FILES: [&File; 5] = [&STYLE, &SCRIPT, &HTMX, &SSE, &ICON];

const fn script(name: &'static str, bytes: &'static [u8]) -> File {
    File { name, kind: "text/javascript", bytes }
}

impl File {
    fn address(&self) -> String {
        let hash = Sha256::digest(self.bytes);
        format!("/assets/{}?{:02x}{:02x}{:02x}{:02x}", self.name, hash[0], hash[1], hash[2], hash[3])
    }
}

pub(crate) fn all() -> &'static Assets {
    static ALL: LazyLock<Assets> = LazyLock::new(|| Assets {
        style: STYLE.address(),
        script: SCRIPT.address(),
        htmx: HTMX.address(),
        sse: SSE.address(),
        icon: ICON.address(),
    });
    &ALL
}

pub(crate) async fn asset(Path(name): Path<String>) -> Response {
    let Some(file) = FILES.into_iter().find(|file| file.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(file.kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (headers, file.bytes).into_response()
}
