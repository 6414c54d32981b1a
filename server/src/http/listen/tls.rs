//! TLS for the listener: certificates from files, reloaded when they change.
//!
//! At the start an unusable certificate is an error. Later the log reports it and the old certificate stays in use.
//! Each connection does its handshake in a task of its own, so a slow caller holds up nobody. The listener sets the
//! time limit and the number of connections.

use super::certificate::find_certificate_end;
use chrono::{DateTime, Utc};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

/// The response to a caller that does not use TLS.
const PLAIN_HTTP_RESPONSE: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\
    content-length: 44\r\n\r\n\
    This address needs TLS: begin it with https\n";
/// How often the certificate files are checked for a change: 60 s.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(60);

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
    fn load(&self) -> Result<LoadedCertificate, CertificateError> {
        let error = |path: &Path, reason: String| CertificateError { path: path.to_owned(), reason };
        let chain = CertificateDer::pem_file_iter(&self.chain).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|e| error(&self.chain, e.to_string()))?;
        let end = chain.iter().filter_map(|certificate| find_certificate_end(certificate)).min();
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|e| error(&self.key, e.to_string()))?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|e| error(&self.chain, e.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(LoadedCertificate { acceptor: TlsAcceptor::from(Arc::new(config)), end })
    }

    fn read_modified_times(&self) -> Option<(SystemTime, SystemTime)> {
        let modified = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        modified(&self.chain).zip(modified(&self.key))
    }
}

struct LoadedCertificate {
    acceptor: TlsAcceptor,
    /// When the first certificate of the chain ends.
    end: Option<DateTime<Utc>>,
}

/// A TLS acceptor that follows changes of its certificate files.
pub(super) struct ReloadingTlsAcceptor {
    certificate: CertificateFiles,
    acceptor: TlsAcceptor,
    /// Receives when the certificate in use ends.
    end: watch::Sender<Option<DateTime<Utc>>>,
    checked_at: Instant,
    loaded_times: Option<(SystemTime, SystemTime)>,
}

impl ReloadingTlsAcceptor {
    /// Reads the files.
    ///
    /// # Errors
    /// [`CertificateError`] when the certificate or its key cannot be used.
    pub(super) fn new(
        certificate: CertificateFiles,
        end: watch::Sender<Option<DateTime<Utc>>>,
    ) -> Result<Self, CertificateError> {
        let (loaded_times, loaded) = (certificate.read_modified_times(), certificate.load()?);
        end.send_replace(loaded.end);
        Ok(Self { certificate, acceptor: loaded.acceptor, end, checked_at: Instant::now(), loaded_times })
    }

    /// The acceptor for the next connection. The files are checked for a change at most once in 60 s.
    pub(super) fn refresh_acceptor(&mut self) -> TlsAcceptor {
        if self.checked_at.elapsed() > CHECK_INTERVAL {
            self.checked_at = Instant::now();
            let now = self.certificate.read_modified_times();
            if now != self.loaded_times {
                match self.certificate.load() {
                    Ok(fresh) => {
                        (self.acceptor, self.loaded_times) = (fresh.acceptor, now);
                        self.end.send_replace(fresh.end);
                    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;
    use std::process::Command;

    fn create_certificate(files: &CertificateFiles, days: &str) {
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-subj", "/CN=localhost", "-days", days, "-keyout"])
            .arg(&files.key)
            .arg("-out")
            .arg(&files.chain)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    #[test]
    fn the_end_is_that_of_the_certificate_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let files = CertificateFiles { chain: dir.path().join("cert.pem"), key: dir.path().join("key.pem") };
        create_certificate(&files, "2");
        let (sender, end) = watch::channel(None);
        let mut acceptor = ReloadingTlsAcceptor::new(files.clone(), sender).unwrap();
        let days = || (end.borrow().unwrap() - Utc::now() + TimeDelta::hours(1)).num_days();
        assert_eq!(days(), 2);
        let mut refresh_later = || {
            acceptor.checked_at -= CHECK_INTERVAL + Duration::from_secs(1);
            drop(acceptor.refresh_acceptor());
        };
        create_certificate(&files, "90");
        refresh_later();
        assert_eq!(days(), 90);
        std::fs::write(&files.chain, "no certificate").unwrap();
        refresh_later();
        assert_eq!(days(), 90, "the old one stays in use");
    }
}
