//! Consent managers, the products that show most cookie banners, and the selectors of their buttons. The selectors match the
//! products' own markup, which sites seldom change.

/// A consent manager.
pub(crate) struct Manager {
    /// Name of the plugin's counter.
    pub(crate) name: &'static str,
    /// CSS selectors of buttons that reject all optional cookies.
    pub(crate) reject: &'static str,
    /// CSS selectors of buttons that accept all cookies.
    pub(crate) accept: &'static str,
}

impl Manager {
    /// A selector of all buttons of the manager.
    pub(crate) fn buttons(&self) -> String {
        format!("{}, {}", self.reject, self.accept)
    }
}

const fn manager(name: &'static str, reject: &'static str, accept: &'static str) -> Manager {
    Manager {
        name,
        reject,
        accept,
    }
}

/// All known managers.
pub(crate) const MANAGERS: &[Manager] = &[
    manager(
        "onetrust",
        "#onetrust-reject-all-handler, .ot-pc-refuse-all-handler",
        "#onetrust-accept-btn-handler, #accept-recommended-btn-handler",
    ),
    manager(
        "cookiebot",
        "#CybotCookiebotDialogBodyButtonDecline, #CybotCookiebotDialogBodyLevelButtonLevelOptinDeclineAll",
        "#CybotCookiebotDialogBodyLevelButtonLevelOptinAllowAll, #CybotCookiebotDialogBodyButtonAccept, \
         #CybotCookiebotDialogBodyLevelButtonAccept",
    ),
    manager(
        "usercentrics",
        "[data-testid='uc-deny-all-button'], #usercentrics-cmp-ui [data-action-type='deny'], #uc-btn-deny-banner",
        "[data-testid='uc-accept-all-button'], #usercentrics-cmp-ui [data-action-type='accept'], #uc-btn-accept-banner",
    ),
    manager(
        "didomi",
        "#didomi-notice-disagree-button, .didomi-continue-without-agreeing",
        "#didomi-notice-agree-button",
    ),
    manager(
        "quantcast",
        ".qc-cmp2-container #disagree-btn, .qc-cmp2-container .qc-cmp2-close-icon",
        ".qc-cmp2-container #accept-btn, .qc-cmp2-summary-buttons button[mode='primary']",
    ),
    manager(
        "trustarc",
        "#truste-consent-required, .truste-consent-required, .pdynamicbutton .required, .pdynamicbutton .rejectAll",
        "#truste-consent-button, .pdynamicbutton .call, .pdynamicbutton .acceptAll",
    ),
    manager(
        "sourcepoint",
        "button.sp_choice_type_13, button.sp_choice_type_REJECT_ALL",
        "button.sp_choice_type_11, button.sp_choice_type_ACCEPT_ALL",
    ),
    manager(
        "google",
        ".fc-consent-root .fc-cta-do-not-consent",
        ".fc-consent-root .fc-cta-consent",
    ),
    manager(
        "consentmanager",
        "#cmpbox .cmpboxbtnno, #cmpbntnotxt",
        "#cmpbox .cmpboxbtnyes, #cmpbntyestxt",
    ),
    manager(
        "osano",
        ".osano-cm-denyAll, .osano-cm-deny",
        ".osano-cm-accept-all, .osano-cm-accept",
    ),
    manager("cookieyes", ".cky-btn-reject", ".cky-btn-accept"),
    manager(
        "complianz",
        ".cmplz-cookiebanner .cmplz-deny",
        ".cmplz-cookiebanner .cmplz-accept",
    ),
    manager(
        "borlabs",
        "#BorlabsCookieBox [data-cookie-refuse], #BorlabsCookieBox ._brlbs-refuse-btn a, .brlbs-btn-accept-only-essential",
        "#BorlabsCookieBox [data-cookie-accept-all], #BorlabsCookieBox [data-cookie-accept], .brlbs-btn-accept-all",
    ),
    manager(
        "iubenda",
        ".iubenda-cs-reject-btn",
        ".iubenda-cs-accept-btn",
    ),
    manager(
        "klaro",
        ".klaro .cn-decline, .klaro .cm-btn-decline",
        ".klaro .cm-btn-accept-all, .klaro .cm-btn-success",
    ),
    manager(
        "tarteaucitron",
        "#tarteaucitronAllDenied2, #tarteaucitronAllDenied",
        "#tarteaucitronPersonalize2, #tarteaucitronAllAllowed",
    ),
    manager("axeptio", "#axeptio_btn_dismiss", "#axeptio_btn_acceptAll"),
    manager(
        "cookiefirst",
        "[data-cookiefirst-action='reject']",
        "[data-cookiefirst-action='accept']",
    ),
    manager(
        "civic",
        "#ccc-reject-settings, #ccc-notify-reject",
        "#ccc-recommended-settings, #ccc-notify-accept",
    ),
    manager(
        "evidon",
        "#_evidon-decline-button",
        "#_evidon-accept-button",
    ),
    manager(
        "cookie-script",
        "#cookiescript_reject",
        "#cookiescript_accept",
    ),
    manager("cookie-notice", "#cn-refuse-cookie", "#cn-accept-cookie"),
    manager(
        "moove",
        ".moove-gdpr-infobar-reject-btn",
        ".moove-gdpr-infobar-allow-all",
    ),
    manager(
        "cookieconsent",
        ".cc-window .cc-deny, #cc-main [data-role='necessary'], #cm #c-s-bn[data-cc='accept-necessary']",
        ".cc-window .cc-allow, .cc-window .cc-dismiss, #cc-main [data-role='all'], #cm #c-p-bn",
    ),
    manager(
        "eu-cookie-compliance",
        "#sliding-popup .decline-button",
        "#sliding-popup .agree-button",
    ),
];
