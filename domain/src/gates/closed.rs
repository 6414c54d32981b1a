//! A set of closed gates, and the disposition that follows from it.
//!
//! The same rule applies to a new decision and to one that is replayed under other settings. The index stores each set
//! as the names of its gates. So a million decisions can be replayed under any policy without reading their records
//! again. A set does not hold the values that the gates found: see [`GateResult`].

use crate::action::plan::Disposition;
use crate::gates::result::{GateName, GateResult};

/// A set of closed gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClosedGates(u16);

impl ClosedGates {
    /// The closed ones of these gates.
    #[must_use]
    pub fn from_gates(gates: &[GateResult]) -> Self {
        gates.iter().filter(|g| !g.open).fold(Self::default(), |closed, g| closed.with_gate(g.gate))
    }

    /// The same set with one more gate.
    #[must_use]
    pub fn with_gate(self, gate: GateName) -> Self {
        Self(self.0 | gate_bit(gate))
    }

    /// The same set with this gate added or removed.
    #[must_use]
    pub fn set_gate(self, gate: GateName, closed: bool) -> Self {
        if closed { self.with_gate(gate) } else { Self(self.0 & !gate_bit(gate)) }
    }

    /// Whether this gate is closed.
    #[must_use]
    pub fn has_gate(self, gate: GateName) -> bool {
        self.0 & gate_bit(gate) != 0
    }

    /// The closed gates, in the order of [`GateName::ALL`].
    pub fn iter(self) -> impl Iterator<Item = GateName> {
        GateName::ALL.into_iter().filter(move |gate| self.has_gate(*gate))
    }

    /// The names of the gates, separated by spaces.
    #[must_use]
    pub fn join_names(self) -> String {
        self.iter().map(GateName::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Reads the form that [`ClosedGates::join_names`] writes. Returns `None` if a word is not the name of a gate.
    #[must_use]
    pub fn parse_names(words: &str) -> Option<Self> {
        words.split_whitespace().try_fold(Self::default(), |closed, word| Some(closed.with_gate(word.parse().ok()?)))
    }

    /// The disposition of a change behind these gates. The gate `trust` has no effect here: it is evaluated when the
    /// plan is applied, see [`super::landing`].
    #[must_use]
    pub fn decide_disposition(self, changes_something: bool) -> Disposition {
        let any = |names: &[GateName]| names.iter().any(|gate| self.has_gate(*gate));
        if !changes_something {
            return Disposition::Recorded;
        }
        if any(&[GateName::Caller, GateName::Mode]) {
            return Disposition::Shadow;
        }
        let decided = [GateName::Confidence, GateName::Discretion, GateName::Ceiling, GateName::RateGuard];
        if any(&decided) || any(&[GateName::Steward, GateName::SourceBudget, GateName::Policy]) {
            return Disposition::Pending;
        }
        Disposition::Live
    }
}

fn gate_bit(gate: GateName) -> u16 {
    1 << gate as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_gates_reads_back_from_its_words() {
        for gate in GateName::ALL {
            let one = ClosedGates::default().with_gate(gate);
            assert_eq!(
                (ClosedGates::parse_names(&one.join_names()), one.iter().collect::<Vec<_>>()),
                (Some(one), vec![gate])
            );
            assert_eq!(one.set_gate(gate, false), ClosedGates::default());
        }
        let all = GateName::ALL.into_iter().fold(ClosedGates::default(), ClosedGates::with_gate);
        assert_eq!(
            (ClosedGates::parse_names(&all.join_names()), ClosedGates::parse_names("")),
            (Some(all), Some(ClosedGates::default()))
        );
        assert_eq!(ClosedGates::parse_names("mode moon"), None);
    }
}
