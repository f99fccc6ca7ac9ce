//! Files with a password. Other users of the machine must not be able to read them.

use std::fs;
use std::io;
use std::path::Path;

/// Reads a password, without the line break at its end.
///
/// # Errors
/// The file cannot be read, other users can read it, or it is empty.
pub fn read_secret_file(file: &Path) -> io::Result<String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(file)?.permissions().mode();
        if mode & 0o007 != 0 {
            return Err(io::Error::other(
                "all users of this machine can read the password; run chmod 600 on the file",
            ));
        }
    }
    let password = fs::read_to_string(file)?;
    match password.trim_end_matches(['\r', '\n']) {
        "" => Err(io::Error::other("the file contains no password")),
        password => Ok(password.to_owned()),
    }
}
