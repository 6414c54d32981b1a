//! Listens on an address and serves connections until the process ends.
//!
//! [`crate::http::app`] decides what each request gets. Connections that stay open, such as those of pages, do not keep
//! the process from ending. A connection without a request is closed after 10 s, and each address has a connection
//! limit. So a few silent or slow callers, with TLS or without, do not hold up the others.

mod certificate;
#[cfg(test)]
mod tests;
mod tls;

use crate::access::connection_limit::ConnectionLimiter;
use crate::access::proxy::TrustedProxies;
use crate::access::rate_limit;
use crate::http::starting;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use axum::serve::Listener;
use chrono::{DateTime, Utc};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tls::ReloadingTlsAcceptor;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};
use tower_http::timeout::TimeoutBody;
use tower_service::Service;

pub use tls::{CertificateError, CertificateFiles};

/// The default address, which only this machine can reach.
pub const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8420);
/// How many ports after the default one are tried.
const NEXT_PORTS: u16 = 20;
/// How long open responses may take when the process ends: 2 s.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// The log reports refused connections at most once in this time: 60 s.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Limits on connections.
#[derive(Clone, Copy)]
struct ConnectionLimits {
    /// How long a TLS handshake may take, and then the first request.
    patience: Duration,
    /// How long a used connection may be idle with no response open, and how long a request's body may pause.
    idle: Duration,
    /// Most connections of one address that is not a trusted proxy; for IPv6, of one /64 network.
    per_address: usize,
    /// Most connections of all addresses.
    in_total: usize,
}

/// 512 is half of the files that a process may usually have open.
const LIMITS: ConnectionLimits = ConnectionLimits {
    patience: Duration::from_secs(10),
    idle: Duration::from_secs(30),
    per_address: 128,
    in_total: 512,
};

/// An address on which this process listens.
pub struct BoundListener {
    listener: TcpListener,
    pub address: SocketAddr,
}

impl BoundListener {
    /// Binds an address. Without a set address, the default one or the next free port after it is used, because a
    /// machine may have several vaults. A set address is used exactly.
    ///
    /// # Errors
    /// When the address is in use or does not belong to this machine.
    pub async fn bind(set: Option<SocketAddr>) -> io::Result<Self> {
        let first = set.unwrap_or(DEFAULT_ADDRESS);
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

    /// Serves until `stop` becomes `true`. Until [`RunningServer::replace_router`] sets a router, every request gets a
    /// 503.
    ///
    /// # Errors
    /// [`CertificateError`] when the certificate cannot be used. A failure of the socket later goes to the log.
    pub fn serve(
        self,
        transport: TransportSettings,
        stop: watch::Receiver<bool>,
    ) -> Result<RunningServer, CertificateError> {
        self.serve_with_limits(LIMITS, transport, stop)
    }

    fn serve_with_limits(
        self,
        limits: ConnectionLimits,
        transport: TransportSettings,
        stop: watch::Receiver<bool>,
    ) -> Result<RunningServer, CertificateError> {
        let (end, certificate_end) = watch::channel(None);
        let tls = transport.certificate.map(|files| ReloadingTlsAcceptor::new(files, end)).transpose()?;
        let (router_sender, router) = watch::channel(starting::build_starting_router());
        let handler = ConnectionHandler { router, limits, stop };
        let task = tokio::spawn(accept_connections(self.listener, tls, transport.proxies, handler));
        Ok(RunningServer { address: self.address, certificate_end, router_sender, task })
    }
}

/// How connections are encrypted, and which of them come from proxies.
#[derive(Default)]
pub struct TransportSettings {
    /// The server's certificate; `None` means no TLS.
    pub certificate: Option<CertificateFiles>,
    /// Addresses that carry the requests of many callers, so the limit per address does not apply to them.
    pub proxies: TrustedProxies,
}

/// A server that runs.
pub struct RunningServer {
    pub address: SocketAddr,
    /// When the certificate in use ends; `None` without TLS.
    pub certificate_end: watch::Receiver<Option<DateTime<Utc>>>,
    router_sender: watch::Sender<Router>,
    task: JoinHandle<()>,
}

impl RunningServer {
    /// Replaces the router for new requests. Open requests end with the router that they began with.
    pub fn replace_router(&self, router: Router) {
        drop(self.router_sender.send_replace(router));
    }

