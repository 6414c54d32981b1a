//! The arguments of `steward wiki`.
//!
//! They are declared here and explained in `docs/wiki.md`.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use steward_domain::wiki::metrics::WikiMetric;
use steward_domain::wiki::standard::is_slug;

fn parse_name(text: &str) -> Result<String, String> {
    if is_slug(text) {
        Ok(text.to_owned())
    } else {
        Err("use 2 to 96 lower-case letters, digits and hyphens".to_owned())
    }
}

fn parse_metric(text: &str) -> Result<WikiMetric, String> {
    text.parse().map_err(|_| "it is fidelity, consistency, coverage or retroactive".to_owned())
}

/// The options of `steward wiki`.
#[derive(Debug, Args)]
pub(crate) struct WikiArgs {
    #[command(subcommand)]
    pub(crate) command: WikiCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WikiCommand {
    /// Make a new wiki in the vault
    #[command(after_help = "Example:\n  steward wiki init allotment\n\nExits with 3 when the wiki exists.")]
    Init {
        /// The name: lower-case letters, digits and hyphens
        #[arg(value_parser = parse_name)]
        name: String,
    },
    /// Add documents to a wiki, and make pages of them
    #[command(
        after_help = "Examples:\n  steward wiki ingest allotment ~/letters/lease.md\n  steward wiki ingest allotment pending\n  \
        steward wiki ingest allotment --dry-run ~/letters\n  \
        steward wiki ingest allotment ~/letters/2027-01-10-lease.md --supersedes 2024-03-02-lease\n\n\
        Markdown, plain text, HTML and PDF are read. Without a model the pages are extracts by fixed rules: every sentence stands in its \
        source. A file from elsewhere is copied into sources/. Exits with 3 when a document was refused."
    )]
    Ingest {
        /// The name of the wiki
        wiki: String,
        /// Files, folders and ids of sources; `pending` for all sources that had no run
        #[arg(required = true, value_name = "DOCUMENT")]
        documents: Vec<String>,
        /// Let the runs wait for `steward wiki runs approve`
        #[arg(long)]
        draft: bool,
        /// Show what it would take, and do nothing
        #[arg(long)]
        dry_run: bool,
        /// Let no model check the pages; needs STEWARD_WIKI_ALLOW_UNVERIFIED
        #[arg(long)]
        no_verify: bool,
        /// A limit of this run: calls, input_tokens, output_tokens or parts
        #[arg(long, value_name = "LIMIT=NUMBER")]
        budget: Vec<String>,
        /// The document replaces this source: what rests on the old one is shown, and a model marks what is different now
        #[arg(long, value_name = "SOURCE")]
        supersedes: Option<String>,
    },
    /// Measure how many claims their quotes carry, and how well the verifier finds faults
    #[command(
        subcommand,
        after_help = "Examples:\n  steward wiki eval run allotment\n  steward wiki eval run allotment --planted"
    )]
    Eval(EvalCommand),
    /// Show what was changed in the wikis and what waits, and take it back
    #[command(subcommand, after_help = "Example:\n  steward wiki runs list")]
    Runs(RunsCommand),
    /// Check wikis, manifests and pages against the published standard AIP-10
    #[command(
        after_help = "Examples:\n  steward wiki validate wiki/allotment\n  steward wiki validate --json entities/plot-12.md\n\n\
        Needs no vault, and changes nothing. With --accept it needs a wiki of the vault and a terminal. Exits with 3 when a view \
        applies to nobody or nothing was accepted, with 4 when it found errors."
    )]
    Validate {
        /// Folders with a KNOWLEDGE.md, names of wikis of the vault, and files
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Put the files in force that say how a wiki of the vault is written, after you have seen what changed
        #[arg(long)]
        accept: bool,
    },
    /// Show what a manifest amounts to with all those that it extends, and where each value comes from
    #[command(after_help = "Example:\n  steward wiki resolve operators/analyst/KNOWLEDGE.md\n\n\
        Needs no vault, and changes nothing. Exits with 3 when the view applies to nobody, with 4 when it found errors.")]
    Resolve {
        /// A KNOWLEDGE.md
        manifest: PathBuf,
        /// Read no manifest outside of this folder; otherwise outside of the vault around it
        #[arg(long, value_name = "FOLDER")]
        root: Option<PathBuf>,
    },
    /// Find broken links, orphans, stale pages, changed sources and more; with --deep a model reads pages, too
    #[command(
        after_help = "Examples:\n  steward wiki lint allotment\n  steward wiki lint allotment --fix\n  steward wiki lint allotment --deep\n  steward wiki lint allotment --confirm plot-12\n  steward wiki lint ~/notes/wiki --json\n\n\
        A folder needs no vault, and nothing in it is changed. The log of a wiki of the vault gets an entry if the wiki changed since its last check. Exits with 3 when a view applies to nobody, with 4 when it found errors."
    )]
    Lint {
        /// The name of a wiki of the vault, or a folder with a KNOWLEDGE.md
        wiki: String,
        /// First correct links that only one page can be meant by, add see-also lines, bring older frontmatter into today's form, on at
        /// most 15 pages, and render the index and the overview anew; for a wiki of the vault
        #[arg(long)]
        fix: bool,
        /// Have the verifier read the 30 pages that were not read for longest, and say what contradicts, is outdated, or has no page or link
        #[arg(long)]
        deep: bool,
        /// Note that you read this page and found it still right, so that it is not stale; for a wiki of the vault
        #[arg(long, value_name = "PAGE")]
        confirm: Option<String>,
    },
    /// Have the verifier read pages, and keep what it finds wrong or missing as a page of the wiki
    #[command(
        after_help = "Examples:\n  steward wiki review allotment\n  steward wiki review allotment --pages 10\n\n\
        It finds contradictions, outdated claims, missing pages and links, and gaps, in the pages that were not read for longest. Exits with 3 when there is no verifier."
    )]
    Review {
        /// The name of the wiki
        wiki: String,
        /// How many pages are read at most: 30
        #[arg(long, value_parser = clap::value_parser!(u32).range(2..=200))]
        pages: Option<u32>,
    },
    /// Settle a dispute: one side stays, the others go
    #[command(after_help = "Example:\n  steward wiki settle allotment plot-12#c6107d23f --keep c4dc23754\n\n\
        `steward wiki why` shows the claims of a page. `steward wiki runs revert` takes it back. Exits with 3 when it is refused.")]
    Settle {
        /// The name of the wiki
        wiki: String,
        /// A claim that stands in the dispute, such as `plot-12#c6107d23f`
        claim: String,
        /// The claim of the dispute that stays, such as `c4dc23754`
        #[arg(long, value_name = "CLAIM")]
        keep: String,
    },
    /// Find pages by their words
    #[command(
        after_help = "Examples:\n  steward wiki search allotment stopcock winter\n  steward wiki search ./notes/wiki lease --kind entity\n  steward wiki search allotment lease --log --after 2026-11-01\n\n\
        A folder needs no vault. Nothing is changed."
    )]
    Search {
        /// The name of a wiki of the vault, or a folder with a KNOWLEDGE.md
        wiki: String,
        #[arg(required = true)]
        words: Vec<String>,
        /// Pages of this kind alone
        #[arg(long)]
        kind: Option<String>,
        /// Pages with this tag alone
        #[arg(long)]
        tag: Option<String>,
        /// Pages whose file begins like this
        #[arg(long)]
        path: Option<String>,
        /// Search the entries of the log instead, for all of the words
        #[arg(long, conflicts_with_all = ["kind", "tag", "path"])]
        log: bool,
        /// Entries of the log from this day on, such as `2026-11-22`, or from this moment on
        #[arg(long, requires = "log", value_name = "TIME", value_parser = parse_day_begin)]
        after: Option<DateTime<Utc>>,
    },
    /// Find lines of pages and sources by a regular expression
    #[command(
        after_help = "Examples:\n  steward wiki grep allotment \"stop(cock|valve)\"\n  steward wiki grep allotment --fixed \"£40.00\" --path \"sources/**\"\n\n\
        A folder needs no vault. Nothing is changed. It searches for two seconds at most, with the index or without it."
    )]
    Grep {
        /// The name of a wiki of the vault, or a folder with a KNOWLEDGE.md
        wiki: String,
        /// The expression, as in ripgrep; it matches within a line
        pattern: String,
        /// Files alone whose path in the wiki is like this: `*` stays in a folder, `**` does not
        #[arg(long, value_name = "GLOB")]
        path: Option<String>,
        /// Take the pattern as it is, not as an expression
        #[arg(long, short = 'F')]
        fixed: bool,
        /// Ignore upper and lower case
        #[arg(long, short)]
        ignore_case: bool,
        /// How many lines above and below are shown: 0 to 5
        #[arg(long, short = 'C', value_name = "LINES", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=5))]
        context: u8,
        /// How many lines are found at most: 1 to 200
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=200))]
        limit: u8,
    },
    /// Ask a wiki a question, and get an answer with the words of its sources
    #[command(
        after_help = "Examples:\n  steward wiki query allotment \"When does the lease end?\"\n  steward wiki query allotment who pays for water --save\n\n\
        Without a model the answer is the claims that hold the words of the question. Exits with 3 when the model must not be asked now."
    )]
    Query {
        /// The name of the wiki
        wiki: String,
        /// The question, with or without quotation marks
        #[arg(required = true, value_name = "QUESTION")]
        question: Vec<String>,
        /// Keep the answer as an archive page of the wiki
        #[arg(long)]
        save: bool,
    },
    /// Keep an answer as a page of its wiki
    #[command(after_help = "Examples:\n  steward wiki save\n  steward wiki save 1a2b3c4d --as insight\n\n\
        Without an id it is the last answer. Answers are kept for 30 days. Exits with 3 when it is refused.")]
    Save {
        /// The 8 characters below the answer
        answer: Option<String>,
        /// `qa` is found by later questions, `archive` shows what was answered on a day
        #[arg(long = "as", value_name = "KIND", default_value = "qa", value_parser = ["qa", "insight", "archive"])]
        kind: String,
    },
    /// Show what stands behind a claim or a page: the words of its sources, checked now, and the runs
    #[command(
        after_help = "Examples:\n  steward wiki why allotment plot-12\n  steward wiki why allotment plot-12#c6107d23f\n  steward wiki why allotment plot-12 --until 2026-11-22\n\n\
        Exits with 4 when a quote does not stand in its source."
    )]
    Why {
        /// The name of a wiki of the vault, or a folder with a KNOWLEDGE.md
        wiki: String,
        /// A claim such as `plot-12#c6107d23f`, a page, a tag, the id of a source, or words
        #[arg(required = true)]
        what: Vec<String>,
        /// Claims alone that a run made from this day on, such as `2026-11-22`, or from this moment on; for a wiki of the vault
        #[arg(long, value_name = "TIME", value_parser = parse_day_begin)]
        since: Option<DateTime<Utc>>,
        /// What the pages said at the end of this day, or at this moment, as runs had left them; for a wiki of the vault
        #[arg(long, value_name = "TIME", value_parser = parse_day_end)]
        until: Option<DateTime<Utc>>,
    },
    /// List the documents of a wiki: what became of each, and how many pages cite it
    #[command(after_help = "Example:\n  steward wiki sources allotment")]
    Sources {
        /// The name of the wiki
        wiki: String,
    },
    /// Show the wikis of the vault: pages, sources, and what a lint would find
    #[command(after_help = "Examples:\n  steward wiki status\n  steward wiki status allotment --json")]
    Status {
        /// Show this one alone
        wiki: Option<String>,
    },
}

