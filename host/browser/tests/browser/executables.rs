//! Browsers that are missing, wrong or broken: each error names the remedy.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use opilio_browser::{BrowserError, BrowserPool, BrowserSettings, PageError, PageSession};
use tempfile::TempDir;

use crate::chromium::{TestPool, settings};
use crate::site::NoNetwork;

/// Creates an executable that answers `--version` like Chromium, and otherwise runs `start`.
fn script(folder: &Path, version: &str, start: &str) -> PathBuf {
    executable(
        folder,
        &format!("if [ \"$1\" = --version ]; then echo '{version}'; exit; fi\n{start}"),
    )
}

/// Creates an executable with these shell commands.
fn executable(folder: &Path, commands: &str) -> PathBuf {
    let path = folder.join("chromium");
    let text = format!("#!/bin/sh\n{commands}\n");
    fs::write(&path, text).expect("the folder is ours");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the file is ours");
    path
}

/// Returns the error of a browser at this path, from its check or its start.
async fn error_of(executable: PathBuf) -> BrowserError {
    let folder = TempDir::new().expect("a folder");
    let settings = BrowserSettings {
        executable: Some(executable),
        start_time_max: Duration::from_secs(5),
        ..settings()
    };
    let pool = match BrowserPool::new(settings, folder.path()).await {
        Ok(pool) => pool,
        Err(error) => return error,
    };
    let Err(error) = PageSession::open(&pool, Arc::new(NoNetwork)).await else {
        panic!("it has started");
    };
    let figures = pool.figures();
    let counts = (figures.running, figures.started, figures.failed_starts);
    assert_eq!(counts, (0, 0, 1), "{error}");
    error
}

#[tokio::test]
async fn each_problem_has_its_error_with_place_and_remedy() {
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    let check = async |executable: PathBuf, parts: &[&str]| {
        let error = error_of(executable).await;
        let text = error.to_string();
        for part in parts {
            assert!(text.contains(part), "{text}: {part}");
        }
        error
    };
    let missing = check(
        folder.join("missing"),
        &["missing is not a file", "apt-get"],
    )
    .await;
    assert!(matches!(missing, BrowserError::NotFound { .. }));

    let other = script(folder, "Mozilla Firefox 128.0", "");
    let other = check(other, &["Firefox", "set the path"]).await;
    assert!(matches!(other, BrowserError::NotChromium { .. }));

    let old = script(folder, "Chromium 90.0.1.2", "");
    let old = check(old, &["90.0.1.2", "120 or later"]).await;
    assert!(matches!(old, BrowserError::TooOld { .. }));

    let without_library = "echo 'error while loading shared libraries: libnss3.so' >&2; exit 127";
    let mute = executable(folder, without_library);
    let mute = check(
        mute,
        &["exit status: 127", "libnss3.so", "install the libraries"],
    )
    .await;
    assert!(matches!(mute, BrowserError::NotChromium { .. }));

    let broken = script(folder, "Chromium 156.0.1.2", without_library);
    let broken = check(broken, &["exit status: 127", "libnss3.so", "--dump-dom"]).await;
    assert!(matches!(broken, BrowserError::DoesNotStart { .. }));

    for message in [
        "FATAL: No usable sandbox! Update your kernel",
        "The setuid sandbox is not running as root.",
        "The SUID sandbox helper binary was found, but is not configured correctly.",
        "Failed to move to new namespace: errno = Operation not permitted",
        "FATAL:credentials.cc(127)] Check failed: . : Permission denied (13)",
    ] {
        let refused = script(
            folder,
            "Chromium 156.0.1.2",
            &format!("echo '{message}' >&2; exit 1"),
        );
        let parts = [message, "sandbox = false", "user namespaces"];
        let refused = check(refused, &parts).await;
        assert!(matches!(refused, BrowserError::SandboxRefused { .. }));
    }

    let silent = script(folder, "Chromium 156.0.1.2", "exec sleep 1000");
    let silent = check(silent, &["no answer to its start after 5s", "processes"]).await;
    assert!(matches!(silent, BrowserError::Hung { .. }));
}

