//! Pages in a real Chromium, served on loopback through a fetcher.

mod chromium;
mod documents;
mod executables;
mod limits;
mod network;
mod pages;
mod site;
