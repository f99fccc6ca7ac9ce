//! Limits of plugin calls, and of the values that the host keeps for a plugin.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::Part;
use crate::count::CountWritten;
use crate::duration::DurationWritten;

/// Largest memory that 32 bits can address.
const GUEST_MEMORY_MAX: ByteSize = ByteSize::from_gib(4);

/// Largest output of one call.
const OUTPUT_MAX: ByteSize = ByteSize::from_gib(1);

/// Largest values kept with a URI or a site, and largest texts of one visit.
const TEXT_MAX: ByteSize = ByteSize::from_mib(16);

/// Limits of one plugin call and of kept values. Exceeding memory, time, output or fingerprint is a plugin error. Beyond the
/// other limits, values are dropped and counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PluginLimitsFile {
    /// Linear memory, 4 GiB at most. Default `"64MiB"`: holds a large page several times over.
    pub memory: SizeWritten,

    /// Time. Default `"2s"`: a thousand times what a page takes.
    pub time: DurationWritten,

    /// Total output of a call: links, fragments, reasons; 1 GiB at most. Default `"16MiB"`: 6,000 links of 2 KiB and some.
    pub output: SizeWritten,

    /// Log lines, 16 MiB at most. Default `"16KiB"`: enough to say what is wrong once.
    pub log: SizeWritten,

    /// Calls at the same time; further ones wait. Default `"none"`: as many as there are lanes.
    pub instances: CountWritten,

    /// Links that are taken from one document, before repeats are removed. No default: four times `limits.outlinks`, since many
    /// are repeats.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub links: Option<u32>,

    /// Fragments that are taken from one document. Default `6000`: a page of as many inline styles is made by a machine.
    #[schemars(range(max = 1_000_000))]
    pub fragments: u32,

    /// Notes of one visit. Default `64`: what plugins have to say to each other.
    #[schemars(range(max = 10_000))]
    pub notes: u32,

    /// One note, its name included; 16 MiB at most. Default `"4KiB"`: notes stand in the archive, with every document.
    pub note_size: SizeWritten,

    /// Annotations of one visit. Default `32`: they stand on a line of the crawl log.
    #[schemars(range(max = 1_000))]
    pub annotations: u32,

    /// Names of the plugin's own counters; counts under further names go to `other`. Default `64`: they stand in reports.
    #[schemars(range(max = 10_000))]
    pub counters: u32,

    /// Values of a plugin that are kept with one URI, and with one site. Default `16`: each is read and written with every visit.
    #[schemars(range(max = 1_000))]
    pub kept_values: u32,

    /// One value kept with a URI, 16 MiB at most. Default `"1KiB"`: ten million URIs make 10 GiB of it.
    pub uri_value: SizeWritten,

    /// One value kept with a site, 16 MiB at most. Default `"4KiB"`: there are fewer sites than URIs.
    pub site_value: SizeWritten,

    /// A change evaluator's fingerprint of one version, 16 MiB at most. Default `"4KiB"`: it is kept with every URI.
    pub fingerprint: SizeWritten,

    /// Memory of an observer from batch to batch, 1 GiB at most. Default `"1MiB"`: it is written after each.
    pub observer_memory: SizeWritten,
}

/// Limits of one plugin call and of kept values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginLimits {
    /// Linear memory.
    pub memory: ByteSize,
    /// Wall-clock time; longer than zero.
    pub time: Duration,
    /// Total output.
    pub output: ByteSize,
    /// Log lines; the rest is dropped and counted.
    pub log: ByteSize,
    /// Calls at the same time; `None`: as many as there are lanes.
    pub instances: Option<u64>,
    /// Links taken of one document before repeats are removed; `None`: it follows [`crate::Limits::outlinks`].
    pub links: Option<u32>,
    /// Fragments taken of one document.
    pub fragments: u32,
    /// Notes of one visit.
    pub notes: u32,
    /// One note, its name included.
    pub note_size: ByteSize,
    /// Annotations of one visit.
    pub annotations: u32,
    /// Names of its own counters.
    pub counters: u32,
    /// Values kept with one URI, and with one site.
    pub kept_values: u32,
    /// One value kept with a URI.
    pub uri_value: ByteSize,
    /// One value kept with a site.
    pub site_value: ByteSize,
    /// A change evaluator's fingerprint.
    pub fingerprint: ByteSize,
    /// Memory of an observer from batch to batch.
    pub observer_memory: ByteSize,
}

impl Default for PluginLimitsFile {
    fn default() -> Self {
        Self {
            memory: "64MiB".into(),
            time: "2s".into(),
            output: "16MiB".into(),
            log: "16KiB".into(),
            instances: "none".into(),
            links: None,
            fragments: 6000,
            notes: 64,
            note_size: "4KiB".into(),
            annotations: 32,
            counters: 64,
            kept_values: 16,
            uri_value: "1KiB".into(),
            site_value: "4KiB".into(),
            fingerprint: "4KiB".into(),
            observer_memory: "1MiB".into(),
        }
    }
}

impl PluginLimitsFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> PluginLimits {
        PluginLimits {
            memory: part.positive_memory_size("memory", &self.memory, GUEST_MEMORY_MAX),
            time: part.positive_duration("time", &self.time),
            output: part.positive_memory_size("output", &self.output, OUTPUT_MAX),
            log: part.memory_size("log", &self.log, TEXT_MAX),
            instances: part.count_limit("instances", &self.instances),
            links: self.links,
            fragments: self.fragments,
            notes: self.notes,
            note_size: part.memory_size("note-size", &self.note_size, TEXT_MAX),
            annotations: self.annotations,
            counters: self.counters,
            kept_values: self.kept_values,
            uri_value: part.memory_size("uri-value", &self.uri_value, TEXT_MAX),
            site_value: part.memory_size("site-value", &self.site_value, TEXT_MAX),
            fingerprint: part.memory_size("fingerprint", &self.fingerprint, TEXT_MAX),
            observer_memory: part.memory_size("observer-memory", &self.observer_memory, OUTPUT_MAX),
        }
    }
}
