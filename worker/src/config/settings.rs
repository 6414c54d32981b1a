//! Every key of the configuration: its default, its meaning, and where it may be set.
//!
//! `steward.toml` names a setting by its key, and the environment by `STEWARD_` and the key in capitals. A dot separates
//! a table from its key; in a variable it is an underscore. `docs/reference/configuration.md` is written from this list.

/// One key of the configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) key: &'static str,
    /// Empty if there is none.
    #[cfg_attr(not(test), expect(dead_code, reason = "the reference is written by a test"))]
    pub(super) default: &'static str,
    /// What it does, in Markdown, for the reference.
    #[cfg_attr(not(test), expect(dead_code, reason = "the reference is written by a test"))]
    pub(super) meaning: &'static str,
    /// Its value is text even if it looks like a number.
    pub(super) is_text: bool,
    /// It limits what a steward may do. An empty variable is an invalid value of it and not an unset one, because the
    /// file may allow more.
    pub(super) is_limit: bool,
    /// A file inside the vault must not set it: it says how far a steward may go, which programs it runs, which streams
    /// it reads, or which servers it uses or listens as.
    pub(super) is_trusted: bool,
}

impl Setting {
    const fn new(key: &'static str, default: &'static str, meaning: &'static str) -> Self {
        Self { key, default, meaning, is_text: false, is_limit: false, is_trusted: false }
    }

    const fn text(self) -> Self {
        Self { is_text: true, ..self }
    }

    const fn limit(self) -> Self {
        Self { is_limit: true, is_trusted: true, ..self }
    }

    const fn trusted(self) -> Self {
        Self { is_trusted: true, ..self }
    }

    /// Finds the setting that a variable without `STEWARD_` names, in lower case.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.key.replace('.', "_") == name)
    }

    /// The name of its variable.
    #[cfg(test)]
    fn variable(&self) -> String {
        format!("STEWARD_{}", self.key.replace('.', "_").to_ascii_uppercase())
    }
}

const MODES: &str = "`shadow`, `live_high_confidence_only`, `live`; nothing exceeds it";
const PORTS: &str = "for the server that `up` starts. A configured port that is taken is an error; a default port moves \
                     on to the next free one. 0 means any free port; one number for both ports is refused";

