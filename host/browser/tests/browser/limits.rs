//! Pages that exceed their limits, and browsers that crash.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use opilio_browser::{
    ActionResult, BrowserError, LoadResult, PageAction, PageCut, PageError, PageSession,
    PageSettings, ScrollTarget, Viewport,
};

use crate::chromium::{self, TestPool};
use crate::site::{Endless, NoNetwork, Site, html};

#[tokio::test]
async fn a_page_that_never_idles_is_marked_and_extracted() {
    let Some(test) = TestPool::with(|it| it.load_time_max = Duration::from_secs(5)).await else {
        return;
    };
    let busy = Endless("<p>busy</p><script>fetch('/endless')</script>");
    let mut page = PageSession::open(&test.pool, Arc::new(busy))
        .await
        .expect("a browser");
    let loaded = page.load("https://site.test/").await.expect("a page");
    assert_eq!(loaded, LoadResult::NotIdle);
    assert_eq!(page.extract().await.expect("content").text, "busy");
    assert_eq!(page.close().await.cut, None);
    test.close().await;
}

#[tokio::test]
async fn an_endless_script_is_stopped_and_the_page_is_extracted() {
    let change = |it: &mut opilio_browser::BrowserSettings| {
        it.load_time_max = Duration::from_secs(5);
        it.command_time_max = Duration::from_secs(5);
    };
    let Some(test) = TestPool::with(change).await else {
        return;
    };
    let endless = "<p>seen</p><script>setTimeout(() => { for (;;); })</script>";
    let site = Site::serve(|_| html(endless)).await;
    let mut page = PageSession::open(&test.pool, site)
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    assert_eq!(page.extract().await.expect("content").text, "seen");
    page.close().await;
    test.close().await;
}

#[tokio::test]
async fn a_page_that_exceeds_the_memory_limit_is_cut_and_its_browser_replaced() {
    let Some(test) = TestPool::with(|it| it.memory_max = 600 * 1024 * 1024).await else {
        return;
    };
    let greedy = Endless(
        "<script>
        fetch('/endless');
        const all = [];
        setInterval(() => all.push(new Uint8Array(20e6).fill(1)), 20);
        </script>",
    );
    let mut page = PageSession::open(&test.pool, Arc::new(greedy))
        .await
        .expect("a browser");
    let loaded = page.load("https://site.test/").await;
    assert!(
        matches!(loaded, Err(PageError::Cut(PageCut::Memory))),
        "{loaded:?}"
    );
    let report = page.close().await;
    assert_eq!(report.cut, Some(PageCut::Memory));
    assert!(report.memory_peak > 600 * 1024 * 1024, "{report:?}");
    let mut page = PageSession::open(&test.pool, Arc::new(NoNetwork))
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    page.close().await;
    let figures = test.pool.figures();
    assert_eq!((figures.started, figures.failed), (2, 1));
    assert_eq!(figures.running, 1);
    test.pool.close().await;
    assert_eq!(test.pool.figures().running, 0);
    test.close().await;
}

#[tokio::test]
async fn time_and_actions_of_a_page_have_their_limits() {
    let change = |it: &mut opilio_browser::BrowserSettings| {
        it.steps_max = 1;
        it.requests_max = 3;
    };
    let Some(test) = TestPool::with(change).await else {
        return;
    };
    let site = Site::serve(|_| {
        html("<p>page</p><script>for (let i = 0; i < 5; i++) fetch(`/${i}`)</script>")
    })
    .await;
    let mut page = PageSession::open(&test.pool, site.clone())
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    let scroll = PageAction::Scroll(ScrollTarget::Bottom);
    page.act(&scroll).await.expect("the first action");
    let second = page.act(&scroll).await;
    assert!(
        matches!(second, Err(PageError::Cut(PageCut::Steps))),
        "{second:?}"
    );
    assert_eq!(page.extract().await.expect("content").text, "page");
    let report = page.close().await;
    assert!(report.requests_refused >= 3, "{report:?}");
    assert_eq!(site.fetched().len(), 3);
    test.close().await;

    let Some(test) = TestPool::with(|it| it.page_time_max = Duration::from_secs(8)).await else {
        return;
    };
    let mut page = PageSession::open(&test.pool, site)
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    let script = "await new Promise(() => {})".to_owned();
    let waited = page.act(&PageAction::Evaluate { script }).await;
    assert!(
        matches!(waited, Err(PageError::Cut(PageCut::Time))),
        "{waited:?}"
    );
    assert_eq!(page.extract().await.expect("content").text, "page");
    page.close().await;
    test.close().await;
}

