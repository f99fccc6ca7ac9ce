//! `load-more`: clicks elements that load more content, until the page no longer grows.
//!
//! Elements are found by selectors, or by the words of a button. A click after which the page does not grow ends the behaviour:
//! the element does not load content, or there is no more.

use opilio_plugin::prelude::*;

use crate::words;

/// Selector of elements that may be buttons. Links to other pages are left out.
const BUTTONS: &str = "button, summary, [role=button], input[type=button], a[href=''], a[href^='#'], a:not([href]), \
     a[href^='javascript:' i]";

/// Wait after a click, in milliseconds. Scripts insert content some time after they have fetched it.
const PAUSE: u64 = 300;

/// The configured plugin.
pub struct LoadMore {
    settings: Settings,
    selectors: String,
    text: String,
}

/// Settings of `load-more`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// CSS selectors of elements that load more.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub selectors: Vec<String>,
    /// Beginnings of the texts of buttons that load more. Case is ignored.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub words: Vec<String>,
    /// Largest number of elements to click on a page.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-opilio-overridable" = true))]
    pub clicks: u32,
    /// Largest number of elements of each kind to click in one step.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-opilio-overridable" = true))]
    pub at_once: u32,
    /// Longest wait for the network after a click.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub wait: Period,
}

impl Default for Settings {
    fn default() -> Self {
        let list = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Self {
            selectors: list(&[
                ".load-more",
                ".loadmore",
                ".load_more",
                "#load-more",
                ".show-more-button",
                ".infinite-more-link",
                "[data-testid*='load-more']",
            ]),
            words: list(WORDS),
            clicks: 50,
            at_once: 10,
            wait: Period::seconds(5),
        }
    }
}

/// Beginnings of the texts of buttons that load more.
const WORDS: &[&str] = &[
    // English
    "load more",
    "show more",
    "see more",
    "view more",
    "more results",
    "more comments",
    "show all comments",
    // German
    "mehr laden",
    "mehr anzeigen",
    "weitere laden",
    "weitere anzeigen",
    "weitere ergebnisse",
    // French
    "charger plus",
    "afficher plus",
    "voir plus",
    // Spanish
    "cargar más",
    "mostrar más",
    "ver más",
    // Portuguese
    "carregar mais",
    "mostrar mais",
    "ver mais",
    // Italian
    "carica altri",
    "carica altro",
    "mostra altri",
    "mostra di più",
    // Dutch
    "meer laden",
    "toon meer",
    "meer weergeven",
    // Swedish, Danish, Norwegian, Finnish
    "visa fler",
    "ladda fler",
    "visa mer",
    "vis flere",
    "indlæs flere",
    "last inn flere",
    "vis mer",
    "näytä lisää",
    "lataa lisää",
    // Polish, Czech, Hungarian, Romanian
    "pokaż więcej",
    "załaduj więcej",
    "zobrazit více",
    "načíst další",
    "több megjelenítése",
    "mai multe",
    // Greek, Turkish, Russian, Ukrainian
    "περισσότερα",
    "daha fazla",
    "показать ещё",
    "показать еще",
    "загрузить ещё",
    "загрузить еще",
    "показати більше",
    // Japanese, Chinese, Korean
    "もっと見る",
    "さらに表示",
    "加载更多",
    "查看更多",
    "載入更多",
    "더 보기",
    "더보기",
];

/// The state between steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
struct Progress {
    clicks: u32,
    elements: u64,
    text: u64,
    height: u64,
}

impl Plugin for LoadMore {
    const NAME: &'static str = "load-more";
    const SUMMARY: &'static str =
        "Clicks elements that load more content, until nothing more comes.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let blank = |name: &str, list: &[String]| {
            let at = list.iter().position(|text| text.trim().is_empty());
            at.map(|at| SettingsFault::new(format!("/{name}/{at}"), "is empty"))
        };
        let faults = [
            blank("selectors", &settings.selectors),
            blank("words", &settings.words),
        ];
        none_or(
            faults.into_iter().flatten().collect(),
            Self {
                selectors: settings.selectors.join(", "),
                text: words::matching_start(settings.words.iter().map(String::as_str)),
                settings,
            },
        )
    }
}

impl PageBehavior for LoadMore {
    fn step(&self, page: &Page, _visit: &Visit, memory: &[u8]) -> StepPlan {
        let settings = &self.settings;
        let before: Progress = recall(memory);
        let clicked: u32 = page.results().iter().map(clicked_elements).sum();
        let now = Progress {
            clicks: before.clicks + clicked,
            elements: page.elements(),
            text: page.text_length(),
            height: page.scroll_height(),
        };
        if page.step() > 0 {
            count("clicks", clicked.into());
            let has_grown = now.elements > before.elements
                || now.text > before.text
                || now.height > before.height;
            if clicked == 0 || !has_grown || now.clicks >= settings.clicks {
                return StepPlan::finish();
            }
        }
        let at_most = settings.at_once.min(settings.clicks - now.clicks);
        let click = |selector: &str, text: Option<&str>| {
            Action::Click(Click {
                selector: selector.to_owned(),
                text: text.map(str::to_owned),
                at_most,
                only_new: false,
            })
        };
        let mut actions = Vec::new();
        if !settings.selectors.is_empty() {
            actions.push(click(&self.selectors, None));
        }
        if !settings.words.is_empty() {
            actions.push(click(BUTTONS, Some(&self.text)));
        }
        if actions.is_empty() {
            return StepPlan::finish();
        }
        actions.push(Action::Wait(PAUSE));
        actions.push(Action::WaitForNetwork(settings.wait.milliseconds()));
        StepPlan::then(actions).remember(&now)
    }
}

fn clicked_elements(result: &ActionResult) -> u32 {
    match result {
        ActionResult::Clicked(elements) => *elements,
        _ => 0,
    }
}