/// The options of `steward wiki eval`.
#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Ask the verifier about a sample of claims as they stand, about pairs of them, or about copies with planted faults; or ask gold questions again
    #[command(
        after_help = "Examples:\n  steward wiki eval run allotment\n  steward wiki eval run allotment --pairs\n  steward wiki eval run allotment --planted --claims 20\n  steward wiki eval run allotment --gold\n\nA call holds 12 questions; with \
        --planted each claim is about four. With --gold each question is one call, or none without a model, and no verifier is asked. \
        Nothing in the wiki is changed. Exits with 3 when there is no verifier, or too few claims, or no gold question."
    )]
    Run {
        /// The name of the wiki
        wiki: String,
        /// Plant faults into copies of claims, and count which of them the verifier finds
        #[arg(long)]
        planted: bool,
        /// Ask whether claims that are alike contradict each other
        #[arg(long, conflicts_with = "planted")]
        pairs: bool,
        /// Ask at most 30 gold questions again, and compare the answers with those that were kept
        #[arg(long, conflicts_with_all = ["planted", "pairs", "claims"])]
        gold: bool,
        /// How many claims or pairs are taken at most: 50, or 40 with --planted
        #[arg(long, value_parser = clap::value_parser!(u32).range(2..=200))]
        claims: Option<u32>,
    },
    /// Let runs go on although a metric is broken: what was measured so far does not count any more
    #[command(
        after_help = "Example:\n  steward wiki eval ack allotment coverage --reason \"the model was changed\"\n\n`steward wiki status` shows the metrics. Needs \
        a terminal. Exits with 3 when you do not agree, or the metric is not broken."
    )]
    Ack {
        /// The name of the wiki
        wiki: String,
        /// The metric: fidelity, consistency, coverage or retroactive
        #[arg(value_parser = parse_metric)]
        metric: WikiMetric,
        /// Why, for the record
        #[arg(long)]
        reason: String,
    },
    /// Keep an answer as good, so that `eval run --gold` asks its question again
    #[command(
        after_help = "Examples:\n  steward wiki eval gold allotment\n  steward wiki eval gold allotment 1a2b3c4d\n  steward wiki eval gold allotment --list\n  \
        steward wiki eval gold allotment --remove 1a2b3c4d\n\nA newer answer to the same question takes the place of the older one. Exits with 3 when the answer cites nothing."
    )]
    Gold {
        /// The name of the wiki
        wiki: String,
        /// The 8 characters below the answer; the last answer of the wiki if it is left out
        #[arg(conflicts_with_all = ["list", "remove"])]
        answer: Option<String>,
        /// Show all that are kept
        #[arg(long)]
        list: bool,
        /// Do not ask this one again
        #[arg(long, value_name = "ID", conflicts_with = "list")]
        remove: Option<String>,
    },
    /// Show all measurements of a wiki, and what its pages took in tokens
    #[command(after_help = "Example:\n  steward wiki eval report allotment --json")]
    Report {
        /// The name of the wiki
        wiki: String,
    },
}

