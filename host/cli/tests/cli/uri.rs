//! `opilio uri` prints all forms of a URI, or why it is refused.

use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::command::{Ended, Home};

/// Runs `opilio uri` with this input on standard input.
#[track_caller]
fn with_input(arguments: &[&str], input: &[u8]) -> Ended {
    let home = Home::new();
    let mut child = home
        .opilio(&[&["uri"], arguments].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let ended = Ended::of(&child.wait_with_output().unwrap());
    writer.join().unwrap().unwrap();
    ended
}

fn lines(ended: &Ended) -> Vec<Value> {
    let lines = ended.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn all_forms_of_a_uri_are_shown() {
    let ended = Home::new()
        .run(&[
            "uri",
            "https://u@WWW.Example.co.uk:443/A/../B?&sid=0123456789abcdef0123456789abcdef",
        ])
        .code(0);
    assert_eq!(ended.err, "");
    assert_eq!(
        ended.out,
        "\
https://u@WWW.Example.co.uk:443/A/../B?&sid=0123456789abcdef0123456789abcdef
      normalised  https://u@www.example.co.uk/B?&sid=0123456789abcdef0123456789abcdef
       canonical  https://example.co.uk/b
           rules  lowercase            https://u@www.example.co.uk/b?&sid=0123456789abcdef0123456789abcdef
                  strip-userinfo       https://www.example.co.uk/b?&sid=0123456789abcdef0123456789abcdef
                  strip-www-n          https://example.co.uk/b?&sid=0123456789abcdef0123456789abcdef
                  strip-session-ids    https://example.co.uk/b?&
                  strip-session-cfids  -
                  fixup-query          https://example.co.uk/b
            SURT  http://(uk,co,example,www,)/b?&sid=0123456789abcdef0123456789abcdef
  implied prefix  http://(uk,co,example,www,)/
          domain  example.co.uk
           queue  uk,co,example,www,
"
    );
}

#[test]
fn refused_uris_are_printed_in_order_and_change_the_exit_code() {
    let ended = Home::new()
        .run(&["uri", "mailto:a@b", "http://a..b/\u{1b}[31m", "example.org"])
        .code(1);
    let expected = "\
mailto:a@b
         refused  scheme \"mailto\" is not crawled

http://a..b/\\u{1b}[31m
         refused  host \"a..b\" cannot exist: an empty label

example.org
      normalised  http://example.org/
";
    assert!(ended.out.starts_with(expected), "{}", ended.out);
    assert!(
        ended
            .out
            .contains("\n  implied prefix  http://(org,example,\n")
    );
}

#[test]
fn json_output_is_one_object_per_line() {
    let ended = with_input(
        &["--json", "--base", "http://a.org/b/c", "-", "//x.org"],
        b"../d?e#f\n\r\n  \nftp:\n\x00\xff\n?q\r",
    )
    .code(1);
    let lines = lines(&ended);
    let (first, refused) = (&lines[0], &lines[1..3]);
    assert_eq!(first["rules"].as_array().unwrap().len(), 6);
    assert_eq!(
        first["rules"][0],
        json!({ "rule": "lowercase", "before": "http://a.org/d?e", "after": "http://a.org/d?e" })
    );
    assert_eq!(
        (&first["input"], &first["uri"], &first["canonical"]),
        (
            &json!("../d?e#f"),
            &json!("http://a.org/d?e"),
            &json!("http://a.org/d?e")
        )
    );
    assert_eq!(
        (
            &first["surt"],
            &first["implied_surt_prefix"],
            &first["domain"],
            &first["queue"]
        ),
        (
            &json!("http://(org,a,)/d?e"),
            &json!("http://(org,a,)/"),
            &json!("a.org"),
            &json!("org,a,")
        )
    );
    assert_eq!(
        refused,
        [
            json!({ "input": "ftp:", "problem": "invalid URI \"ftp:\": empty host" }),
            json!({ "input": "\0\u{fffd}", "problem": "byte 2 (0xFF) is not UTF-8" }),
        ]
    );
    assert_eq!(lines[3]["uri"], "http://a.org/b/c?q");
    assert_eq!(lines[4]["uri"], "http://x.org/");
    assert_eq!(lines.len(), 5);
}

#[test]
fn very_long_lines_are_counted_and_not_stored() {
    let mut input = b"http://a.org/".to_vec();
    input.resize(5_000_000, b'x');
    input.extend(b"\nhttp://b.org/");
    let ended = with_input(&["--json", "-"], &input).code(1);
    let lines = lines(&ended);
    assert_eq!(lines[0]["problem"], "5000000 bytes, more than 65536");
    assert_eq!(lines[0]["input"].as_str().unwrap().len(), 1024 * 1024);
    assert_eq!(lines[1]["uri"], "http://b.org/");
    // The maximum length of a line, which is longer than that of a URI.
    let ended = with_input(&["-"], &input[..1024 * 1024]).code(1);
    assert!(
        ended
            .out
            .ends_with("\n         refused  1048576 bytes, more than 65536\n")
    );
    assert!(ended.out.len() < 1000);
}

#[test]
fn the_rules_of_the_profile_apply() {
    let home = Home::new();
    home.file(
        "p.toml",
        "[canonicalization]\nrules = ['strip-www']\n[frontier]\nqueue-key = 'domain'\n",
    );
    let uri = "http://www.News.example.org:8080/A";
    let ended = home
        .run(&["uri", "--json", "--profile", "p.toml", uri])
        .code(0);
    let answer = &lines(&ended)[0];
    assert_eq!(answer["canonical"], "http://news.example.org:8080/A");
    assert_eq!(answer["queue"], "example.org");
    assert_eq!(answer["rules"].as_array().unwrap().len(), 1);
    let shipped = home
        .run(&["uri", "--json", "--profile", "default", uri])
        .code(0);
    let answer = &lines(&shipped)[0];
    assert_eq!(answer["canonical"], "http://news.example.org:8080/a");
    assert_eq!(answer["queue"], "org,example,news,www,#8080");
    assert_eq!(home.names(), ["p.toml"]);
}

#[test]
fn errors_in_the_command_line_and_the_profile_have_their_own_exit_code() {
    let home = Home::new();
    home.file("p.toml", "[canonicalization]\nrules = ['lower']\n");
    let ended = home
        .run(&["uri", "--profile", "p.toml", "http://a.org/"])
        .code(2);
    assert!(ended.err.contains("p.toml:2:10: "), "{}", ended.err);
    let ended = home
        .run(&["uri", "--profile", "none.toml", "http://a.org/"])
        .code(2);
    assert!(
        ended.err.contains("none.toml: cannot be read"),
        "{}",
        ended.err
    );
    let ended = home.run(&["uri", "--base", "mailto:a@b", "c"]).code(2);
    assert_eq!(
        ended.err,
        "opilio: invalid --base: scheme \"mailto\" is not crawled\n"
    );
    let ended = home.run(&["uri"]).code(2);
    assert!(ended.err.contains("<URI|->..."), "{}", ended.err);
}

#[test]
fn a_reader_that_closes_the_output_is_not_an_error() {
    let home = Home::new();
    let mut child = home
        .opilio(&["uri", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    // Nobody reads the first answer. Whether the second line is still read depends on timing.
    let _ = stdin.write_all(b"http://a.org/\nhttp://b.org/\n");
    drop(stdin);
    let mut error = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut error)
        .unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), error.as_str()),
        (Some(0), "")
    );
}
