//! Checks the ports of the Temporal server that `up` starts, as far as they are wrong regardless of which are free.
//!
//! [`crate::temporal::ports`] chooses the port when the server starts.

use anyhow::bail;

/// Refuses the same number for both ports; 0 means any free port.
pub(super) fn check_distinct_ports(port: Option<u16>, ui_port: Option<u16>) -> anyhow::Result<()> {
    match (port, ui_port) {
        (Some(port), Some(ui_port)) if port == ui_port && port != 0 => bail!(
            "STEWARD_TEMPORAL_PORT and STEWARD_TEMPORAL_UI_PORT are both {port}: set one of them to another port, or unset it"
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_for_both_is_refused() {
        assert!(check_distinct_ports(Some(7233), Some(7233)).is_err());
        for (port, ui_port) in [(Some(7233), Some(7234)), (Some(0), Some(0)), (Some(8233), None), (None, None)] {
            check_distinct_ports(port, ui_port).unwrap();
        }
    }
}