/// The options of `steward wiki runs`. A run is named by its whole name or by the 8 characters at its end.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List the runs, oldest first
    #[command(after_help = "Examples:\n  steward wiki runs list\n  steward wiki runs list allotment --json")]
    List {
        /// The name of a wiki
        wiki: Option<String>,
    },
    /// Show what a run changes
    #[command(after_help = "Example:\n  steward wiki runs show 3f9a1c22")]
    Show {
        /// The run
        run: String,
    },
    /// Commit a run that waits, after you have seen it
    #[command(
        after_help = "Example:\n  steward wiki runs approve 3f9a1c22\n\nNeeds a terminal. Exits with 3 when you do not agree or it is refused."
    )]
    Approve {
        /// The run
        run: String,
    },
    /// Commit a run that a verifier refused, after you have seen it
    #[command(
        after_help = "Example:\n  steward wiki runs override 3f9a1c22 --reason \"the letter says so on page 2\"\n\n\
        What the rules find cannot be overridden. Needs a terminal. Exits with 3 when you do not agree or it is refused."
    )]
    Override {
        /// The run
        run: String,
        /// Why, for the audit record
        #[arg(long)]
        reason: String,
    },
    /// End a run that waits
    #[command(after_help = "Example:\n  steward wiki runs reject 3f9a1c22\n\nExits with 3 when the run does not wait.")]
    Reject {
        /// The run
        run: String,
        /// Why, for its record
        #[arg(long)]
        reason: Option<String>,
    },
    /// Take a committed run back, also below later ones
    #[command(
        after_help = "Example:\n  steward wiki runs revert 3f9a1c22\n\nExits with 3 when something is in the way."
    )]
    Revert {
        /// The run
        run: String,
        /// Leave pages as they are that were edited where the run changed them
        #[arg(long)]
        keep_edited: bool,
        /// Why, for its record
        #[arg(long)]
        reason: Option<String>,
    },
}

/// The first moment of a day, or the moment itself.
pub(crate) fn parse_day_begin(text: &str) -> Result<DateTime<Utc>, String> {
    parse_moment(text, NaiveTime::MIN)
}

/// The last second of a day, or the moment itself.
fn parse_day_end(text: &str) -> Result<DateTime<Utc>, String> {
    parse_moment(text, NaiveTime::from_hms_opt(23, 59, 59).unwrap_or_default())
}

fn parse_moment(text: &str, clock: NaiveTime) -> Result<DateTime<Utc>, String> {
    match (text.parse::<NaiveDate>(), DateTime::parse_from_rfc3339(text)) {
        (Ok(day), _) => Ok(day.and_time(clock).and_utc()),
        (_, Ok(moment)) => Ok(moment.to_utc()),
        _ => Err("it looks like 2026-11-22 or 2026-11-22T09:15:00Z".to_owned()),
    }
}
