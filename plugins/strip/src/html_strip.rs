//! `html-strip`: removes parts that change on every visit of a page and are not content. These are comments, scripts, CSRF
//! tokens, nonces, session ids, times of day, advertisements, and elements that the operator's CSS selectors name. README.md
//! has the lists.

use std::collections::BTreeSet;

use opilio_plugin::prelude::*;
use regex::bytes::{Regex, RegexBuilder};

use crate::page::{self, Event, Names};
use crate::selector::{self, Selector};
use crate::tokenizer::Attribute;

/// Largest number of selectors in the settings.
const SELECTORS_MAX: usize = 256;

/// Selectors of advertisements: the markup of the large networks, and class names that are used only for advertisements.
const ADS: &str = "ins.adsbygoogle, amp-ad, amp-embed, [data-ad-slot], [data-ad-client], [data-ad-unit], \
    [data-google-query-id], [id^='google_ads'], [id^='div-gpt-ad'], [id^='taboola-'], [id^='outbrain_'], \
    .ad-slot, .adslot, .ad-unit, .adunit, .ad-banner, .ad-container, .ad-wrapper, .advert, .advertisement, \
    iframe[src*='doubleclick.net'], iframe[src*='googlesyndication.com'], iframe[src*='adnxs.com'], \
    img[src*='doubleclick.net']";

/// Names of hidden inputs and meta elements with a new value for each request, from common frameworks.
const TOKENS: [&str; 31] = [
    "__cfduid",
    "__csrf_magic",
    "__eventvalidation",
    "__ncforminfo",
    "__previouspage",
    "__requestdigest",
    "__requestverificationtoken",
    "__viewstate",
    "__viewstategenerator",
    "_csrf",
    "_csrf_token",
    "_token",
    "_wpnonce",
    "_xsrf",
    "authenticity_token",
    "csrf",
    "csrf-token",
    "csrf_name",
    "csrf_test_name",
    "csrf_token",
    "csrf_value",
    "csrfmiddlewaretoken",
    "csrftoken",
    "form_build_id",
    "form_key",
    "form_token",
    "javax.faces.viewstate",
    "nonce",
    "request_token",
    "xsrf-token",
    "yii_csrf_token",
];

/// Parameters of URIs with a session id. Short values of most of them count as content.
const SESSION_IDS: &str = r#"(?i)(?:[?&;]|&amp;)(?:jsessionid|phpsessid|phpsession|aspsessionid[a-z]*|sessionid|session_id|sess_?id|sid|oscsid|zenid)=[0-9a-z]{16,}|;jsessionid=[0-9a-z_.!-]+|[?&;](?:cfid|cftoken)=[0-9a-z-]+|/\(S\([0-9a-z]{24}\)\)"#;

/// Times to the second, with the date before them: `2026-11-22T00:36:02.5Z`, `Sun, 22 Nov 2026 00:36:02 GMT`, `12:34:56 PM`. A
/// date without a time is content.
const SECONDS: &str = r"(?i)(?:\d{4}-\d{2}-\d{2}(?:t|\s{1,4})|(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?\s{1,4})?\d{1,2}[ -][a-z]{3,9}[ -]\d{4},?\s{1,4}|\b)[0-2]?\d:[0-5]\d:[0-6]\d(?:[.,]\d{1,9})?(?:\s?[ap]\.?m\b\.?)?(?:\s?(?:z|gmt|utc|[+-]\d{2}:?\d{2})\b)?";

/// Also times to the minute.
const MINUTES: &str = r"(?i)\b[0-2]?\d:[0-5]\d\b(?:\s?[ap]\.?m\b\.?)?";

/// Times that the generation of the page took, in the usual phrases.
const GENERATION_TIMES: &str = r"(?i)\b(?:generated|rendered|served|created|processed|executed|loaded)\s+in\s+\d+(?:[.,]\d+)?\s*(?:ms|milliseconds?|s|secs?|seconds?)\b";

