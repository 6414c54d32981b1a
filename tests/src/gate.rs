//! A gate before a server, which a test closes and opens: the server of a network that was cut.

use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Stands between a process and its server. While it is closed it passes on nothing from the server.
pub struct Gate {
    /// `127.0.0.1:<port>`, which the process uses instead of the server's.
    pub address: String,
    open: Arc<watch::Sender<bool>>,
}

impl Gate {
    /// A gate before the server at this address.
    pub async fn new(server: &str) -> Self {
        let server = server.to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let open = Arc::new(watch::channel(true).0);
        let gate = Arc::clone(&open);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(&server).await.unwrap();
                let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                tokio::spawn(pass(near_in, far_out, None));
                tokio::spawn(pass(far_in, near_out, Some(gate.subscribe())));
            }
        });
        Self { address, open }
    }

    /// Holds back what the server says.
    pub fn close(&self) {
        self.open.send_replace(false);
    }

    /// Lets it pass again.
    pub fn open(&self) {
        self.open.send_replace(true);
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut gate: Option<watch::Receiver<bool>>,
) {
    let mut bytes = vec![0; 16_384];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if let Some(gate) = &mut gate {
            // An error means that the test is over.
            let _ = gate.wait_for(|open| *open).await;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
