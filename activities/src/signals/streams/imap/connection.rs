//! Connects to an IMAP server: encrypted, limited in time, and with errors that must not hold the password.
//!
//! The system's certificates are trusted, and those of `ca_file`. Nothing is retried here: the loop of the stream
//! repeats a round that fails.

use super::super::StreamError;
use super::ANSWER_TIMEOUT;
use super::session::ImapSession;
use crate::steward::clerks::remote::Secret;
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

/// Longest wait for each step of connecting, up to the login: 30 s.
const CONNECT: Duration = Duration::from_secs(30);

/// A transport, encrypted or not.
pub(super) trait ImapTransport: AsyncRead + AsyncWrite + Unpin + Send + Sync + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync + fmt::Debug> ImapTransport for T {}

/// An IMAP server and its login.
pub(super) struct ImapServer {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: Secret,
    pub(super) tls: bool,
    pub(super) ca_file: Option<PathBuf>,
}

impl ImapServer {
    pub(super) async fn connect(&self) -> Result<ImapSession, StreamError> {
        let transport =
            timeout(CONNECT, self.open_transport()).await.map_err(|_| self.server_error("no answer in time"))??;
        let mut client = async_imap::Client::new(transport);
        let greeting =
            timeout(CONNECT, client.read_response()).await.map_err(|_| self.server_error("no greeting in time"))?;
        if greeting.map_err(|e| self.server_error(e))?.is_none() {
            return Err(self.server_error("the server closed the connection at once"));
        }
        let login = timeout(CONNECT, client.login(&self.user, self.password.expose())).await;
        let login = login.map_err(|_| self.server_error("no answer to the login in time"))?;
        let login =
            login.map_err(|(e, _)| self.server_error(format!("the login failed: {e}: check user and password")))?;
        Ok(ImapSession::new(login))
    }

    /// Waits for an answer, at most `ANSWER_TIMEOUT`.
    pub(super) async fn await_answer<T>(
        &self,
        request: impl Future<Output = Result<T, String>>,
    ) -> Result<T, StreamError> {
        timeout(ANSWER_TIMEOUT, request)
            .await
            .map_err(|_| self.server_error("no answer in time"))?
            .map_err(|e| self.server_error(e))
    }

    async fn open_transport(&self) -> Result<Box<dyn ImapTransport>, StreamError> {
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(|e| self.server_error(e))?;
        if !self.tls {
            return Ok(Box::new(tcp));
        }
        let name = ServerName::try_from(self.host.clone()).map_err(|e| self.server_error(e))?;
        let connector = TlsConnector::from(Arc::new(self.build_tls_config()?));
        Ok(Box::new(connector.connect(name, tcp).await.map_err(|e| self.server_error(e))?))
    }

    fn build_tls_config(&self) -> Result<ClientConfig, StreamError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(file) = &self.ca_file {
            let certificates =
                read_certificates(file).map_err(|e| self.server_error(format!("ca_file: {}: {e}", file.display())))?;
            roots.add_parsable_certificates(certificates);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        Ok(config.map_err(|e| self.server_error(e))?.with_root_certificates(roots).with_no_client_auth())
    }

    /// Builds an error from the server's message. The password is removed in case the server repeated it.
    fn server_error(&self, message: impl fmt::Display) -> StreamError {
        let text: String = self.password.redact_from(&message.to_string()).chars().take(300).collect();
        StreamError::Server { server: format!("{}:{}", self.host, self.port), message: text }
    }
}

/// Reports whether a host is this machine, without asking the network.
pub(super) fn is_local_host(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, rustls::pki_types::pem::Error> {
    CertificateDer::pem_file_iter(file)?.collect()
}