/// Removes changing parts from pages.
pub struct HtmlStrip {
    settings: Settings,
    selectors: Vec<Selector>,
    names: Names,
    /// Expressions whose matches are removed, anywhere in the page.
    texts: Vec<Regex>,
}

/// Settings of `html-strip`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Whether to ignore comments.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub comments: bool,
    /// Whether to ignore scripts: `script` elements, the tag included.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub scripts: bool,
    /// Whether to ignore CSRF tokens: values of hidden inputs and meta elements.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub tokens: bool,
    /// Whether to ignore `nonce` attributes, and nonces in a content security policy.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub nonces: bool,
    /// Whether to ignore session ids in URIs.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub session_ids: bool,
    /// Times to ignore: `none`, times to the second (`seconds`), or also times to the minute (`minutes`), which include opening
    /// hours. Dates without a time always count.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub timestamps: Timestamps,
    /// Whether to ignore elements with advertisements.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub ads: bool,
    /// CSS selectors of elements to ignore, with their content: types, `*`, `#id`, `.class`, `[attribute]` with all its
    /// operators, `:not(…)`, descendants and children.
    #[schemars(length(max = 256), extend("x-opilio-overridable" = true))]
    pub selectors: Vec<String>,
    /// Largest document to examine, in bytes. The payload digest decides on larger ones.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_size: u64,
}

/// Times to ignore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Timestamps {
    /// Ignores no times.
    None,
    /// Ignores times with seconds; these are mostly clocks.
    Seconds,
    /// Also ignores times with only hours and minutes.
    Minutes,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            comments: true,
            scripts: true,
            tokens: true,
            nonces: true,
            session_ids: true,
            timestamps: Timestamps::Seconds,
            ads: true,
            selectors: Vec::new(),
            max_size: 1024 * 1024,
        }
    }
}

impl Plugin for HtmlStrip {
    const NAME: &'static str = "html-strip";
    const SUMMARY: &'static str = "Leaves out of the digest the parts of an HTML page that change on every visit and are not content.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        let mut selectors = selectors(&settings.selectors, &mut faults);
        if settings.ads {
            // An invalid built-in selector would be an error in this plugin. It is reported like one of the operator's.
            let ads = selector::parse(ADS);
            match ads {
                Ok(ads) => selectors.extend(ads),
                Err(problem) => faults.push(SettingsFault::new("/ads", problem)),
            }
        }
        let times = match settings.timestamps {
            Timestamps::None => [None, None, None],
            Timestamps::Seconds => [Some(SECONDS), Some(GENERATION_TIMES), None],
            Timestamps::Minutes => [Some(SECONDS), Some(GENERATION_TIMES), Some(MINUTES)],
        };
        let ids = settings.session_ids.then_some(SESSION_IDS);
        let mut texts = Vec::new();
        for pattern in times.into_iter().chain([ids]).flatten() {
            match RegexBuilder::new(pattern).unicode(false).build() {
                Ok(regex) => texts.push(regex),
                Err(error) => faults.push(SettingsFault::new("", error.to_string())),
            }
        }
        let names = Names::of(selectors.iter());
        none_or(
            faults,
            Self {
                settings,
                selectors,
                names,
                texts,
            },
        )
    }

    fn handles() -> Handles {
        Handles::media_types(&["text/html", "application/xhtml+xml"])
    }
}

