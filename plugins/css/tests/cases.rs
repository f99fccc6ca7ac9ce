//! Cases of Heritrix. A `reason` marks a case whose expected answer is better than that of Heritrix.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use opilio_css::sheet::{self, Syntax};
use serde::Deserialize;
use url::Url;

#[derive(Deserialize)]
struct Case {
    id: String,
    input: String,
    base: String,
    expected: Vec<String>,
}

#[test]
fn golden_cases_pass() {
    opilio_plugin::testing::check_cases(&opilio_css::plugins(), "cases");
}

#[test]
fn every_heritrix_case_passes() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../cases/predecessor/cases.json")).unwrap();
    assert!(cases.len() >= 9);
    for case in cases {
        let base = Url::parse(&case.base).unwrap();
        let found: BTreeSet<Url> = sheet::read(&case.input)
            .iter()
            .map(|link| base.join(&link.uri).unwrap())
            .collect();
        let expected: BTreeSet<Url> = case
            .expected
            .iter()
            .map(|uri| Url::parse(uri.trim_start_matches("E ")).unwrap())
            .collect();
        assert_eq!(found, expected, "{}", case.id);
    }
}

#[track_caller]
fn check(sheet: &str, expected: &[&str]) {
    let found: Vec<String> = sheet::read(sheet)
        .into_iter()
        .map(|link| link.uri)
        .collect();
    assert_eq!(found, expected, "{sheet}");
}

#[test]
fn imports() {
    check(
        "@import 'a.css'; @import url(b.css) print; @IMPORT\nurl( \"c.css\" );",
        &["a.css", "b.css", "c.css"],
    );
    check("@import/**/\"a.css\"layer(x)supports(y:z)", &["a.css"]);
    check("@import   url(x.css)", &["x.css"]);
    check("@import 'a.css' url(b.png)", &["a.css", "b.png"]);
    check("@imports 'a.css'; @x-import 'b.css'", &[]);
    let syntaxes: Vec<Syntax> = sheet::read("@import url(a); b{c:url(d)}")
        .iter()
        .map(|found| found.syntax)
        .collect();
    assert_eq!(syntaxes, [Syntax::Import, Syntax::Url]);
}

#[test]
fn urls() {
    check("a{b:url(x.png)} c{d:URL( 'y.png' )}", &["x.png", "y.png"]);
    check(
        "a{b:url(\"x)y.png\"),url(z\\).png)}",
        &["x)y.png", "z).png"],
    );
    check("a{b:\\75 rl(x.png)}", &["x.png"]);
    check("a{b:url(x\\20y.png)}", &["x y.png"]);
    check("a{b:url('x\\\ny.png')}", &["xy.png"]);
    check(
        "@font-face{src:url(a.woff2)format('woff2'),local('b')}",
        &["a.woff2"],
    );
    check("a{b:src('x.png')}", &["x.png"]);
    check("a{--b:url(x.png)}", &["x.png"]);
    check("background:url(x.png", &["x.png"]);
    check("a{b:url('x' 'y')}", &["x"]);
    check("a{b:5px url(x.png)}", &["x.png"]);
}

#[test]
fn image_sets() {
    check(
        "a{b:image-set('x.png' 1x, url(y.png) 2x type('image/png'))}",
        &["x.png", "y.png"],
    );
    check("a{b:-webkit-image-set('x.png' 1x)}", &["x.png"]);
    check(
        "a{filter:progid:DXImageTransform.Microsoft.AlphaImageLoader(src='x.png',sizingMethod='scale')}",
        &["x.png"],
    );
}

#[test]
fn other_strings_and_unfetchable_urls_are_ignored() {
    check("/* url(x.png) */ a{b:'url(y.png)'}", &[]);
    check("/* @import 'a.css';", &[]);
    check(
        "a{b:url(data:image/png;base64,AA==)} c{d:url('DATA:x')}",
        &[],
    );
    check(
        "a{b:url(#f)} c{d:url()} e{f:url('')} g{h:url(about:blank)}",
        &[],
    );
    check(
        "@namespace svg url(http://www.w3.org/2000/svg); @namespace 'http://www.w3.org/1999/xhtml';",
        &[],
    );
    check(
        "@-moz-document url(http://example.org/) {a{b:url(x.png)}}",
        &["x.png"],
    );
    check("a{b:url(x y.png)}c{d:url(z.png)}", &["z.png"]);
    check("a{b:curl(x.png)} c{d:url (x.png)}", &[]);
    check("a{b:'x\n} c{d:url(y.png)}", &["y.png"]);
    check("a[href='x.png']{content:\"y.png\"}", &[]);
    check("a{b:url(${x}.png)}", &[]);
}
