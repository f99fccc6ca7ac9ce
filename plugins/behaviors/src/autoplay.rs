//! `autoplay`: starts video and audio, so that their files are requested.
//!
//! Media of the page itself are started by a script. Players in frames are started by a click on their button, which reaches frames
//! of other sites.

use opilio_plugin::prelude::*;

/// Plays the media of the page without sound, and returns their number. `play` may fail for want of a format; its file was
/// requested even so.
const PLAY: &str = "const media = [...document.querySelectorAll('video, audio')].slice(0, MOST);
for (const it of media) {
  it.muted = true;
  it.preload = 'auto';
  it.play().catch(() => {});
}
return media.length;";

/// Buttons of common players.
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
    buttons: String,
}

/// Settings of `autoplay`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// CSS selectors of play buttons, in addition to those of common players.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub buttons: Vec<String>,
    /// Most media of a page that are started, and most buttons that are clicked.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-opilio-overridable" = true))]
    pub most: u32,
    /// Longest wait for the files of media. A player that fetches its file in parts goes on until the page is closed.
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
        let media = ["video, audio", self.buttons.as_str()];
        if page.step() == 0 {
            return StepPlan::then(Vec::new()).count(media);
        }
        let found: u64 = media.iter().filter_map(|it| page.count(it)).sum();
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
