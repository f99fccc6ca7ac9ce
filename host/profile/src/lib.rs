//! Profiles: an operator's TOML files, checked and made usable.
//!
//! The only entry is [`Profile::load`], with its siblings for text and for the built-in profiles. It takes the written form,
//! [`ProfileFile`], and returns the usable form, [`Profile`]. Otherwise it returns all errors of the file at once, with line,
//! column and suggestion. This crate opens no component, socket or job folder. Defaults are in the `Default` of each written
//! part. Their reasons are in the doc comment of the field, which is also its description in the JSON Schema for editors.

mod builtin_profiles;
mod profile;

mod actions;
mod alerts;
mod archive;
mod archive_store;
mod browser;
mod canonicalization;
mod checkpoint;
mod component;
mod cookies;
mod credentials;
mod dns;
mod fault_policy;
mod fetch;
mod frontier;
mod group;
mod heritrix;
mod limits;
mod logs;
mod operator;
mod plugin_limits;
mod plugins;
mod politeness;
mod precedence_file;
mod queue;
mod quotas;
mod record;
mod retry;
mod revisit;
mod robots;
mod secret;
mod seeds;
mod stacks;
mod stage;
mod tables;
mod telemetry;
mod uri;

mod catalogue;
mod effective;
mod explain;
mod match_index;
mod matching;
mod merge;
mod override_file;
mod overrides;
mod plugin_settings;
mod queue_name;
mod schema;
mod setting_marks;
mod setting_stages;
mod stack_edit;
mod time_of_day;

mod byte_size;
mod count;
mod diagnostic;
mod duration;
mod fnv;

mod check;
mod document;
mod edit;
mod file;
mod layer;
mod layer_files;
mod layer_paths;
mod schema_check;
mod streams;
mod toml_text;
mod webhooks;
mod written_override;

pub use opilio_model::{
    AddressFamily, ArchiveFormat, GroupSettings, NameServer, Politeness, PrecedencePolicy,
    QueueSettings, Quota, Strategy,
};

pub use actions::{Actions, ActionsFile};
pub use alerts::{Alerts, AlertsFile};
pub use archive::{
    Archive, ArchiveCompression, ArchiveDigest, ArchiveFile, Duplicates, DuplicatesFile,
};
pub use archive_store::{ArchiveStore, ArchiveStoreFile, StoreBucket, StoreKeys, StorePlace};
pub use browser::{Browser, BrowserFile, Render};
pub use byte_size::{ByteSize, SizeProblem, SizeWritten};
pub use canonicalization::{CanonicalizationFile, RegexRuleFile, RuleFile, RuleName};
pub use catalogue::{SettingEntry, SettingInText, assignment, fault_in, settings_in_text};
pub use check::nearest;
pub use checkpoint::{CheckpointFile, PeriodicCheckpoints};
pub use component::{ComponentProblem, ComponentReference, Image};
pub use cookies::{Cookies, CookiesFile};
pub use count::CountWritten;
pub use credentials::{Credential, CredentialFile, Login, LoginFile};
pub use diagnostic::{Diagnostic, Diagnostics, Level, TextPosition};
pub use dns::{Dns, DnsFile, HostPattern, Hosts};
pub use document::{toml_parts, toml_value};
pub use duration::{
    DURATION_MAX, DurationProblem, DurationWritten, format_duration, parse_duration,
};
pub use edit::{EditError, SettingChange, edit_toml};
pub use effective::{EffectiveSettings, UriContext};
pub use explain::{Origin, SettingExplanation};
pub use fault_policy::{BreakerAction, BreakerFile, BreakerSettings, OnFault};
pub use fetch::{AllowedAddresses, Fetch, FetchFile, FetchProxy, ProxyNames, TlsTrust};
pub use file::{Extends, ProfileFile};
pub use frontier::{FrontierFile, FrontierSettings, QueueKey};
pub use group::GroupFile;
pub use heritrix::{ImportedProfile, NamedFiles, UnconvertedPart, import_heritrix};
pub use layer::Layer;
pub use layer_files::LayerFile;
pub use limits::{CrawlLimits, LimitsFile};
pub use logs::{Logs, LogsFile};
pub use matching::MatchFile;
pub use operator::{Operator, OperatorFile};
pub use override_file::OverrideFile;
pub use plugin_limits::{PluginLimits, PluginLimitsFile};
pub use plugin_settings::{PluginSettings, complete_settings};
pub use plugins::{Instance, PluginFile};
pub use politeness::PolitenessFile;
pub use precedence_file::PrecedenceList;
pub use profile::{Profile, ProfileContext};
pub use queue::{QueueFile, QueuePrecedencePolicy, ServerGroup};
pub use quotas::{JobQuotas, QuotaFile, QuotasFile};
pub use record::{RecordFile, RecordingSettings};
pub use retry::{ErrorClass, Retry, RetryFile};
pub use revisit::{Revisit, RevisitFile, StrippedEqual, UnchangedHeaders};
pub use robots::{RobotsFile, RobotsPolicy, RobotsSettings};
pub use schema::editor_schema;
pub use secret::{SecretFile, SecretProblem, SecretSource};
pub use seeds::{Seed, Seeds};
pub use stacks::{StackSettings, StacksFile};
pub use stage::Stage;
pub use streams::{EventStream, EventStreamFile};
pub use tables::{TableFile, TableKind, TableSettings, TableSource};
pub use telemetry::{Telemetry, TelemetryFile, traces_address};
pub use time_of_day::TimeOfDay;
pub use toml_text::TomlText;
pub use uri::{CostPolicy, UriFile, UriPrecedencePolicy, UriSettings};
pub use webhooks::{EventKind, Webhook, WebhookFile};
pub use written_override::{WrittenOverride, dotted_key};
