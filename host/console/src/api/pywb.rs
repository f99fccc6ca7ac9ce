//! The pywb that replays a job's captures, if `opilio job replay` has started one.

use std::fs;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::job_folders::plain_file;
use super::jobs::blocking;
use super::{Shared, own_files};
use crate::input::PathParams;
use crate::problem::Problem;

/// Folder of a job with the collection that `opilio job replay` writes for pywb.
pub const REPLAY_FOLDER: &str = "replay";

/// File in [`REPLAY_FOLDER`]: URL of the collection, a blank, process ID of pywb.
pub const REPLAY_ADDRESS: &str = "address";

/// Longest time to wait for pywb's socket. It is on this machine.
const PATIENCE: Duration = Duration::from_millis(300);

/// Replay of a job by pywb.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PywbReplay {
    /// Address of the collection while pywb runs. Time (14 digits, or `*` for all) and URI follow it.
    url: Option<String>,
    /// `true` if pywb's program `wayback` is installed for the daemon.
    is_installed: bool,
    /// Command that starts pywb on the daemon's machine.
    command: String,
}

/// Returns the address of the pywb that replays the job's captures, if it runs, and the command that starts it.
#[utoipa::path(get, path = "/jobs/{job}/pywb", operation_id = "show_pywb", tag = "watch", params(("job" = String, Path, description = "Name of the job")), responses((status = 200, body = PywbReplay)))]
pub(crate) async fn show(
    State(daemon): Shared,
    PathParams(job): PathParams<String>,
) -> Result<Json<PywbReplay>, Problem> {
    let directory = daemon.directory(&job)?;
    let found = blocking(move || {
        own_files(&directory)?;
        Ok(PywbReplay {
            url: running(&directory),
            is_installed: program_in_path("wayback").is_some(),
            command: format!("opilio job replay {}", directory.display()),
        })
    });
    Ok(Json(found.await?))
}

/// Returns the address of the collection if pywb listens there.
fn running(job: &Path) -> Option<String> {
    let folder = job.join(REPLAY_FOLDER);
    let is_own = folder.symlink_metadata().is_ok_and(|it| it.is_dir());
    let file = plain_file(&folder, REPLAY_ADDRESS).filter(|_| is_own)?;
    let text = fs::read_to_string(file).ok()?;
    let (url, process) = text.trim_end().split_once(' ')?;
    let process: u32 = process.parse().ok()?;
    let processes = Path::new("/proc");
    if processes.join("self").exists() && !processes.join(process.to_string()).exists() {
        return None;
    }
    let authority = url.strip_prefix("http://")?.split('/').next()?;
    let address = authority.to_socket_addrs().ok()?.next()?;
    TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    Some(url.to_owned())
}

/// Returns a program by its name, as a shell finds it.
pub fn program_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}
