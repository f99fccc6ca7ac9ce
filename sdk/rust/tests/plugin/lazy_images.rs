//! Images that scripts load later: `<img data-src="a.jpg">`.

use opilio_plugin::prelude::*;

/// The configured plugin.
pub struct LazyImages(Settings);

/// Settings of `lazy-images`.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Attributes that hold an image's URI.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub attributes: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            attributes: vec!["data-src".to_owned()],
        }
    }
}

impl Plugin for LazyImages {
    const NAME: &'static str = "lazy-images";
    const SUMMARY: &'static str = "Finds images that scripts load later.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let blank = settings.attributes.iter().position(|name| name.is_empty());
        let fault =
            blank.map(|at| SettingsFault::new(format!("/attributes/{at}"), "an empty name"));
        none_or(fault.into_iter().collect(), Self(settings))
    }

    fn handles() -> Handles {
        Handles::media_types(&["text/html"])
    }
}

impl Extractor for LazyImages {
    fn extract(&self, document: &Document) -> Extraction {
        let text = document.text();
        let mut links = Vec::new();
        for name in &self.0.attributes {
            for rest in text.split(&format!(" {name}=\"")).skip(1) {
                let uri = rest.split('"').next().unwrap_or_default();
                links.push(Link::new(uri, Hop::Embed, format!("img/@{name}")));
            }
        }
        Extraction::links(links)
    }
}

opilio_plugin::export!(extractors: [LazyImages]);
