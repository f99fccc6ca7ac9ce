//! `consent`: dismisses cookie banners.
//!
//! The behaviour tries clicks until one reaches a button. It first tries the buttons of the settings. Then it tries to reject,
//! and then to accept, as the setting `choice` allows. For each, it first tries the buttons of known consent managers, and then
//! buttons with certain words in elements about cookies. A page has one banner, so the behaviour ends with the first click that
//! reaches a button.

use opilio_plugin::prelude::*;

use crate::managers::{MANAGERS, Manager};
use crate::words;

/// Selectors of elements about cookies. Buttons are clicked because of their words only inside of these.
const BANNERS: &[&str] = &[
    "[id*='cookie' i]",
    "[class*='cookie' i]",
    "[id*='consent' i]",
    "[class*='consent' i]",
    "[id*='gdpr' i]",
    "[class*='gdpr' i]",
    "[id*='privacy-banner' i]",
    "[class*='privacy-banner' i]",
    "[aria-label*='cookie' i]",
    "[aria-label*='consent' i]",
];

/// Selector of elements that may be buttons of a banner.
const BUTTONS: &str = "button, a, [role='button'], input[type='button'], input[type='submit']";

/// Texts of buttons that reject all optional cookies.
const REJECT: &[&str] = &[
    // English
    "reject",
    "reject all",
    "reject all cookies",
    "reject cookies",
    "decline",
    "decline all",
    "decline cookies",
    "refuse",
    "refuse all",
    "deny",
    "deny all",
    "disagree",
    "no, thanks",
    "necessary only",
    "necessary cookies only",
    "only necessary",
    "only necessary cookies",
    "use necessary cookies only",
    "accept only necessary",
    "essential only",
    "essential cookies only",
    "only essential cookies",
    "accept only essential cookies",
    "reject non-essential",
    "reject non-essential cookies",
    "reject optional cookies",
    "reject additional cookies",
    "continue without accepting",
    // German
    "ablehnen",
    "alle ablehnen",
    "alles ablehnen",
    "nur notwendige",
    "nur notwendige cookies",
    "nur erforderliche",
    "nur erforderliche cookies",
    "nur essenzielle cookies akzeptieren",
    "nur technisch notwendige cookies",
    "weiter ohne einwilligung",
    // French
    "refuser",
    "tout refuser",
    "refuser tout",
    "continuer sans accepter",
    // Spanish
    "rechazar",
    "rechazar todo",
    "rechazar todas",
    "rechazar cookies",
    "solo necesarias",
    // Portuguese
    "rejeitar",
    "rejeitar tudo",
    "rejeitar todos",
    "recusar",
    "recusar todos",
    // Italian
    "rifiuta",
    "rifiuta tutto",
    "rifiuta tutti",
    "continua senza accettare",
    // Dutch
    "weigeren",
    "alles weigeren",
    "afwijzen",
    "alles afwijzen",
    "alleen noodzakelijk",
    "alleen noodzakelijke cookies",
    // Swedish, Danish, Norwegian, Finnish
    "avvisa",
    "avvisa alla",
    "neka",
    "neka alla",
    "endast nödvändiga",
    "bara nödvändiga",
    "afvis",
    "afvis alle",
    "kun nødvendige",
    "avvis",
    "avvis alle",
    "bare nødvendige",
    "hylkää",
    "hylkää kaikki",
    "vain välttämättömät",
    // Polish, Czech, Slovak, Hungarian, Romanian
    "odrzuć",
    "odrzuć wszystkie",
    "odrzuć wszystko",
    "tylko niezbędne",
    "odmítnout",
    "odmítnout vše",
    "odmítnout všechny",
    "odmietnuť",
    "odmietnuť všetko",
    "elutasítom",
    "összes elutasítása",
    "respinge",
    "respinge toate",
    // Greek, Turkish, Russian, Ukrainian
    "απόρριψη",
    "απόρριψη όλων",
    "reddet",
    "tümünü reddet",
    "отклонить",
    "отклонить все",
    "відхилити",
    "відхилити все",
    // Japanese, Chinese, Korean
    "拒否",
    "拒否する",
    "すべて拒否",
    "すべて拒否する",
    "拒绝",
    "全部拒绝",
    "拒絕",
    "거부",
    "모두 거부",
];

