//! Credentials for registries, in a file as `docker login` writes it.

use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::Path;

use docker_credential::{CredentialRetrievalError, DockerCredential};

use super::RegistryError;

/// The credentials of a registry in the file; `None` if the file or the entry does not exist.
pub(super) fn read(
    path: Option<&Path>,
    registry: &str,
) -> Result<Option<DockerCredential>, RegistryError> {
    let Some(path) = path else {
        return Ok(None);
    };
    let refuse = |problem: String| RegistryError::Credentials {
        registry: registry.to_owned(),
        problem,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(problem) if problem.kind() == ErrorKind::NotFound => return Ok(None),
        Err(problem) => return Err(refuse(format!("cannot read {}: {problem}", path.display()))),
    };
    use CredentialRetrievalError as Problem;
    match docker_credential::get_credential_from_reader(BufReader::new(file), registry) {
        Ok(credential) => Ok(Some(credential)),
        Err(Problem::NoCredentialConfigured) => Ok(None),
        Err(Problem::HelperFailure { helper, stderr, .. }) => {
            let message = stderr.lines().next().unwrap_or_default();
            Err(refuse(format!("{helper} fails ({message}); log in again")))
        }
        Err(Problem::HelperCommunicationError | Problem::MalformedHelperResponse) => {
            Err(refuse(format!(
                "cannot run the credential helper named in {}; install it, or log in without it",
                path.display()
            )))
        }
        Err(_) => Err(refuse(format!(
            "{} does not have the format of `docker login`; log in again",
            path.display()
        ))),
    }
}
