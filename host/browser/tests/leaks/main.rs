//! Tests that fifty pages leave no processes, folders and file descriptors, and that a page has no unnecessary processes. This is a
//! separate test program, because it counts its file descriptors.

#[path = "../browser/chromium.rs"]
mod chromium;

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use opilio_browser::{
    BrowserSettings, FetchFuture, PageAction, PageBody, PageFetcher, PageSession, ScreenshotArea,
    full_body,
};

use chromium::TestPool;

const PAGES: usize = 50;

/// Lock of the running test. Tests must not run at the same time, because each would count descriptors of the other.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

struct OnePage;

impl PageFetcher for OnePage {
    fn fetch(&self, request: Request<PageBody>) -> FetchFuture<'_, Response<PageBody>> {
        let body = match request.uri().path() {
            "/" => "<!doctype html><iframe src=//other.test/frame></iframe><img src=/a.png>",
            _ => "text",
        };
        Box::pin(async move {
            let response = Response::builder().header("content-type", "text/html");
            Ok(response.body(full_body(body)).expect("a valid response"))
        })
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("a Linux").count()
}

/// Returns running processes with the folder in their command line or environment, and other processes of their groups.
fn processes(folder: &str) -> Vec<String> {
    let read = |process: &Path, name: &str| {
        let bytes = fs::read(process.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let group = |process: &Path| {
        let stat = read(process, "stat");
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let is_running = fields.next() != Some("Z");
        is_running.then(|| fields.nth(1).map(str::to_owned))?
    };
    let all = fs::read_dir("/proc").expect("a Linux").flatten();
    let all: Vec<PathBuf> = all.map(|it| it.path()).collect();
    let is_own = |it: &&PathBuf| it.ends_with(std::process::id().to_string());
    let names_it = |it: &&PathBuf| {
        let texts = read(it, "cmdline") + &read(it, "environ");
        texts.contains(folder) && !is_own(it)
    };
    let groups: Vec<String> = all
        .iter()
        .filter(names_it)
        .filter_map(|it| group(it))
        .collect();
    let is_ours = |it: &&PathBuf| group(it).is_some_and(|it| groups.contains(&it));
    let ours = all.iter().filter(is_ours);
    ours.map(|it| it.display().to_string()).collect()
}

#[tokio::test]
async fn fifty_pages_leave_nothing_behind() {
    let _alone = ALONE.lock().await;
    let change = |it: &mut BrowserSettings| {
        it.pages_max = 20;
        it.idle_time = Duration::from_millis(50);
    };
    let Some(test) = TestPool::with(change).await else {
        return;
    };
    let folder = test.folder.path().to_string_lossy().into_owned();
    let run = async || {
        let mut page = PageSession::open(&test.pool, Arc::new(OnePage))
            .await
            .expect("a browser");
        page.load("https://site.test/").await.expect("a page");
        let scroll = PageAction::Scroll(opilio_browser::ScrollTarget::Bottom);
        page.act(&scroll).await.expect("it scrolls");
        page.screenshot(ScreenshotArea::Thumbnail)
            .await
            .expect("a picture");
        page.close().await;
    };
    let before = descriptors();
    run().await;
    assert!(
        !processes(&folder).is_empty(),
        "a browser waits for the next page"
    );
    let one_page = descriptors();
    for _ in 1..PAGES {
        run().await;
    }
    // Tasks of closed connections may end later on a busy machine.
    until("descriptors are closed", || descriptors() <= one_page + 2).await;
    assert_eq!(test.pool.figures().started, 3);
    // The browser of a dropped page is ended.
    drop(
        PageSession::open(&test.pool, Arc::new(OnePage))
            .await
            .expect("a browser"),
    );
    test.close().await;
    // Killed processes may also end later.
    until("processes have ended", || processes(&folder).is_empty()).await;
    until("all descriptors are closed", || descriptors() <= before).await;
}

/// Returns the [`processes`] that are renderers.
fn renderers(folder: &str) -> Vec<String> {
    let mut all = processes(folder);
    all.retain(|process| {
        let line = fs::read(Path::new(process).join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("--type=renderer")
    });
    all
}

#[tokio::test]
async fn a_browser_has_no_renderers_besides_those_of_its_page() {
    let _alone = ALONE.lock().await;
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let folder = test.folder.path().to_string_lossy().into_owned();
    for _ in 0..2 {
        let mut page = PageSession::open(&test.pool, Arc::new(OnePage))
            .await
            .expect("a browser");
        page.load("https://site.test/").await.expect("a page");
        // Renderers of the browser itself would be started with the window and its first picture.
        page.screenshot(ScreenshotArea::View)
            .await
            .expect("a picture");
        let there = renderers(&folder);
        assert!(!there.is_empty(), "{:?}", processes(&folder));
        // One renderer for the page and one for its frame of another site. The renderer before the first document may end later.
        until("others have ended", || renderers(&folder).len() <= 2).await;
        page.close().await;
    }
    test.close().await;
}

/// Environment variable with a folder. If it is set, the test below keeps a page open in this folder until it is killed.
const HOLD: &str = "OPILIO_TEST_HOLD_PAGE_IN";

#[tokio::test]
async fn a_page_is_kept_open_for_the_next_test() {
    let Some(folder) = std::env::var_os(HOLD) else {
        return;
    };
    let pool = opilio_browser::BrowserPool::new(chromium::settings(), &folder).await;
    let pool = pool.expect("a folder of the other test");
    let _page = PageSession::open(&pool, Arc::new(OnePage))
        .await
        .expect("a browser");
    fs::write(Path::new(&folder).join("open"), "").expect("a folder of the other test");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_crawl_that_is_killed_leaves_no_browser() {
    let _alone = ALONE.lock().await;
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let folder = test.folder.path().join("killed");
    let path = folder.to_string_lossy().into_owned();
    let program = std::env::current_exe().expect("this test");
    let mut crawl = std::process::Command::new(program)
        .args(["--exact", "a_page_is_kept_open_for_the_next_test"])
        .env(HOLD, &folder)
        .process_group(0)
        .spawn()
        .expect("this test can run");
    until("a page is open", || folder.join("open").exists()).await;
    assert!(processes(&path).len() > 3, "{:?}", processes(&path));
    crawl.kill().expect("it runs");
    crawl.wait().expect("it is killed");
    until("processes have ended", || processes(&path).is_empty()).await;
    fs::remove_file(folder.join("open")).expect("the folder is ours");
    // The next start removes the profile.
    let next = opilio_browser::BrowserPool::new(chromium::settings(), &folder).await;
    next.expect("the folder can be used");
    assert_eq!(
        fs::read_dir(&folder).expect("the folder is ours").count(),
        0
    );
    fs::remove_dir(&folder).expect("the folder is ours");
    test.close().await;
}

/// Time limit of each wait, sufficient for slow machines.
const PATIENCE: Duration = Duration::from_secs(180);

/// Waits for a condition outside this process, or for tasks in it.
async fn until(what: &str, happened: impl Fn() -> bool) {
    let end = std::time::Instant::now() + PATIENCE;
    while !happened() {
        assert!(
            std::time::Instant::now() < end,
            "waited in vain until {what}; {} descriptors",
            descriptors()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
