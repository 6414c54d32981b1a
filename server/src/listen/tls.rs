//! The same, encrypted: certificates from files, read again when they change.
//!
//! One that cannot be used ends the start; one that cannot be used any more is told in the log, and the old one stays.
//! A key is agreed with each caller apart; 256 who never do so hold up the others for as long as each is waited for.

use axum::serve::Listener;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

/// How long a caller may take to agree on a key: 10 s.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many may do so at once.
const AT_ONCE: usize = 256;
/// How often is looked whether the certificate is another by now: 60 s.
const LOOK: Duration = Duration::from_secs(60);

/// A certificate with its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The chain, the server's own first.
    pub chain: PathBuf,
    pub key: PathBuf,
}

/// Why it cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct CertificateError {
    path: PathBuf,
    reason: String,
}

impl Certificate {
    fn acceptor(&self) -> Result<TlsAcceptor, CertificateError> {
        let wrong = |path: &Path, reason: String| CertificateError { path: path.to_owned(), reason };
        let chain = CertificateDer::pem_file_iter(&self.chain).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|e| wrong(&self.chain, e.to_string()))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|e| wrong(&self.key, e.to_string()))?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|e| wrong(&self.chain, e.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    fn changed_at(&self) -> Option<(SystemTime, SystemTime)> {
        let at = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        at(&self.chain).zip(at(&self.key))
    }
}

/// Connections whose key is agreed.
pub(super) struct Encrypted {
    agreed: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl Encrypted {
    /// Listens; up to 256 callers who are slow to agree hold up nobody else.
    ///
    /// # Errors
    /// [`CertificateError`] when the certificate or its key cannot be used.
    pub(super) fn new(
        listener: TcpListener,
        address: SocketAddr,
        certificate: Certificate,
    ) -> Result<Self, CertificateError> {
        let acceptor = certificate.acceptor()?;
        let (tell, agreed) = mpsc::channel(AT_ONCE);
        tokio::spawn(accept(listener, (certificate, acceptor), tell));
        Ok(Self { agreed, address })
    }
}

async fn accept(
    mut listener: TcpListener,
    (certificate, mut acceptor): (Certificate, TlsAcceptor),
    tell: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let (mut looked, mut known) = (Instant::now(), certificate.changed_at());
    loop {
        let (stream, peer) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            () = tell.closed() => return,
        };
        if looked.elapsed() > LOOK {
            looked = Instant::now();
            let now = certificate.changed_at();
            if now != known {
                match certificate.acceptor() {
                    Ok(fresh) => (acceptor, known) = (fresh, now),
                    Err(e) => tracing::error!("the new certificate cannot be used, the old one stays: {e}"),
                }
            }
        }
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
        let (agreeing, tell) = (acceptor.accept(stream), tell.clone());
        tokio::spawn(async move {
            let _turn = turn;
            if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, agreeing).await {
                // Nobody listens any more: the process ends.
                let _ = tell.send((stream, peer)).await;
            }
        });
    }
}

impl Listener for Encrypted {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.agreed.recv().await {
            Some(agreed) => agreed,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