#[tokio::test]
async fn a_browser_that_is_removed_after_its_check_is_reported_as_missing() {
    let folder = TempDir::new().expect("a folder");
    let chromium = script(folder.path(), "Chromium 156.0.1.2", "exit 1");
    let settings = BrowserSettings {
        executable: Some(chromium.clone()),
        ..settings()
    };
    let pool = BrowserPool::new(settings, folder.path().join("browsers")).await;
    let pool = pool.expect("it answers");
    fs::remove_file(&chromium).expect("the file is ours");
    let Err(error) = PageSession::open(&pool, Arc::new(NoNetwork)).await else {
        panic!("it has started");
    };
    assert!(matches!(error, BrowserError::NotFound { .. }), "{error}");
    assert!(
        error.to_string().contains("chromium is not a file"),
        "{error}"
    );
}

#[tokio::test]
async fn an_unusable_folder_of_profiles_is_reported_with_cause_and_remedy() {
    let folder = TempDir::new().expect("a folder");
    let chromium = script(folder.path(), "Chromium 156.0.1.2", "exit 1");
    let settings = BrowserSettings {
        executable: Some(chromium.clone()),
        ..settings()
    };
    // There is a file in place of the folder.
    let Err(error) = BrowserPool::new(settings, &chromium).await else {
        panic!("it is a file");
    };
    assert!(matches!(error, BrowserError::Folder { .. }), "{error}");
    let text = error.to_string();
    for part in [&*chromium.to_string_lossy(), "make room", "write to it"] {
        assert!(text.contains(part), "{text}: {part}");
    }
}

#[tokio::test]
async fn the_error_of_root_with_the_sandbox_has_the_remedy() {
    if settings().sandbox {
        // Chromium refuses root only.
        return;
    }
    let Some(test) = TestPool::with(|it| it.sandbox = true).await else {
        return;
    };
    let Err(error) = PageSession::open(&test.pool, Arc::new(NoNetwork)).await else {
        panic!("root needs no sandbox here");
    };
    assert!(
        matches!(error, BrowserError::SandboxRefused { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("user other than root"),
        "{error}"
    );
    test.close().await;
}

#[tokio::test]
async fn a_browser_that_refuses_the_certificates_of_the_proxy_is_reported_with_a_remedy() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let chromium = test.pool.executable();
    let folder = TempDir::new().expect("a folder");
    // A wrapper or a policy of the machine may have this effect.
    let without = format!(
        "for it in \"$@\"; do\n  shift\n  case $it in --ignore-certificate-errors-spki-list=*) ;; *) set -- \"$@\" \"$it\" ;; esac\n\
         done\nexec {} \"$@\"",
        chromium.path.display()
    );
    let version = format!("Chromium {}", chromium.version);
    let settings = BrowserSettings {
        executable: Some(script(folder.path(), &version, &without)),
        ..settings()
    };
    let pool = BrowserPool::new(settings, folder.path().join("browsers")).await;
    let pool = pool.expect("a browser");
    let page = PageSession::open(&pool, Arc::new(NoNetwork)).await;
    let mut page = page.expect("it starts");
    let error = page.load("https://site.test/").await;
    let Err(PageError::Browser(error)) = error else {
        panic!("{error:?}");
    };
    assert!(
        matches!(error, BrowserError::ProxyNotUsed { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("/etc/chromium/policies"),
        "{error}"
    );
    page.close().await;
    pool.close().await;
    test.close().await;
}

#[tokio::test]
async fn profiles_of_a_killed_process_are_removed_and_other_files_stay() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let folder = test.folder.path();
    fs::create_dir(folder.join("profile-old")).expect("the folder is ours");
    fs::write(folder.join("profile-old").join("file"), "old").expect("the folder is ours");
    fs::write(folder.join("notes"), "mine").expect("the folder is ours");
    BrowserPool::new(settings(), folder)
        .await
        .expect("the folder can be used");
    assert!(!folder.join("profile-old").exists());
    assert!(folder.join("notes").exists());
}

#[tokio::test]
async fn the_folder_of_profiles_may_be_relative_and_deep() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    // The path is longer than the maximum of a Unix socket.
    let here = std::env::current_dir().expect("a folder");
    let root = "../".repeat(here.components().count() - 1);
    let folder = test
        .folder
        .path()
        .strip_prefix("/")
        .expect("an absolute path");
    let deep = Path::new(&root).join(folder).join("x".repeat(200));
    let pool = BrowserPool::new(settings(), &deep).await.expect("a folder");
    let page = PageSession::open(&pool, Arc::new(NoNetwork)).await;
    page.expect("a browser").close().await;
    pool.close().await;
    fs::remove_dir(deep).expect("it is empty");
    test.close().await;
}
