//! Reads the signs that scripts build a page, in one pass over its tags with the `html` extractor's tokenizer. It builds no tree.
//! An element whose end tag is missing ends with the element around it.

use crate::tokenizer::{Attribute, RawText, Token, Tokenizer};

/// Most open elements that are tracked. Deeper elements count as part of the deepest tracked one.
const DEPTH_MAX: usize = 256;

/// Text of `noscript` elements that is read, in bytes.
const NOSCRIPT_BYTES_MAX: usize = 4_000;

/// Most characters of text in an element that counts as empty: the text may say that something is loading.
const PLACE_TEXT_MAX: usize = 40;

/// Number of characters that a Chinese, Japanese or Korean character counts as, because it corresponds to about half a word.
const WIDE_CHARACTER_LENGTH: usize = 3;

/// Identifiers of the elements that frameworks fill.
const ROOTS: &[&str] = &[
    "__next",
    "__nuxt",
    "___gatsby",
    "__docusaurus",
    "app",
    "app-container",
    "app-root",
    "app_root",
    "application",
    "main-app",
    "mount",
    "preact_root",
    "q-app",
    "react-app",
    "react-root",
    "react_root",
    "reactroot",
    "root",
    "spa-root",
    "svelte",
    "swagger-ui",
    "vue-app",
    "wrapper-app",
];

/// Parts of the addresses of scripts that measure, advertise, ask for consent or show a captcha. They do not build the page.
const TRACKERS: &[&str] = &[
    "adsbygoogle",
    "adthrive",
    "analytics",
    "chartbeat",
    "clarity.ms",
    "cookielaw",
    "cookiebot",
    "doubleclick",
    "facebook.net",
    "googlesyndication",
    "googletag",
    "gtag/js",
    "gtm.js",
    "hm.baidu.com",
    "hotjar",
    "iubenda",
    "matomo",
    "mc.yandex",
    "newrelic",
    "onesignal",
    "piwik",
    "recaptcha",
    "segment.com",
    "usercentrics",
];

/// Words in inline scripts that measure or advertise.
const TRACKING_WORDS: &[&str] = &[
    "dataLayer",
    "_gaq",
    "_paq",
    "_hmt",
    "fbq(",
    "googletag",
    "gtag(",
    "_wpemojiSettings",
    "__tcfapi",
    "OptanonWrapper",
];

/// Marks of programs that build the whole page in the browser, in addresses and texts of scripts and in attributes.
const RUNTIMES: &[&str] = &[
    "$docsify",
    ".nocache.js",
    "Elm.Main.init",
    "Ext.manifest",
    "SwaggerUIBundle",
    "__meteor_runtime_config__",
    "__remixContext",
    "_flutter",
    "aurelia-bootstrapper",
    "blazor.webassembly",
    "config/environment",
    "elm.js",
    "flutter.js",
    "flutter_bootstrap.js",
    "redoc.standalone",
    "require.js",
    "spaMode",
];

/// Words in inline scripts that request data from a server.
const DATA_LOADERS: &[&str] = &[
    "$.ajax(",
    "$.get(",
    "$.getJSON(",
    "XMLHttpRequest",
    "axios.",
    "fetch(",
];

/// Attributes of templates that a script fills.
const TEMPLATE_ATTRIBUTES: &[&str] = &[
    "ng-app",
    "ng-bind",
    "ng-repeat",
    "ng-view",
    "v-for",
    "v-cloak",
    "x-for",
    "x-text",
    "data-bind",
];

/// Generators whose pages are built in the browser.
const GENERATORS: &[&str] = &["bubble", "discourse", "flutter", "storybook"];

/// The signs of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageFacts {
    /// Characters of visible text.
    pub text: usize,
    /// Characters of visible text in links, menus, headers, footers, buttons and labels.
    pub navigation_text: usize,
    /// Links with a target.
    pub links: usize,
    /// Images with an address, frames, objects and videos.
    pub media: usize,
    /// A `canvas` element, on which scripts draw.
    pub has_canvas: bool,
    /// A field in which visitors enter something.
    pub has_form: bool,
    /// Scripts with an address, modules, and inline scripts of some length. Those of trackers do not count.
    pub scripts: usize,
    /// A script that is a module, or has the name of a bundle.
    pub has_bundle: bool,
    /// An inline script that requests data from a server.
    pub loads_data: bool,
    /// An inline script that calls `document.write`.
    pub writes_document: bool,
    /// A program that builds the whole page.
    pub has_runtime: bool,
    /// An element without content that a framework fills.
    pub has_empty_root: bool,
    /// A custom element without content.
    pub has_empty_component: bool,
    /// A main element without content.
    pub has_empty_main: bool,
    /// Other elements with an identifier or data and without content.
    pub empty_places: usize,
    /// A template that a script fills.
    pub has_templates: bool,
    /// Elements that stand for content that is still loading.
    pub placeholders: usize,
    /// A text that tells visitors without scripts that they need them.
    pub demands_scripts: bool,
    /// A generator whose pages are built in the browser.
    pub has_generator: bool,
    /// Frames, or a redirect by the page or a script.
    pub has_frames_or_redirect: bool,
}