    /// Waits until the server has ended, after `stop` became `true`.
    pub async fn wait_until_ended(self) {
        // A panic of the task is in the log already.
        let _ = self.task.await;
    }
}

/// Serves the requests of all connections with the current router.
#[derive(Clone)]
struct ConnectionHandler {
    router: watch::Receiver<Router>,
    limits: ConnectionLimits,
    stop: watch::Receiver<bool>,
}

impl ConnectionHandler {
    async fn handle_request(self, peer: SocketAddr, request: Request<Incoming>) -> Result<Response, Infallible> {
        let mut request = request.map(|body| Body::new(TimeoutBody::new(self.limits.idle, body)));
        request.extensions_mut().insert(ConnectInfo(peer));
        let mut router = self.router.borrow().clone();
        router.call(request).await
    }
}

/// Accepts connections until `stop` becomes `true`. `axum::serve` limits neither the handshake, nor the first request,
/// nor a silent connection, nor the connections of one address. So connections are accepted here.
async fn accept_connections(
    mut listener: TcpListener,
    mut tls: Option<ReloadingTlsAcceptor>,
    proxies: TrustedProxies,
    handler: ConnectionHandler,
) {
    let limits = handler.limits;
    let (limiter, mut stop) = (ConnectionLimiter::new(limits.per_address, limits.in_total), handler.stop.clone());
    let mut logged_at = None;
    let mut connections = JoinSet::new();
    let mut recheck = tokio::time::interval(tls::CHECK_INTERVAL);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            // A connection that stays open, such as that of a scraper, would never see a new certificate's end.
            _ = recheck.tick(), if tls.is_some() => {
                tls.as_mut().map(ReloadingTlsAcceptor::refresh_acceptor);
                continue;
            }
            // An error means that the sender is gone. That ends the server as well.
            _ = stop.wait_for(|stop| *stop) => break,
        };
        while connections.try_join_next().is_some() {}
        let Some(permit) = limiter.acquire(rate_limit::group_address(peer.ip()), proxies.contains_address(peer.ip()))
        else {
            if logged_at.is_none_or(|at: Instant| at.elapsed() > LOG_INTERVAL) {
                tracing::warn!(from = %peer.ip(), "closed a connection: its address, or the server, has too many open");
                logged_at = Some(Instant::now());
            }
            continue;
        };
        let (acceptor, handler) = (tls.as_mut().map(ReloadingTlsAcceptor::refresh_acceptor), handler.clone());
        connections.spawn(async move {
            let _permit = permit;
            // Responses are written in one piece, so waiting for more data would only delay them.
            let _ = stream.set_nodelay(true);
            match acceptor {
                None => serve_connection(stream, peer, handler).await,
                Some(acceptor) => {
                    if let Ok(Some(stream)) =
                        tokio::time::timeout(handler.limits.patience, tls::accept_tls(stream, acceptor)).await
                    {
                        serve_connection(stream, peer, handler).await;
                    }
                }
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(SHUTDOWN_GRACE, async { while connections.join_next().await.is_some() {} }).await;
}

/// Serves one connection until the caller closes it, it is idle for too long, or `stop` becomes `true`.
async fn serve_connection<S>(stream: S, peer: SocketAddr, handler: ConnectionHandler)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (request_seen, mut stop) = (Arc::new(Notify::new()), handler.stop.clone());
    let ConnectionLimits { patience, idle, .. } = handler.limits;
    // Each request holds a clone until its response has been read or given up. So the count shows open responses.
    let open_responses = Arc::new(());
    let service = service_fn({
        let (request_seen, open_responses) = (Arc::clone(&request_seen), Arc::downgrade(&open_responses));
        move |request| {
            request_seen.notify_one();
            let (response, open) = (handler.clone().handle_request(peer, request), open_responses.upgrade());
            async move {
                let response = response.await?;
                let keep_open = move |frame| {
                    let _open_until_read = &open;
                    frame
                };
                Ok::<_, Infallible>(response.map(|body| Body::new(body.map_frame(keep_open))))
            }
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(idle);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(idle).keep_alive_timeout(patience);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // An error here is the caller's, so it is not reported.
        _ = connection.as_mut() => return,
        first = tokio::time::timeout(patience, request_seen.notified()) => if first.is_err() { return },
    }
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = stop.wait_for(|stop| *stop) => break,
            next = tokio::time::timeout(idle, request_seen.notified()) => {
                if next.is_err() && Arc::strong_count(&open_responses) == 1 { break }
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
