//! Refused archive settings, each with its reason.

use crate::faults_of;

#[test]
fn invalid_archive_settings_are_refused() {
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
        "unknown placeholder \"{path}\"",
    );
    for url in [
        "/mnt/archive",
        "file://mnt",
        "file:///mnt/../etc",
        "s3://",
        "s3://Bucket",
        "s3://bucket/a//b",
        "s3://bucket/a b",
        "gs://bucket",
    ] {
        let problem = match url.split_once("://") {
            Some(("file", _)) => "not a folder",
            Some(("s3", _)) => "not a bucket and a prefix",
            _ => "not a store",
        };
        check(&format!("[archive.store]\nurl = \"{url}\""), problem);
    }
    check(
        "[archive.store]\nurl = \"s3://b\"\nendpoint = \"s3.example.org\"",
        "not an address",
    );
    check(
        "[archive.store]\nurl = \"s3://b\"\naccess-key-id = { env = \"A\" }",
        "secret-access-key is missing",
    );
    check(
        "[archive.store]\nurl = \"file:///mnt\"\nendpoint = \"http://s3\"",
        "a folder has no endpoint",
    );
    check(
        "[archive.store]\ndelete-local = true",
        "no effect without url",
    );
    check(
        "[archive]\non-close = [\"cp\"]\n[archive.store]\nurl = \"s3://b\"\ndelete-local = true",
        "on-close may still need the file",
    );
    check(
        "[archive.store]\nretry-min = \"1h\"",
        "shorter than retry-min",
    );
    check(
        "[checkpoint]\npublish-every = \"10m\"",
        "published in archive.store, which has no url",
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