/// An element that has not ended yet.
struct Open<'p> {
    name: &'p str,
    place: Option<Place>,
    /// Characters of text before the element.
    text_before: usize,
    /// Links and media before the element.
    content_before: usize,
    within: Within,
}

/// The kinds of elements around a part of a page.
#[derive(Clone, Copy, Default)]
struct Within {
    /// A link, menu, header, footer, button or label.
    navigation: bool,
    /// An element that is not shown.
    hidden: bool,
    noscript: bool,
    /// SVG or MathML.
    foreign: bool,
}

/// An element that a script may fill.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Component,
    Main,
    Other,
}

struct Reader<'p> {
    text: &'p str,
    open: Vec<Open<'p>>,
    facts: PageFacts,
    noscript: String,
}

/// Reads a page.
pub(crate) fn read(text: &str) -> PageFacts {
    let mut reader = Reader {
        text,
        open: Vec::new(),
        facts: PageFacts::default(),
        noscript: String::new(),
    };
    let mut tokens = Tokenizer::new(text, 0, text.len());
    let mut attributes = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.next(&mut attributes, |_| true) {
        let begin = match token {
            Token::Start { name, .. } => reader.offset(name) - "<".len(),
            Token::End { name } => reader.offset(name) - "</".len(),
            Token::Comment { offset, .. } => offset - "<!--".len(),
        };
        reader.add_text_between_tags(&text[at..begin]);
        match token {
            Token::Start { name, self_closing } => {
                let is_foreign = reader.within().foreign;
                let raw = raw_text(name).filter(|_| !is_foreign);
                reader.start_tag(name, &attributes, self_closing && is_foreign, raw.is_some());
                if let Some(kind) = raw {
                    let (start, end) = tokens.raw_text(name, kind);
                    reader.raw_element(name, &attributes, &text[start..end]);
                }
                tokens.foreign = reader.within().foreign;
            }
            Token::End { name } => {
                reader.end_tag(name);
                tokens.foreign = reader.within().foreign;
            }
            Token::Comment { .. } => {}
        }
        at = tokens.position();
    }
    reader.add_text_between_tags(&text[at.min(text.len())..]);
    for open in std::mem::take(&mut reader.open).iter().rev() {
        reader.close(open);
    }
    reader.facts.demands_scripts |= asks_for_scripts(&reader.noscript);
    reader.facts
}

impl<'p> Reader<'p> {
    fn offset(&self, part: &str) -> usize {
        part.as_ptr() as usize - self.text.as_ptr() as usize
    }

    fn within(&self) -> Within {
        self.open.last().map(|open| open.within).unwrap_or_default()
    }

    /// Adds the text between two tags. It may contain declarations, which are not tokens.
    fn add_text_between_tags(&mut self, text: &str) {
        let mut rest = text;
        while let Some(begin) = rest.find("<!").or_else(|| rest.find("<?")) {
            let end = rest[begin..].find('>').map(|end| begin + end + 1);
            self.add_text(&rest[..begin]);
            rest = &rest[end.unwrap_or(rest.len())..];
        }
        self.add_text(rest);
    }

    fn add_text(&mut self, text: &str) {
        if text.trim().is_empty() || text.trim() == "&nbsp;" {
            return;
        }
        let within = self.within();
        if within.hidden {
            if within.noscript && self.noscript.len() < NOSCRIPT_BYTES_MAX {
                self.noscript.push_str(text);
                self.noscript.push(' ');
            }
            return;
        }
        if let Some((_, value)) = text.split_once("{{") {
            self.facts.has_templates |= value.contains("}}");
        }
        self.facts.demands_scripts |= asks_for_scripts(text);
        self.facts.placeholders += usize::from(says_loading(text));
        let length = length_of(text);
        self.facts.text += length;
        if within.navigation {
            self.facts.navigation_text += length;
        }
    }

