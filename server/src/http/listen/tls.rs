//! The same, encrypted: certificates from files, read again when they change.
//!
//! One that cannot be used ends the start; one that cannot be used any more is told in the log, and the old one stays.
//! A key is agreed with each caller apart, so that one who never does holds up nobody; how long is waited and for how many
//! is the listener's to say.

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

/// What a caller hears who does not encrypt.
const PLAIN: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 55\r\n\r\n\
    This address is asked by TLS only: begin it with https\n";
/// How often is looked whether the certificate is another by now: 60 s.
const LOOK: Duration = Duration::from_secs(60);

/// A certificate with its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
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

impl CertificateFiles {
    fn load_acceptor(&self) -> Result<TlsAcceptor, CertificateError> {
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

    fn read_modified_times(&self) -> Option<(SystemTime, SystemTime)> {
        let at = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        at(&self.chain).zip(at(&self.key))
    }
}

/// What keys are agreed with, as the files have it now.
pub(super) struct ReloadingTlsAcceptor {
    certificate: CertificateFiles,
    acceptor: TlsAcceptor,
    looked: Instant,
    known: Option<(SystemTime, SystemTime)>,
}

impl ReloadingTlsAcceptor {
    /// Reads the files.
    ///
    /// # Errors
    /// [`CertificateError`] when the certificate or its key cannot be used.
    pub(super) fn new(certificate: CertificateFiles) -> Result<Self, CertificateError> {
        let (known, acceptor) = (certificate.read_modified_times(), certificate.load_acceptor()?);
        Ok(Self { certificate, acceptor, looked: Instant::now(), known })
    }

    /// For the next caller; now and then the files are looked at first.
    pub(super) fn refresh_acceptor(&mut self) -> TlsAcceptor {
        if self.looked.elapsed() > LOOK {
            self.looked = Instant::now();
            let now = self.certificate.read_modified_times();
            if now != self.known {
                match self.certificate.load_acceptor() {
                    Ok(fresh) => (self.acceptor, self.known) = (fresh, now),
                    Err(e) => tracing::error!("the new certificate cannot be used, the old one stays: {e}"),
                }
            }
        }
        self.acceptor.clone()
    }
}

/// Agrees on a key; `None` when that failed. Who speaks plainly is told so, in the plain words that they understand.
pub(super) async fn accept_tls(mut stream: TcpStream, acceptor: TlsAcceptor) -> Option<TlsStream<TcpStream>> {
    let mut first = [0];
    // Of TLS the first byte is no letter, of any request by HTTP it is one.
    if stream.peek(&mut first).await.is_ok_and(|read| read == 1) && first[0].is_ascii_alphabetic() {
        // What was sent must be read, or the end would overtake the answer.
        let _ = stream.read(&mut [0; 4096]).await;
        let _ = stream.write_all(PLAIN.as_bytes()).await;
        let _ = stream.shutdown().await;
        return None;
    }
    acceptor.accept(stream).await.ok()
}
