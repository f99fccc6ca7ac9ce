//! The fetcher against servers on loopback that send scripted bytes.

#![allow(clippy::unwrap_used, reason = "tests")]

mod exchange;
mod ftp;
mod http2;
mod limits;
mod proxy;
mod robots;
mod server;
mod tap;
mod tls;
