//! The fetcher against servers on loopback that say exactly what a test tells them to.

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
