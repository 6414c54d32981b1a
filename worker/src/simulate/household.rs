//! Who lives in the simulated house, and who writes to it.
//!
//! Fixed tables: the matters, and the sources with their known reliability. What they say and when is drawn by
//! [`super::calendar`]. Nothing here is drawn, and nothing of it is written into the vault but names and words.

/// One whose messages become signals.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedSource {
    /// As adapters name a source.
    pub(super) name: &'static str,
    /// The share of its messages that say what is so, 0 to 1.
    pub(super) reliability: f64,
    /// Messages in a day, on average.
    pub(super) per_day: f64,
    /// Between these its signals' confidences lie, 0 to 1.
    pub(super) sure: (f64, f64),
    /// Shares of its messages that propose a text of a matter, and another matter for a task; the rest says that a task
    /// is over.
    pub(super) also: (f64, f64),
    /// The matter its tasks belong to, by its slug.
    pub(super) matter: &'static str,
    /// How its tasks' files begin.
    pub(super) slug: &'static str,
    /// What its tasks are called; a number follows.
    pub(super) job: &'static str,
    /// What it writes when one is over; `{}` stands for the number.
    pub(super) says: &'static str,
}

/// The most reliable and busiest one comes first; its clear signals are what the last hours leave.
pub(super) const SOURCES: [SimulatedSource; 8] = [
    SimulatedSource {
        name: "gmail:invoices@vendor-x.example",
        reliability: 0.99,
        per_day: 16.0,
        sure: (0.90, 0.99),
        also: (0.0, 0.0),
        matter: "workshop-supplies",
        slug: "invoice",
        job: "Settle invoice",
        says: "Payment received in full for invoice {}.",
    },
    SimulatedSource {
        name: "slack:#ops",
        reliability: 0.97,
        per_day: 7.0,
        sure: (0.86, 0.98),
        also: (0.05, 0.04),
        matter: "website",
        slug: "ticket",
        job: "Close ticket",
        says: "Ticket {} is fixed and deployed.",
    },
    SimulatedSource {
        name: "gmail:newsletter@garden-post.example",
        reliability: 0.55,
        per_day: 3.0,
        sure: (0.60, 0.92),
        also: (0.05, 0.05),
        matter: "garden",
        slug: "offer",
        job: "Decide on offer",
        says: "Offer {} has come to an end, thank you!",
    },
    SimulatedSource {
        name: "whatsapp:family",
        reliability: 0.80,
        per_day: 3.0,
        sure: (0.72, 0.96),
        also: (0.08, 0.06),
        matter: "errands",
        slug: "errand",
        job: "Run errand",
        says: "Got errand {} out of the way on the way home",
    },
    SimulatedSource {
        name: "ics:household",
        reliability: 0.95,
        per_day: 1.5,
        sure: (0.85, 0.97),
        also: (0.10, 0.05),
        matter: "health",
        slug: "appointment",
        job: "Keep appointment",
        says: "Appointment {} took place as planned.",
    },
    SimulatedSource {
        name: "github:orchard/site",
        reliability: 0.93,
        per_day: 1.2,
        sure: (0.84, 0.97),
        also: (0.30, 0.15),
        matter: "website",
        slug: "change",
        job: "Review change",
        says: "Change {} was merged.",
    },
    SimulatedSource {
        name: "gmail:office@school.example",
        reliability: 0.90,
        per_day: 1.0,
        sure: (0.80, 0.97),
        also: (0.20, 0.10),
        matter: "school",
        slug: "form",
        job: "Hand in form",
        says: "We have received form {}, many thanks.",
    },
    SimulatedSource {
        name: "sms:bank",
        reliability: 0.98,
        per_day: 0.4,
        sure: (0.92, 0.99),
        also: (0.0, 0.0),
        matter: "taxes",
        slug: "transfer",
        job: "See transfer through",
        says: "Transfer {} was carried out today.",
    },
];

/// Clear signals of the first source on the last day. Two undos of so few changes are a step back
/// ([`steward_domain::trust::demotion`] takes it for up to 8).
pub(super) const FRESH: usize = 7;
/// Proposals of the class `related` in 30 days, too few to say anything of.
pub(super) const RELATED_IN_30_DAYS: u32 = 12;
/// Who says them, by the place in [`SOURCES`].
pub(super) const RELATED_BY: usize = 3;

/// Slug and name of every matter.
pub(super) const MATTERS: [(&str, &str); 12] = [
    ("workshop-supplies", "Supplies of the workshop"),
    ("website", "The website"),
    ("garden", "The garden behind the house"),
    ("errands", "Errands in town"),
    ("health", "Everybody's health"),
    ("school", "School of the children"),
    ("taxes", "Taxes and the bank"),
    ("car", "The car"),
    ("roof", "Repair of the roof"),
    ("holiday", "Summer by the sea"),
    ("choir", "Concert of the choir"),
    ("allotment", "The allotment"),
];

/// Who may own a matter.
pub(super) const PEOPLE: [&str; 5] = ["Nora", "Juno", "Wilf", "Idris", "Posy"];
