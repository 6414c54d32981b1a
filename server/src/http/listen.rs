//! The address that is listened on, and serving there until told to end.
//!
//! Who may come in and what they get is [`crate::http::app`]'s. Connections that stay open, as those of pages do, do not keep
//! the process from ending. Whoever connects and asks nothing is let go in 10 s, and no address has more than its seats, so
//! that a few callers who are silent or slow, by TLS or without, hold up nobody else.

#[cfg(test)]
mod tests;
mod tls;

use crate::access::connection_limit::ConnectionLimiter;
use crate::access::proxy::TrustedProxies;
use crate::access::rate_limit;
use crate::http::app;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use axum::serve::Listener;
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

/// Where is listened where nobody says so: this machine alone.
pub const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8420);
/// How many ports after the default one are tried.
const NEXT_PORTS: u16 = 20;
/// How long those who are being answered get to hear the rest when the process ends: 2 s.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How often it is told at most that callers are let go: once a minute.
const TOLD_AGAIN: Duration = Duration::from_secs(60);

/// What callers may take of us.
#[derive(Clone, Copy)]
struct ConnectionLimits {
    /// How long a caller may take to agree on a key, and then to ask the first thing.
    patience: Duration,
    /// How long a connection that has been used may lie still with nothing to answer, and how long what is sent with a
    /// request may pause.
    idle: Duration,
    /// Most connections of one address that is no trusted proxy; of IPv6 of one network.
    of_each: usize,
    /// Most connections of all.
    of_all: usize,
}

/// 512 is half of the files that a process may usually have open.
const LIMITS: ConnectionLimits =
    ConnectionLimits { patience: Duration::from_secs(10), idle: Duration::from_secs(30), of_each: 128, of_all: 512 };

/// An address that is taken, by us.
pub struct BoundListener {
    listener: TcpListener,
    pub address: SocketAddr,
}

impl BoundListener {
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

    /// Serves until the flag is raised. Until [`RunningServer::replace_router`] says how, everybody is told to come again.
    ///
    /// # Errors
    /// [`CertificateError`] at once when the certificate cannot be used; a socket that fails is told in the log.
    pub fn serve(self, way: TransportSettings, stop: watch::Receiver<bool>) -> Result<RunningServer, CertificateError> {
        self.serve_with_limits(LIMITS, way, stop)
    }

    fn serve_with_limits(
        self,
        limits: ConnectionLimits,
        way: TransportSettings,
        stop: watch::Receiver<bool>,
    ) -> Result<RunningServer, CertificateError> {
        let secure = way.certificate.map(ReloadingTlsAcceptor::new).transpose()?;
        let (shows, router) = watch::channel(app::build_starting_router());
        let door = ConnectionHandler { router, limits, stop };
        let task = tokio::spawn(accept_connections(self.listener, (secure, way.proxies), door));
        Ok(RunningServer { address: self.address, shows, task })
    }
}

/// How callers come.
#[derive(Default)]
pub struct TransportSettings {
    /// Everything is encrypted with it.
    pub certificate: Option<CertificateFiles>,
    /// Many callers come from these addresses, so each of them is none.
    pub proxies: TrustedProxies,
}

/// An address that is listened on.
pub struct RunningServer {
    pub address: SocketAddr,
    shows: watch::Sender<Router>,
    task: JoinHandle<()>,
}

impl RunningServer {
    /// From now on this answers; requests under way end with the one that they began with.
    pub fn replace_router(&self, router: Router) {
        drop(self.shows.send_replace(router));
    }

    /// Waits for the end, which follows the flag.
    pub async fn wait_until_ended(self) {
        // Whoever panicked has said why.
        let _ = self.task.await;
    }
}

/// Who answers now.
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

async fn accept_connections(
    mut listener: TcpListener,
    (mut secure, proxies): (Option<ReloadingTlsAcceptor>, TrustedProxies),
    door: ConnectionHandler,
) {
    let (seats, mut stop) = (ConnectionLimiter::new(door.limits.of_each, door.limits.of_all), door.stop.clone());
    let mut told = None;
    let mut callers = JoinSet::new();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            // An error means that the sender is gone, which is an end as well.
            _ = stop.wait_for(|stop| *stop) => break,
        };
        while callers.try_join_next().is_some() {}
        let Some(seat) = seats.acquire(rate_limit::group_address(peer.ip()), proxies.contains_address(peer.ip()))
        else {
            if told.is_none_or(|told: Instant| told.elapsed() > TOLD_AGAIN) {
                tracing::warn!(from = %peer.ip(), "a caller was let go: all connections of their address, or of all, are taken");
                told = Some(Instant::now());
            }
            continue;
        };
        let (acceptor, door) = (secure.as_mut().map(ReloadingTlsAcceptor::refresh_acceptor), door.clone());
        callers.spawn(async move {
            let _seat = seat;
            // What is sent is sent whole, and waits for nothing.
            let _ = stream.set_nodelay(true);
            match acceptor {
                None => serve_connection(stream, peer, door).await,
                Some(acceptor) => {
                    if let Ok(Some(stream)) =
                        tokio::time::timeout(door.limits.patience, tls::accept_tls(stream, acceptor)).await
                    {
                        serve_connection(stream, peer, door).await;
                    }
                }
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(LAST_WORDS, async { while callers.join_next().await.is_some() {} }).await;
}

/// Answers what one caller asks, until they go, ask nothing in time, or the flag is raised.
async fn serve_connection<S>(stream: S, peer: SocketAddr, door: ConnectionHandler)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (asked, mut stop) = (Arc::new(Notify::new()), door.stop.clone());
    let ConnectionLimits { patience, idle, .. } = door.limits;
    // Each request holds one of it, until its answer has been read or given up.
    let held = Arc::new(());
    let service = service_fn({
        let (asked, held) = (Arc::clone(&asked), Arc::downgrade(&held));
        move |request| {
            asked.notify_one();
            let (answered, one) = (door.clone().handle_request(peer, request), held.upgrade());
            async move {
                let response = answered.await?;
                let keeps = move |frame| {
                    let _of_this_request = &one;
                    frame
                };
                Ok::<_, Infallible>(response.map(|body| Body::new(body.map_frame(keeps))))
            }
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(idle);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(idle).keep_alive_timeout(patience);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // How it ended is the caller's affair.
        _ = connection.as_mut() => return,
        first = tokio::time::timeout(patience, asked.notified()) => if first.is_err() { return },
    }
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = stop.wait_for(|stop| *stop) => break,
            more = tokio::time::timeout(idle, asked.notified()) => {
                if more.is_err() && Arc::strong_count(&held) == 1 { break }
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
