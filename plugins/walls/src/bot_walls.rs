//! `bot-walls`: recognises pages that bot detection services send in place of a site's own.
//!
//! A service is recognised by signs that its walls have and ordinary pages lack. Some sites have scripts that detect bots in
//! every page, so such a script alone is not a sign.

use opilio_plugin::prelude::*;

use crate::needles::Needles;
use crate::{Then, page};

/// Number of bytes searched for texts and the title. Walls are short.
const SEARCHED_BYTES_MAX: u32 = 32 * 1024;

/// Status codes of walls. Under any other status code, only short pages are recognised as walls.
const REFUSALS: [i32; 8] = [202, 401, 403, 405, 429, 468, 503, 520];

/// A sign defined in the profile.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Signature {
    /// Service name in the annotation: `botblock:SERVICE`.
    pub service: String,
    /// Status codes, one of which the response must have. Empty: any.
    pub statuses: Vec<i32>,
    /// Name of a header that the response must have.
    pub header: String,
    /// Text that this header must contain; case is ignored. Empty: anything.
    pub header_value: String,
    /// Text that the title must contain; case is ignored.
    pub title: String,
    /// Texts that the first 32 KiB of the page must all contain; case matters.
    pub texts: Vec<String>,
}

/// Settings of `bot-walls`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Effect on a wall: `annotate` only, `reject`, or `retry`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Then,
    /// Wait before the fetch is repeated, with `retry`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub retry_after: Period,
    /// Services to ignore, such as `captcha`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub ignore: Vec<String>,
    /// Signs in addition to the built-in ones. All parts of a sign must match.
    pub signatures: Vec<Signature>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            then: Then::Annotate,
            retry_after: Period::seconds(60 * 60),
            ignore: Vec::new(),
            signatures: Vec::new(),
        }
    }
}

/// A built-in sign of a service. The first match in the list counts.
struct BuiltInSign {
    service: &'static str,
    /// True if the status code must be one of `REFUSALS`.
    needs_refusal: bool,
    /// Header name, and the text that its value contains.
    header: Option<(&'static str, &'static str)>,
    title: &'static str,
    texts: &'static [&'static str],
}

const fn by_header(service: &'static str, name: &'static str, value: &'static str) -> BuiltInSign {
    BuiltInSign {
        service,
        needs_refusal: false,
        header: Some((name, value)),
        title: "",
        texts: &[],
    }
}

