//! Names of WARC and ARC files. The template is that of Heritrix, so that tools which parse the names still work:
//! `WEB-20260102030405678-00000-4711~crawler.example.org~8443.warc.gz`.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The suffix of a file that is being written.
pub(crate) const OPEN_SUFFIX: &str = ".open";

/// Endings of finished files.
pub(crate) const ENDINGS: [&str; 5] = [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz"];

/// A parsed template of a file name, without the `.warc` and `.gz` that follow it.
///
/// Variables: `${prefix}`, `${timestamp17}` (UTC, to the millisecond), `${timestamp14}` (to the second), `${timestamp12}` (to
/// the minute, as in the names of ARC files), `${serialno}` (at least five digits; required, because it makes names unique),
/// `${pid}`, `${host}`, `${port}`. Heritrix's `${heritrix.pid}`, `${heritrix.hostname}` and `${heritrix.port}` mean the last
/// three.
#[derive(Clone, PartialEq, Eq)]
pub struct NameTemplate {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Prefix,
    Timestamp17,
    Timestamp14,
    Timestamp12,
    Serial,
    Pid,
    Host,
    Port,
}

/// The values of a name's variables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameParts<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) created: Timestamp,
    pub(crate) serial: u64,
    pub(crate) pid: u32,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
}

/// The reason why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// An unknown variable.
    #[error(
        "unknown variable ${{{0}}} in the file name template (known: prefix, timestamp17, timestamp14, timestamp12, serialno, pid, host, port)"
    )]
    Unknown(String),
    /// `${` without `}`.
    #[error("${{ without }} in the file name template")]
    Unclosed,
    /// Without a serial number two files could get the same name.
    #[error("the file name template has no ${{serialno}}")]
    NoSerial,
    /// A character that could leave the directory or is not safe in file names.
    #[error("{0:?} cannot be part of a file name")]
    Character(char),
}

impl NameTemplate {
    /// The file name with its ending, without `.open`.
    pub(crate) fn name(&self, parts: NameParts<'_>, ending: &str) -> String {
        let utc = parts.created.to_zoned(TimeZone::UTC);
        let mut name = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => name.push_str(text),
                Piece::Prefix => name.push_str(&plain(parts.prefix)),
                Piece::Timestamp17 => name.push_str(&format!(
                    "{}{:03}",
                    utc.strftime("%Y%m%d%H%M%S"),
                    utc.millisecond()
                )),
                Piece::Timestamp14 => name.push_str(&utc.strftime("%Y%m%d%H%M%S").to_string()),
                Piece::Timestamp12 => name.push_str(&utc.strftime("%Y%m%d%H%M").to_string()),
                Piece::Serial => name.push_str(&format!("{:05}", parts.serial)),
                Piece::Pid => name.push_str(&parts.pid.to_string()),
                Piece::Host => name.push_str(&plain(parts.host)),
                Piece::Port => name.push_str(&parts.port.to_string()),
            }
        }
        name.push_str(ending);
        name
    }
}

/// Returns `true` if a character is safe in every file system and in WARC-Filename.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.~+=,@".contains(c)
}

fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect()
}

impl Default for NameTemplate {
    fn default() -> NameTemplate {
        let text = "${prefix}-${timestamp17}-${serialno}-${pid}~${host}~${port}".to_owned();
        let hyphen = || Piece::Literal("-".into());
        let tilde = || Piece::Literal("~".into());
        let pieces = vec![
            Piece::Prefix,
            hyphen(),
            Piece::Timestamp17,
            hyphen(),
            Piece::Serial,
            hyphen(),
            Piece::Pid,
            tilde(),
            Piece::Host,
            tilde(),
            Piece::Port,
        ];
        NameTemplate { text, pieces }
    }
}