impl DigestStripper for HtmlStrip {
    fn strip(&self, document: &Document) -> Result<Vec<Span>, StripProblem> {
        let length = document.length();
        if length > self.settings.max_size {
            return Err(StripProblem::TooLarge(length));
        }
        let Some(text) = page::text_of(document) else {
            // Nothing is removed.
            count("unreadable-encoding", 1);
            return Ok(Vec::new());
        };
        let mut values = BTreeSet::new();
        let mut spans = page::walk(&text, &self.names, |event| match event {
            Event::Comment { .. } => self.settings.comments,
            Event::Start { open, attributes } => {
                let name = open.last().map_or("", |element| element.name.as_str());
                if (self.settings.scripts && name == "script")
                    || self.selectors.iter().any(|selector| selector.matches(open))
                {
                    return true;
                }
                for value in self.changing_values(name, attributes) {
                    let start = value.as_ptr() as usize - text.as_ptr() as usize;
                    values.insert((start, start + value.len()));
                }
                false
            }
        });
        spans.extend(values);
        let found = self.texts.iter().flat_map(|regex| {
            let found = regex.find_iter(text.as_bytes());
            found.map(|found| (found.start(), found.end()))
        });
        spans.extend(found);
        Ok(spans
            .into_iter()
            .filter(|(start, end)| start < end)
            .map(|(start, end)| Span::from(start..end))
            .collect())
    }
}

impl HtmlStrip {
    /// Values of attributes to ignore: tokens and nonces.
    fn changing_values<'p>(&self, element: &str, attributes: &[Attribute<'p>]) -> Vec<&'p str> {
        let value = |name: &str| {
            let mut named = attributes.iter();
            let named = named.find(|attribute| attribute.name.eq_ignore_ascii_case(name));
            named.map(|attribute| attribute.value)
        };
        let is_token = |name: &str| {
            let name = name.to_ascii_lowercase();
            TOKENS.binary_search(&name.as_str()).is_ok()
        };
        let mut values = Vec::new();
        if self.settings.nonces {
            values.extend(value("nonce"));
            let has_nonce = |value: &&str| value.contains("'nonce-");
            if element == "meta" {
                values.extend(value("content").filter(has_nonce));
            }
        }
        if self.settings.tokens {
            match element {
                "input" if value("name").is_some_and(is_token) => values.extend(value("value")),
                "meta" if value("name").is_some_and(is_token) => values.extend(value("content")),
                _ => {}
            }
        }
        values
    }
}

