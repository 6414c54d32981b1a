//! A gate before a server, which a test closes and opens: the server of a network that was cut.
//!
//! A closed gate holds back the answers alone, so that what was asked is done and nobody hears of it. A cut one holds back
//! both directions. What was held back passes once the gate is open.

use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Stands between a process and its server. While it is closed it passes on nothing from the server.
pub struct Gate {
    /// `127.0.0.1:<port>`, which the process uses instead of the server's.
    pub address: String,
    server: Arc<Mutex<String>>,
    passage: Arc<watch::Sender<Passage>>,
    ports: Arc<Mutex<Vec<u16>>>,
}

/// What passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passage {
    All,
    /// From the process to the server.
    RequestsAlone,
    Nothing,
}

/// Which way a stream goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Request,
    Answer,
}

impl Gate {
    /// A gate before the server at this address.
    pub async fn new(server: &str) -> Self {
        let server = Arc::new(Mutex::new(server.to_owned()));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let passage = Arc::new(watch::channel(Passage::All).0);
        let (gate, place) = (Arc::clone(&passage), Arc::clone(&server));
        let ports: Arc<Mutex<Vec<u16>>> = Arc::default();
        let used = Arc::clone(&ports);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let present = place.lock().unwrap().clone();
                // Without a server the connection ends, as one that is refused.
                let Ok(far) = TcpStream::connect(&present).await else { continue };
                used.lock().unwrap().push(far.local_addr().unwrap().port());
                let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                tokio::spawn(pass(near_in, far_out, Direction::Request, gate.subscribe()));
                tokio::spawn(pass(far_in, near_out, Direction::Answer, gate.subscribe()));
            }
        });
        Self { address, server, passage, ports }
    }

    /// The ports from which it has connected to the server, by which the server knows whose request one was.
    ///
    /// # Panics
    /// Never: nobody panics while they hold the lock.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        self.ports.lock().unwrap().clone()
    }

    /// Leads new connections to another server.
    ///
    /// # Panics
    /// Never: nobody panics while they hold the lock.
    pub fn lead_to(&self, server: &str) {
        server.clone_into(&mut self.server.lock().unwrap());
    }

    /// Holds back what the server says.
    pub fn close(&self) {
        self.passage.send_replace(Passage::RequestsAlone);
    }

    /// Holds back everything.
    pub fn cut(&self) {
        self.passage.send_replace(Passage::Nothing);
    }

    /// Lets everything pass again.
    pub fn open(&self) {
        self.passage.send_replace(Passage::All);
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    direction: Direction,
    mut gate: watch::Receiver<Passage>,
) {
    let passes = |passage: &Passage| match passage {
        Passage::All => true,
        Passage::RequestsAlone => direction == Direction::Request,
        Passage::Nothing => false,
    };
    let mut bytes = vec![0; 16_384];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        // An error means that the test is over.
        let _ = gate.wait_for(passes).await;
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