/// Texts of buttons that accept all cookies.
const ACCEPT: &[&str] = &[
    // English
    "accept",
    "accept all",
    "accept all cookies",
    "accept cookies",
    "accept and continue",
    "i accept",
    "allow",
    "allow all",
    "allow all cookies",
    "allow cookies",
    "agree",
    "i agree",
    "got it",
    "ok",
    "okay",
    "understood",
    "i understand",
    // German
    "akzeptieren",
    "alle akzeptieren",
    "alles akzeptieren",
    "alle cookies akzeptieren",
    "annehmen",
    "zustimmen",
    "allen zustimmen",
    "einverstanden",
    "verstanden",
    // French
    "accepter",
    "tout accepter",
    "accepter tout",
    "j'accepte",
    "j’accepte",
    "d'accord",
    // Spanish
    "aceptar",
    "aceptar todo",
    "aceptar todas",
    "aceptar cookies",
    "entendido",
    // Portuguese
    "aceitar",
    "aceitar tudo",
    "aceitar todos",
    "aceito",
    // Italian
    "accetta",
    "accetta tutto",
    "accetta tutti",
    "accetto",
    "ho capito",
    // Dutch
    "accepteren",
    "alles accepteren",
    "akkoord",
    // Swedish, Danish, Norwegian, Finnish
    "acceptera",
    "acceptera alla",
    "godkänn",
    "godkänn alla",
    "accepter alle",
    "tillad alle",
    "godta",
    "godta alle",
    "hyväksy",
    "hyväksy kaikki",
    // Polish, Czech, Slovak, Hungarian, Romanian
    "akceptuję",
    "akceptuj wszystkie",
    "zaakceptuj",
    "zgadzam się",
    "přijmout",
    "přijmout vše",
    "souhlasím",
    "prijať",
    "prijať všetko",
    "elfogadom",
    "összes elfogadása",
    "accept toate",
    "de acord",
    // Greek, Turkish, Russian, Ukrainian
    "αποδοχή",
    "αποδοχή όλων",
    "kabul et",
    "tümünü kabul et",
    "принять",
    "принять все",
    "согласен",
    "прийняти",
    "прийняти все",
    // Japanese, Chinese, Korean
    "同意する",
    "すべて同意する",
    "すべて許可",
    "接受",
    "全部接受",
    "同意",
    "동의",
    "모두 동의",
    "모두 허용",
];

/// The configured plugin.
pub struct Consent {
    settings: Settings,
    /// Selector of the buttons of the settings and of all managers. The first step waits for one of these.
    known: String,
    attempts: Vec<Attempt>,
}

/// A click that may reach a button of the banner.
struct Attempt {
    /// Name of the plugin's counter.
    name: &'static str,
    selector: String,
    text: Option<String>,
}

/// Answer to a banner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Rejects. A banner without a button to reject stays.
    Reject,
    /// Rejects, or accepts if the banner has no button to reject.
    #[default]
    PreferReject,
    /// Accepts. Some sites show embedded content only after that.
    Accept,
}

/// Settings of `consent`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Answer to a banner: `prefer-reject`, `reject` or `accept`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub choice: Choice,
    /// CSS selectors of further buttons. They are clicked first.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub buttons: Vec<String>,
    /// Further texts of buttons. The text of a button must be one of these, without other words. Case is ignored.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub words: Vec<String>,
    /// Longest wait for a banner to appear. Pages without a banner take this time too.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub wait: Period,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            choice: Choice::PreferReject,
            buttons: Vec::new(),
            words: Vec::new(),
            wait: Period::seconds(1),
        }
    }
}

/// Longest wait for the network after the click, in milliseconds. The banner disappears and the page reacts in this time.
const REACTION: u64 = 2_000;

