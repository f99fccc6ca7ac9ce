//! Cases of Heritrix, from the page to resolved URIs. As in the host, the extractors of their type read the fragments. A `reason`
//! marks a case whose expected answer is better than that of Heritrix, which `predecessor` has.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use opilio_html::page::{self, Syntax};
use opilio_html::{FormActions, LinkUse, Settings};
use opilio_plugin::{FragmentContent, Hop};
use serde::Deserialize;
use url::Url;

#[derive(Deserialize)]
struct Case {
    id: String,
    input: String,
    base: String,
    #[serde(default)]
    settings: Settings,
    expected: Vec<String>,
    r#match: String,
}

fn hop_letter(hop: &Hop) -> &'static str {
    match hop {
        Hop::Link => "L",
        Hop::Embed => "E",
        Hop::Redirect => "R",
        _ => "X",
    }
}

/// `HOP uri` of every link of the page and of the fragments in it.
fn resolved_links(text: &str, base: &str, settings: &Settings) -> BTreeSet<String> {
    let page = page::read(text, Syntax::Html, settings);
    let document = Url::parse(base).unwrap();
    let base = page
        .base
        .as_deref()
        .and_then(|base| document.join(base).ok())
        .unwrap_or(document);
    let resolved = |uri: &str| {
        let mut uri = base.join(uri).unwrap();
        uri.set_fragment(None);
        uri.to_string()
    };
    let mut found: BTreeSet<String> = page
        .links
        .iter()
        .map(|link| format!("{} {}", hop_letter(&link.hop), resolved(&link.uri)))
        .collect();
    for fragment in page.fragments {
        let content = match fragment.content {
            FragmentContent::TextAt(span) => {
                text[span.offset as usize..][..span.length as usize].to_owned()
            }
            FragmentContent::Text(text) => text,
            other => panic!("{other:?}"),
        };
        match fragment.media_type.as_str() {
            "text/html" => found.extend(resolved_links(&content, base.as_str(), settings)),
            "text/css" => {
                found.extend(
                    opilio_css::sheet::read(&content)
                        .iter()
                        .map(|link| format!("E {}", resolved(&link.uri))),
                );
            }
            "text/javascript" | "application/json" | "application/ld+json" => {
                found.extend(
                    opilio_js::script::read(&content)
                        .iter()
                        .map(|link| format!("X {}", resolved(&link.uri))),
                );
            }
            _ => {}
        }
    }
    found
}

#[test]
fn golden_cases_pass() {
    opilio_plugin::testing::check_cases(&opilio_html::plugins(), "cases");
}