/// Every setting, in the order of the reference.
pub(super) const SETTINGS: &[Setting] = &[
    Setting::new("vault", "", "the vault's folder").text(),
    Setting::new(
        "state_dir",
        "`<vault>/.steward`; with a mapping, below `$XDG_STATE_HOME/steward`",
        "databases of index, cursors and rate guard",
    )
    .text()
    .trusted(),
    Setting::new("backup_dir", "", "the folder for backups, outside the vault: see [operations](../operations.md#backup)")
        .text()
        .trusted(),
    Setting::new("backup_every", "`15min`", "how often the process that serves the vault makes a backup, `10s` to `1day`")
        .text()
        .trusted(),
    Setting::new("live_mode", "`shadow`", MODES).text().limit(),
    Setting::new("confidence_threshold", "0.6", "minimum confidence for `live`, 0 to 1").limit(),
    Setting::new("high_confidence_threshold", "0.85", "minimum confidence for `live_high_confidence_only`").limit(),
    Setting::new("default_ceiling", "`act`", "for sources without a ceiling of their own").text().limit(),
    Setting::new("state_change_ceiling", "`act`", "for the class `state_change`").text().limit(),
    Setting::new("context_edit_ceiling", "`act`", "for the class `context_edit`").text().limit(),
    Setting::new("parent_matter_ceiling", "`act`", "for the class `parent_matter`").text().limit(),
    Setting::new("related_ceiling", "`act`", "for the class `related`").text().limit(),
    Setting::new(
        "live_per_source_day",
        "20",
        "live changes in 24 hours that one source may cause; further ones wait for `steward confirm`",
    )
    .limit(),
    Setting::new(
        "reversal_budget",
        "0.05",
        "share of live changes that may be undone before a source or class is demoted, 0 to 1",
    )
    .limit(),
    Setting::new(
        "wiki_mode",
        "`live`",
        "what happens to a run of a [wiki](../wiki.md) that a person asked for: `live` commits it, `pending` lets it wait for \
         `steward wiki runs approve`, `shadow` only shows what it would change",
    )
    .text()
    .limit(),
    Setting::new(
        "wiki_allow_unverified",
        "`false`",
        "whether pages of a wiki that a model wrote and no second model checked are committed without a person",
    )
    .limit(),
    Setting::new(
        "wiki_clerk",
        "that of the stewards",
        "who writes the pages of wikis: `rules`, `openai`, `anthropic` or `ollama`; see [wiki](../wiki.md)",
    )
    .text()
    .trusted(),
    Setting::new("wiki_clerk_base_url", "", "the server of this clerk, as `clerk_base_url`").text().trusted(),
    Setting::new("wiki_clerk_model", "", "the model of this clerk").text().trusted(),
    Setting::new(
        "wiki_clerk_key_file",
        "",
        "the file that holds the key of this clerk, instead of `STEWARD_WIKI_CLERK_API_KEY`",
    )
    .text()
    .trusted(),
    Setting::new(
        "wiki_verifier",
        "that of the stewards",
        "who checks what a model wrote for a wiki: `openai`, `anthropic` or `ollama`; `rules` for nobody",
    )
    .text()
    .trusted(),
    Setting::new("wiki_verifier_base_url", "", "the server of the verifier, as `clerk_base_url`").text().trusted(),
    Setting::new("wiki_verifier_model", "", "the model of the verifier").text().trusted(),
    Setting::new(
        "wiki_verifier_key_file",
        "",
        "the file that holds the key of the verifier, instead of `STEWARD_WIKI_VERIFIER_API_KEY`",
    )
    .text()
    .trusted(),
    Setting::new(
        "wiki_price_input",
        "",
        "the price of a million tokens that are sent to the writer of wikis, for `steward wiki ingest --dry-run`",
    )
    .trusted(),
    Setting::new("wiki_price_output", "", "the price of a million tokens that it answers").trusted(),
    Setting::new("clerk", "`rules`", "`rules`, `openai`, `anthropic` or `ollama`: see [clerks](../clerks.md)")
        .text()
        .trusted(),
    Setting::new("clerk_base_url", "", "the clerk's server: see [clerks](../clerks.md)").text().trusted(),
    Setting::new("clerk_model", "", "the clerk's model: see [clerks](../clerks.md)").text().trusted(),
    Setting::new("clerk_key_file", "", "the file that holds the clerk's key, instead of `STEWARD_CLERK_API_KEY`")
        .text()
        .trusted(),
    Setting::new(
        "clerk_price_input",
        "",
        "the price of a million tokens that are sent to the clerk, for `steward clerk eval`",
    )
    .trusted(),
    Setting::new("clerk_price_output", "", "the price of a million tokens that it answers").trusted(),
    Setting::new("clerk_timeout_seconds", "60", "limit of one call, 1 to 80; a tick waits no longer"),
    Setting::new("clerk_max_response_bytes", "262144", "a longer answer is refused"),
    Setting::new(
        "clerk_calls_per_second",
        "5",
        "clerk calls per second of one process, 1 to 1000; further calls wait for up to 10 s; a call that still has no \
         slot is not sent and not counted",
    ),
    Setting::new("task_queue", "`steward`", "clerk calls use `<queue>-clerk`").text(),
    Setting::new(
        "tenant",
        "",
        "the tenant of this vault in a fleet: lower-case letters, digits and hyphens, at most 31; wants `fleet_db` too",
    )
    .text()
    .trusted(),
    Setting::new("fleet_db", "", "the fleet's database, `postgres://<role>@<host>/<database>`; the password may be in a file that `PGPASSFILE` names")
        .text()
        .trusted(),
    Setting::new("cadence.matter_seconds", "1800", "the interval of a matter's schedule"),
    Setting::new("cadence.matter_max_seconds", "14400", "the longest interval of a matter without signals"),
    Setting::new("cadence.task_high_seconds", "1800", "the interval of a task of `surface_class: high`"),
    Setting::new("cadence.task_soon_seconds", "3600", "the interval of a task that is overdue or due within 24 hours"),
    Setting::new("cadence.task_seconds", "14400", "the interval of any other task"),
    Setting::new("cadence.task_max_seconds", "86400", "the longest interval of a task without signals"),
    Setting::new("cadence.looks_per_step", "3", "checks in a row without signals after which an interval doubles"),
    Setting::new("caps.per_minute", "60", "clerk calls in any 60 seconds").trusted(),
    Setting::new("caps.per_hour", "600", "clerk calls in any 60 minutes").trusted(),
    Setting::new("caps.per_day", "6000", "clerk calls in any 24 hours").trusted(),
    Setting::new("caps.per_task_day", "6", "clerk calls about one task in any 24 hours").trusted(),
    Setting::new("caps.per_matter_day", "50", "clerk calls about one matter in any 24 hours").trusted(),
    Setting::new(
        "caps.extraction_percent",
        "50",
        "percent of the first three caps for reading events; of hour and day, half of it for all unknown senders",
    )
    .trusted(),
    Setting::new(
        "caps.stream_percent",
        "40",
        "percent of hour and day for the events of one stream; half of it for its unknown senders",
    )
    .trusted(),
    Setting::new("caps.sender_percent", "10", "percent of hour and day for the events of one sender").trusted(),
    Setting::new("caps.wiki_percent", "30", "percent of hour and day for the calls of all wikis").trusted(),
    Setting::new("caps.wiki_tokens_per_day", "3000000", "tokens of the calls about one wiki in any 24 hours").trusted(),
    Setting::new("scan_seconds", "60", "how often files are compared by size and time"),
    Setting::new("content_scan_seconds", "3600", "how often files are compared by content"),
    Setting::new(
        "schedule_check_seconds",
        "300",
        "how often the schedules are compared with the Temporal server; missing ones are registered again",
    ),
    Setting::new("recycle_after_activities", "50000", "activities after which the SDK's worker is rebuilt"),
    Setting::new("workflow_task_timeout_seconds", "10", "seconds until another worker takes over a workflow task"),
    Setting::new("temporal_cli", "the one found", "the Temporal CLI that `up` runs").text().trusted(),
    Setting::new("temporal_port", "7233", PORTS),
    Setting::new("temporal_ui_port", "8233", "the same for that server's web page"),
    Setting::new("operator", "`$USER`", "the name under which your resolutions are recorded").text(),
    Setting {
        is_limit: true,
        ..Setting::new(
            "stamp_files",
            "`false`",
            "`true` also writes `last_steward_check_at` and `next_check_after` into each task that was checked, \
             except in shadow and while stopped; your own later `next_check_after` stays",
        )
    },
    Setting::new("keep_events_days", "7", "days that an extracted event stays in `stream/`, at least 1"),
    Setting::new("streams", "", "a table for each stream: see [streams](../streams.md)").trusted(),
    Setting::new(
        "wiki",
        "",
        "a table for each [wiki](../wiki.md): `auto_ingest` (`off`, `propose` or `land`) for sources that nobody asked about, \
         `lint_fix` for the nightly lint, and `streams` and `clones`, whose events and commits [assistants](../mcp.md) see",
    )
    .trusted(),
    Setting::new("tracker.kind", "off", "`plane`: see [tracker](../tracker.md)").text().trusted(),
    Setting::new("tracker.base_url", "", "the tracker's address").text().trusted(),
    Setting::new("tracker.workspace", "", "the tracker's workspace").text().trusted(),
    Setting::new("tracker.project", "", "the tracker's project").text().trusted(),
    Setting::new("tracker.key_env", "", "the variable that holds the tracker's key").text().trusted(),
    Setting::new("tracker.key_file", "", "the file that holds the tracker's key").text().trusted(),
    Setting::new(
        "webhook_listen",
        "`127.0.0.1:8320`",
        "address for webhooks; put a TLS proxy in front of it before you expose it",
    )
    .text()
    .trusted(),
    Setting::new(
        "listen",
        "`127.0.0.1:8420`",
        "address of the dashboard and the API; if it is set and taken, the start fails",
    )
    .text()
    .trusted(),
    Setting::new(
        "hosts",
        "",
        "names under which the dashboard and the API are reached, besides this machine's own, as in \
         `steward.example,steward.example:8443`; the first is used in printed links (without a port it takes that of \
         `STEWARD_LISTEN`, or none behind a proxy)",
    )
    .text()
    .trusted(),
    Setting::new(
        "mcp",
        "`on`",
        "`off` closes the addresses `/mcp` at which [assistants](../mcp.md) read wikis with a token; `steward mcp serve` stays",
    )
    .text()
    .trusted(),
    Setting::new("tls_cert", "", "a PEM file; with it and the key the connection is encrypted").text().trusted(),
    Setting::new("tls_key", "", "the PEM file of the certificate's key").text().trusted(),
    Setting::new("trusted_proxies", "", "addresses and networks of proxies whose `X-Forwarded-…` headers are believed")
        .text()
        .trusted(),
    Setting::new(
        "server",
        "",
        "a remote server for resolutions, `https://` (`http://` only on this machine). Only the file that \
         `STEWARD_CONFIG` names may set it. `SSL_CERT_FILE` names a certificate or authority to trust instead of the \
         machine's",
    )
    .text()
    .trusted(),
    Setting::new("temporal_ui", "that of `up`", "the address of the Temporal UI of a configured server, for links")
        .text()
        .trusted(),
];

#[cfg(test)]
mod tests;