    fn start_tag(
        &mut self,
        name: &'p str,
        attributes: &[Attribute<'p>],
        is_closed: bool,
        is_raw: bool,
    ) {
        let value = |wanted: &str| {
            let mut found = attributes.iter();
            let found = found.find(|it| it.name.eq_ignore_ascii_case(wanted))?;
            Some(found.value)
        };
        let is = |names: &[&str]| names.iter().any(|it| name.eq_ignore_ascii_case(it));
        let within = self.within();
        let is_seen = !within.hidden;
        let has_source = ["src", "srcset", "data-src", "data-lazy-src", "data-srcset"]
            .iter()
            .filter_map(|it| value(it))
            .any(|it| !it.is_empty() && !it.starts_with("data:") && !it.starts_with("javascript:"));
        if is(&["a", "area"]) && value("href").is_some_and(|it| !it.starts_with('#')) && is_seen {
            self.facts.links += 1;
        }
        let is_image = is(&["img", "amp-img", "iframe", "video", "audio", "embed"]) && has_source;
        if is_seen && (is_image || (is(&["object"]) && value("data").is_some())) {
            self.facts.media += 1;
        }
        self.facts.has_canvas |= is(&["canvas"]) && is_seen;
        self.facts.has_frames_or_redirect |= is(&["frameset", "frame"]);
        let is_input = is(&["textarea"]) || (is(&["input"]) && value("type") != Some("hidden"));
        self.facts.has_form |= is_input && is_seen;
        if is(&["meta"]) {
            self.meta(value("http-equiv"), value("name"), value("content"));
        }
        for attribute in attributes {
            let name = attribute.name.to_ascii_lowercase();
            self.facts.has_templates |= TEMPLATE_ATTRIBUTES.contains(&name.as_str());
            self.facts.has_runtime |= name == "aurelia-app";
        }
        let class = value("class").unwrap_or_default().to_ascii_lowercase();
        let words = [
            "skeleton",
            "placeholder",
            "spinner",
            "shimmer",
            "splash",
            "loader",
        ];
        let is_placeholder =
            words.iter().any(|it| class.contains(it)) || class.starts_with("loading");
        self.facts.placeholders += usize::from(is_placeholder && is_seen);
        if is_void(name) || is_closed {
            return;
        }
        if self.open.len() >= DEPTH_MAX {
            return;
        }
        let is_component = name.contains('-') && !name.to_ascii_lowercase().starts_with("amp-");
        let id = value("id").unwrap_or_default().to_ascii_lowercase();
        let has_data = attributes
            .iter()
            .any(|it| it.name.to_ascii_lowercase().starts_with("data-"));
        let place = if ROOTS.contains(&id.as_str()) {
            Some(Place::Root)
        } else if is_component {
            Some(Place::Component)
        } else if is(&["main"]) || value("role") == Some("main") {
            Some(Place::Main)
        } else if is(&["div", "section", "ul", "ol", "figure", "canvas"])
            && (!id.is_empty() || has_data)
            || is(&["tbody", "redoc"])
        {
            Some(Place::Other)
        } else {
            None
        };
        self.open.push(Open {
            name,
            place: place.filter(|_| is_seen),
            text_before: self.facts.text,
            content_before: self.facts.links + self.facts.media,
            within: Within {
                navigation: within.navigation
                    || is(&["a", "nav", "header", "footer", "button", "label"]),
                hidden: within.hidden
                    || is_raw
                    || is(&["noscript", "template", "head", "select"])
                    || value("hidden").is_some(),
                noscript: within.noscript || is(&["noscript"]),
                foreign: within.foreign || is(&["svg", "math"]),
            },
        });
    }

    fn meta(&mut self, http_equiv: Option<&str>, name: Option<&str>, content: Option<&str>) {
        let content = content.unwrap_or_default().to_ascii_lowercase();
        let is_refresh = http_equiv.is_some_and(|it| it.eq_ignore_ascii_case("refresh"));
        match is_refresh && content.contains("url") {
            // A page that redirects only visitors without scripts needs scripts.
            true if self.within().noscript => self.facts.demands_scripts = true,
            true => self.facts.has_frames_or_redirect = true,
            false => {}
        }
        let name = name.unwrap_or_default().to_ascii_lowercase();
        if name == "generator" {
            let mut known = GENERATORS.iter();
            self.facts.has_generator |= known.any(|it| content.starts_with(it));
        }
        self.facts.has_runtime |= name.ends_with("/config/environment");
    }

    fn end_tag(&mut self, name: &str) {
        let mut open = self.open.iter();
        let Some(depth) = open.rposition(|it| it.name.eq_ignore_ascii_case(name)) else {
            return;
        };
        for open in self.open.split_off(depth).iter().rev() {
            self.close(open);
        }
    }

    /// Records an element that has no content at its end.
    fn close(&mut self, open: &Open<'_>) {
        let facts = &mut self.facts;
        let text = facts.text - open.text_before;
        let has_content = facts.links + facts.media > open.content_before;
        if text > PLACE_TEXT_MAX || has_content {
            return;
        }
        match open.place {
            Some(Place::Root) => facts.has_empty_root = true,
            Some(Place::Component) => facts.has_empty_component = true,
            Some(Place::Main) => facts.has_empty_main = true,
            Some(Place::Other) if text == 0 => facts.empty_places += 1,
            Some(Place::Other) | None => {}
        }
    }

    /// Reads the text of an element that cannot contain tags.
    fn raw_element(&mut self, element: &str, attributes: &[Attribute<'_>], text: &str) {
        if !element.eq_ignore_ascii_case("script") {
            return;
        }
        let value = |wanted: &str| {
            let mut found = attributes.iter();
            let found = found.find(|it| it.name.eq_ignore_ascii_case(wanted))?;
            Some(found.value)
        };
        let kind = value("type")
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let is_module = kind == "module";
        let facts = &mut self.facts;
        facts.has_templates |= kind.contains("template") || kind == "text/html";
        if !is_module && !kind.is_empty() && !kind.contains("javascript") {
            return;
        }
        if let Some(source) = value("src") {
            if TRACKERS.iter().any(|it| source.contains(it)) {
                return;
            }
            facts.scripts += 1;
            facts.has_bundle |= is_module || is_bundle(source);
            let main = value("data-main").unwrap_or_default();
            let mut runtimes = RUNTIMES.iter();
            facts.has_runtime |= runtimes.any(|it| source.contains(it) || main.contains(it));
            facts.has_runtime |= value("data-main").is_some();
            return;
        }
        if TRACKING_WORDS.iter().any(|it| text.contains(it)) {
            return;
        }
        // Shorter scripts only set a class or a variable.
        const SCRIPT_BYTES_MIN: usize = 80;
        facts.scripts += usize::from(text.len() >= SCRIPT_BYTES_MIN || is_module);
        facts.has_bundle |= is_module || text.contains("import(");
        facts.has_runtime |= RUNTIMES.iter().any(|it| text.contains(it));
        facts.writes_document |= text.contains("document.write(");
        facts.loads_data |= DATA_LOADERS.iter().any(|it| text.contains(it));
        facts.has_frames_or_redirect |=
            text.contains("location.replace(") || text.contains("location.href=");
    }
}

/// Returns true if a text says that the page is loading.
fn says_loading(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "loading",
        "please wait",
        "chargement",
        "laden…",
        "laden...",
        "lädt",
        "wird geladen",
        "cargando",
        "caricamento",
        "carregando",
        "ładowanie",
        "загрузка",
        "加载中",
        "読み込み中",
    ];
    let text = text.trim();
    text.len() <= 4 * PLACE_TEXT_MAX && {
        let text = text.to_lowercase();
        WORDS.iter().any(|it| text.starts_with(it))
    }
}

/// Returns true if a text tells visitors to use scripts.
fn asks_for_scripts(text: &str) -> bool {
    const DEMANDS: &[&str] = &[
        "activ",
        "aktiv",
        "einschalt",
        "enable",
        "habilit",
        "must have",
        "need",
        "requir",
        "turn on",
        "without",
        "włącz",
        "включ",
    ];
    let text = text.to_lowercase();
    text.contains("javascript") && DEMANDS.iter().any(|it| text.contains(it))
}

/// Returns true if a script has a name that build tools give: `main.5f2b.js`, `chunk-vendors.js`, `runtime~main.js`.
fn is_bundle(source: &str) -> bool {
    const STEMS: &[&str] = &[
        "main",
        "app",
        "bundle",
        "chunk",
        "runtime",
        "vendor",
        "polyfill",
        "framework",
        "webpack",
        "entry",
        "index",
        "build",
    ];
    let path = source.split(['?', '#']).next().unwrap_or_default();
    let file = path
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    STEMS.iter().any(|stem| {
        file.strip_prefix(stem)
            .is_some_and(|rest| rest.starts_with(['.', '-', '~', 's']) && rest.ends_with("js"))
    })
}

/// Returns the number of characters of a text. A run of whitespace counts as one.
fn length_of(text: &str) -> usize {
    let words = text.split_whitespace();
    let length = |word: &str| -> usize {
        let wide = word.chars().filter(|it| is_wide(*it)).count();
        word.chars().count() - wide + wide * WIDE_CHARACTER_LENGTH
    };
    words.map(|word| length(word) + 1).sum()
}

fn is_wide(character: char) -> bool {
    matches!(character, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{20000}'..='\u{3ffff}')
}

fn raw_text(name: &str) -> Option<RawText> {
    match name.to_ascii_lowercase().as_str() {
        "script" => Some(RawText::Script),
        "style" | "title" | "textarea" | "xmp" | "noembed" => Some(RawText::Plain),
        "plaintext" => Some(RawText::Endless),
        _ => None,
    }
}

fn is_void(name: &str) -> bool {
    const VOID: &[&str] = &[
        "area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta",
        "param", "source", "track", "wbr",
    ];
    VOID.iter().any(|it| name.eq_ignore_ascii_case(it))
}
