//! The `feed` extractor: RSS (0.9x, 1.0, 2.0), Atom (0.3, 1.0) and JSON Feed, with the dates of their items.
//!
//! References to follow are links; references to show or play are embeds. HTML in items is passed to the extractors of HTML.

use opilio_plugin::prelude::*;

use crate::content::content;
use crate::markup::{Bases, Markup, Tag, Token};
use crate::{Results, dates, json_feed, recognise, reference};

/// Most URIs reported for the page of one item.
const ITEM_LINKS_MAX: usize = 100;

/// Treatment of the files that items enclose: podcasts, films.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Enclosures {
    /// Part of the item (hop E).
    #[default]
    Embed,
    /// Link to follow (hop L).
    Link,
    /// Not reported.
    Ignore,
}

/// Settings of the `feed` extractor.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Treatment of the files that items enclose.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub enclosures: Enclosures,
    /// Whether to report links to comments and their feeds.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub comments: bool,
    /// Whether to pass the HTML of items to the extractors of HTML.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub content: bool,
    /// Whether to report items' dates. A date after a page's last visit makes the page due.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub dates: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enclosures: Enclosures::Embed,
            comments: true,
            content: true,
            dates: true,
        }
    }
}

/// The configured plugin.
#[derive(Clone, Copy, Debug)]
pub struct Feed {
    settings: Settings,
}

impl Plugin for Feed {
    const NAME: &'static str = "feed";
    const SUMMARY: &'static str = "Items of RSS, Atom and JSON feeds, with their dates";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }

    fn handles() -> Handles {
        Handles::media_types(&[
            "application/rss+xml",
            "application/atom+xml",
            "application/rdf+xml",
            "application/x-rss+xml",
            "application/rss",
            "application/xml",
            "text/xml",
            "text/rss",
            "text/rss+xml",
            "text/atom+xml",
            "application/feed+json",
            "application/json",
            "text/json",
        ])
    }
}

impl Extractor for Feed {
    fn extract(&self, document: &Document) -> Extraction {
        if document.fragment().is_some() {
            return Extraction::default();
        }
        let content = content(document);
        let results = FeedResults {
            settings: self.settings,
            found: Results::default(),
        };
        let read = if document.media_type().ends_with("json") {
            json_feed::read(&content.text, results)
        } else {
            read(&content.text, results)
        };
        match read {
            Some((results, problem)) => {
                recognise(document, Self::NAME);
                results.found.into_extraction(content.problem.or(problem))
            }
            None => Extraction::default(),
        }
    }
}

/// The results of a feed of any format, collected as the settings require.
pub(crate) struct FeedResults {
    settings: Settings,
    found: Results,
}

/// An item being read. Its dates may come after its URI.
#[derive(Debug, Default)]
pub(crate) struct Item {
    links: Vec<Link>,
    pub(crate) published: Option<u64>,
    pub(crate) modified: Option<u64>,
}

impl Item {
    /// Adds a URI of the item's page.
    pub(crate) fn link(&mut self, uri: &str, context: &str, base: Option<&str>) {
        if self.links.len() < ITEM_LINKS_MAX {
            self.links.push(Link {
                base: base.map(str::to_owned),
                ..Link::new(uri, Hop::Link, context)
            });
        }
    }
}

impl FeedResults {
    pub(crate) fn link(&mut self, uri: &str, hop: Hop, context: &str) {
        self.found.push(Link::new(uri, hop, context));
    }

    pub(crate) fn enclosure(&mut self, uri: &str, context: &str) {
        match self.settings.enclosures {
            Enclosures::Embed => self.link(uri, Hop::Embed, context),
            Enclosures::Link => self.link(uri, Hop::Link, context),
            Enclosures::Ignore => {}
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.found.is_full()
    }

    /// Adds HTML of an item as a fragment.
    pub(crate) fn content(&mut self, html: &str, context: &str, base: Option<&str>) {
        if self.settings.content && reference::is_markup(html) {
            self.found.fragment("text/html", html, context, base);
        }
    }

    /// Adds the links of a complete item, with its dates.
    pub(crate) fn item(&mut self, item: Item) {
        let dates = self
            .settings
            .dates
            .then(|| dates::signal(item.published, item.modified))
            .flatten();
        for mut link in item.links {
            if let Some(dates) = dates {
                link.details.get_or_insert_default().dates = Some(dates);
            }
            self.found.push(link);
        }
    }
}

/// The state of a feed in XML while it is read.
struct Elements<'a> {
    markup: Markup<'a>,
    results: FeedResults,
    bases: Bases,
    /// Local names of the open elements below the root, at most [`NAMES_MAX`].
    open: Vec<String>,
    item: Option<Item>,
    /// `true` if the `guid` is the item's URI.
    is_permalink: bool,
    /// The `type` of an Atom text, and the start of its content in the document.
    text_type: String,
    text_start: usize,
}