/// Parses the selectors of a setting. Adds a fault for each invalid one.
pub(crate) fn selectors(texts: &[String], faults: &mut Vec<SettingsFault>) -> Vec<Selector> {
    if texts.len() > SELECTORS_MAX {
        let problem = format!("more than {SELECTORS_MAX} selectors; join some with commas");
        faults.push(SettingsFault::new("/selectors", problem));
    }
    let mut selectors = Vec::new();
    for (at, text) in texts.iter().take(SELECTORS_MAX).enumerate() {
        match selector::parse(text) {
            Ok(more) => selectors.extend(more),
            Err(problem) => faults.push(SettingsFault::new(format!("/selectors/{at}"), problem)),
        }
    }
    selectors
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use opilio_plugin::testing::document;

    /// Compares the rest of a page with `left`, which has `~` for each ignored part. Adjacent parts count as one.
    #[track_caller]
    fn check(settings: &Settings, page: &str, left: &str) {
        let stripper = HtmlStrip::new(settings.clone()).unwrap();
        let document = document("http://a.org/").media_type("text/html").text(page);
        let mut spans = stripper.strip(&document).unwrap();
        spans.sort_by_key(|span| span.offset);
        let mut text = String::new();
        let (mut at, mut last) = (0, None);
        for span in spans {
            let (start, end) = (span.offset as usize, (span.offset + span.length) as usize);
            if end <= at {
                continue;
            }
            if start > at {
                text.push_str(&page[at..start]);
            }
            if last != Some(start.max(at)) {
                text.push('~');
            }
            (at, last) = (end, Some(end));
        }
        text.push_str(&page[at..]);
        assert_eq!(text, left, "{page}");
    }

    fn check_default(page: &str, left: &str) {
        check(&Settings::default(), page, left);
    }

    #[test]
    fn tokens_are_sorted() {
        assert!(TOKENS.is_sorted());
    }

    #[test]
    fn comments_and_scripts_are_ignored() {
        check_default("a<!-- built 7 -->b", "a~b");
        check_default("a<SCRIPT src=x>if (a < b) '</p>'</script >b", "a~b");
        check_default("<p onclick='x()'>a</p>", "<p onclick='x()'>a</p>");
    }

    #[test]
    fn tokens_and_nonces_are_ignored() {
        check_default(
            "<input type=hidden name=CSRF_token value='abc'><input name=q value=abc>",
            "<input type=hidden name=CSRF_token value='~'><input name=q value=abc>",
        );
        check_default(
            "<meta name='csrf-token' content='x=='><meta name=author content=me>",
            "<meta name='csrf-token' content='~'><meta name=author content=me>",
        );
        check_default(
            "<link nonce=r4nd0m href=a.css>",
            "<link nonce=~ href=a.css>",
        );
        check_default(
            "<meta http-equiv=Content-Security-Policy content=\"script-src 'nonce-abc'\">",
            "<meta http-equiv=Content-Security-Policy content=\"~\">",
        );
        check_default(
            "<input name=_token value=''>",
            "<input name=_token value=''>",
        );
    }

    #[test]
    fn session_ids_are_ignored() {
        check_default(
            "<a href='/p;jsessionid=AB12.node1?x=1'>",
            "<a href='/p~?x=1'>",
        );
        check_default(
            "<a href='/p?a=b&amp;PHPSESSID=0123456789abcdef0123456789abcdef&c=d'>",
            "<a href='/p?a=b~&c=d'>",
        );
        check_default("<a href='/p?sid=12'>", "<a href='/p?sid=12'>");
        check_default("/(S(lit3py55t21z5v55vlm25s55))/a", "~/a");
    }

    #[test]
    fn times_are_ignored_and_dates_are_not() {
        check_default("It is 12:34:56.", "It is ~.");
        check_default("at 2026-11-22T00:36:02.123Z!", "at ~!");
        check_default("on Sun, 22 Nov 2026 00:36:02 GMT.", "on ~.");
        check_default(
            "on 2026-11-22, open 10:00–18:00",
            "on 2026-11-22, open 10:00–18:00",
        );
        check_default("1:02:03 pm", "~");
        check_default("Page generated in 0.123 seconds.", "Page ~.");
        let minutes = Settings {
            timestamps: Timestamps::Minutes,
            ..Settings::default()
        };
        check(&minutes, "open 10:00 to 6:00 p.m., 1:2", "open ~ to ~, 1:2");
        let none = Settings {
            timestamps: Timestamps::None,
            ..Settings::default()
        };
        check(&none, "It is 12:34:56.", "It is 12:34:56.");
    }

    #[test]
    fn advertisements_and_selected_elements_are_ignored() {
        check_default("a<ins class='adsbygoogle' id=x><b>buy</b></ins>c", "a~c");
        check_default("<div id=div-gpt-ad-123><p>x</div>", "~");
        check_default("<div class=shadow>x</div>", "<div class=shadow>x</div>");
        let named = Settings {
            selectors: vec!["aside.front > *".to_owned(), "#clock, #weather".to_owned()],
            ..Settings::default()
        };
        check(
            &named,
            "<aside class=front><h2>a</h2>b</aside><i id=clock>1</i><i id=weather>2</i>",
            "<aside class=front>~b</aside>~",
        );
    }

    #[test]
    fn a_page_that_is_not_utf_8_is_read_byte_by_byte() {
        let stripper = HtmlStrip::new(Settings::default()).unwrap();
        let page = document("http://a.org/")
            .media_type("text/html")
            .charset("windows-1252")
            .bytes(b"\xfe<!--\xe6-->\xfe");
        assert_eq!(stripper.strip(&page).unwrap(), [Span::from(1..9)]);
        let wide = document("http://a.org/")
            .media_type("text/html")
            .charset("utf-16le")
            .bytes(b"<\0!\0-\0-\0>\0");
        assert_eq!(stripper.strip(&wide).unwrap(), []);
    }
}
