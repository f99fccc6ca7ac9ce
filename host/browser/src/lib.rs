//! Chromium behind a recording proxy, for rendering pages in a crawl.
//!
//! [`BrowserPool`] finds and starts browsers. [`PageSession`] loads one page in a fresh browser context, reports a [`PageView`] to
//! behaviours, carries out their [`PageAction`]s, and extracts links, text and pictures. The browser has no network of its own:
//! every request of a page is passed to a [`PageFetcher`], which the crawl implements. This crate does not depend on scope,
//! robots.txt or archives, and opens no connection to any server.
//!
//! The README describes the security measures and their limits.

mod authority;
mod browser;
mod devtools;
mod error;
mod executable;
mod flags;
mod page;
mod page_fetcher;
mod pool;
mod process;
mod process_tree;
mod proxy;
mod settings;
mod traffic;

pub use error::{BrowserError, PageCut, PageError};
pub use executable::{BrowserExecutable, CHROMIUM_MIN, EXECUTABLES};
pub use page::{
    ActionResult, LoadResult, PageAction, PageContent, PageReport, PageSession, PageView,
    RenderedLink, ScreenshotArea, ScrollTarget,
};
pub use page_fetcher::{
    FetchFuture, FetchRejection, OpenedWebSocket, PageBody, PageFetcher, WebSocketStream, full_body,
};
pub use pool::{BrowserPool, PoolFigures};
pub use settings::{BrowserSettings, PageSettings, Viewport};
pub use traffic::{PageResource, ResourceResult};
