//! Refused archive settings, each with its reason.

use crate::faults_of;

#[test]
fn an_archive_that_cannot_be_is_refused() {
    #[track_caller]
    fn check(written: &str, problem: &str) {
        let text = format!(
            "seeds = [\"http://a.example/\"]\n[operator]\ncontact-url = \"http://a.example/bot\"\n{written}"
        );
        let faults = faults_of(&text).to_string();
        assert!(faults.contains(problem), "{written}: {faults}");
    }
    check("[archive]\nname = \"${prefix}\"", "no ${serialno}");
    check(
        "[archive]\nname = \"${serialno}${what}\"",
        "unknown variable \"what\"",
    );
    check(
        "[archive]\nname = \"a/${serialno}\"",
        "'/' cannot be part of a file name",
    );
    check("[archive]\nname = \"${serialno\"", "no ${serialno}");
    check(
        "[archive]\ncompression-level = 10",
        "not a level of gzip: 10",
    );
    check(
        "[archive]\ncompression = \"zstd\"\ncompression-level = 0",
        "not a level of zstd: 0",
    );
    check(
        "[archive]\ncompression = \"zstd\"\nformat = \"arc\"",
        "packed with gzip or not at all",
    );
    check(
        "[archive]\nformat = \"arc\"\n[archive.duplicates]\nacross-uris = true",
        "ARC has no revisit records",
    );
    check(
        "[archive]\ncompression = \"zstd\"\ndictionary = \"none.dict\"",
        "not a dictionary",
    );
    check("[archive]\nwriters = 65", "must be at most 64");
    check("[archive]\non-close = [\"\"]", "no program");
    check(
        "[archive]\non-close = [\"cp\", \"{path}\"]",
        "nothing is filled in for \"{path}\"",
    );
    check("[archive]\nmore-directories = [\"\"]", "not a folder");
    check(
        "[archive.duplicates]\nacross-uris = true\nhistory = [\"none.cdxj\"]",
        "there is no file",
    );
    check(
        "[archive.duplicates]\nhistory = [\"Cargo.toml\"]",
        "across-uris is false",
    );
}