#[test]
fn every_heritrix_case_passes() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../cases/predecessor/cases.json")).unwrap();
    assert!(cases.len() >= 35);
    let mut failed = Vec::new();
    for case in cases {
        let found = resolved_links(&case.input, &case.base, &case.settings);
        let uris =
            |with_hop: bool, entries: &mut dyn Iterator<Item = &String>| -> BTreeSet<String> {
                entries
                    .map(|entry| {
                        let (hop, uri) = entry.split_once(' ').unwrap_or(("", entry));
                        let uri = Url::parse(uri).unwrap();
                        if with_hop {
                            format!("{hop} {uri}")
                        } else {
                            uri.to_string()
                        }
                    })
                    .collect()
            };
        let with_hop = case.r#match == "hop_set";
        let found = uris(with_hop, &mut found.iter());
        let expected = uris(with_hop, &mut case.expected.iter());
        let passes = if case.r#match == "contains" {
            expected.is_subset(&found)
        } else {
            expected == found
        };
        if !passes {
            failed.push(format!(
                "{}: expected {expected:?}, found {found:?}",
                case.id
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Links as `HOP uri context`, fragments as `type content context`, in order.
#[track_caller]
fn check_with(html: &str, settings: &Settings, expected: &[&str]) {
    let page = page::read(html, Syntax::Html, settings);
    let mut found: Vec<String> = page
        .links
        .iter()
        .map(|link| format!("{} {} {}", hop_letter(&link.hop), link.uri, link.context))
        .collect();
    for fragment in &page.fragments {
        let content = match &fragment.content {
            FragmentContent::TextAt(span) => &html[span.offset as usize..][..span.length as usize],
            FragmentContent::Text(text) => text,
            other => panic!("{other:?}"),
        };
        found.push(format!(
            "{} {} {}",
            fragment.media_type, content, fragment.context
        ));
    }
    assert_eq!(found, expected, "{html}");
}

#[track_caller]
fn check(html: &str, expected: &[&str]) {
    check_with(html, &Settings::default(), expected);
}

#[test]
fn embedded_resources() {
    check(
        "<video poster=p.jpg src=v.mp4><source src=w.webm><track src=t.vtt>",
        &[
            "E p.jpg video/@poster",
            "E v.mp4 video/@src",
            "E w.webm source/@src",
            "E t.vtt track/@src",
        ],
    );
    check(
        "<picture><source srcset='a.avif 1x, b.avif 2x'><img src=c.jpg></picture>",
        &[
            "E a.avif source/@srcset",
            "E b.avif source/@srcset",
            "E c.jpg img/@src",
        ],
    );
    check(
        "<link rel=preload as=image imagesrcset='a.jpg 1x' href=b.jpg>",
        &["E a.jpg link/@imagesrcset", "E b.jpg link/@href"],
    );
    check(
        "<img src=a lowsrc=b dynsrc=c longdesc=d usemap=#m>",
        &[
            "E a img/@src",
            "E b img/@lowsrc",
            "E c img/@dynsrc",
            "L d img/@longdesc",
        ],
    );
    check(
        "<table background=t.gif><td background=d.gif>",
        &["E t.gif table/@background", "E d.gif td/@background"],
    );
    check(
        "<object data=a.swf codebase=/f/ classid='clsid:X' archive='b c'><param name=movie value=a.swf><embed src=a.swf>",
        &[
            "E /f/a.swf object/@data",
            "L /f/ object/@codebase",
            "E /f/b object/@archive",
            "E /f/c object/@archive",
            "E a.swf param/@value",
            "E a.swf embed/@src",
        ],
    );
    check(
        "<svg><use xlink:href='s.svg#i'/><image href='i.png'/><use href='#x'/><a href=y>z</a></svg>",
        &[
            "E s.svg#i use/@xlink:href",
            "E i.png image/@href",
            "L y a/@href",
        ],
    );
    check(
        "<html manifest=app.cache><input type=image src=b.gif>",
        &["E app.cache html/@manifest", "E b.gif input/@src"],
    );
}

#[test]
fn links_to_other_pages() {
    check(
        "<blockquote cite=a><q cite=b><ins cite=c><del cite=d>",
        &[
            "L a blockquote/@cite",
            "L b q/@cite",
            "L c ins/@cite",
            "L d del/@cite",
        ],
    );
    check(
        "<form action=/s><button formaction=/t>x</button></form>",
        &["L /s form/@action", "L /t button/@formaction"],
    );
    check(
        "<form action=/s method=POST><button formaction=/t><input type=submit formaction=/u formmethod=get>",
        &["L /u input/@formaction"],
    );
    check(
        "<a href='mailto:a@b'><a href='tel:1'><a href='#top'><a href=''><a href='data:,x'><a href='about:blank'>",
        &[],
    );
    check(
        "<a href='a?b=1&amp;c=2&copy=3'>",
        &["L a?b=1&c=2&copy=3 a/@href"],
    );
    check("<a title='1 > 0' href=x>", &["L x a/@href"]);
    check(
        "<select><option value='/o.html'><option value=plain><option value=12>",
        &["L /o.html option/@value"],
    );
}

#[test]
fn targets_of_forms_are_reported_as_set() {
    let page = "<button formaction=/a></button><form><button formaction=/b></button></form>\
        <form action=/c><input type=submit formaction=/d></form><form method=post action=/e></form>";
    let get = [
        "L /a button/@formaction",
        "L /b button/@formaction",
        "L /c form/@action",
        "L /d input/@formaction",
    ];
    let all = [&get[..], &["L /e form/@action"]].concat();
    for (form_actions, expected) in [
        (FormActions::Get, &get[..]),
        (FormActions::All, &all),
        (FormActions::None, &[]),
    ] {
        let settings = Settings {
            form_actions,
            ..Settings::default()
        };
        check_with(page, &settings, expected);
    }
}

#[test]
fn metadata() {
    check(
        "<meta http-equiv=refresh content='0; url=n.html'>",
        &["R n.html meta/@content"],
    );
    check(
        "<meta property=og:image content=i.png><meta name=twitter:image content=t.png>",
        &["E i.png meta/@content", "E t.png meta/@content"],
    );
    check(
        "<meta property=og:url content='http://e.org/'><meta name=description content='x'>",
        &["L http://e.org/ meta/@content"],
    );
    check(
        "<meta itemprop=image content=i.png><link itemprop=url href=u>",
        &["E i.png meta/@content", "L u link/@href"],
    );
    let page = page::read(
        "<meta name=Robots content='noindex'><meta name=robots content=nofollow>",
        Syntax::Html,
        &Settings::default(),
    );
    assert_eq!(page.robots.as_deref(), Some("noindex, nofollow"));
}

#[test]
fn scripts_and_styles_become_fragments() {
    check(
        "<script>a</script><style>b</style><script src=c>d</script>",
        &[
            "E c script/@src",
            "text/javascript a script",
            "text/css b style",
        ],
    );
    check(
        "<script type=application/ld+json>{}</script><script type=text/template><a></script>",
        &["application/ld+json {} script", "text/html <a> script"],
    );
    check(
        "<p style='background:url(&quot;a.png&quot;)'><p style='color:red'>",
        &["text/css background:url(\"a.png\") @style"],
    );
    check(
        "<p onclick=\"go('/x')\" ONLOAD=go()>",
        &["text/javascript go('/x') p/@onclick"],
    );
    check(
        "<a href=\"javascript:go('%2fx')\">",
        &["text/javascript go('/x') a/@href"],
    );
    check(
        "<iframe srcdoc='&lt;a href=x&gt;' src=y>",
        &["E y iframe/@src", "text/html <a href=x> iframe/@srcdoc"],
    );
    check(
        "<noframes><a href=x></noframes>",
        &["text/html <a href=x> noframes"],
    );
    check(
        "<script><!-- <script>'</script>' --></script><a href=x>",
        &[
            "L x a/@href",
            "text/javascript <!-- <script>'</script>' --> script",
        ],
    );
}

#[test]
fn tags_in_comments_and_raw_text_are_ignored() {
    check("<!-- <a href=x> --><a href=y>", &["L y a/@href"]);
    check("<!-- <a href=x> --!><a href=y>", &["L y a/@href"]);
    check("<!--><a href=y>", &["L y a/@href"]);
    check(
        "<title><a href=x></title><textarea><a href=x></textarea><a href=y>",
        &["L y a/@href"],
    );
    check("<![CDATA[<a href=x>]]><a href=y>", &["L y a/@href"]);
    check(
        "<svg><![CDATA[<a href=x>]]></svg><a href=y>",
        &["L y a/@href"],
    );
    check("<svg><title/><style/></svg><a href=y>", &["L y a/@href"]);
    check("<plaintext><a href=x></plaintext><a href=y>", &[]);
    check(
        "< a href=x></ a href=x><? a href=x><a href=y>",
        &["L y a/@href"],
    );
    check("<a href=x", &[]);
}

#[test]
fn elements_of_svg_and_mathml_have_no_raw_text() {
    // Unclosed, they would consume the rest of the page (HTML standard §13.2.6.5).
    for root in ["svg", "math"] {
        for element in [
            "title",
            "script",
            "style",
            "textarea",
            "xmp",
            "noembed",
            "plaintext",
        ] {
            let page = page::read(
                &format!("<{root}><{element}>t</{root}><a href=x>"),
                Syntax::Html,
                &Settings::default(),
            );
            let links: Vec<&str> = page.links.iter().map(|link| link.uri.as_str()).collect();
            assert_eq!(links, ["x"], "{root} {element}");
        }
    }
    check(
        "<svg><style>a{}<a href=x><script>go('y')",
        &[
            "L x a/@href",
            "text/css a{} style",
            "text/javascript go('y') script",
        ],
    );
    check(
        "<svg><style> a{b:url(c)} </style><script href=d></script></svg><a href=y>",
        &[
            "E d script/@href",
            "L y a/@href",
            "text/css  a{b:url(c)}  style",
        ],
    );
    check(
        "<svg><script><![CDATA[if (a<b) go('</script>')]]></script></svg><a href=y>",
        &[
            "L y a/@href",
            "text/javascript <![CDATA[if (a<b) go('</script>')]]> script",
        ],
    );
    // HTML in SVG counts as HTML.
    check(
        "<svg><foreignObject><style><a href=x></style></foreignObject><title><a href=y>",
        &["L y a/@href", "text/css <a href=x> style"],
    );
}

#[test]
fn nul_in_an_attribute_becomes_a_replacement_character() {
    check(
        "<a href='a\0b&amp;c\0'>",
        &["L a\u{FFFD}b&c\u{FFFD} a/@href"],
    );
}

#[test]
fn cdata_in_html_is_a_bogus_comment() {
    // It ends at the first `>`, so markup follows.
    check("<![CDATA[ > <a href=x> ]]>", &["L x a/@href"]);
}

#[test]
fn conditional_comments_are_read() {
    check(
        "<!--[if IE]><link rel=stylesheet href=ie.css><![endif]--><a href=y>",
        &["E ie.css link/@href", "L y a/@href"],
    );
    check(
        "<!--[if !IE]><!--><a href=x><!--<![endif]-->",
        &["L x a/@href"],
    );
    check("<![if !IE]><a href=x><![endif]>", &["L x a/@href"]);
    check(
        "<!--[if IE]><script>a</script><![endif]-->",
        &["text/javascript a script"],
    );
    let settings = Settings {
        conditional_comments: false,
        ..Settings::default()
    };
    check_with("<!--[if IE]><a href=x><![endif]-->", &settings, &[]);
}

#[test]
fn lazy_images_and_other_data_attributes() {
    check(
        "<img data-src=a.jpg data-srcset='b.jpg 2x' data-id=c.jpg>",
        &["E a.jpg img/@data-src", "E b.jpg img/@data-srcset"],
    );
    check(
        "<div data-bg=\"url('a.jpg')\" data-url=/u data-src='{{x}}' data-src=b.jpg>",
        &["E a.jpg div/@data-bg", "L /u div/@data-url"],
    );
    check(
        "<img data-src='a.jpg 1x, b.jpg 2x' data-src-set='c.jpg, d.jpg' data-image='My photo.jpg'>",
        &[
            "E a.jpg img/@data-src",
            "E b.jpg img/@data-src",
            "E c.jpg img/@data-src-set",
            "E d.jpg img/@data-src-set",
        ],
    );
    let settings = Settings {
        data_attributes: false,
        ..Settings::default()
    };
    check_with("<img data-src=a.jpg>", &settings, &[]);
}

#[test]
fn the_first_valid_base_counts() {
    let page = page::read(
        "<base target=x><base href=' /b/ '><base href=/c/>",
        Syntax::Html,
        &Settings::default(),
    );
    assert_eq!(page.base.as_deref(), Some("/b/"));
    let page = page::read(
        "<base href='javascript:x'><base href='data:,x'>",
        Syntax::Html,
        &Settings::default(),
    );
    assert_eq!(page.base, None);
    // A `base` in other places is ignored.
    for elsewhere in [
        "<template><p><base href=/a/></p></template>",
        "<template><template></template><base href=/a/></template>",
        "<svg><base href=/a/></svg>",
        "<!--[if IE]><base href=/a/><template><![endif]-->",
    ] {
        let page = page::read(
            &format!("{elsewhere}<base href=/b/>"),
            Syntax::Html,
            &Settings::default(),
        );
        assert_eq!(page.base.as_deref(), Some("/b/"), "{elsewhere}");
    }
    let page = page::read(
        "<template><meta name=robots content=nofollow><a href=x></template>",
        Syntax::Html,
        &Settings::default(),
    );
    assert_eq!((page.robots, page.links.len()), (None, 1));
}

#[test]
fn rel_becomes_an_attribute_of_the_link() {
    let page = page::read(
        "<a href=x rel='NoFollow ugc'><a href=y>",
        Syntax::Html,
        &Settings::default(),
    );
    let attributes = &page.links[0].details.as_ref().unwrap().attributes;
    assert_eq!(
        (attributes[0].name.as_str(), attributes[0].value.as_str()),
        ("rel", "nofollow ugc")
    );
    assert!(page.links[1].details.is_none());
}

#[test]
fn settings_change_the_hop_or_ignore_links() {
    let settings = Settings {
        frame_links: LinkUse::Link,
        ping_links: LinkUse::Ignore,
        ..Settings::default()
    };
    check_with(
        "<iframe src=f></iframe><a href=a ping=p>",
        &settings,
        &["L f iframe/@src", "L a a/@href"],
    );
}

#[test]
fn self_closing_tags_close_elements_in_xhtml() {
    let read = |syntax| {
        page::read(
            "<script src='a'/><title/><a href='x'/>",
            syntax,
            &Settings::default(),
        )
        .links
        .len()
    };
    assert_eq!(read(Syntax::Xml), 2);
    assert_eq!(read(Syntax::Html), 1);
}
