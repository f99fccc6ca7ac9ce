//! A server that knows no HTTP: it sends the bytes it was given and keeps the bytes it got.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Data of one connection.
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// Path and query asked for.
    pub target: String,
    /// Bytes that came.
    pub request: Vec<u8>,
    /// Bytes that were sent.
    pub response: Vec<u8>,
}

/// A server of given bytes. One exchange a connection.
pub struct Raw {
    address: SocketAddr,
    exchanges: Arc<Mutex<Vec<Exchanged>>>,
}

/// Serves these bytes for these targets, and closes the connection without a byte for all others.
pub fn raw(pages: Vec<(&'static str, Vec<u8>)>) -> Raw {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let exchanges = Arc::<Mutex<Vec<Exchanged>>>::default();
    let kept = exchanges.clone();
    // Ends with the process: a listener that blocks cannot be told.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = read_head(&mut stream);
            let target = String::from_utf8_lossy(&request)
                .split(' ')
                .nth(1)
                .unwrap_or_default()
                .to_owned();
            let response = pages
                .iter()
                .find(|(page, _)| *page == target)
                .map(|(_, bytes)| bytes.clone());
            let response = response.unwrap_or_default();
            kept.lock().unwrap().push(Exchanged {
                target,
                request,
                response: response.clone(),
            });
            // A client that goes away is the client's business.
            let _ = stream.write_all(&response);
        }
    });
    Raw { address, exchanges }
}

fn read_head(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    head
}

impl Raw {
    /// A URL of this server under a name.
    pub fn url(&self, host: &str, target: &str) -> String {
        format!("http://{host}:{}{target}", self.address.port())
    }

    /// All exchanges so far.
    pub fn exchanges(&self) -> Vec<Exchanged> {
        self.exchanges.lock().unwrap().clone()
    }
}
