//! A connection to an IMAP server: encrypted, bounded in time, and its errors without the password.
//!
//! The system's certificates are trusted, and those of `ca_file`. Nothing is retried here: a round that
//! fails is tried again by whoever runs the stream.

use super::super::StreamError;
use super::ANSWER;
use super::session::Session;
use crate::clerk::remote::Secret;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// From the name to the greeting: 30 s.
const CONNECT: Duration = Duration::from_secs(30);

/// Encrypted or not.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Send + Sync + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync + fmt::Debug> Wire for T {}

/// Where the mails are, and who may read them.
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: Secret,
    pub(super) tls: bool,
    pub(super) ca_file: Option<PathBuf>,
}

impl Server {
    pub(super) async fn connect(&self) -> Result<Session, StreamError> {
        let wire = timeout(CONNECT, self.wire()).await.map_err(|_| self.said("no answer in time"))??;
        let mut client = async_imap::Client::new(wire);
        let greeting = timeout(CONNECT, client.read_response()).await.map_err(|_| self.said("no greeting in time"))?;
        if greeting.map_err(|e| self.said(e))?.is_none() {
            return Err(self.said("it hung up at once"));
        }
        let login = timeout(CONNECT, client.login(&self.user, self.password.expose())).await;
        let login = login.map_err(|_| self.said("no answer to the login in time"))?;
        let login = login.map_err(|(e, _)| self.said(format!("the login failed: {e}: check user and password")))?;
        Ok(Session::new(login))
    }

    /// Waits for an answer, but not forever.
    pub(super) async fn answer<T>(&self, asked: impl Future<Output = Result<T, String>>) -> Result<T, StreamError> {
        timeout(ANSWER, asked).await.map_err(|_| self.said("no answer in time"))?.map_err(|e| self.said(e))
    }

    async fn wire(&self) -> Result<Box<dyn Wire>, StreamError> {
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(|e| self.said(e))?;
        if !self.tls {
            return Ok(Box::new(tcp));
        }
        let name = ServerName::try_from(self.host.clone()).map_err(|e| self.said(e))?;
        let connector = TlsConnector::from(Arc::new(self.trust()?));
        Ok(Box::new(connector.connect(name, tcp).await.map_err(|e| self.said(e))?))
    }

    fn trust(&self) -> Result<ClientConfig, StreamError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(file) = &self.ca_file {
            let certificates = pem(file).map_err(|e| self.said(format!("ca_file: {}: {e}", file.display())))?;
            roots.add_parsable_certificates(certificates);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        Ok(config.map_err(|e| self.said(e))?.with_root_certificates(roots).with_no_client_auth())
    }

    /// What the server said, without the password should it have repeated it.
    fn said(&self, message: impl fmt::Display) -> StreamError {
        let text: String = self.password.taken_out_of(&message.to_string()).chars().take(300).collect();
        StreamError::Server { server: format!("{}:{}", self.host, self.port), message: text }
    }
}

/// Whether a host is this machine, whatever the network's names say.
pub(super) fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn pem(file: &Path) -> Result<Vec<CertificateDer<'static>>, rustls::pki_types::pem::Error> {
    CertificateDer::pem_file_iter(file)?.collect()
}