impl Plugin for Consent {
    const NAME: &'static str = "consent";
    const SUMMARY: &'static str = "Dismisses cookie banners.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let blank = |name: &str, list: &[String]| {
            let at = list.iter().position(|text| text.trim().is_empty());
            at.map(|at| SettingsFault::new(format!("/{name}/{at}"), "is empty"))
        };
        let faults = [
            blank("buttons", &settings.buttons),
            blank("words", &settings.words),
        ];
        let attempts = attempts(&settings);
        let own = settings.buttons.iter().map(String::as_str);
        let known = MANAGERS.iter().flat_map(|it| [it.reject, it.accept]);
        let known: Vec<&str> = own.chain(known).collect();
        none_or(
            faults.into_iter().flatten().collect(),
            Self {
                known: known.join(", "),
                attempts,
                settings,
            },
        )
    }
}

/// The clicks to try, in order.
fn attempts(settings: &Settings) -> Vec<Attempt> {
    let own = || settings.words.iter().map(String::as_str);
    let buttons = |name, button: fn(&Manager) -> &'static str| {
        let selectors: Vec<&str> = MANAGERS.iter().map(button).collect();
        Attempt {
            name,
            selector: selectors.join(", "),
            text: None,
        }
    };
    let in_banners: Vec<String> = BANNERS
        .iter()
        .map(|banner| format!("{banner} :is({BUTTONS})"))
        .collect();
    let in_banners = in_banners.join(", ");
    let words = |name, texts: &[&str]| Attempt {
        name,
        selector: in_banners.clone(),
        text: Some(words::matching_whole(texts.iter().copied().chain(own()))),
    };
    let mut attempts = Vec::new();
    if !settings.buttons.is_empty() {
        attempts.push(Attempt {
            name: "own",
            selector: settings.buttons.join(", "),
            text: None,
        });
    }
    if settings.choice != Choice::Accept {
        attempts.push(buttons("rejected", |it| it.reject));
        attempts.push(words("rejected-by-words", REJECT));
    }
    if settings.choice != Choice::Reject {
        attempts.push(buttons("accepted", |it| it.accept));
        attempts.push(words("accepted-by-words", ACCEPT));
    }
    attempts
}

impl PageBehavior for Consent {
    fn step(&self, page: &Page, _visit: &Visit, memory: &[u8]) -> StepPlan {
        let mut tried: usize = recall(memory);
        if page.step() == 0 {
            let wait = Action::wait_for(&self.known, self.settings.wait.milliseconds());
            return StepPlan::then(vec![wait]).count(MANAGERS.iter().map(Manager::buttons));
        }
        if page.step() == 1 {
            let is_present = |it: &&Manager| page.count(&it.buttons()).unwrap_or(0) > 0;
            MANAGERS
                .iter()
                .filter(is_present)
                .for_each(|it| count(it.name, 1));
        }
        let is_clicked = |result: &ActionResult| matches!(result, ActionResult::Clicked(_));
        if page.results().iter().any(is_clicked) {
            if let Some(attempt) = tried.checked_sub(1).and_then(|at| self.attempts.get(at)) {
                count(attempt.name, 1);
            }
            return StepPlan {
                actions: vec![Action::WaitForNetwork(REACTION)],
                ..StepPlan::finish()
            };
        }
        let Some(attempt) = self.attempts.get(tried) else {
            return StepPlan::finish();
        };
        tried += 1;
        let click = Action::Click(Click {
            selector: attempt.selector.clone(),
            text: attempt.text.clone(),
            at_most: 1,
            only_new: true,
        });
        StepPlan::then(vec![click]).remember(&tried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An invalid selector in a list makes the whole list invalid. `opilio-stories` tests all selectors in Chromium.
    #[test]
    fn managers_have_buttons_and_unique_names() {
        for (at, manager) in MANAGERS.iter().enumerate() {
            assert!(!manager.accept.is_empty() && !manager.reject.is_empty());
            let others = MANAGERS.iter().skip(at + 1);
            assert!(others.into_iter().all(|it| it.name != manager.name));
        }
    }
}
