//! Which gates stand closed, and how a change lands behind them.
//!
//! The one rule of landing for a decision as it is taken and for one that is replayed under other settings. A set
//! of gates is kept in the index as the gates' words, so that a million decisions can be held against any policy
//! without their records being read again. What the gates found is not kept here: see [`super::Gate`].

use super::{Gate, GateName};
use crate::plan::Landing;

/// A set of gates that stand closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed(u16);

impl Closed {
    /// Those of these gates that are closed.
    #[must_use]
    pub fn of(gates: &[Gate]) -> Self {
        gates.iter().filter(|g| !g.open).fold(Self::default(), |closed, g| closed.with(g.gate))
    }

    /// The same set with one gate more.
    #[must_use]
    pub fn with(self, gate: GateName) -> Self {
        Self(self.0 | bit(gate))
    }

    /// The same set with this gate in it or not.
    #[must_use]
    pub fn set(self, gate: GateName, closed: bool) -> Self {
        if closed { self.with(gate) } else { Self(self.0 & !bit(gate)) }
    }

    /// Whether a gate is closed.
    #[must_use]
    pub fn has(self, gate: GateName) -> bool {
        self.0 & bit(gate) != 0
    }

    /// The gates, in the order in which they are listed.
    pub fn iter(self) -> impl Iterator<Item = GateName> {
        GateName::ALL.into_iter().filter(move |gate| self.has(*gate))
    }

    /// The gates' words with spaces between them.
    #[must_use]
    pub fn words(self) -> String {
        self.iter().map(GateName::word).collect::<Vec<_>>().join(" ")
    }

    /// Reads [`Closed::words`]; `None` where a word names no gate.
    #[must_use]
    pub fn read(words: &str) -> Option<Self> {
        words.split_whitespace().try_fold(Self::default(), |closed, word| {
            let gate = GateName::ALL.into_iter().find(|gate| gate.word() == word)?;
            Some(closed.with(gate))
        })
    }

    /// How a decision lands behind these gates. The gate `trust` lowers a landing by itself.
    #[must_use]
    pub fn landing(self, changes_something: bool) -> Landing {
        let any = |names: &[GateName]| names.iter().any(|gate| self.has(*gate));
        if !changes_something {
            return Landing::Recorded;
        }
        if any(&[GateName::Caller, GateName::Mode, GateName::Brake]) {
            return Landing::Shadow;
        }
        let waits = [GateName::Confidence, GateName::Discretion, GateName::Ceiling, GateName::RateGuard];
        if any(&waits) || any(&[GateName::Steward, GateName::SourceBudget, GateName::Policy]) {
            return Landing::Pending;
        }
        Landing::Live
    }
}

fn bit(gate: GateName) -> u16 {
    1 << gate as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_gates_reads_back_from_its_words() {
        for gate in GateName::ALL {
            let one = Closed::default().with(gate);
            assert_eq!((Closed::read(&one.words()), one.iter().collect::<Vec<_>>()), (Some(one), vec![gate]));
            assert_eq!(one.set(gate, false), Closed::default());
        }
        let all = GateName::ALL.into_iter().fold(Closed::default(), Closed::with);
        assert_eq!((Closed::read(&all.words()), Closed::read("")), (Some(all), Some(Closed::default())));
        assert_eq!(Closed::read("mode moon"), None);
    }
}
