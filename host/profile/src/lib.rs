//! Profiles: an operator's TOML files, checked and made usable.
//!
//! The only entry is [`Profile::load`], with its siblings for text and for the built-in profiles. It takes the written form,
//! [`ProfileFile`], and returns the usable form, [`Profile`]. Otherwise it returns all errors of the file at once, with line,
//! column and suggestion. This crate opens no component, socket or job folder. Defaults are in the `Default` of each written
//! part. Their reasons are in the doc comment of the field, which is also its description in the JSON Schema for editors.

mod profile;
mod ready;

mod actions;
mod alerts;
mod archive;
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
mod seeds;
mod stacks;
mod tables;
mod telemetry;
mod uri;

mod catalogue;
mod effective;
mod explain;
mod match_index;
mod matching;
mod needed;
mod overrides;
mod plugin_settings;
mod queue_name;
mod schema;
mod stack_edit;
mod time_of_day;

mod byte_size;
mod count;
mod duration;
mod fault;

mod check;
mod document;
mod file;
mod layer;
mod relations;
mod shape;
mod written;

pub use opilio_model::{
    AddressFamily, ArchiveFormat, GroupSettings, NameServer, Politeness, PrecedencePolicy,
    QueueSettings, Quota, Strategy,
};

pub use actions::{Actions, ActionsFile};
pub use alerts::{Alerts, AlertsFile};
pub use archive::{
    Archive, ArchiveCompression, ArchiveDigest, ArchiveFile, Duplicates, DuplicatesFile,
};
pub use byte_size::{ByteSize, SizeProblem, SizeWritten};
pub use canonicalization::{CanonicalizationFile, RegexRuleFile, RuleFile, RuleName};
pub use catalogue::{Entry, Said, assignment, fault_in, said};
pub use check::nearest;
pub use checkpoint::{CheckpointFile, PeriodicCheckpoints};
pub use component::{Component, ComponentProblem, Image};
pub use cookies::{Cookies, CookiesFile};
pub use count::CountWritten;
pub use credentials::{
    Credential, CredentialFile, Login, LoginFile, SecretFile, SecretProblem, SecretSource,
};
pub use dns::{Dns, DnsFile, HostPattern, Hosts};
pub use document::toml_value;
pub use duration::{
    DURATION_MAX, DurationProblem, DurationWritten, format_duration, parse_duration,
};
pub use effective::{Context, Settings};
pub use explain::{Explained, Origin};
pub use fault::{Fault, Faults, Level, Place};
pub use fault_policy::{Breaker, BreakerAction, BreakerFile, OnFault};
pub use fetch::{AllowedAddresses, Fetch, FetchFile, FetchProxy, ProxyNames, TlsTrust};
pub use file::{Extends, ProfileFile};
pub use frontier::{Frontier, FrontierFile, QueueKey};
pub use group::GroupFile;
pub use heritrix::{ImportedProfile, LeftOut, NamedFiles, import_heritrix};
pub use layer::Layer;
pub use limits::{Limits, LimitsFile};
pub use logs::{Logs, LogsFile};
pub use matching::MatchFile;
pub use operator::{Operator, OperatorFile};
pub use overrides::OverrideFile;
pub use plugin_limits::{PluginLimits, PluginLimitsFile};
pub use plugin_settings::{PluginSettings, complete_settings};
pub use plugins::{Instance, PluginFile};
pub use politeness::PolitenessFile;
pub use precedence_file::PrecedenceList;
pub use profile::{Given, Profile};
pub use queue::{QueueFile, QueuePrecedencePolicy, ServerGroup};
pub use quotas::{JobQuotas, QuotaFile, QuotasFile};
pub use record::{Record, RecordFile};
pub use retry::{ErrorClass, Retry, RetryFile};
pub use revisit::{Revisit, RevisitFile, StrippedEqual, UnchangedHeaders};
pub use robots::{Robots, RobotsFile, RobotsPolicy};
pub use schema::editor_schema;
pub use seeds::{Seed, Seeds};
pub use stacks::{Stacks, StacksFile, Stage};
pub use tables::{Table, TableFile, TableKind, TableSource};
pub use telemetry::{Telemetry, TelemetryFile, traces_address};
pub use time_of_day::TimeOfDay;
pub use uri::{CostPolicy, UriFile, UriPrecedencePolicy, UriSettings};
pub use written::Written;
