//! The checks for every page: it ran no foreign script, broke no rule of its policy, does not scroll sideways, and has
//! no accessibility problem that axe-core finds.
//!
//! Each check returns its findings, so that a test can show that it finds something on a bad page.

use super::Browser;
use crate::{run, wait};
use base64::Engine;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Runs in every page before the page's own scripts. Injected text that is executed leaves a mark.
const TRAP: &str = "for (const name of ['alert', 'confirm', 'prompt', 'print']) {
        window[name] = () => { window.stewardTrapped = name; };
    }";
/// Tallest screenshot, in pixels.
const TALLEST: f64 = 6_000.0;

impl Browser {
    /// Installs the check for foreign scripts.
    pub(super) async fn prepare(&self) {
        self.cdp("Page.addScriptToEvaluateOnNewDocument", json!({"source": TRAP})).await;
        // An unfocused window may lose keys.
        self.cdp("Emulation.setFocusEmulationEnabled", json!({"enabled": true})).await;
        self.looks(1_200, false).await;
    }

    /// Waits until the opened page is drawn: before that it has no size and takes no keys.
    pub(super) async fn is_drawn(&self) {
        let script = "return document.readyState === 'complete' && document.documentElement.clientWidth > 0";
        wait::until("the page to be drawn", async || (self.run(script).await == true).then_some(())).await;
    }

    /// The HTTP status of the page.
    pub async fn status(&self) -> u64 {
        let script = "return performance.getEntriesByType('navigation')[0].responseStatus";
        self.run(script).await.as_u64().unwrap_or_default()
    }

    /// The console messages since the last call: failed scripts, broken rules of the policy, missing files. The HTTP
    /// status of the page itself is not included; tests check it themselves.
    pub async fn complaints(&self) -> Vec<String> {
        let logged = self.sends("se/log", json!({"type": "browser"})).await;
        let logged = logged.as_array().cloned().unwrap_or_default();
        let own_status = |entry: &Value| {
            let says = entry["message"].as_str().unwrap_or_default();
            entry["source"] == "network" && says.contains("responded with a status of") && !says.contains("/assets/")
        };
        let bad = logged.iter().filter(|entry| entry["level"] != "INFO" && entry["level"] != "DEBUG");
        bad.filter(|entry| !own_status(entry)).map(Value::to_string).collect()
    }

    /// The problems that no page may have: console messages, a foreign script that ran, a horizontal scroll bar.
    pub async fn faults(&self) -> Vec<String> {
        let mut faults = self.complaints().await;
        let ran = self.run("return [window.__ran, window.stewardTrapped].filter((mark) => mark !== undefined)").await;
        if ran != json!([]) {
            faults.push(format!("a script of others ran: {ran}"));
        }
        let script = "const root = document.documentElement;
            const wide = [...document.querySelectorAll('body *')].filter((it) => {
                const box = it.getBoundingClientRect();
                return box.right > root.clientWidth + 1 && !it.closest('.hidden, .skip');
            });
            return root.scrollWidth > root.clientWidth
                ? [root.scrollWidth, root.clientWidth, ...wide.slice(0, 3).map((it) => it.outerHTML.slice(0, 200))] : null";
        let scrolls = self.run(script).await;
        let turning = "const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), bare = [];
            while (texts.nextNode()) {
                const {data, parentElement} = texts.currentNode;
                if (/[\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]/.test(data) && !parentElement.closest('bdi, option'))
                    bare.push(data.slice(0, 80));
            }
            return bare";
        let turning = self.run(turning).await;
        if turning != json!([]) {
            faults.push(format!("words turn what stands around them: {turning}"));
        }
        if !scrolls.is_null() {
            faults.push(format!("it scrolls sideways: {scrolls}"));
        }
        faults
    }

    /// Asserts that there are no such problems.
    pub async fn is_sound(&self) {
        let faults = self.faults().await;
        assert_eq!(faults, Vec::<String>::new(), "{}", self.place().await);
    }

    /// The problems that axe-core calls serious or critical. Its script is added to the page once.
    pub async fn barriers(&self) -> Vec<String> {
        if self.run("return typeof axe").await != json!("object") {
            let file = run::project().join(".tools/axe-core/axe.min.js");
            let axe = std::fs::read_to_string(&file);
            let axe = axe.unwrap_or_else(|e| panic!("{}: {e}; run `make tools`", file.display()));
            self.run(&format!("{axe}; window.axe = axe")).await;
        }
        let script = "const done = arguments[0];
            axe.run(document, {resultTypes: ['violations']}).then((found) => done(found.violations
                .filter((it) => it.impact === 'serious' || it.impact === 'critical')
                .flatMap((it) => it.nodes.map((node) => `${it.id}: ${node.html} ${node.failureSummary}`))), (e) => done([`${e}`]))";
        let found = self.client.execute_async(script, Vec::new()).await.unwrap();
        found.as_array().unwrap().iter().map(|it| it.as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Saves a screenshot of the whole page as `target/screenshots/<test>-<step>.png`.
    pub async fn shot(&self, step: &str) {
        // A page that was just opened again may not have a size yet.
        let size = &wait::until("the page to have a size", async || {
            let size = self.cdp("Page.getLayoutMetrics", json!({})).await["cssContentSize"].clone();
            (size["width"].as_f64()? >= 1.0 && size["height"].as_f64()? >= 1.0).then_some(size)
        })
        .await;
        let height = size["height"].as_f64().unwrap_or(900.0).min(TALLEST);
        let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1});
        let asked = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let taken = self.cdp("Page.captureScreenshot", asked).await;
        let png = base64::engine::general_purpose::STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
        let folder: PathBuf = run::project().join("target/screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{}-{step}.png", self.name)), png).unwrap();
    }
}
