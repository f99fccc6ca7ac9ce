//! `opilio plugin inspect`: the plugins and metadata of a component.

use anyhow::Result;
use clap::Args;
use indicatif::HumanBytes;
use opilio_sandbox::{Description, Keeper, PluginConfig, Start};
use serde_json::{Value, json};

use super::component_parts::ComponentInterfaces;
use super::settings_table;
use super::trial::KindName;
use super::workbench::{Subject, Workbench, complete, limits};
use super::{say, table};
use crate::exit;

/// The command line.
#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// Component to inspect.
    #[arg(value_name = "PLUGIN")]
    component: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &InspectArgs) -> Result<u8> {
    let subject = Workbench::new()?.load(&args.component)?;
    let interfaces = ComponentInterfaces::of(&subject.bytes)?;
    let plugins = subject.plugins();
    let inspected: Vec<(&Description, String)> = plugins
        .into_iter()
        .map(|description| (description, start(&subject, description)))
        .collect();
    let text = match args.json {
        true => format!("{}\n", as_json(&subject, &interfaces, &inspected)),
        false => as_text(&subject, &interfaces, &inspected),
    };
    say(&text)?;
    Ok(exit::OK)
}

/// Describes how calls of the plugin start, with default settings.
fn start(subject: &Subject, description: &Description) -> String {
    let settings = match complete(description, &json!({})) {
        Ok(settings) => settings,
        Err(problem) => {
            return format!("unknown: some settings have no default ({problem:#})");
        }
    };
    let configured = subject.component.configure(PluginConfig {
        plugin: Some(description.name.clone()),
        settings,
        limits: limits(),
        ..PluginConfig::default()
    });
    match configured {
        Ok(plugin) => match plugin.start() {
            Start::Snapshot { .. } => "from a snapshot taken after `configure`".to_owned(),
            Start::EachCall { why } => format!("with `configure` for every call: {why}"),
        },
        Err(problem) => format!("unknown: {problem}"),
    }
}

/// Returns the kinds of a plugin, by their names for people.
pub(super) fn kinds(description: &Description) -> Vec<&str> {
    let kinds = description.kinds.iter();
    kinds
        .map(|kind| match kind {
            opilio_sandbox::Kind::Other(name) => name.as_str(),
            kind => KindName::of(kind).map_or("", KindName::word),
        })
        .collect()
}

fn as_text(
    subject: &Subject,
    interfaces: &ComponentInterfaces,
    inspected: &[(&Description, String)],
) -> String {
    let line = |name: &str, value: &str| vec![name.to_owned(), value.to_owned()];
    let joined = |values: &[String]| match values.is_empty() {
        true => "any".to_owned(),
        false => values.join(", "),
    };
    let size = HumanBytes(subject.bytes.len() as u64);
    let mut text = format!("{}\n", subject.component.origin());
    text += &table(
        &[
            line("sha256", subject.component.sha256()),
            line("size", &size.to_string()),
            line("contract", interfaces.contract().unwrap_or("-")),
            line("imports", &interfaces.imports.join(", ")),
        ],
        2,
    );
    for (description, start) in inspected {
        text += &format!(
            "\n{} {}\n  {}\n",
            description.name, description.version, description.summary
        );
        let mut rows = vec![
            line("kinds", &kinds(description).join(", ")),
            line("media types", &joined(&description.handles.media_types)),
            line("URIs", &joined(&description.handles.uris)),
        ];
        for keep in &description.keeps {
            let keeper = keeper(&keep.keeper);
            rows.push(line(
                "keeps",
                &format!("{} with the {keeper} (version {})", keep.name, keep.version),
            ));
        }
        rows.push(line("calls begin", start));
        for attribute in &description.attributes {
            rows.push(line(&attribute.name, &attribute.value));
        }
        text += &table(&rows, 2);
        text += &settings_table::as_text(&description.settings_schema);
    }
    text
}

fn keeper(keeper: &Keeper) -> &str {
    match keeper {
        Keeper::Uri => "URI",
        Keeper::Site => "site",
        Keeper::Other(name) => name,
    }
}

fn as_json(
    subject: &Subject,
    interfaces: &ComponentInterfaces,
    inspected: &[(&Description, String)],
) -> Value {
    let plugins = inspected.iter().map(|(description, start)| {
        let keeps = description.keeps.iter();
        json!({
            "name": description.name,
            "version": description.version,
            "summary": description.summary,
            "kinds": kinds(description),
            "media_types": description.handles.media_types,
            "uris": description.handles.uris,
            "keeps": keeps
                .map(|keep| json!({"name": keep.name, "keeper": keeper(&keep.keeper).to_lowercase(), "version": keep.version}))
                .collect::<Value>(),
            "calls_begin": start,
            "settings": settings_table::as_json(&description.settings_schema),
        })
    });
    json!({
        "component": subject.component.origin(),
        "sha256": subject.component.sha256(),
        "bytes": subject.bytes.len(),
        "contract": interfaces.contract(),
        "imports": interfaces.imports,
        "exports": interfaces.exports,
        "plugins": plugins.collect::<Value>(),
    })
}
