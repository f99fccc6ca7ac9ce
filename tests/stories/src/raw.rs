//! A server of raw bytes: it sends the given bytes, and records the bytes that it receives.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Data of one connection.
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// Path and query of the request.
    pub target: String,
    /// Bytes that the server received.
    pub request: Vec<u8>,
    /// Bytes that the server sent.
    pub response: Vec<u8>,
}

/// A server that sends the given bytes, with one exchange per connection.
pub struct Raw {
    address: SocketAddr,
    exchanges: Arc<Mutex<Vec<Exchanged>>>,
}

/// Serves these targets with these bytes. For other targets, closes the connection without a response.
pub fn raw(pages: Vec<(&'static str, Vec<u8>)>) -> Raw {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let exchanges = Arc::<Mutex<Vec<Exchanged>>>::default();
    let recorded = exchanges.clone();
    // The thread ends with the process: a blocked listener cannot be stopped.
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
            recorded.lock().unwrap().push(Exchanged {
                target,
                request,
                response: response.clone(),
            });
            // The client may have closed the connection.
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
    /// Returns a URL of this server with this host name.
    pub fn url(&self, host: &str, target: &str) -> String {
        format!("http://{host}:{}{target}", self.address.port())
    }

    /// Returns all exchanges so far.
    pub fn exchanges(&self) -> Vec<Exchanged> {
        self.exchanges.lock().unwrap().clone()
    }
}
