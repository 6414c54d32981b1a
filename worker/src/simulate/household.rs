//! Fixed tables of the simulated household: its matters, its people and its sources.
//!
//! Each source has a known reliability. [`super::calendar`] draws what the sources write and when. Nothing here is
//! random. Only names and texts may get into the vault, never a reliability.

/// A source whose messages become signals.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedSource {
    /// Its name, as adapters write it.
    pub(super) name: &'static str,
    /// The share of its messages that are right, 0 to 1.
    pub(super) reliability: f64,
    /// Messages per day, on average.
    pub(super) per_day: f64,
    /// The lowest and highest confidence of its signals, 0 to 1.
    pub(super) confidence_range: (f64, f64),
    /// The shares of its messages that propose a text of a matter, and another matter for a task. The rest proposes
    /// that a task is over.
    pub(super) other_class_shares: (f64, f64),
    /// The matter its tasks belong to, by its slug.
    pub(super) matter: &'static str,
    /// The prefix of its tasks' file names.
    pub(super) slug: &'static str,
    /// The name of its tasks; a number follows.
    pub(super) job: &'static str,
    /// Its message when a task is over; `{}` stands for the number.
    pub(super) message: &'static str,
}

/// The most reliable and busiest source comes first; its clear signals stay undecided at the end.
pub(super) const SOURCES: [SimulatedSource; 8] = [
    SimulatedSource {
        name: "gmail:invoices@vendor-x.example",
        reliability: 0.99,
        per_day: 16.0,
        confidence_range: (0.90, 0.99),
        other_class_shares: (0.0, 0.0),
        matter: "workshop-supplies",
        slug: "invoice",
        job: "Settle invoice",
        message: "Payment received in full for invoice {}.",
    },
    SimulatedSource {
        name: "slack:#ops",
        reliability: 0.97,
        per_day: 7.0,
        confidence_range: (0.86, 0.98),
        other_class_shares: (0.05, 0.04),
        matter: "website",
        slug: "ticket",
        job: "Close ticket",
        message: "Ticket {} is fixed and deployed.",
    },
    SimulatedSource {
        name: "gmail:newsletter@garden-post.example",
        reliability: 0.55,
        per_day: 3.0,
        confidence_range: (0.60, 0.92),
        other_class_shares: (0.05, 0.05),
        matter: "garden",
        slug: "offer",
        job: "Decide on offer",
        message: "Offer {} has come to an end, thank you!",
    },
    SimulatedSource {
        name: "whatsapp:family",
        reliability: 0.80,
        per_day: 3.0,
        confidence_range: (0.72, 0.96),
        other_class_shares: (0.08, 0.06),
        matter: "errands",
        slug: "errand",
        job: "Run errand",
        message: "Got errand {} out of the way on the way home",
    },
    SimulatedSource {
        name: "ics:household",
        reliability: 0.95,
        per_day: 1.5,
        confidence_range: (0.85, 0.97),
        other_class_shares: (0.10, 0.05),
        matter: "health",
        slug: "appointment",
        job: "Keep appointment",
        message: "Appointment {} took place as planned.",
    },
    SimulatedSource {
        name: "github:orchard/site",
        reliability: 0.93,
        per_day: 1.2,
        confidence_range: (0.84, 0.97),
        other_class_shares: (0.30, 0.15),
        matter: "website",
        slug: "change",
        job: "Review change",
        message: "Change {} was merged.",
    },
    SimulatedSource {
        name: "gmail:office@school.example",
        reliability: 0.90,
        per_day: 1.0,
        confidence_range: (0.80, 0.97),
        other_class_shares: (0.20, 0.10),
        matter: "school",
        slug: "form",
        job: "Hand in form",
        message: "We have received form {}, many thanks.",
    },
    SimulatedSource {
        name: "sms:bank",
        reliability: 0.98,
        per_day: 0.4,
        confidence_range: (0.92, 0.99),
        other_class_shares: (0.0, 0.0),
        matter: "taxes",
        slug: "transfer",
        job: "See transfer through",
        message: "Transfer {} was carried out today.",
    },
];

/// Clear signals of the first source on the last day: 7. Two undos of so few changes are a demotion
/// ([`steward_domain::trust::demotion`] demotes for up to 8).
pub(super) const FRESH: usize = 7;
/// Proposals of the class `related` in 30 days, too few to support anything.
pub(super) const RELATED_IN_30_DAYS: u32 = 12;
/// The source of these proposals, as an index into [`SOURCES`].
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

/// The possible owners of a matter.
pub(super) const PEOPLE: [&str; 5] = ["Nora", "Juno", "Wilf", "Idris", "Posy"];
