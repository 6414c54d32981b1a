//! A real Chromium on the pages of a dashboard, driven through WebDriver.
//!
//! A test run has one chromedriver ([`driver`]), and every test has a session with a folder of its own. If there is no
//! Chromium, [`Browser::open`] prints it and the test passes. [`page`] holds the checks for every page. Waiting is
//! polling, never a fixed time. Screenshots are kept in `target/screenshots/`.

pub mod driver;
pub mod page;

use crate::{run, wait};
use driver::Command;
use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::elements::Element;
use fantoccini::{Client, Locator};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The Tab key, as WebDriver writes it.
pub const TAB: char = '\u{E004}';

/// A browser without cookies and without an open page.
pub struct Browser {
    client: Client,
    /// The name of the test, which names its screenshots.
    name: String,
    process: u32,
    /// `http://127.0.0.1:<port>`.
    base: String,
}

impl Browser {
    /// Opens a browser for this dashboard. Returns `None` and prints it if there is no Chromium.
    pub async fn open(name: &str, base: &str) -> Option<Self> {
        let (client, process) = driver::session().await?;
        let browser = Self { client, name: name.to_owned(), process, base: base.to_owned() };
        browser.prepare().await;
        Some(browser)
    }

    /// Another person at the same dashboard.
    pub async fn another(&self) -> Self {
        let open = Self::open(&format!("{}-other", self.name), &self.base).await;
        open.expect("there was a Chromium a moment ago")
    }

    /// Switches to another dashboard.
    pub fn moves_to(&mut self, base: &str) {
        base.clone_into(&mut self.base);
    }

    /// Enables or disables script, from the next page on.
    pub async fn script(&self, runs: bool) {
        self.cdp("Emulation.setScriptExecutionDisabled", json!({"value": !runs})).await;
    }

    /// Sets the width of the window, and the light or dark colours.
    pub async fn looks(&self, width: u32, dark: bool) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.cdp("Emulation.setDeviceMetricsOverride", size).await;
        let scheme = if dark { "dark" } else { "light" };
        // Clicks fail while a page still scrolls.
        let still = json!({"name": "prefers-reduced-motion", "value": "reduce"});
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}, still]});
        self.cdp("Emulation.setEmulatedMedia", media).await;
    }

    /// Opens a page; a path begins with `/`, an address of another dashboard with `http`.
    pub async fn goto(&self, path: &str) {
        let address = if path.starts_with('/') { format!("{}{path}", self.base) } else { path.to_owned() };
        self.client.goto(&address).await.unwrap_or_else(|e| panic!("{address}: {e}"));
        self.is_drawn().await;
    }

    /// Logs in by a printed link.
    pub async fn log_in(&self, link: &str) {
        self.goto(link).await;
        self.press("button.go").await;
        assert_eq!(self.text("h1").await, "Today");
    }

    /// Clicks something that leads to another page, and waits for that page.
    pub async fn press(&self, css: &str) {
        let element = self.find(css).await;
        self.run("window.stewardLeft = true").await;
        element.click().await.unwrap_or_else(|e| panic!("{css}: {e}"));
        self.arrives(css).await;
    }

    /// Clicks something that gets no response, because the server is gone.
    pub async fn press_into_the_void(&self, css: &str) {
        let element = self.find(css).await;
        // The browser's error page is as good as an error.
        let _ = element.click().await;
    }

    /// Waits until another page has replaced the one that `leaves` was called for.
    pub async fn arrives(&self, why: &str) {
        let come = "return !window.stewardLeft && document.readyState === 'complete'";
        // Between two pages no script can run.
        let asked = async || self.client.execute(come, Vec::new()).await.ok().filter(|it| *it == json!(true));
        wait::until(&format!("a page after {why}"), asked).await;
    }

    /// Posts a resolution with the form key of the open page, as no button does.
    pub async fn answers(&self, kind: &str, action: &str) {
        let script = "const key = document.querySelector('input[name=form_key]');
            const form = document.createElement('form');
            form.method = 'post';
            form.action = `/actions/${arguments[1]}/resolve`;
            for (const [name, value] of [['kind', arguments[0]], ['form_key', key.value], ['back', '/']]) {
                const input = document.createElement('input');
                [input.type, input.name, input.value] = ['hidden', name, value];
                form.append(input);
            }
            document.body.append(form);
            window.stewardLeft = true;
            form.submit();";
        self.client.execute(script, vec![json!(kind), json!(action)]).await.unwrap();
        self.arrives(&format!("{kind} {action}")).await;
    }

    /// The first match.
    pub async fn find(&self, css: &str) -> Element {
        match self.client.find(Locator::Css(css)).await {
            Ok(element) => element,
            Err(e) => panic!("{css}: {e}\n{}", self.client.source().await.unwrap_or_default()),
        }
    }

    /// The number of matches.
    pub async fn count(&self, css: &str) -> usize {
        self.client.find_all(Locator::Css(css)).await.unwrap().len()
    }

    /// The text that a person reads there.
    pub async fn text(&self, css: &str) -> String {
        self.find(css).await.text().await.unwrap()
    }

    /// Types into a field.
    pub async fn types(&self, css: &str, text: &str) {
        self.find(css).await.send_keys(text).await.unwrap();
    }

    /// Presses a key, wherever the focus is.
    pub async fn strikes(&self, key: char) {
        let struck =
            KeyActions::new("keys".into()).then(KeyAction::Down { value: key }).then(KeyAction::Up { value: key });
        self.client.perform_actions(struck).await.unwrap();
    }

    /// Presses a key that leads to another page, and waits for that page.
    pub async fn strikes_and_leaves(&self, key: char) {
        self.run("window.stewardLeft = true").await;
        self.strikes(key).await;
        self.arrives(&format!("the key {key}")).await;
    }

    /// The id of the focused element, or its class or tag.
    pub async fn focus(&self) -> String {
        let script = "const at = document.activeElement; return at.id || at.className || at.localName";
        self.run(script).await.as_str().unwrap_or_default().to_owned()
    }

    /// The path and the query of the page.
    pub async fn place(&self) -> String {
        let address = self.client.current_url().await.unwrap();
        address.query().map_or_else(|| address.path().to_owned(), |query| format!("{}?{query}", address.path()))
    }

    /// Deletes the cookies, which logs the person out.
    pub async fn forgets(&self) {
        self.client.delete_all_cookies().await.unwrap();
    }

    /// The cookies as JSON: name, value and security attributes.
    pub async fn cookies(&self) -> Vec<Value> {
        self.cdp("Network.getAllCookies", json!({})).await["cookies"].as_array().cloned().unwrap_or_default()
    }

    /// Runs a script of the test itself, which the page's policy does not block.
    pub async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|e| panic!("{script}: {e}"))
    }

    async fn cdp(&self, cmd: &str, params: Value) -> Value {
        self.sends("goog/cdp/execute", json!({"cmd": cmd, "params": params})).await
    }

    async fn sends(&self, path: &'static str, body: Value) -> Value {
        let told = format!("{path} {body}");
        self.client.issue_cmd(Command { path, body }).await.unwrap_or_else(|e| panic!("{told}: {e}"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        run::strike(self.process);
        if let Some(pid) = i32::try_from(self.process).ok().and_then(Pid::from_raw) {
            // A browser that has already ended is fine.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
