//! A local server that keeps what it was asked and answers as told.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

#[derive(Clone)]
pub(crate) enum Behaviour {
    /// Status, headers, body.
    Says(u16, Vec<(&'static str, String)>, String),
    /// Never answers.
    Silent,
    /// Begins to answer and never ends.
    Stalls,
    /// Sends without end.
    Endless,
    /// Begins to answer and drops the connection.
    Drops,
}

pub(crate) struct Server {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Clone)]
struct Shared {
    behaviour: Behaviour,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(crate) async fn start(behaviour: Behaviour) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::default();
        let shared = Shared { behaviour, asked: Arc::clone(&asked) };
        let router = Router::new().fallback(answer).with_state(shared);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, asked }
    }

    pub(crate) async fn json(body: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self::start(Behaviour::Says(200, headers, body.to_string())).await
    }

    pub(crate) async fn status(status: u16, body: &str) -> Self {
        Self::start(Behaviour::Says(status, Vec::new(), body.to_owned())).await
    }

    pub(crate) fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    pub(crate) fn first(&self) -> Asked {
        self.asked.lock().unwrap().remove(0)
    }
}

async fn answer(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    shared.asked.lock().unwrap().push(Asked { method, uri, headers, body });
    let start = || Ok::<_, std::io::Error>(Bytes::from_static(b"{\"id\": ["));
    let body = match shared.behaviour {
        Behaviour::Says(status, headers, body) => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            return response.body(Body::from(body)).unwrap();
        }
        Behaviour::Silent => std::future::pending().await,
        Behaviour::Stalls => {
            let rest = futures_util::stream::pending();
            Body::from_stream(futures_util::StreamExt::chain(futures_util::stream::iter([start()]), rest))
        }
        Behaviour::Endless => Body::from_stream(futures_util::stream::repeat_with(|| {
            Ok::<_, Infallible>(Bytes::from_static(&[b' '; 4096]))
        })),
        Behaviour::Drops => {
            let breaks = Err(std::io::Error::other("cut"));
            Body::from_stream(futures_util::stream::iter([start(), breaks]))
        }
    };
    Response::new(body)
}
