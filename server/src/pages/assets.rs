//! The style sheet, the script and the icon. They are part of the binary.
//!
//! Their URLs change with their content, so a browser may cache them for ever. They hold nothing of a vault and need no
//! login. Only the names listed here are served.

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The URL of each asset.
pub(crate) struct AssetUrls {
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) icon: String,
}

struct AssetFile {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const STYLE: AssetFile =
    AssetFile { name: "steward.css", kind: "text/css", bytes: include_bytes!("../../assets/steward.css") };
const SCRIPT: AssetFile =
    AssetFile { name: "steward.js", kind: "text/javascript", bytes: include_bytes!("../../assets/steward.js") };
const ICON: AssetFile =
    AssetFile { name: "icon.svg", kind: "image/svg+xml", bytes: include_bytes!("../../assets/icon.svg") };
const FILES: [&AssetFile; 3] = [&STYLE, &SCRIPT, &ICON];

impl AssetFile {
    fn versioned_url(&self) -> String {
        let hash = Sha256::digest(self.bytes);
        format!("/assets/{}?{:02x}{:02x}{:02x}{:02x}", self.name, hash[0], hash[1], hash[2], hash[3])
    }
}

pub(crate) fn asset_urls() -> &'static AssetUrls {
    static ALL: LazyLock<AssetUrls> = LazyLock::new(|| AssetUrls {
        style: STYLE.versioned_url(),
        script: SCRIPT.versioned_url(),
        icon: ICON.versioned_url(),
    });
    &ALL
}

pub(crate) async fn serve_asset(Path(name): Path<String>) -> Response {
    let Some(file) = FILES.into_iter().find(|file| file.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(file.kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (headers, file.bytes).into_response()
}