impl FromStr for NameTemplate {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<NameTemplate, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (literal, variable) = match rest.split_once("${") {
                Some((literal, after)) => (literal, Some(after)),
                None => (rest, None),
            };
            if let Some(c) = literal.chars().find(|c| !is_plain(*c)) {
                return Err(TemplateError::Character(c));
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.to_owned()));
            }
            let Some(after) = variable else { break };
            let (variable, after) = after.split_once('}').ok_or(TemplateError::Unclosed)?;
            pieces.push(match variable {
                "prefix" => Piece::Prefix,
                "timestamp17" => Piece::Timestamp17,
                "timestamp14" => Piece::Timestamp14,
                "timestamp12" => Piece::Timestamp12,
                "serialno" => Piece::Serial,
                "pid" | "heritrix.pid" => Piece::Pid,
                "host" | "heritrix.hostname" => Piece::Host,
                "port" | "heritrix.port" => Piece::Port,
                unknown => return Err(TemplateError::Unknown(unknown.to_owned())),
            });
            rest = after;
        }
        if !pieces.contains(&Piece::Serial) {
            return Err(TemplateError::NoSerial);
        }
        Ok(NameTemplate {
            text: text.to_owned(),
            pieces,
        })
    }
}

impl fmt::Display for NameTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for NameTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NameTemplate({:?})", self.text)
    }
}

/// The final name of an `.open` file; `None` if it is not a WARC or ARC file of ours.
pub(crate) fn final_path(open: &Path) -> Option<PathBuf> {
    let name = open.file_name()?.to_str()?.strip_suffix(OPEN_SUFFIX)?;
    is_archive(name).then(|| open.with_file_name(name))
}

/// Returns `true` if a name is that of a finished WARC or ARC file.
pub fn is_archive(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// All names in a directory.
pub(crate) fn names(directory: &Path) -> io::Result<Vec<String>> {
    let names = fs::read_dir(directory)?;
    let names = names.map(|file| Ok(file?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, expected: Result<&str, TemplateError>) {
        let parts = NameParts {
            prefix: "WEB",
            created: "2026-01-02T03:04:05.006789Z".parse().unwrap(),
            serial: 7,
            pid: 4711,
            host: "crawler.example.org",
            port: 8443,
        };
        let name = template
            .parse::<NameTemplate>()
            .map(|t| t.name(parts, ".warc.gz"));
        assert_eq!(name, expected.map(str::to_owned));
    }

    #[test]
    fn names_are_those_of_heritrix() {
        let name = "WEB-20260102030405006-00007-4711~crawler.example.org~8443.warc.gz";
        check(
            "${prefix}-${timestamp17}-${serialno}-${pid}~${host}~${port}",
            Ok(name),
        );
        check(
            "${prefix}-${timestamp17}-${serialno}-${heritrix.pid}~${heritrix.hostname}~${heritrix.port}",
            Ok(name),
        );
        check(
            "x${serialno}y${timestamp14}",
            Ok("x00007y20260102030405.warc.gz"),
        );
    }

    #[test]
    fn the_default_template_has_the_documented_text() {
        let default = NameTemplate::default();
        assert_eq!(default.to_string().parse(), Ok(default));
    }

    #[test]
    fn errors_are_described() {
        check("${prefix}", Err(TemplateError::NoSerial));
        check("", Err(TemplateError::NoSerial));
        check(
            "${serialno}${nope}",
            Err(TemplateError::Unknown("nope".into())),
        );
        check("${serialno}${pid", Err(TemplateError::Unclosed));
        check("../${serialno}", Err(TemplateError::Character('/')));
        check("a b${serialno}", Err(TemplateError::Character(' ')));
    }

    #[test]
    fn hostile_values_stay_in_the_directory() {
        let parts = NameParts {
            prefix: "../é b",
            created: Timestamp::UNIX_EPOCH,
            serial: 0,
            pid: 1,
            host: "a/b",
            port: 0,
        };
        let template: NameTemplate = "${prefix}${serialno}${host}".parse().unwrap();
        assert_eq!(template.name(parts, ""), "..___b00000a_b");
    }
}