#[tokio::test]
async fn a_page_may_have_its_own_limits_and_window() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|_| {
        html("<p>page</p><script>for (let i = 0; i < 5; i++) fetch(`/${i}`)</script>")
    })
    .await;
    let of_pool = chromium::settings();
    let own = PageSettings {
        memory_max: of_pool.memory_max,
        page_time_max: of_pool.page_time_max,
        load_time_max: of_pool.load_time_max,
        requests_max: 3,
        viewport: Viewport {
            width: 700,
            height: 500,
            scale: 2.0,
        },
    };
    let script = "return `${innerWidth} ${innerHeight} ${devicePixelRatio}`".to_owned();
    for (own, window, refused) in [(Some(own), "700 500 2", true), (None, "1280 800 1", false)] {
        let page = match own {
            Some(own) => PageSession::open_for(&test.pool, site.clone(), own).await,
            None => PageSession::open(&test.pool, site.clone()).await,
        };
        let mut page = page.expect("a browser");
        page.load("https://site.test/").await.expect("a page");
        let action = PageAction::Evaluate {
            script: script.clone(),
        };
        let result = page.act(&action).await.expect("it runs");
        let is_it = matches!(&result, ActionResult::Value(it) if it.contains(window));
        assert!(is_it, "{result:?} is not {window}");
        let report = page.close().await;
        assert_eq!(report.requests_refused > 0, refused, "{report:?}");
    }
    test.close().await;
}

/// Kills the processes of the pool's browser whose command line contains this text. Processes that Chromium forks are recognised by
/// the browser's process group, because they have no environment of their own.
fn kill(folder: &Path, text: &str) {
    let folder = folder.to_string_lossy().into_owned();
    let read = |process: &Path, name: &str| {
        let bytes = fs::read(process.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let group = |process: &Path| {
        let stat = read(process, "stat");
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned());
        fields.and_then(|it| it.split_whitespace().nth(2).map(str::to_owned))
    };
    let processes = fs::read_dir("/proc").expect("a Linux").flatten();
    let processes: Vec<PathBuf> = processes.map(|it| it.path()).collect();
    let browser = processes.iter().find(|it| {
        let line = read(it, "cmdline");
        line.contains(&folder) && line.contains("--remote-debugging-pipe")
    });
    let group_of_browser = group(browser.expect("a browser runs"));
    let is_meant =
        |it: &&PathBuf| group(it) == group_of_browser && read(it, "cmdline").contains(text);
    let meant: Vec<String> = processes
        .iter()
        .filter(is_meant)
        .filter_map(|it| Some(it.file_name()?.to_string_lossy().into_owned()))
        .collect();
    assert!(!meant.is_empty(), "no process of {folder} has {text}");
    // A process may have ended in the meantime.
    let kill = format!("kill -9 {}; true", meant.join(" "));
    let status = Command::new("/bin/sh").args(["-c", &kill]).status();
    assert!(status.expect("a shell").success());
}

#[tokio::test]
async fn crashes_of_the_browser_and_of_its_page_are_reported() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let network = Arc::new(NoNetwork);
    let mut page = PageSession::open(&test.pool, network.clone())
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    kill(test.folder.path(), "--type=renderer");
    let viewed = page.view(&[]).await;
    assert!(
        matches!(viewed, Err(PageError::Cut(PageCut::Crashed))),
        "{viewed:?}"
    );
    assert_eq!(page.close().await.cut, Some(PageCut::Crashed));

    let mut page = PageSession::open(&test.pool, network.clone())
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    kill(test.folder.path(), "--remote-debugging-pipe");
    let viewed = page.view(&[]).await;
    let is_named = matches!(&viewed, Err(PageError::Browser(BrowserError::Crashed { status, .. })) if status.contains("9"));
    assert!(is_named, "{viewed:?}");
    let text = viewed.map(drop).expect_err("it crashed").to_string();
    assert!(text.contains("memory of the machine"), "{text}");
    page.close().await;

    // A browser that crashed between two pages is replaced.
    let page = PageSession::open(&test.pool, network.clone())
        .await
        .expect("a browser");
    page.close().await;
    kill(test.folder.path(), "--remote-debugging-pipe");
    let page = PageSession::open(&test.pool, network).await;
    // The crash may be detected only at the first command.
    if let Ok(page) = page {
        page.close().await;
    }
    test.close().await;
}
