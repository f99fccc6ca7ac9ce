//! The command line of Chromium.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use crate::settings::BrowserSettings;

/// Disabled features: they send requests of the browser itself, change the requests of pages, or have no use in a crawl.
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
    // Host names are looked up by the crawl.
    "AsyncDns",
    "DnsOverHttps",
    "DnsHttpsSvcb",
    "EncryptedClientHello",
    // `http:` URIs must not be upgraded to `https:`.
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    // A page must not stay in memory after a navigation.
    "BackForwardCache",
    "Prerender2",
    // The proxy is on loopback, but the site is not.
    "LocalNetworkAccessChecks",
    // Each page has its own window. Since Chromium 151, each window loads pages of the browser itself in further renderers, such as
    // the suggestions of the address bar, which a crawl does not need.
    "InitialWebUI",
    "PreloadTopChromeWebUI",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
    "WebUIOmniboxPopup",
    "WebUIToolbarProcessOverheadExperiment",
    // The hint at the reading mode, for which the browser runs a script in each page, and the text of pages for the browser's
    // services.
    "AnnotatedPageContentExtraction",
    "IPH_ReadingModePageActionLabel",
    "ReadAnythingOmniboxChip",
    // A spare renderer for further sites of the same context. It would start and end with each page.
    "SpareRendererForSitePerProcess",
];

/// Switches that do not depend on settings.
const SWITCHES: &[&str] = &[
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    // No window with the start page, which sends requests.
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
    // Accounts are requested from a port that Chromium itself refuses, and the list of models is empty.
    "--gaia-url=http://127.0.0.1:1/",
    "--metrics-recording-only",
    "--no-pings",
    "--optimization-guide-manifest-override=/dev/null",
    "--safebrowsing-disable-auto-update",
    // No network besides the proxy: no DNS look-ups, no QUIC, no UDP of WebRTC, and no exception for loopback.
    "--dns-prefetch-disable",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--proxy-bypass-list=<-loopback>",
    // No windows and questions that a user would have to answer.
    "--deny-permission-prompts",
    "--disable-hang-monitor",
    "--disable-prompt-on-repost",
    "--noerrdialogs",
    "--password-store=basic",
    "--use-mock-keychain",
    // Pages run as if they were visible.
    "--autoplay-policy=no-user-gesture-required",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // Pictures of pages must be the same on every machine.
    "--disable-gpu",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--mute-audio",
];

/// Minimum size of `/dev/shm`. With less, pages crash. Containers have 64 MB.
const SHARED_MEMORY_KILOBYTES_MIN: u64 = 512 * 1024;

/// Values for the command line of one browser process.
pub(crate) struct CommandLine<'a> {
    pub settings: &'a BrowserSettings,
    /// Major version of Chromium.
    pub major: u32,
    pub profile: &'a Path,
    /// The proxy that refuses requests of the browser itself.
    pub refusing_proxy: SocketAddr,
    /// SHA-256 of the public key of the job's authority, in Base64.
    pub authority_spki: &'a str,
}

impl CommandLine<'_> {
    /// Returns all arguments after the executable.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let CommandLine {
            settings, profile, ..
        } = self;
        let mut arguments: Vec<OsString> = SWITCHES.iter().map(Into::into).collect();
        let mut add = |text: String| arguments.push(text.into());
        add(format!("--disable-features={}", FEATURES_OFF.join(",")));
        add(format!("--proxy-server=http://{}", self.refusing_proxy));
        // Chromium uses this list only together with --user-data-dir.
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

    /// Returns the user agent of Chromium with a window, and the suffix from the settings. As a switch it also applies to workers.
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

/// Returns `true` if shared memory must be in files in the profile. These do not count as memory of the page.
fn is_shared_memory_small() -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    shared_memory_kilobytes(&mounts).is_some_and(|size| size < SHARED_MEMORY_KILOBYTES_MIN)
}

/// Returns the size with which `/dev/shm` was mounted; `None` means half of the machine's memory (tmpfs(5)).
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
