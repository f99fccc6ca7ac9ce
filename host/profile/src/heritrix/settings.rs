//! Table of properties and settings: bean, property, setting and unit.

use serde_json::{Value, json};

use crate::duration::format_duration;

/// Conversion of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Text,
    /// A list with one item.
    OneOf,
    Number,
    /// 0 and below mean no limit.
    Count,
    Float,
    Truth,
    /// True in Heritrix is false here.
    Untruth,
    Milliseconds,
    Seconds,
    /// 0 and below mean no limit.
    SecondsOrNone,
    /// 0 and below mean never.
    MinutesOrNone,
    /// True is 1, false the default.
    KeepsOne,
    /// Seconds until a URI is visited again; 0 and below mean once. Sets two settings.
    Again,
    /// 0 and below mean no limit.
    Bytes,
    Mebibytes,
    /// 0 means no limit.
    KilobytesASecond,
    /// 0 and below mean no limit.
    Kilobytes,
    UserAgent,
    Robots,
    /// Whether robots.txt is only noted.
    Audit,
    Trust,
    Compression,
    Encodings,
}

/// Class, property, setting, unit.
pub(crate) const SETTINGS: &[(&str, &str, &str, Unit)] = &[
    ("CrawlMetadata", "jobName", "name", Unit::Text),
    ("CrawlMetadata", "description", "description", Unit::Text),
    (
        "CrawlMetadata",
        "operatorContactUrl",
        "operator.contact-url",
        Unit::Text,
    ),
    ("CrawlMetadata", "operatorFrom", "operator.from", Unit::Text),
    ("CrawlMetadata", "operator", "operator.name", Unit::Text),
    (
        "CrawlMetadata",
        "organization",
        "operator.organization",
        Unit::Text,
    ),
    ("CrawlMetadata", "audience", "operator.audience", Unit::Text),
    (
        "CrawlMetadata",
        "userAgentTemplate",
        "user-agent",
        Unit::UserAgent,
    ),
    (
        "CrawlMetadata",
        "robotsPolicyName",
        "robots.policy",
        Unit::Robots,
    ),
    ("CrawlController", "maxToeThreads", "workers", Unit::Number),
    (
        "DispositionProcessor",
        "delayFactor",
        "politeness.delay-factor",
        Unit::Float,
    ),
    (
        "DispositionProcessor",
        "minDelayMs",
        "politeness.min-delay",
        Unit::Milliseconds,
    ),
    (
        "DispositionProcessor",
        "maxDelayMs",
        "politeness.max-delay",
        Unit::Milliseconds,
    ),
    (
        "DispositionProcessor",
        "respectCrawlDelayUpToSeconds",
        "politeness.crawl-delay-max",
        Unit::Seconds,
    ),
    (
        "DispositionProcessor",
        "maxPerHostBandwidthUsageKbSec",
        "politeness.bandwidth",
        Unit::KilobytesASecond,
    ),
    (
        "BdbFrontier",
        "retryDelaySeconds",
        "retry.delay",
        Unit::Seconds,
    ),
    (
        "BdbFrontier",
        "maxRetries",
        "retry.max-retries",
        Unit::Number,
    ),
    (
        "BdbFrontier",
        "queueTotalBudget",
        "queue.budget",
        Unit::Count,
    ),
    (
        "BdbFrontier",
        "balanceReplenishAmount",
        "frontier.session-budget",
        Unit::Count,
    ),
    (
        "BdbFrontier",
        "errorPenaltyAmount",
        "frontier.error-penalty",
        Unit::Number,
    ),
    (
        "BdbFrontier",
        "precedenceFloor",
        "frontier.precedence-floor",
        Unit::Number,
    ),
    (
        "BdbFrontier",
        "maxOutlinks",
        "limits.outlinks",
        Unit::Number,
    ),
    (
        "FrontierPreparer",
        "preferenceEmbedHops",
        "frontier.embed-preference-hops",
        Unit::Number,
    ),
    (
        "SurtAuthorityQueueAssignmentPolicy",
        "parallelQueues",
        "frontier.parallel-queues",
        Unit::Number,
    ),
    (
        "PreconditionEnforcer",
        "ipValidityDurationSeconds",
        "dns.min-expires",
        Unit::Seconds,
    ),
    (
        "PreconditionEnforcer",
        "robotsValidityDurationSeconds",
        "robots.expires",
        Unit::Seconds,
    ),
    (
        "PreconditionEnforcer",
        "calculateRobotsOnly",
        "robots.policy",
        Unit::Audit,
    ),
    (
        "FetchHTTP",
        "timeoutSeconds",
        "fetch.total-timeout",
        Unit::Seconds,
    ),
    (
        "FetchHTTP",
        "soTimeoutMs",
        "fetch.response-timeout",
        Unit::Milliseconds,
    ),
    ("FetchHTTP", "maxLengthBytes", "fetch.body-max", Unit::Bytes),
    (
        "FetchHTTP",
        "acceptCompression",
        "fetch.accept-encoding",
        Unit::Encodings,
    ),
    (
        "FetchHTTP",
        "ignoreCookies",
        "cookies.accept",
        Unit::Untruth,
    ),
    ("FetchHTTP", "sendReferer", "fetch.referer", Unit::Truth),
    (
        "FetchHTTP",
        "sendIfModifiedSince",
        "fetch.conditional",
        Unit::Truth,
    ),
    ("FetchHTTP", "httpBindAddress", "fetch.bind", Unit::OneOf),
    ("FetchHTTP", "sslTrustLevel", "fetch.tls-trust", Unit::Trust),
    (
        "BdbCookieStore",
        "cookiesLoadFile",
        "cookies.load",
        Unit::Text,
    ),
    (
        "BdbCookieStore",
        "cookiesSaveFile",
        "cookies.save",
        Unit::Text,
    ),
    (
        "SimpleCookieStore",
        "cookiesLoadFile",
        "cookies.load",
        Unit::Text,
    ),
    (
        "WARCWriterChainProcessor",
        "prefix",
        "archive.prefix",
        Unit::Text,
    ),
    (
        "WARCWriterChainProcessor",
        "maxFileSizeBytes",
        "archive.size-max",
        Unit::Bytes,
    ),
    (
        "WARCWriterChainProcessor",
        "maxTotalBytesToWrite",
        "archive.max-total-bytes",
        Unit::Bytes,
    ),
    (
        "WARCWriterChainProcessor",
        "compress",
        "archive.compression",
        Unit::Compression,
    ),
    (
        "WARCWriterChainProcessor",
        "poolMaxActive",
        "archive.writers",
        Unit::Number,
    ),
    (
        "CrawlLimitEnforcer",
        "maxBytesDownload",
        "limits.bytes",
        Unit::Bytes,
    ),
    (
        "CrawlLimitEnforcer",
        "maxDocumentsDownload",
        "limits.documents",
        Unit::Count,
    ),
    (
        "CrawlLimitEnforcer",
        "maxTimeSeconds",
        "limits.time",
        Unit::SecondsOrNone,
    ),
    (
        "CrawlLimitEnforcer",
        "maxNovelBytes",
        "limits.novel-bytes",
        Unit::Bytes,
    ),
    (
        "CrawlLimitEnforcer",
        "maxNovelUrls",
        "limits.novel-documents",
        Unit::Count,
    ),
    (
        "BaseQueuePrecedencePolicy",
        "basePrecedence",
        "queue.precedence",
        Unit::Number,
    ),
    (
        "BaseUriPrecedencePolicy",
        "basePrecedence",
        "uri.precedence",
        Unit::Number,
    ),
    (
        "BaseUriPrecedencePolicy",
        "navlinksOnly",
        "uri.navigation-hops-only",
        Unit::Truth,
    ),
    ("CandidateScoper", "logToFile", "logs.scope", Unit::Truth),
    (
        "CrawlerLoggerModule",
        "logExtraInfo",
        "logs.extra-info",
        Unit::Truth,
    ),
    (
        "QuotaEnforcer",
        "hostMaxFetchSuccesses",
        "quotas.host.succeeded",
        Unit::Count,
    ),
    (
        "QuotaEnforcer",
        "hostMaxFetchResponses",
        "quotas.host.fetched",
        Unit::Count,
    ),
    (
        "QuotaEnforcer",
        "hostMaxAllKb",
        "quotas.host.bytes",
        Unit::Kilobytes,
    ),
    (
        "QuotaEnforcer",
        "hostMaxNovelKb",
        "quotas.host.novel-bytes",
        Unit::Kilobytes,
    ),
    (
        "QuotaEnforcer",
        "hostMaxNovelUrls",
        "quotas.host.novel",
        Unit::Count,
    ),
    (
        "QuotaEnforcer",
        "groupMaxFetchSuccesses",
        "quotas.queue.succeeded",
        Unit::Count,
    ),
    (
        "QuotaEnforcer",
        "groupMaxFetchResponses",
        "quotas.queue.fetched",
        Unit::Count,
    ),
    (
        "QuotaEnforcer",
        "groupMaxAllKb",
        "quotas.queue.bytes",
        Unit::Kilobytes,
    ),
    (
        "QuotaEnforcer",
        "groupMaxNovelKb",
        "quotas.queue.novel-bytes",
        Unit::Kilobytes,
    ),
    (
        "QuotaEnforcer",
        "groupMaxNovelUrls",
        "quotas.queue.novel",
        Unit::Count,
    ),
    (
        "DiskSpaceMonitor",
        "pauseThresholdMiB",
        "alerts.disk-pause",
        Unit::Mebibytes,
    ),
    (
        "ReschedulingProcessor",
        "rescheduleDelaySeconds",
        "revisit.fixed-wait",
        Unit::Again,
    ),
    (
        "CheckpointService",
        "checkpointIntervalMinutes",
        "checkpoint.every",
        Unit::MinutesOrNone,
    ),
    (
        "CheckpointService",
        "forgetAllButLatest",
        "checkpoint.keep",
        Unit::KeepsOne,
    ),
    (
        "ActionDirectory",
        "delaySeconds",
        "actions.interval",
        Unit::Seconds,
    ),
];

