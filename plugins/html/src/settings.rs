//! Settings of the `html` extractor.

use opilio_plugin::prelude::*;

/// Treatment of a kind of link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkUse {
    /// Part of the page (hop E).
    #[default]
    Embed,
    /// Link to follow (hop L).
    Link,
    /// Not reported.
    Ignore,
}

impl LinkUse {
    /// The hop; `None` if the link is not reported.
    pub(crate) fn hop(self) -> Option<Hop> {
        match self {
            Self::Embed => Some(Hop::Embed),
            Self::Link => Some(Hop::Link),
            Self::Ignore => None,
        }
    }
}

/// Forms whose targets are links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FormActions {
    /// Targets of forms that are sent with GET.
    #[default]
    Get,
    /// Targets of all forms; they are all fetched with GET.
    All,
    /// No targets of forms.
    None,
}

impl FormActions {
    /// Returns `true` if the targets of a form with this `method` are links. Without a method, a form is sent with GET.
    pub(crate) fn report(self, method: Option<&str>) -> bool {
        match self {
            Self::Get => !method.is_some_and(|method| {
                ["post", "dialog"]
                    .iter()
                    .any(|other| method.trim().eq_ignore_ascii_case(other))
            }),
            Self::All => true,
            Self::None => false,
        }
    }
}

/// Settings of the `html` extractor.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// `src` of `iframe` and `frame`.
    pub frame_links: LinkUse,
    /// `<link rel=manifest>`: the web app manifest.
    pub manifest_links: LinkUse,
    /// `<link rel=canonical>`.
    pub canonical_links: LinkUse,
    /// `<link rel=alternate>`: feeds, translations, other formats. Alternate style sheets are always embeds.
    pub alternate_links: LinkUse,
    /// `<link rel=next>` and `<link rel=prev>`.
    pub next_links: LinkUse,
    /// `action` of forms and `formaction` of their buttons.
    pub form_actions: FormActions,
    /// `ping` of `a` and `area`. Browsers send POST requests to it.
    pub ping_links: LinkUse,
    /// Whether to follow links marked `rel=nofollow`. Filters see `rel` in either case.
    pub follow_nofollow: bool,
    /// Whether to read `data-*` attributes whose name means a reference (`data-src`, `data-href`) and whose value looks like
    /// one.
    pub data_attributes: bool,
    /// Whether to read `value` of options, inputs and object parameters if it looks like a reference.
    pub value_attributes: bool,
    /// Whether to read conditional comments for Internet Explorer (`<!--[if IE]>…<![endif]-->`).
    pub conditional_comments: bool,
    /// Whether to pass scripts, event handlers and `javascript:` references to the extractors of their type.
    pub scripts: bool,
    /// Whether to pass style sheets and `style` attributes to the extractors of their type.
    pub styles: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            frame_links: LinkUse::Embed,
            manifest_links: LinkUse::Embed,
            canonical_links: LinkUse::Link,
            alternate_links: LinkUse::Link,
            next_links: LinkUse::Link,
            form_actions: FormActions::Get,
            ping_links: LinkUse::Link,
            follow_nofollow: true,
            data_attributes: true,
            value_attributes: true,
            conditional_comments: true,
            scripts: true,
            styles: true,
        }
    }
}