const fn by_texts(service: &'static str, texts: &'static [&'static str]) -> BuiltInSign {
    BuiltInSign {
        service,
        needs_refusal: false,
        header: None,
        title: "",
        texts,
    }
}

const fn by_texts_of_refusal(service: &'static str, texts: &'static [&'static str]) -> BuiltInSign {
    BuiltInSign {
        service,
        needs_refusal: true,
        header: None,
        title: "",
        texts,
    }
}

const fn by_title(
    service: &'static str,
    title: &'static str,
    texts: &'static [&'static str],
) -> BuiltInSign {
    BuiltInSign {
        service,
        needs_refusal: false,
        header: None,
        title,
        texts,
    }
}

/// Common signs of the services' walls, from their documentation and from their pages.
const BUILT_IN_SIGNS: &[BuiltInSign] = &[
    by_header("cloudflare", "cf-mitigated", "challenge"),
    by_title(
        "cloudflare",
        "just a moment...",
        &["/cdn-cgi/challenge-platform/"],
    ),
    by_title("cloudflare", "attention required! | cloudflare", &[]),
    by_title("cloudflare", "| cloudflare", &["cf-error-details"]),
    by_texts_of_refusal("cloudflare", &["_cf_chl_opt"]),
    by_texts_of_refusal("cloudflare", &["cf-error-details", "/cdn-cgi/"]),
    by_texts_of_refusal("cloudflare", &["error code: 1020"]),
    by_texts("akamai", &["errors.edgesuite.net", "Access Denied"]),
    by_texts("akamai", &["/_sec/cp_challenge/", "sec-if-cpt-container"]),
    by_texts("akamai", &["bm-verify", "http-equiv=\"refresh\""]),
    by_texts_of_refusal("datadome", &["captcha-delivery.com"]),
    BuiltInSign {
        needs_refusal: true,
        ..by_header("datadome", "x-dd-b", "")
    },
    by_texts("perimeterx", &["px-captcha", "_pxAppId"]),
    by_title(
        "perimeterx",
        "access to this page has been denied",
        &["px-captcha"],
    ),
    by_texts_of_refusal("perimeterx", &["px-cdn.net", "_pxAppId"]),
    by_texts_of_refusal("perimeterx", &["\"appId\":\"PX", "\"blockScript\""]),
    by_texts("imperva", &["Incapsula incident ID"]),
    by_texts("imperva", &["_Incapsula_Resource", "main-iframe"]),
    by_header("aws-waf", "x-amzn-waf-action", ""),
    by_texts("aws-waf", &["awsWafCookieDomainList", "gokuProps"]),
    by_header("sucuri", "x-sucuri-block", ""),
    by_title("sucuri", "sucuri website firewall", &[]),
    by_texts("sucuri", &["sucuri_cloudproxy_js"]),
    by_texts("anubis", &["anubis_challenge"]),
    by_texts("anubis", &["/.within.website/x/cmd/anubis/"]),
    by_header("vercel", "x-vercel-mitigated", ""),
    by_texts_of_refusal("kasada", &["KPSDK"]),
    BuiltInSign {
        needs_refusal: true,
        ..by_header("kasada", "x-kpsdk-ct", "")
    },
    by_texts(
        "f5",
        &[
            "The requested URL was rejected. Please consult with your administrator",
            "upport ID",
        ],
    ),
    by_title("ddos-guard", "ddos-guard", &[]),
    by_texts("ddos-guard", &["/.well-known/ddos-guard/js-challenge"]),
    by_texts_of_refusal("reblaze", &["window.rbzns"]),
    by_texts(
        "wordfence",
        &[
            "Generated by Wordfence",
            "Your access to this site has been limited",
        ],
    ),
    by_texts_of_refusal("fastly", &["/_fs-ch-"]),
    by_texts_of_refusal(
        "google",
        &["Our systems have detected unusual traffic from your computer network"],
    ),
    // Any service: a captcha in place of a page.
    by_texts_of_refusal("captcha", &["g-recaptcha"]),
    by_texts_of_refusal("captcha", &["h-captcha"]),
    by_texts_of_refusal("captcha", &["cf-turnstile"]),
    by_title("captcha", "robot check", &["captcha"]),
    by_title("captcha", "are you a robot", &["captcha"]),
    by_title("captcha", "are you human", &["captcha"]),
    by_title("captcha", "human verification", &["captcha"]),
    by_title("captcha", "captcha challenge", &[]),
];

/// The configured plugin.
pub struct BotWalls {
    settings: Settings,
    signs: Vec<Sign>,
    needles: Needles,
}

/// A built-in sign or one of the profile. `texts` are numbers of `needles`.
struct Sign {
    service: String,
    needs_refusal: bool,
    statuses: Vec<i32>,
    header: Option<(String, String)>,
    title: String,
    texts: Vec<usize>,
}

impl Plugin for BotWalls {
    const NAME: &'static str = "bot-walls";
    const SUMMARY: &'static str =
        "Recognises bot walls, pages that keep crawlers out, and annotates them: botblock:SERVICE";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let (mut faults, mut needles, mut signs) = (Vec::new(), Needles::new(), Vec::new());
        // Signs of the profile come first, because they are more specific.
        for (at, signature) in settings.signatures.iter().enumerate() {
            let mut fault = |member: &str, problem: &str| {
                faults.push(SettingsFault::new(
                    format!("/signatures/{at}{member}"),
                    problem,
                ));
            };
            if signature.service.is_empty() {
                fault("/service", "the name is empty; write the service's name");
            }
            if signature.header.is_empty() && !signature.header_value.is_empty() {
                fault(
                    "/header-value",
                    "a header value without a header name; set `header`",
                );
            }
            if signature.header.is_empty()
                && signature.title.is_empty()
                && signature.texts.is_empty()
            {
                fault(
                    "",
                    "names neither header, title nor texts, so every page would fit",
                );
            }
            let mut texts = Vec::new();
            for (number, text) in signature.texts.iter().enumerate() {
                match needles.add(text) {
                    Some(text) => texts.push(text),
                    None => fault(
                        &format!("/texts/{number}"),
                        "the text is shorter than two bytes",
                    ),
                }
            }
            signs.push(Sign {
                service: signature.service.clone(),
                needs_refusal: false,
                statuses: signature.statuses.clone(),
                header: (!signature.header.is_empty()).then(|| {
                    (
                        signature.header.clone(),
                        signature.header_value.to_lowercase(),
                    )
                }),
                title: signature.title.to_lowercase(),
                texts,
            });
        }
        for sign in BUILT_IN_SIGNS {
            signs.push(Sign {
                service: sign.service.to_owned(),
                needs_refusal: sign.needs_refusal,
                statuses: Vec::new(),
                header: sign
                    .header
                    .map(|(name, value)| (name.to_owned(), value.to_owned())),
                title: sign.title.to_owned(),
                texts: sign
                    .texts
                    .iter()
                    .filter_map(|text| needles.add(text))
                    .collect(),
            });
        }
        for (at, service) in settings.ignore.iter().enumerate() {
            if !signs.iter().any(|sign| sign.service == *service) {
                faults.push(SettingsFault::new(
                    format!("/ignore/{at}"),
                    format!("no service is called `{service}`"),
                ));
            }
        }
        signs.retain(|sign| !settings.ignore.contains(&sign.service));
        none_or(
            faults,
            Self {
                settings,
                signs,
                needles,
            },
        )
    }

    fn handles() -> Handles {
        Handles::media_types(&["text/html", "application/xhtml+xml", "application/json"])
    }
}

