//! The style sheet, the script, the icons, and what makes the dashboard a web app. They are part of the binary.
//!
//! Their URLs change with their content, so a browser may cache them for ever. They hold nothing of a vault and need no
//! login. Only the names listed here are served.

use axum::extract::Path;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The URL of each asset.
pub(crate) struct AssetUrls {
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) icon: String,
    pub(crate) picture: String,
    pub(crate) manifest: String,
    pub(crate) worker: String,
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
const PICTURE: AssetFile =
    AssetFile { name: "icon.png", kind: "image/png", bytes: include_bytes!("../../assets/icon.png") };
const MANIFEST: AssetFile = AssetFile {
    name: "steward.webmanifest",
    kind: "application/manifest+json",
    bytes: include_bytes!("../../assets/steward.webmanifest"),
};
const WORKER: AssetFile = AssetFile {
    name: "service-worker.js",
    kind: "text/javascript",
    bytes: include_bytes!("../../assets/service-worker.js"),
};
/// What the service worker shows while Steward cannot be reached.
const OFFLINE: AssetFile = AssetFile {
    name: "offline.html",
    kind: "text/html; charset=utf-8",
    bytes: include_bytes!("../../assets/offline.html"),
};
const FILES: [&AssetFile; 7] = [&STYLE, &SCRIPT, &ICON, &PICTURE, &MANIFEST, &WORKER, &OFFLINE];

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
        picture: PICTURE.versioned_url(),
        manifest: MANIFEST.versioned_url(),
        worker: WORKER.versioned_url(),
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
        // The worker answers for every page, although it lies below `/assets`.
        (HeaderName::from_static("service-worker-allowed"), HeaderValue::from_static("/")),
    ];
    (headers, file.bytes).into_response()
}
