//! `site-specific`: carries out actions from a table on the pages of certain sites.

use opilio_plugin::prelude::*;
use regex_lite::Regex;

/// Largest number of actions of a site. It is also the limit of a step.
const ACTIONS_MAX: usize = 100;

/// The configured plugin.
pub struct SiteSpecific(Vec<Rule>);

struct Rule {
    uris: Regex,
    actions: Vec<Action>,
    repeat: u32,
}

/// Settings of `site-specific`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Sites with their actions. The actions of all sites that match a page are carried out, in this order.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub sites: Vec<Site>,
}

/// Actions on pages whose URI matches.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Site {
    /// Regular expression that must match somewhere in the URI of the page.
    pub uris: String,
    /// Actions in their order, at most 100.
    pub actions: Vec<SiteAction>,
    /// Largest number of times to carry out the actions. They are repeated only if one of their clicks reached an element.
    #[serde(default = "once")]
    pub repeat: u32,
}

fn once() -> u32 {
    1
}

/// An action: exactly one of `scroll`, `click`, `wait-for`, `wait-for-network`, `wait`, `evaluate` and `screenshot`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SiteAction {
    /// Scrolls to `top`, to `bottom`, or to the element that matches a CSS selector.
    pub scroll: String,
    /// Clicks elements that match a CSS selector.
    pub click: String,
    /// With `click`: regular expression that must match somewhere in the text of the element.
    pub text: String,
    /// With `click`: largest number of elements to click. 0 means 1.
    pub at_most: u32,
    /// With `click`: leaves out elements that were clicked before.
    pub only_new: bool,
    /// Waits until an element matches a CSS selector, at most for the time in `wait`, or 10 seconds without it.
    pub wait_for: String,
    /// Waits until the network is idle, at most for this time.
    pub wait_for_network: Period,
    /// Waits for this time.
    pub wait: Period,
    /// Runs JavaScript: the body of an async function.
    pub evaluate: String,
    /// Takes a picture of the window. It replaces the picture after the last step.
    pub screenshot: bool,
}

/// Longest wait for an element if the action has no `wait`, in milliseconds.
const WAIT_FOR_MAX: u64 = 10_000;

/// The state between steps.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct Progress {
    /// Index of the current rule.
    rule: usize,
    /// Number of times that the rule was carried out.
    times: u32,
}

impl Plugin for SiteSpecific {
    const NAME: &'static str = "site-specific";
    const SUMMARY: &'static str = "Carries out actions from a table on the pages of certain sites.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        let mut rules = Vec::new();
        for (at, site) in settings.sites.iter().enumerate() {
            let pointer = format!("/sites/{at}");
            if site.actions.len() > ACTIONS_MAX {
                let problem = format!("has more than {ACTIONS_MAX} actions");
                faults.push(SettingsFault::new(format!("{pointer}/actions"), problem));
                continue;
            }
            let mut actions = Vec::new();
            for (number, action) in site.actions.iter().enumerate() {
                match action.to_action() {
                    Ok(action) => actions.push(action),
                    Err(problem) => faults.push(SettingsFault::new(
                        format!("{pointer}/actions/{number}"),
                        problem,
                    )),
                }
            }
            match Regex::new(&site.uris) {
                Ok(uris) => rules.push(Rule {
                    uris,
                    actions,
                    repeat: site.repeat,
                }),
                Err(problem) => {
                    let problem = format!("is not a regular expression: {problem}");
                    faults.push(SettingsFault::new(format!("{pointer}/uris"), problem));
                }
            }
        }
        none_or(faults, Self(rules))
    }
}

impl SiteAction {
    fn to_action(&self) -> Result<Action, String> {
        let is_wait = self.wait_for.is_empty() && self.wait.milliseconds() > 0;
        let present = [
            ("scroll", !self.scroll.is_empty()),
            ("click", !self.click.is_empty()),
            ("wait-for", !self.wait_for.is_empty()),
            ("wait-for-network", self.wait_for_network.milliseconds() > 0),
            ("wait", is_wait),
            ("evaluate", !self.evaluate.is_empty()),
            ("screenshot", self.screenshot),
        ];
        let names: Vec<&str> = present.iter().filter(|it| it.1).map(|it| it.0).collect();
        let [name] = names[..] else {
            let all = present.map(|it| it.0).join(", ");
            return Err(match names.is_empty() {
                true => format!("has no action; write one of {all}"),
                false => format!("has {}; write each action by itself", names.join(" and ")),
            });
        };
        let is_click = name == "click";
        if !is_click && (!self.text.is_empty() || self.at_most > 0 || self.only_new) {
            return Err("has text, at-most or only-new, which belong to click".to_owned());
        }
        Ok(match name {
            "scroll" => Action::Scroll(match self.scroll.as_str() {
                "top" => ScrollTarget::Top,
                "bottom" => ScrollTarget::Bottom,
                selector => ScrollTarget::Element(selector.to_owned()),
            }),
            "click" => Action::Click(Click {
                selector: self.click.clone(),
                text: Some(self.text.clone()).filter(|text| !text.is_empty()),
                at_most: self.at_most.max(1),
                only_new: self.only_new,
            }),
            "wait-for" => Action::wait_for(
                &self.wait_for,
                match self.wait.milliseconds() {
                    0 => WAIT_FOR_MAX,
                    time => time,
                },
            ),
            "wait-for-network" => Action::WaitForNetwork(self.wait_for_network.milliseconds()),
            "wait" => Action::Wait(self.wait.milliseconds()),
            "evaluate" => Action::Evaluate(self.evaluate.clone()),
            _ => Action::Screenshot,
        })
    }
}

impl PageBehavior for SiteSpecific {
    fn step(&self, page: &Page, visit: &Visit, memory: &[u8]) -> StepPlan {
        let mut progress: Progress = recall(memory);
        let is_clicked = |result: &ActionResult| matches!(result, ActionResult::Clicked(_));
        if progress.times > 0 {
            let has_clicked = page.results().iter().any(is_clicked);
            let times = self.0.get(progress.rule).map_or(0, |rule| rule.repeat);
            if !has_clicked || progress.times >= times {
                progress = Progress {
                    rule: progress.rule + 1,
                    times: 0,
                };
            }
        }
        // The URI of the visit, because scripts may change the URI of the page.
        let uri = visit.candidate().uri;
        let rest = self.0.iter().enumerate().skip(progress.rule);
        let next = rest.into_iter().find(|(_, rule)| rule.uris.is_match(&uri));
        let Some((at, rule)) = next else {
            return StepPlan::finish();
        };
        progress = Progress {
            rule: at,
            times: match at == progress.rule {
                true => progress.times + 1,
                false => 1,
            },
        };
        for result in page.results() {
            match result {
                ActionResult::Invalid(problem) => warn(&uri, "invalid", &problem),
                ActionResult::Exception(problem) => warn(&uri, "exception", &problem),
                _ => {}
            }
        }
        StepPlan::then(rule.actions.clone()).remember(&progress)
    }
}

/// Logs a failed action, for the author of the table.
fn warn(uri: &str, what: &str, problem: &str) {
    opilio_plugin::warn(format!("{uri}: {what}: {problem}"));
}