/// The settings for a value of the list above: one, or one for each key of an object.
pub(crate) fn each(setting: &str, value: Value) -> Vec<(String, Value)> {
    match value {
        Value::Object(several) => several.into_iter().collect(),
        value => vec![(setting.to_owned(), value)],
    }
}

/// Other names of classes in the list above.
pub(crate) fn known_as(class: &str) -> &str {
    match class {
        "WARCWriterProcessor" | "ARCWriterProcessor" => "WARCWriterChainProcessor",
        "FetchHTTP2" => "FetchHTTP",
        "HostnameQueueAssignmentPolicy" | "AssignmentLevelSurtQueueAssignmentPolicy" => {
            "SurtAuthorityQueueAssignmentPolicy"
        }
        "HighestUriQueuePrecedencePolicy" | "SuccessCountsQueuePrecedencePolicy" => {
            "BaseQueuePrecedencePolicy"
        }
        "CostUriPrecedencePolicy" | "HopsUriPrecedencePolicy" => "BaseUriPrecedencePolicy",
        other => other,
    }
}

impl Unit {
    /// Converts the text of a value; the error is the reason for which it has no equivalent.
    pub(crate) fn read(self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let number = || {
            text.parse::<i64>()
                .map_err(|_| format!("not a whole number: {text:?}"))
        };
        let truth = || match text {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(format!("neither true nor false: {other:?}")),
        };
        let duration = |milliseconds: i64| {
            let whole = u64::try_from(milliseconds).unwrap_or(0);
            Value::from(format_duration(std::time::Duration::from_millis(whole)))
        };
        Ok(match self {
            Unit::Text => Value::from(text),
            Unit::OneOf => json!([text]),
            Unit::Number => match number()? {
                below if below < 0 => return Err(format!("{below} has no meaning here")),
                number => Value::from(number),
            },
            Unit::Count => match number()? {
                number if number <= 0 => Value::from("none"),
                number => Value::from(number),
            },
            Unit::Float => {
                let number: f64 = text
                    .parse()
                    .map_err(|_| format!("not a number: {text:?}"))?;
                Value::from(number)
            }
            Unit::Truth => Value::from(truth()?),
            Unit::Untruth => Value::from(!truth()?),
            Unit::Milliseconds => duration(number()?),
            Unit::Seconds => duration(number()?.saturating_mul(1000)),
            Unit::SecondsOrNone => match number()? {
                number if number <= 0 => Value::from("none"),
                number => duration(number.saturating_mul(1000)),
            },
            Unit::Again => match number()? {
                number if number <= 0 => json!({ "strategy": "snapshot" }),
                number => json!({
                    "strategy": "fixed",
                    "revisit.fixed-wait": duration(number.saturating_mul(1000)),
                }),
            },
            Unit::MinutesOrNone => match number()? {
                number if number <= 0 => Value::from("none"),
                number => duration(number.saturating_mul(60_000)),
            },
            Unit::KeepsOne => match truth()? {
                true => Value::from(1),
                false => Value::Null,
            },
            Unit::Bytes => match number()? {
                number if number <= 0 => Value::from("none"),
                number => Value::from(format!("{number}B")),
            },
            Unit::Mebibytes => Value::from(format!("{}MiB", number()?.max(0))),
            Unit::KilobytesASecond | Unit::Kilobytes => match number()? {
                number if number <= 0 => Value::from("none"),
                number => Value::from(format!("{number}KiB")),
            },
            Unit::UserAgent => Value::from(
                text.replace("@OPERATOR_CONTACT_URL@", "@CONTACT-URL@")
                    .replace("heritrix/@VERSION@", "opilio/@VERSION@"),
            ),
            Unit::Robots => Value::from(match text {
                "obey" | "classic" => "obey",
                "robotsTxtOnly" => "obey-txt-only",
                "ignore" => "ignore",
                other => {
                    return Err(format!(
                        "Opilio has no policy {other:?}; docs/FETCHING.md lists all policies"
                    ));
                }
            }),
            Unit::Audit => match truth()? {
                true => Value::from("audit"),
                false => Value::Null,
            },
            Unit::Trust => Value::from(match text {
                "OPEN" | "LOOSE" => "record",
                "NORMAL" | "STRICT" => "platform",
                other => return Err(format!("no trust level {other:?}")),
            }),
            Unit::Compression => Value::from(if truth()? { "gzip" } else { "none" }),
            Unit::Encodings => match truth()? {
                true => Value::Null,
                false => Value::from("identity"),
            },
        })
    }
}
