//! The command line of Chromium.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use crate::settings::BrowserSettings;

/// Features that send requests of the browser's own, that change the requests of pages, or whose work nobody sees.
const FEATURES_OFF: &[&str] = &[
    // Requests of the browser's own.
    "AimServerEligibilityEnabled",
    "AutofillServerCommunication",
    "CertificateTransparencyComponentUpdater",
    "DialMediaRouteProvider",
    "InterestFeedContentSuggestions",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationGuideModelDownloading",
    "OptimizationHints",
    "OptimizationHintsFetching",
    "OptimizationTargetPrediction",
    "PreconnectToSearch",
    "SafeBrowsingDelayedWarnings",
    "Translate",
    // Names are looked up by the crawl.
    "AsyncDns",
    "DnsOverHttps",
    "DnsHttpsSvcb",
    "EncryptedClientHello",
    // `http:` is fetched as `http:`.
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    // A page that was left must not go on in memory.
    "BackForwardCache",
    "Prerender2",
    // The proxy is on loopback, which is not a fact about the site.
    "LocalNetworkAccessChecks",
    // Each page has a window of its own. From Chromium 151 on, each window loads pages of the browser's own in further renderers:
    // the suggestions of its address bar, and others for later use. Nobody sees them.
    "InitialWebUI",
    "PreloadTopChromeWebUI",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
    "WebUIOmniboxPopup",
    "WebUIToolbarProcessOverheadExperiment",
    // A hint at the reading mode, for which the browser runs a script in each page, and texts of pages for its own services.
    "AnnotatedPageContentExtraction",
    "IPH_ReadingModePageActionLabel",
    "ReadAnythingOmniboxChip",
    // A renderer in reserve for further sites of the same context. It would start and end with each page.
    "SpareRendererForSitePerProcess",
];

/// Switches that do not depend on settings.
const SWITCHES: &[&str] = &[
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    // The window of the start page, with its requests.
    "--no-startup-window",
    "--no-default-browser-check",
    // Requests of the browser's own.
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-field-trial-config",
    "--disable-search-engine-choice-screen",
    "--disable-sync",
    // Accounts are asked for at a port that Chromium itself refuses; the list of models is empty.
    "--gaia-url=http://127.0.0.1:1/",
    "--metrics-recording-only",
    "--no-pings",
    "--optimization-guide-manifest-override=/dev/null",
    "--safebrowsing-disable-auto-update",
    // No network besides the proxy: no look-ups, no QUIC, no UDP of WebRTC, and loopback is not excepted.
    "--dns-prefetch-disable",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--proxy-bypass-list=<-loopback>",
    // Windows and questions that nobody sees.
    "--deny-permission-prompts",
    "--disable-hang-monitor",
    "--disable-prompt-on-repost",
    "--noerrdialogs",
    "--password-store=basic",
    "--use-mock-keychain",
    // Pages run as if somebody looked at them.
    "--autoplay-policy=no-user-gesture-required",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // Pictures of pages are the same on every machine.
    "--disable-gpu",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--mute-audio",
];

/// Size of `/dev/shm` below which pages crash for lack of it. Containers have 64 MB.
const SHARED_MEMORY_KILOBYTES_MIN: u64 = 512 * 1024;

/// Facts of one browser process that its command line names.
pub(crate) struct CommandLine<'a> {
    pub settings: &'a BrowserSettings,
    /// Major version of Chromium.
    pub major: u32,
    pub profile: &'a Path,
    /// The proxy that refuses the browser's own requests.
    pub refusing_proxy: SocketAddr,
    /// SHA-256 of the public key of the job's authority, in Base64.
    pub authority_spki: &'a str,
}

impl CommandLine<'_> {
    /// All arguments after the executable.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let CommandLine {
            settings, profile, ..
        } = self;
        let mut arguments: Vec<OsString> = SWITCHES.iter().map(Into::into).collect();
        let mut add = |text: String| arguments.push(text.into());
        add(format!("--disable-features={}", FEATURES_OFF.join(",")));
        add(format!("--proxy-server=http://{}", self.refusing_proxy));
        // Chromium heeds this list only together with --user-data-dir.
        add(format!(
            "--ignore-certificate-errors-spki-list={}",
            self.authority_spki
        ));
        add(format!("--user-agent={}", self.user_agent()));
        let (width, height) = (settings.viewport.width, settings.viewport.height);
        add(format!("--window-size={width},{height}"));
        if !settings.languages.is_empty() {
            add(format!("--accept-lang={}", settings.languages));
        }
        if is_shared_memory_small() {
            add("--disable-dev-shm-usage".to_owned());
        }
        if !settings.sandbox {
            add("--no-sandbox".to_owned());
        }
        let mut user_data = OsString::from("--user-data-dir=");
        user_data.push(profile);
        arguments.push(user_data);
        arguments
    }

    /// The user agent of Chromium with a window, and the suffix of the settings. As a switch it holds in workers, too.
    fn user_agent(&self) -> String {
        let own = format!(
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36",
            self.major
        );
        match self.settings.user_agent_suffix.trim() {
            "" => own,
            suffix => format!("{own} {suffix}"),
        }
    }
}

/// Returns `true` if shared memory has to be files in the profile. They do not count as memory of the page then.
fn is_shared_memory_small() -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    shared_memory_kilobytes(&mounts).is_some_and(|size| size < SHARED_MEMORY_KILOBYTES_MIN)
}

/// The size that `/dev/shm` was mounted with; `None`: half of the machine's memory (tmpfs(5)).
fn shared_memory_kilobytes(mounts: &str) -> Option<u64> {
    let line = mounts
        .lines()
        .find(|line| line.split(' ').nth(1) == Some("/dev/shm"))?;
    let mut options = line.split(' ').nth(3)?.split(',');
    let size = options.find_map(|option| option.strip_prefix("size="))?;
    size.strip_suffix('k')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mounts: &str, kilobytes: Option<u64>) {
        assert_eq!(shared_memory_kilobytes(mounts), kilobytes);
    }

    #[test]
    fn the_size_of_shared_memory_is_that_of_its_mount() {
        check(
            "proc /proc proc rw 0 0\nshm /dev/shm tmpfs rw,nosuid,size=65536k,inode64 0 0\n",
            Some(65536),
        );
        check("tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n", None);
        check("tmpfs /run tmpfs rw,size=100k 0 0\n", None);
    }
}
