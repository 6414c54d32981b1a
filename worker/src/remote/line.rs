//! The connection to a server: in the clear on this machine, or by TLS.
//!
//! A server of this vault shows the certificate that stands in its note, and no other is taken: whoever may read the note
//! may read that file. What it is good for must be the name that was set, or the address. A server elsewhere is held
//! against the authorities of this machine, as in a browser.

use anyhow::{Context, bail};
use axum::http::Uri;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Polled, Poll};
use std::time::Duration;
use steward_server::http::serving::ServerEndpoint;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tower_service::Service;

/// How long a connection on this machine may take: 2 s.
pub(super) const NEAR: Duration = Duration::from_secs(2);
/// How long one to another machine may take: 10 s.
const FAR: Duration = Duration::from_secs(10);
/// Longer than the server waits for an answer itself, which then says so: 75 s.
const PATIENCE: Duration = Duration::from_secs(75);

/// To a server of a vault of this machine.
///
/// # Errors
/// When nobody answers there, or another than the note says.
pub(super) async fn open_local_channel(door: &ServerEndpoint) -> anyhow::Result<Channel> {
    let address = find_reachable_address(door.listen);
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?.connect_timeout(NEAR).timeout(PATIENCE);
    let shown = match (door.encrypted, &door.certificate) {
        (false, _) => return Ok(endpoint.connect().await?),
        (true, None) => bail!("its note does not name the certificate"),
        (true, Some(shown)) => shown,
    };
    let name = match &door.host {
        Some(host) => host.split(':').next().unwrap_or_default().to_owned(),
        None => address.ip().to_string(),
    };
    let name = ServerName::try_from(name).context("the first of STEWARD_HOSTS is no name")?;
    let agreeing =
        PinnedTlsConnector { address, name, connector: TlsConnector::from(Arc::new(pin_certificate(shown)?)) };
    let origin = Uri::try_from(format!("https://{address}"))?;
    Ok(endpoint.origin(origin).connect_with_connector(agreeing).await?)
}

/// To a server of another machine or user, as in `https://steward.example`.
///
/// # Errors
/// When nobody answers there, or the certificate is not one that this machine trusts.
pub(super) async fn open_remote_channel(server: &str) -> anyhow::Result<Channel> {
    let endpoint = Endpoint::from_shared(server.to_owned())?.connect_timeout(FAR).timeout(PATIENCE);
    let endpoint = match server.starts_with("https://") {
        true => endpoint.tls_config(ClientTlsConfig::new().with_native_roots())?,
        false => endpoint,
    };
    Ok(endpoint.connect().await?)
}

/// An address that a process which listens everywhere is reached by.
fn find_reachable_address(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// Connects, and agrees on a key.
#[derive(Clone)]
struct PinnedTlsConnector {
    address: SocketAddr,
    name: ServerName<'static>,
    connector: TlsConnector,
}

impl Service<Uri> for PinnedTlsConnector {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Polled<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { address, name, connector } = self.clone();
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            Ok(TokioIo::new(connector.connect(name, stream).await?))
        })
    }
}

/// Trusts the first certificate of a file and no other.
fn pin_certificate(file: &Path) -> anyhow::Result<ClientConfig> {
    let failed = || format!("failed to read {}", file.display());
    let leaf = CertificateDer::pem_file_iter(file).with_context(failed)?.next().with_context(failed)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = PinnedCertificateVerifier { leaf: leaf.with_context(failed)?, provider: Arc::clone(&provider) };
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

#[derive(Debug)]
struct PinnedCertificateVerifier {
    leaf: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificateVerifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *shown != self.leaf {
            return Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure));
        }
        verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, shown, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, shown, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_everywhere_is_asked_on_this_machine() {
        for (listen, asked) in [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:2", "[::1]:2"), ("10.0.0.1:3", "10.0.0.1:3")] {
            assert_eq!(find_reachable_address(listen.parse().unwrap()), asked.parse().unwrap());
        }
    }
}