impl Filter for BotWalls {
    fn judge_candidate(&self, _: &Stage, _: CandidateView<'_>) -> Ruling {
        Ruling::pass()
    }

    fn judge_document(&self, stage: &Stage, document: &Document, _: &Visit) -> Ruling {
        let Some(service) = self.service(document) else {
            return Ruling::pass();
        };
        document.annotate(&format!("botblock:{service}"));
        document.set_note("botblock", service);
        count("bot-walls", 1);
        self.settings.then.ruling(
            stage,
            self.settings.retry_after,
            format!("a bot wall of {service}"),
        )
    }
}

impl BotWalls {
    /// Returns the service if the document is a wall.
    fn service(&self, document: &Document) -> Option<&str> {
        let status = document.status();
        let is_refusal = REFUSALS.contains(&status);
        // Redirects and the site's own error pages are not walls. A long page is the site's own.
        let is_read = is_refusal
            || ((200..300).contains(&status) || status == 404)
                && document.length() <= u64::from(SEARCHED_BYTES_MAX);
        let (mut found, mut title) = (Vec::new(), String::new());
        if is_read {
            let start = document.read(0, SEARCHED_BYTES_MAX);
            found = self.needles.found_in(&start);
            title =
                page::element_text(&String::from_utf8_lossy(&start), "title").unwrap_or_default();
        }
        let has_header = |name: &str, value: &str| {
            document
                .header(name)
                .iter()
                .any(|one| one.to_lowercase().contains(value))
        };
        let fits = |sign: &&Sign| {
            (!sign.needs_refusal || is_refusal)
                && (sign.statuses.is_empty() || sign.statuses.contains(&status))
                && (sign.title.is_empty() || title.contains(&sign.title))
                && sign
                    .texts
                    .iter()
                    .all(|text| found.get(*text) == Some(&true))
                && sign
                    .header
                    .as_ref()
                    .is_none_or(|(name, value)| has_header(name, value))
        };
        self.signs
            .iter()
            .find(fits)
            .map(|sign| sign.service.as_str())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use opilio_plugin::testing::{VisitFacts, document, visit};

    use super::*;

    fn judge(
        settings: Settings,
        status: i32,
        headers: &[(&str, &str)],
        html: &str,
    ) -> (Vec<String>, Verdict) {
        let mut page = document("https://e.org/")
            .status(status)
            .media_type("text/html");
        for (name, value) in headers {
            page = page.header(name, value);
        }
        let page = page.text(html);
        let plugin = BotWalls::new(settings).unwrap();
        let ruling = plugin.judge_document(&Stage::PostFetch, &page, &visit(VisitFacts::default()));
        (page.annotations(), ruling.verdict)
    }

    #[track_caller]
    fn check(status: i32, headers: &[(&str, &str)], html: &str, expected: Option<&str>) {
        let (annotations, verdict) = judge(Settings::default(), status, headers, html);
        let expected: Vec<_> = expected
            .map(|service| format!("botblock:{service}"))
            .into_iter()
            .collect();
        assert_eq!(annotations, expected, "{status} {headers:?} {html}");
        assert_eq!(verdict, Verdict::Pass);
    }

    #[test]
    fn walls_are_recognised_by_their_signs() {
        check(
            403,
            &[("CF-Mitigated", "challenge")],
            "",
            Some("cloudflare"),
        );
        check(
            403,
            &[],
            "<title>Just a moment...</title><script>window._cf_chl_opt={}</script>",
            Some("cloudflare"),
        );
        check(
            403,
            &[("Server", "AkamaiGHost")],
            "<TITLE>Access Denied</TITLE>You don't have permission<P>https&#58;&#47;&#47;errors.edgesuite.net&#47;18",
            Some("akamai"),
        );
        check(
            403,
            &[],
            "<script>var dd={'host':'geo.captcha-delivery.com'}</script>",
            Some("datadome"),
        );
        check(
            200,
            &[],
            "<html><iframe id=\"main-iframe\" src=\"/_Incapsula_Resource?CWUDNSAI=1\">x</iframe>",
            Some("imperva"),
        );
        check(
            202,
            &[("x-amzn-waf-action", "challenge")],
            "",
            Some("aws-waf"),
        );
        check(
            200,
            &[],
            "<title>Making sure you&#39;re not a bot!</title><script id=\"anubis_challenge\">{}</script>",
            Some("anubis"),
        );
        check(
            429,
            &[],
            "<div class=\"g-recaptcha\"></div>",
            Some("captcha"),
        );
    }

    #[test]
    fn pages_with_bot_detection_are_not_walls() {
        check(
            200,
            &[("server", "cloudflare")],
            "<title>News</title><script src=/cdn-cgi/challenge-platform/x.js>",
            None,
        );
        check(
            200,
            &[("x-datadome", "protected")],
            "<title>News</title><script src=//captcha-delivery.com/>",
            None,
        );
        check(
            200,
            &[],
            "<title>News</title><script src=\"/_Incapsula_Resource?SWJI=1\"></script>",
            None,
        );
        check(200, &[], "<form><div class=g-recaptcha></div></form>", None);
        check(403, &[], "<title>Forbidden</title>", None);
        check(404, &[], "<title>Not found</title>", None);
        // An article about bot walls is longer than a wall.
        let article = format!(
            "<title>Just a moment...</title>/cdn-cgi/challenge-platform/{}",
            "text ".repeat(10_000)
        );
        check(200, &[], &article, None);
        check(
            301,
            &[],
            "<title>Just a moment...</title>/cdn-cgi/challenge-platform/",
            None,
        );
    }

    #[test]
    fn settings_add_signs_ignore_services_and_choose_the_effect() {
        let wall = "<title>Just a moment...</title>/cdn-cgi/challenge-platform/";
        let with = |then| Settings {
            then,
            ..Settings::default()
        };
        assert_eq!(judge(with(Then::Reject), 503, &[], wall).1, Verdict::Reject);
        assert_eq!(
            judge(with(Then::Retry), 503, &[], wall).1,
            Verdict::Retry(3_600_000)
        );
        let ignore = Settings {
            ignore: vec!["cloudflare".to_owned()],
            ..with(Then::Reject)
        };
        assert_eq!(judge(ignore, 503, &[], wall), (Vec::new(), Verdict::Pass));
        let own = Settings {
            signatures: vec![Signature {
                service: "ours".to_owned(),
                statuses: vec![200],
                header: "X-Wall".to_owned(),
                header_value: "YES".to_owned(),
                title: "Halt".to_owned(),
                texts: vec!["who goes there".to_owned()],
            }],
            ..Settings::default()
        };
        let page = "<title>HALT!</title>who goes there";
        assert_eq!(
            judge(own.clone(), 200, &[("x-wall", "oh yes")], page).0,
            ["botblock:ours"]
        );
        assert_eq!(
            judge(own.clone(), 200, &[("x-wall", "no")], page).0,
            [""; 0]
        );
        assert_eq!(
            judge(own.clone(), 201, &[("x-wall", "yes")], page).0,
            [""; 0]
        );
        assert_eq!(
            judge(own, 200, &[("x-wall", "yes")], "who goes there").0,
            [""; 0]
        );
    }

    #[test]
    fn invalid_settings_are_refused() {
        let settings = Settings {
            ignore: vec!["nobody".to_owned()],
            signatures: vec![
                Signature {
                    service: "a".to_owned(),
                    ..Signature::default()
                },
                Signature {
                    texts: vec!["x".to_owned()],
                    ..Signature::default()
                },
            ],
            ..Settings::default()
        };
        let faults = BotWalls::new(settings).err().unwrap();
        let pointers: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/signatures/0",
                "/signatures/1/service",
                "/signatures/1/texts/0",
                "/ignore/0"
            ]
        );
    }
}
