//! The address that is listened on, and serving there until told to end.

use axum::Router;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Where is listened where nobody says so: this machine alone.
pub const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8420);
/// How many ports after the default one are tried.
const NEXT_PORTS: u16 = 20;
/// How long those who are being answered get to hear the rest when the process ends: 2 s.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// An address that is taken, by us.
pub struct Listening {
    listener: TcpListener,
    pub address: SocketAddr,
}

impl Listening {
    /// Takes an address. Of the default one the next free port is as good, since two vaults of one machine are no
    /// fault; one that was set is that or none.
    ///
    /// # Errors
    /// Where it is taken or not this machine's.
    pub async fn bind(set: Option<SocketAddr>) -> io::Result<Self> {
        let first = set.unwrap_or(DEFAULT);
        let last = if set.is_some() { first.port() } else { first.port() + NEXT_PORTS };
        let mut bound = TcpListener::bind(first).await;
        for port in (first.port()..=last).skip(1) {
            match bound {
                Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                    bound = TcpListener::bind(SocketAddr::new(first.ip(), port)).await;
                }
                Ok(_) | Err(_) => break,
            }
        }
        let listener = bound?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Serves until the flag is raised.
    ///
    /// # Errors
    /// Where the socket fails.
    pub async fn serve(self, router: Router, mut stop: watch::Receiver<bool>) -> io::Result<()> {
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let mut ends = stop.clone();
        let serving = axum::serve(self.listener, service).with_graceful_shutdown(async move {
            // An error means that the sender is gone, which is an end as well.
            let _ = stop.wait_for(|stop| *stop).await;
        });
        tokio::select! {
            served = serving => served,
            () = async {
                let _ = ends.wait_for(|stop| *stop).await;
                tokio::time::sleep(LAST_WORDS).await;
            } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_was_set_is_taken_or_none() {
        let free = Listening::bind(Some("127.0.0.1:0".parse().unwrap())).await.unwrap();
        let taken = Listening::bind(Some(free.address)).await;
        assert_eq!(taken.err().map(|e| e.kind()), Some(io::ErrorKind::AddrInUse));
    }
}
