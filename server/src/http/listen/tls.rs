//! TLS for the listener: certificates from files, reloaded when they change.
//!
//! At the start an unusable certificate is an error. Later the log reports it and the old certificate stays in use.
//! Each connection does its handshake in a task of its own, so a slow caller holds up nobody. The listener sets the
//! time limit and the number of connections.

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

/// The response to a caller that does not use TLS.
const PLAIN_HTTP_RESPONSE: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\
    content-length: 44\r\n\r\n\
    This address needs TLS: begin it with https\n";
/// How often the certificate files are checked for a change: 60 s.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// A certificate with its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate chain, the server's own certificate first.
    pub chain: PathBuf,
    pub key: PathBuf,
}

/// Why a certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct CertificateError {
    path: PathBuf,
    reason: String,
}

impl CertificateFiles {
    fn load_acceptor(&self) -> Result<TlsAcceptor, CertificateError> {
        let error = |path: &Path, reason: String| CertificateError { path: path.to_owned(), reason };
        let chain = CertificateDer::pem_file_iter(&self.chain).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|e| error(&self.chain, e.to_string()))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|e| error(&self.key, e.to_string()))?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|e| error(&self.chain, e.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    fn read_modified_times(&self) -> Option<(SystemTime, SystemTime)> {
        let modified = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        modified(&self.chain).zip(modified(&self.key))
    }
}

/// A TLS acceptor that follows changes of its certificate files.
pub(super) struct ReloadingTlsAcceptor {
    certificate: CertificateFiles,
    acceptor: TlsAcceptor,
    checked_at: Instant,
    loaded_times: Option<(SystemTime, SystemTime)>,
}

impl ReloadingTlsAcceptor {
    /// Reads the files.
    ///
    /// # Errors
    /// [`CertificateError`] when the certificate or its key cannot be used.
    pub(super) fn new(certificate: CertificateFiles) -> Result<Self, CertificateError> {
        let (loaded_times, acceptor) = (certificate.read_modified_times(), certificate.load_acceptor()?);
        Ok(Self { certificate, acceptor, checked_at: Instant::now(), loaded_times })
    }

    /// The acceptor for the next connection. The files are checked for a change at most once in 60 s.
    pub(super) fn refresh_acceptor(&mut self) -> TlsAcceptor {
        if self.checked_at.elapsed() > CHECK_INTERVAL {
            self.checked_at = Instant::now();
            let now = self.certificate.read_modified_times();
            if now != self.loaded_times {
                match self.certificate.load_acceptor() {
                    Ok(fresh) => (self.acceptor, self.loaded_times) = (fresh, now),
                    Err(e) => tracing::error!("the new certificate cannot be used; the old one stays in use: {e}"),
                }
            }
        }
        self.acceptor.clone()
    }
}

/// Does the TLS handshake; `None` when it failed. A caller without TLS gets an unencrypted response that says so.
pub(super) async fn accept_tls(mut stream: TcpStream, acceptor: TlsAcceptor) -> Option<TlsStream<TcpStream>> {
    let mut first = [0];
    // An HTTP request begins with a letter, a TLS handshake does not.
    if stream.peek(&mut first).await.is_ok_and(|read| read == 1) && first[0].is_ascii_alphabetic() {
        // The request must be read, or closing the connection would discard the response.
        let _ = stream.read(&mut [0; 4096]).await;
        let _ = stream.write_all(PLAIN_HTTP_RESPONSE.as_bytes()).await;
        let _ = stream.shutdown().await;
        return None;
    }
    acceptor.accept(stream).await.ok()
}
