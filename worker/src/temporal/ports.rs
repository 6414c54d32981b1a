//! Chooses the ports of the Temporal server that `steward up` starts.
//!
//! A configured port is used as it is, or refused with the name of its variable. Only a default moves on to the next
//! free port. The two ports must never be the same.

use crate::config::StewardConfig;
use anyhow::{Context, bail};
use std::net::{Ipv4Addr, TcpListener};

const DEFAULT_PORT: u16 = 7233;
const DEFAULT_UI_PORT: u16 = 8233;
/// The number of ports after a default that are tried: 20.
const MORE_PORTS: u16 = 20;

/// The ports of the server and of its web page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerPorts {
    pub(crate) port: u16,
    pub(crate) ui_port: u16,
}

/// The setting of one of the two ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortSetting {
    pub(crate) variable: &'static str,
    set: Option<u16>,
    default: u16,
}

impl PortSetting {
    /// The port of the server.
    pub(crate) fn for_server(config: &StewardConfig) -> Self {
        Self { variable: "STEWARD_TEMPORAL_PORT", set: config.temporal_port, default: DEFAULT_PORT }
    }

    /// The port of its web page.
    pub(crate) fn for_ui(config: &StewardConfig) -> Self {
        Self { variable: "STEWARD_TEMPORAL_UI_PORT", set: config.temporal_ui_port, default: DEFAULT_UI_PORT }
    }

    /// The port that is tried first.
    pub(crate) fn preferred_port(self) -> u16 {
        self.set.unwrap_or(self.default)
    }

    /// Whether another process uses the port that is tried first.
    pub(crate) fn is_in_use(self) -> bool {
        !is_port_free(self.preferred_port())
    }

    /// The configured port; `None` for a default, which depends on the other port.
    fn find_explicit_port(self) -> anyhow::Result<Option<u16>> {
        match self.set {
            None => Ok(None),
            Some(0) => Ok(Some(find_any_free_port()?)),
            Some(port) if is_port_free(port) => Ok(Some(port)),
            Some(port) => bail!(
                "{} is {port}, which is taken: use {}, which is free, or unset it so that `steward up` finds one",
                self.variable,
                find_next_free_port(port, None).map_or_else(find_any_free_port, Ok)?
            ),
        }
    }

    /// The default, or the next free port that is not `other`.
    fn find_default_port(self, other: Option<u16>) -> anyhow::Result<u16> {
        let last = self.default + MORE_PORTS;
        find_next_free_port(self.default, other).with_context(|| {
            format!("ports {} to {last} are all taken: set {} to a free one", self.default, self.variable)
        })
    }
}

/// The port that one setting leads to, or why it leads to none.
#[derive(Debug)]
pub(crate) struct PortChoice {
    pub(crate) setting: PortSetting,
    pub(crate) port: anyhow::Result<u16>,
}

/// The choices for both ports.
#[derive(Debug)]
pub(crate) struct ServerPortChoices {
    pub(crate) server: PortChoice,
    pub(crate) ui: PortChoice,
}

impl ServerPortChoices {
    /// Chooses both ports as they are free now. A fault of one leaves the other.
    pub(crate) fn preview(config: &StewardConfig) -> Self {
        let (server, ui) = (PortSetting::for_server(config), PortSetting::for_ui(config));
        let explicit_ui_port = ui.find_explicit_port();
        let other = explicit_ui_port.as_ref().ok().copied().flatten();
        let find_port = |port: Option<u16>| port.map_or_else(|| server.find_default_port(other), Ok);
        let port = server.find_explicit_port().and_then(find_port);
        let other = port.as_ref().ok().copied();
        let find_ui_port = |port: Option<u16>| port.map_or_else(|| ui.find_default_port(other), Ok);
        let ui_port = explicit_ui_port.and_then(find_ui_port);
        Self { server: PortChoice { setting: server, port }, ui: PortChoice { setting: ui, port: ui_port } }
    }
}

impl ServerPorts {
    /// Chooses both ports.
    ///
    /// # Errors
    /// A configured port is taken, or no port is free. The message names the variable.
    pub(crate) fn choose(config: &StewardConfig) -> anyhow::Result<Self> {
        let ServerPortChoices { server, ui } = ServerPortChoices::preview(config);
        Ok(Self { port: server.port?, ui_port: ui.port? })
    }
}

/// A free port, chosen by the system.
pub(super) fn find_any_free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("this machine has no free port")?;
    Ok(listener.local_addr()?.port())
}

fn find_next_free_port(first: u16, other: Option<u16>) -> Option<u16> {
    (first..=first.saturating_add(MORE_PORTS)).find(|&port| Some(port) != other && is_port_free(port))
}

fn is_port_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(port: Option<u16>, ui_port: Option<u16>) -> anyhow::Result<ServerPorts> {
        let mut config = StewardConfig::from_variables(&[]);
        (config.temporal_port, config.temporal_ui_port) = (port, ui_port);
        ServerPorts::choose(&config)
    }

    #[test]
    fn a_configured_port_is_used_or_refused_with_its_name_and_a_free_one() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let named = [
            (choose(Some(port), None), "STEWARD_TEMPORAL_PORT is"),
            (choose(None, Some(port)), "STEWARD_TEMPORAL_UI_PORT is"),
        ];
        for (refused, name) in named {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(&format!("{port}, which is taken")), "{message}");
            let free = message.split(": use ").nth(1).unwrap().split(',').next().unwrap();
            assert!(is_port_free(free.parse().unwrap()), "{message}");
        }
        drop(taken);
        assert_eq!(choose(Some(port), None).unwrap().port, port);
        assert_ne!(choose(Some(0), None).unwrap().port, 0);
    }

    #[test]
    fn a_fault_of_one_port_leaves_the_choice_of_the_other() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let mut config = StewardConfig::from_variables(&[]);
        config.temporal_port = Some(port);
        let ServerPortChoices { server, ui } = ServerPortChoices::preview(&config);
        assert!(server.port.is_err() && server.setting.is_in_use());
        assert!((DEFAULT_UI_PORT..=DEFAULT_UI_PORT + MORE_PORTS).contains(&ui.port.unwrap()));
    }

    #[test]
    fn a_taken_default_moves_on_and_never_to_the_other_port() {
        let defaults = choose(None, None).unwrap();
        assert!((DEFAULT_PORT..=DEFAULT_PORT + MORE_PORTS).contains(&defaults.port), "{defaults:?}");
        let next = find_next_free_port(DEFAULT_PORT, Some(defaults.port)).unwrap();
        let (_taken, moved) =
            (TcpListener::bind((Ipv4Addr::LOCALHOST, defaults.port)), choose(None, Some(next)).unwrap());
        assert_eq!(moved.ui_port, next);
        assert!(moved.port != defaults.port && moved.port != next, "{moved:?}");
        let other_way = choose(Some(DEFAULT_UI_PORT + 5), None).unwrap();
        assert_ne!(other_way.port, other_way.ui_port);
    }
}
