//! The address that is listened on, and serving there until told to end.
//!
//! Who may come in and what they get is [`crate::app`]'s. Connections that stay open, as those of pages do, do not keep
//! the process from ending.

mod tls;

use axum::Router;
use axum::extract::Request;
use axum::serve::{Listener, ListenerExt};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tls::Encrypted;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower_service::Service;

pub use tls::{Certificate, CertificateError};

/// Where is listened where nobody says so: this machine alone.
pub const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8420);
/// How many ports after the default one are tried.
const NEXT_PORTS: u16 = 20;
/// How long those who are being answered get to hear the rest when the process ends: 2 s.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What is served, and may be another from one request to the next: each goes to the one of its moment.
pub fn turning(faces: watch::Receiver<Router>) -> Router {
    Router::new().fallback(move |request: Request| {
        let mut of_now = faces.borrow().clone();
        async move { of_now.call(request).await }
    })
}

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

    /// Serves until the flag is raised, encrypted where there is a certificate.
    ///
    /// # Errors
    /// [`CertificateError`] at once when the certificate cannot be used; a socket that fails is told in the log.
    pub fn serve(
        self,
        router: Router,
        certificate: Option<Certificate>,
        stop: watch::Receiver<bool>,
    ) -> Result<JoinHandle<()>, CertificateError> {
        Ok(match certificate {
            None => tokio::spawn(serve(self.listener, router, stop)),
            Some(certificate) => {
                tokio::spawn(serve(Encrypted::new(self.listener, self.address, certificate)?, router, stop))
            }
        })
    }
}

async fn serve<L: Listener<Addr = SocketAddr>>(listener: L, router: Router, mut stop: watch::Receiver<bool>) {
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let mut ends = stop.clone();
    // An error means that the sender is gone, which is an end as well.
    let raised = async move { drop(stop.wait_for(|stop| *stop).await) };
    let serving = axum::serve(listener.tap_io(|_| ()), service).with_graceful_shutdown(raised);
    let last_words = async {
        let _ = ends.wait_for(|stop| *stop).await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        served = serving => if let Err(e) = served {
            tracing::error!(error = %e, "the dashboard and the control API ended");
        },
        () = last_words => {}
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
