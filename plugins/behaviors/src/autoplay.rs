//! `autoplay`: starts video and audio, so that their files are requested.
//!
//! A script starts the media of the page itself. A click on the play button starts players in frames, because clicks also reach
//! frames of other sites.

use opilio_plugin::prelude::*;

/// Plays the media of the page without sound, and returns their number. If the browser does not support a format, `play` fails,
/// but the file has been requested.
const PLAY: &str = "const media = [...document.querySelectorAll('video, audio')].slice(0, MOST);
for (const it of media) {
  it.muted = true;
  it.preload = 'auto';
  it.play().catch(() => {});
}
return media.length;";

/// Selectors of the play buttons of common players.
const BUTTONS: &[&str] = &[
    ".vjs-big-play-button",
    ".ytp-large-play-button",
    ".plyr__control--overlaid",
    ".jw-display-icon-display",
    ".mejs__overlay-button",
    ".flowplayer .fp-play",
    ".bmpui-ui-hugeplaybacktogglebutton",
    "button[data-play-button]",
];

/// The configured plugin.
pub struct Autoplay {
    settings: Settings,
    /// Selector of all play buttons.
    buttons: String,
}

/// Settings of `autoplay`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// CSS selectors of play buttons, in addition to those of common players.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub buttons: Vec<String>,
    /// Largest number of media to start on a page, and of buttons to click.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-opilio-overridable" = true))]
    pub most: u32,
    /// Longest wait for the files of media. A player that fetches its file in parts continues until the page is closed.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub wait: Period,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            buttons: Vec::new(),
            most: 20,
            wait: Period::seconds(10),
        }
    }
}

impl Plugin for Autoplay {
    const NAME: &'static str = "autoplay";
    const SUMMARY: &'static str = "Starts video and audio, so that their files are captured.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let blank = settings.buttons.iter().position(|it| it.trim().is_empty());
        let fault = blank.map(|at| SettingsFault::new(format!("/buttons/{at}"), "is empty"));
        let own = settings.buttons.iter().map(String::as_str);
        let buttons: Vec<&str> = BUTTONS.iter().copied().chain(own).collect();
        none_or(
            fault.into_iter().collect(),
            Self {
                buttons: buttons.join(", "),
                settings,
            },
        )
    }
}

impl PageBehavior for Autoplay {
    fn step(&self, page: &Page, _visit: &Visit, _memory: &[u8]) -> StepPlan {
        let selectors = ["video, audio", self.buttons.as_str()];
        if page.step() == 0 {
            return StepPlan::then(Vec::new()).count(selectors);
        }
        let found: u64 = selectors.iter().filter_map(|it| page.count(it)).sum();
        if found == 0 {
            return StepPlan::finish();
        }
        count("media", found);
        let most = self.settings.most;
        StepPlan {
            actions: vec![
                Action::Evaluate(PLAY.replace("MOST", &most.to_string())),
                Action::Click(Click {
                    selector: self.buttons.clone(),
                    at_most: most,
                    only_new: true,
                    ..Click::default()
                }),
                Action::WaitForNetwork(self.settings.wait.milliseconds()),
            ],
            ..StepPlan::finish()
        }
    }
}