/// Deepest nesting of elements whose names are kept.
const NAMES_MAX: usize = 16;

/// Reads RSS or Atom; `None` if the document is neither.
fn read(text: &str, results: FeedResults) -> Option<(FeedResults, Option<String>)> {
    let mut markup = Markup::new(text);
    let mut bases = Bases::default();
    loop {
        match markup.next()? {
            Token::Start(root) => match root.local_name() {
                "rss" | "RDF" | "feed" | "channel" => {
                    bases.enter(&root, markup.depth());
                    break;
                }
                _ => return None,
            },
            Token::End(_) => return None,
            Token::Instruction { .. } | Token::DocumentType(_) => {}
        }
    }
    let mut elements = Elements {
        markup,
        results,
        bases,
        open: Vec::new(),
        item: None,
        is_permalink: true,
        text_type: String::new(),
        text_start: 0,
    };
    elements.run();
    let Elements {
        markup, results, ..
    } = elements;
    // Other documents also have the root elements `RDF` and `feed`, but no items.
    let is_feed = !results.found.links.is_empty() || text.contains("<channel");
    is_feed.then(|| (results, markup.into_problem()))
}

impl Elements<'_> {
    fn run(&mut self) {
        while !self.results.is_full()
            && let Some(token) = self.markup.next()
        {
            match token {
                Token::Start(tag) => self.start(&tag),
                Token::End(name) => self.end(&name),
                Token::Instruction { .. } | Token::DocumentType(_) => {}
            }
        }
        self.end_item();
    }

    fn start(&mut self, tag: &Tag<'_>) {
        self.bases.enter(tag, self.markup.depth());
        let name = tag.local_name();
        if self.open.len() < NAMES_MAX {
            self.open.push(name.to_owned());
        }
        match name {
            "item" | "entry" => {
                // An item without an end tag ends at the next one.
                self.end_item();
                self.item = Some(Item::default());
            }
            "link" => self.link(tag),
            "guid" => {
                self.is_permalink = tag.attribute("isPermaLink").as_deref() != Some("false");
            }
            // `content` with a `url` belongs to Media RSS.
            "content" | "enclosure" if tag.attribute("url").is_some() => {
                self.push_attribute(tag, "url", Use::Enclosure);
            }
            "content" | "summary" => {
                self.push_attribute(tag, "src", Use::Embed);
                self.text_type = tag.attribute("type").unwrap_or_default();
                self.text_start = self.markup.position();
            }
            "thumbnail" => self.push_attribute(tag, "url", Use::Embed),
            "player" | "source" => self.push_attribute(tag, "url", Use::Link),
            // Podcast elements of iTunes and Google Play.
            "image" => self.push_attribute(tag, "href", Use::Embed),
            _ => {}
        }
    }

    /// Reads `<link rel="…" href="…"/>` of Atom, which also occurs in RSS.
    fn link(&mut self, tag: &Tag<'_>) {
        let Some(href) = tag.attribute("href") else {
            return;
        };
        let rel = tag.attribute("rel").unwrap_or_default();
        match rel.as_str() {
            "" | "alternate" => match &self.item {
                Some(_) => self.item_link(&href, "link/@href"),
                None => self.push(&href, Hop::Link, "link/@href", None),
            },
            "enclosure" => self.enclosure(&href, "link/@href", &rel),
            // Another URI of the same document.
            "self" => self.push(&href, Hop::Inferred, "link/@href", Some(&rel)),
            "replies" if !self.results.settings.comments => {}
            "icon" | "shortcut icon" | "preview" => {
                self.push(&href, Hop::Embed, "link/@href", Some(&rel));
            }
            // Endpoints for requests of clients, not documents.
            "hub" | "edit" | "edit-media" | "service" | "salmon" | "pingback" | "webmention" => {}
            rel if rel.ends_with("#post") || rel.ends_with("#batch") => {}
            rel => self.push(&href, Hop::Link, "link/@href", Some(rel)),
        }
    }

    fn end(&mut self, name: &str) {
        let text = self.markup.text().trim().to_owned();
        let is_leaf = self.open.last().is_some_and(|last| last == name);
        let parent = self
            .open
            .len()
            .checked_sub(2)
            .map_or("", |at| self.open[at].as_str())
            .to_owned();
        match name {
            "item" | "entry" => self.end_item(),
            _ if self.html_text(name, &text) => {}
            _ if !is_leaf || text.is_empty() => {}
            "link" => match (parent.as_str(), &self.item) {
                (_, Some(_)) => self.item_link(&text, "item/link"),
                // The link of an image repeats the channel's. The link of a search form is not a page.
                ("image" | "textInput" | "textinput", _) => {}
                _ => self.push(&text, Hop::Link, "channel/link", None),
            },
            "guid" if self.is_permalink && reference::is_public_uri(&text) => {
                self.item_link(&text, "item/guid");
            }
            "url" if parent == "image" => self.push(&text, Hop::Embed, "image/url", None),
            "icon" | "logo" => self.push(&text, Hop::Embed, name, None),
            "comments" | "commentRss" if self.results.settings.comments => {
                self.push(&text, Hop::Link, name, None);
            }
            "uri" if matches!(parent.as_str(), "author" | "contributor") => {
                self.push(&text, Hop::Link, "author/uri", None);
            }
            // FeedBurner's element for the original URI of the item.
            "origLink" => self.item_link(&text, "item/origLink"),
            "pubDate" | "published" | "issued" | "created" | "date" => {
                if let Some(item) = &mut self.item {
                    item.published = dates::parse(&text).or(item.published);
                }
            }
            "updated" | "modified" => {
                if let Some(item) = &mut self.item {
                    item.modified = dates::parse(&text).or(item.modified);
                }
            }
            _ => {}
        }
        // An unclosed element ends with its parent.
        if let Some(at) = self.open.iter().rposition(|open| open == name) {
            self.open.truncate(at);
        }
        self.bases.leave(self.markup.depth());
    }

    /// Passes on the text of an element that may contain HTML. Returns `false` for any other element.
    fn html_text(&mut self, name: &str, text: &str) -> bool {
        if !matches!(
            name,
            "description" | "encoded" | "content" | "summary" | "body" | "tagline" | "subtitle"
        ) {
            return false;
        }
        let html = match self.text_type.as_str() {
            "xhtml" | "application/xhtml+xml" => self.markup.before_token(self.text_start),
            _ => text,
        };
        self.results.content(html, name, self.bases.current());
        self.text_type.clear();
        true
    }

    fn end_item(&mut self) {
        if let Some(item) = self.item.take() {
            self.results.item(item);
        }
        self.is_permalink = true;
    }

    fn item_link(&mut self, uri: &str, context: &str) {
        if let Some(item) = &mut self.item {
            item.link(uri, context, self.bases.current());
        }
    }

    fn push(&mut self, uri: &str, hop: Hop, context: &str, rel: Option<&str>) {
        let base = self.bases.current().map(str::to_owned);
        let mut link = Link {
            base,
            ..Link::new(uri, hop, context)
        };
        if let Some(rel) = rel.filter(|rel| !rel.is_empty()) {
            link = link.attribute("rel", rel);
        }
        self.results.found.push(link);
    }

    fn push_attribute(&mut self, tag: &Tag<'_>, name: &str, usage: Use) {
        let Some(uri) = tag.attribute(name) else {
            return;
        };
        let context = format!("{}/@{name}", tag.local_name());
        match usage {
            Use::Enclosure => self.enclosure(&uri, &context, ""),
            Use::Embed => self.push(&uri, Hop::Embed, &context, None),
            Use::Link => self.push(&uri, Hop::Link, &context, None),
        }
    }

    fn enclosure(&mut self, uri: &str, context: &str, rel: &str) {
        match self.results.settings.enclosures {
            Enclosures::Embed => self.push(uri, Hop::Embed, context, Some(rel)),
            Enclosures::Link => self.push(uri, Hop::Link, context, Some(rel)),
            Enclosures::Ignore => {}
        }
    }
}

/// The use of a URI in an attribute.
enum Use {
    Enclosure,
    Embed,
    Link,
}
