//! The REST API under `/api/v1`: one file for each subject. The answers of jobs come unchanged from `opilio_control`. This
//! module adds paths, statuses and a description, which is generated from this code.

#![allow(
    unused_qualifications,
    reason = "what the macros of utoipa write has them"
)]

pub(crate) mod audit;
pub(crate) mod capture;
pub(crate) mod checkpoints;
pub(crate) mod compare;
pub(crate) mod crawl_log;
pub(crate) mod daemon;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod handover;
pub(crate) mod hosts;
pub(crate) mod job_folders;
mod job_status;
pub(crate) mod jobs;
pub(crate) mod logs;
pub(crate) mod mentions;
pub(crate) mod nodes;
pub(crate) mod overrides;
pub(crate) mod package;
pub(crate) mod parts;
pub(crate) mod plugins;
pub(crate) mod profile_check;
pub(crate) mod profile_form;
pub(crate) mod profiles;
pub(crate) mod pywb;
pub(crate) mod queues;
mod recordings;
pub(crate) mod replay;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod statistics;
pub(crate) mod stop;
pub(crate) mod uris;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opilio_control::{Command, CommandResponse, chain, is_reachable};
use opilio_crawl::files_stay_inside;
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{AllOf, AnyOf, SchemaType};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    Array, ArrayBuilder, Components, Content, ContentBuilder, Object, ObjectBuilder, OpenApi, Ref,
    RefOr, ResponseBuilder, Schema, SchemaFormat, SecurityRequirement, Type,
};
use utoipa::{IntoParams, OpenApi as _, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::COOKIE;
use crate::access::Caller;
use crate::daemon::Daemon;
use crate::folder::JobsFolderError;
use crate::problem::Problem;

/// Base path of the API.
pub(crate) const BASE: &str = "/api/v1";

/// Maximum entries of a page.
const PAGE_MAX: u64 = 1_000;

/// Default number of entries of a page.
const PAGE: u64 = 100;

type Shared = axum::extract::State<Arc<Daemon>>;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Opilio",
        description = "API of a web-archive crawler: create, run, watch and change its jobs. Field names are in snake_case and values of enumerations in kebab-case. Times are in UTC (RFC 3339), sizes in bytes. Error responses are problem documents (RFC 9457); after an error nothing was changed."
    ),
    servers((url = "/", description = "The daemon that serves this description")),
    components(schemas(Problem)),
    tags(
        (name = "jobs", description = "Jobs: list, create, run, delete"),
        (name = "watch", description = "Status, statistics, logs and reports of a job"),
        (name = "files", description = "Archive files, logs and reports of a job, to download"),
        (name = "frontier", description = "Queues and URIs"),
        (name = "change", description = "Settings, seeds and plugins of a job"),
        (name = "profiles", description = "Named profiles of jobs, with their versions"),
        (name = "daemon", description = "Daemon and sessions"),
    )
)]
struct Document;

/// All routes, with their description.
pub(crate) fn router() -> (axum::Router<Arc<Daemon>>, OpenApi) {
    let inner = OpenApiRouter::with_openapi(OpenApi::default())
        .routes(routes!(daemon::about))
        .routes(routes!(audit::list))
        .routes(routes!(nodes::list))
        .routes(routes!(parts::list))
        .routes(routes!(nodes::show, nodes::remove))
        .routes(routes!(nodes::drain, nodes::undrain))
        .routes(routes!(session::show, session::sign_in, session::sign_out))
        .routes(routes!(events::all))
        .routes(routes!(jobs::list, jobs::make))
        .routes(routes!(jobs::show, jobs::delete))
        .routes(routes!(jobs::copy))
        .routes(routes!(jobs::start))
        .routes(routes!(stop::stop))
        .routes(routes!(jobs::pause))
        .routes(routes!(jobs::resume))
        .routes(routes!(jobs::checkpoint))
        .routes(routes!(checkpoints::list))
        .routes(routes!(checkpoints::restore))
        .routes(routes!(compare::compare))
        .routes(routes!(events::of_job))
        .routes(routes!(statistics::status))
        .routes(routes!(statistics::statistics))
        .routes(routes!(statistics::series))
        .routes(routes!(statistics::breakdown))
        .routes(routes!(hosts::list))
        .routes(routes!(statistics::alerts))
        .routes(routes!(statistics::acknowledge))
        .routes(routes!(statistics::reports))
        .routes(routes!(statistics::report))
        .routes(routes!(logs::list))
        .routes(routes!(logs::page))
        .routes(routes!(logs::rotate))
        .routes(routes!(crawl_log::list))
        .routes(routes!(files::list))
        .routes(routes!(files::download))
        .routes(routes!(files::cdxj))
        .routes(routes!(files::pages))
        .routes(routes!(handover::show, handover::begin))
        .routes(routes!(handover::task))
        .routes(routes!(package::pack))
        .routes(routes!(plugins::list))
        .routes(routes!(plugins::replace))
        .routes(routes!(plugins::tables))
        .routes(routes!(plugins::reload_tables))
        .routes(routes!(plugins::observers))
        .routes(routes!(recordings::list))
        .routes(routes!(queues::list))
        .routes(routes!(queues::show))
        .routes(routes!(queues::uris))
        .routes(routes!(queues::act))
        .routes(routes!(queues::precedence))
        .routes(routes!(queues::floor))
        .routes(routes!(queues::wake))
        .routes(routes!(uris::list))
        .routes(routes!(uris::count))
        .routes(routes!(uris::sweep))
        .routes(routes!(uris::why))
        .routes(routes!(uris::explain))
        .routes(routes!(mentions::mentions))
        .routes(routes!(uris::act))
        .routes(routes!(uris::precedence))
        .routes(routes!(capture::capture))
        .routes(routes!(replay::replay))
        .routes(routes!(pywb::show))
        .routes(routes!(capture::list))
        .routes(routes!(settings::list, settings::change))
        .routes(routes!(overrides::list, overrides::add))
        .routes(routes!(overrides::edit, overrides::remove))
        .routes(routes!(overrides::shift))
        .routes(routes!(settings::history))
        .routes(routes!(settings::seeds, settings::add_seeds))
        .routes(routes!(settings::remove_seed))
        .routes(routes!(settings::profile))
        .routes(routes!(profiles::list, profiles::make))
        .routes(routes!(profiles::show, profiles::save, profiles::delete))
        .routes(routes!(profiles::copy))
        .routes(routes!(profiles::versions))
        .routes(routes!(profiles::show_version))
        .routes(routes!(profiles::compare))
        .routes(routes!(profiles::origin))
        .routes(routes!(profile_check::check))
        .routes(routes!(profile_check::schema))
        .routes(routes!(profile_form::fill))
        .routes(routes!(profile_form::catalogue));
    let (router, mut document) = OpenApiRouter::with_openapi(Document::openapi())
        .nest(BASE, inner)
        .split_for_parts();
    complete(&mut document);
    (router, document)
}

/// The description of the whole API, as JSON.
pub fn document() -> String {
    let (_, document) = router();
    document.to_pretty_json().unwrap_or_default() + "\n"
}

/// Completes the description with the parts common to all operations: problems, authentication, and answers.
fn complete(document: &mut OpenApi) {
    let problem = RefOr::Ref(Ref::from_schema_name("Problem"));
    let content = ContentBuilder::new().schema(Some(problem)).build();
    let response = |description: &str| {
        ResponseBuilder::new()
            .description(description)
            .content("application/problem+json", content.clone())
            .build()
    };
    let refused = response("The request was refused, and nothing was changed");
    let failed = response("Opilio or the machine failed to carry out the request");
    let components = document.components.get_or_insert_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    let cookie = ApiKey::Cookie(ApiKeyValue::new(COOKIE));
    components.add_security_scheme("session", SecurityScheme::ApiKey(cookie));
    document.security = Some(vec![
        SecurityRequirement::new("token", Vec::<String>::new()),
        SecurityRequirement::new("session", Vec::<String>::new()),
    ]);
    any_of_these(components, "Making", &["profile", "profile_toml"]);
    let conditions = ["surt", "regex", "host", "status", "state", "media_type"];
    any_of_these(components, "UriSelection", &conditions);
    spread(components, "Change", "Changed");
    let described = |content: &RefOr<Content>| {
        let RefOr::T(content) = content else {
            return None;
        };
        let RefOr::Ref(schema) = content.schema.as_ref()? else {
            return None;
        };
        let name = schema.ref_location.rsplit('/').next()?;
        match components.schemas.get(name)? {
            RefOr::T(Schema::Object(schema)) => schema.description.clone(),
            RefOr::T(Schema::AllOf(schema)) => schema.description.clone(),
            _ => None,
        }
    };
    for item in document.paths.paths.values_mut() {
        let operations = [
            &mut item.get,
            &mut item.post,
            &mut item.put,
            &mut item.patch,
            &mut item.delete,
        ];
        for operation in operations.into_iter().flatten() {
            let responses = &mut operation.responses.responses;
            for response in responses.values_mut() {
                if let RefOr::T(response) = response
                    && response.description.is_empty()
                {
                    // The description of an answer is that of its schema.
                    let description = response.content.values().find_map(&described);
                    response.description = description.unwrap_or_default();
                }
            }
            responses.insert("4XX".to_owned(), refused.clone().into());
            responses.insert("5XX".to_owned(), failed.clone().into());
        }
    }
}

/// Describes an object with a flattened enumeration as one object for each variant. Generators of clients do not support a schema
/// that combines an object and an enumeration.
fn spread(components: &mut Components, name: &str, enumeration: &str) {
    let (Some(RefOr::T(Schema::AllOf(both))), Some(RefOr::T(Schema::OneOf(variants)))) = (
        components.schemas.get(name),
        components.schemas.get(enumeration),
    ) else {
        return;
    };
    let common = both.items.iter().find_map(|part| match part {
        RefOr::T(Schema::Object(common)) => Some(common),
        _ => None,
    });
    let mut spread = variants.clone();
    spread.description.clone_from(&both.description);
    for variant in &mut spread.items {
        if let (RefOr::T(Schema::Object(variant)), Some(common)) = (variant, common) {
            let properties = common.properties.clone();
            variant.properties.extend(properties);
            variant.required.extend_from_slice(&common.required);
        }
    }
    components
        .schemas
        .insert(name.to_owned(), Schema::OneOf(spread).into());
    components.schemas.remove(enumeration);
}

/// Adds to the schema of an object that it has at least one of these fields.
fn any_of_these(components: &mut Components, name: &str, fields: &[&str]) {
    let any = AnyOf {
        items: fields.iter().map(|field| has_field(field)).collect(),
        ..AnyOf::default()
    };
    also(components, name, Schema::AnyOf(any));
}

fn has_field(field: &str) -> RefOr<Schema> {
    let object = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
    object.required(field).into()
}

/// Adds constraints that derived schemas cannot express.
fn also(components: &mut Components, name: &str, constraints: Schema) {
    if let Some(schema) = components.schemas.get_mut(name) {
        let derived = std::mem::replace(schema, Object::new().into());
        let both = AllOf {
            items: vec![derived, constraints.into()],
            ..AllOf::default()
        };
        *schema = Schema::AllOf(both).into();
    }
}

/// A list of texts in a notation of their own. The JSON schema only has the name of the notation.
fn texts(format: &str, description: &str) -> Array {
    let format = SchemaFormat::Custom(format.to_owned());
    let text = ObjectBuilder::new().schema_type(Type::String);
    ArrayBuilder::new()
        .items(text.format(Some(format)))
        .description(Some(description))
        .build()
}

/// The schema of seeds, in the notation of seed files.
pub(crate) fn seed_lines() -> Array {
    texts("seed", "Seeds, each as a line of a seeds file.")
}

/// A precedence in a request: 0 to 255, also if JSON writes it as `37.0`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct PrecedenceNumber(pub(crate) u8);

impl TryFrom<f64> for PrecedenceNumber {
    type Error = String;

    fn try_from(number: f64) -> Result<PrecedenceNumber, String> {
        // Numbers without a fraction are formatted as integers.
        let whole = number.to_string().parse();
        whole
            .map(PrecedenceNumber)
            .map_err(|_| format!("invalid precedence {number}; give a whole number from 0 to 255"))
    }
}

/// Result of an action.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Done {
    /// Result as a sentence.
    result: String,
}

/// Page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// Start after this entry: the `after` of the previous page.
    after: Option<String>,
    /// Maximum number of entries.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

/// Size of a page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limit {
    /// Maximum number of entries.
    #[serde(default = "page")]
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: u64,
}

fn page() -> u64 {
    PAGE
}

fn checked_limit(limit: u64) -> Result<u64, Problem> {
    match limit {
        1..=PAGE_MAX => Ok(limit),
        _ => Err(Problem::unusable(format!(
            "invalid limit {limit}; give 1 to {PAGE_MAX}"
        ))),
    }
}

/// Refuses a job whose own files are links to elsewhere: errors in the files would quote their content. Blocks.
fn own_files(job: &Path) -> Result<(), Problem> {
    files_stay_inside(job).map_err(|problem| Problem::conflict(problem.to_string()))
}

impl Daemon {
    /// The directory of a job. Its files are not checked here: see [`own_files`].
    pub(crate) fn directory(&self, job: &str) -> Result<PathBuf, Problem> {
        self.folder.job(job).map_err(Problem::from)
    }

    async fn send(
        &self,
        job: &str,
        caller: &Caller,
        command: Command,
    ) -> Result<Vec<CommandResponse>, Problem> {
        let directory = self.directory(job)?;
        if let Some(task) = self.file_tasks.holding(job) {
            return Err(task.conflict());
        }
        let job = directory.clone();
        // Stop, pause and resume are always possible for a running process, because it reads none of these files for them.
        let halts = matches!(command, Command::Stop | Command::Pause | Command::Resume);
        jobs::blocking(move || match halts && is_reachable(&job) {
            true => Ok(()),
            false => own_files(&job),
        })
        .await?;
        self.commands.send(directory, &caller.user, command).await
    }

    /// Sends a command that has one answer.
    async fn one<T>(
        &self,
        job: &str,
        caller: &Caller,
        command: Command,
        pick: impl Fn(CommandResponse) -> Option<T>,
    ) -> Result<T, Problem> {
        let answers = self.send(job, caller, command).await?;
        answers
            .into_iter()
            .find_map(pick)
            .ok_or_else(|| Problem::failure("the job gave no answer"))
    }

    /// Sends a command whose result is a sentence.
    async fn have_done(
        &self,
        job: &str,
        caller: &Caller,
        command: Command,
    ) -> Result<axum::Json<Done>, Problem> {
        let result = self.one(job, caller, command, |answer| match answer {
            CommandResponse::Done { result } => Some(result),
            _ => None,
        });
        let result = result.await?;
        Ok(axum::Json(Done { result }))
    }
}

impl From<JobsFolderError> for Problem {
    fn from(problem: JobsFolderError) -> Problem {
        use opilio_crawl::{CrawlError, JobError};
        let message = chain(&problem);
        match problem {
            JobsFolderError::Name(_) => Problem::unusable(message),
            JobsFolderError::Unknown(_) => Problem::not_found(message),
            JobsFolderError::Taken(_)
            | JobsFolderError::Running(_)
            | JobsFolderError::Waiting(_) => Problem::conflict(message),
            JobsFolderError::Control(problem) => problem.into(),
            JobsFolderError::Crawl(CrawlError::Profile(faults)) => profile_check::faulty(&faults),
            JobsFolderError::Crawl(CrawlError::Job(
                JobError::InUse { .. }
                | JobError::NotAJob { .. }
                | JobError::NotEmpty { .. }
                | JobError::StateGone { .. }
                | JobError::Damaged { .. }
                | JobError::Version { .. }
                | JobError::Link(_),
            )) => Problem::conflict(message),
            JobsFolderError::Crawl(_) | JobsFolderError::Io { .. } => Problem::failure(message),
        }
    }
}

/// Removes and returns the start of the next page, which is the last answer.
fn take_next_page(answers: &mut Vec<CommandResponse>) -> Option<String> {
    match answers.pop() {
        Some(CommandResponse::More { after }) => Some(after).filter(|after| !after.is_empty()),
        Some(other) => {
            answers.push(other);
            None
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    /// All operations of the description.
    fn operations(document: &Value) -> impl Iterator<Item = &Value> {
        let paths = document["paths"].as_object().unwrap().values();
        let operations = paths.flat_map(|path| path.as_object().unwrap());
        operations.filter_map(|(method, it)| (method != "parameters").then_some(it))
    }

    #[test]
    fn operations_have_unique_names_and_described_answers() {
        let document: Value = serde_json::from_str(&super::document()).unwrap();
        let mut names = BTreeSet::new();
        for operation in operations(&document) {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name), "two operations are called {name}");
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let message = answer["description"].as_str().unwrap_or_default();
                assert!(!message.is_empty(), "{name}: {status} has no description");
            }
        }
    }

    /// Finds numbers in the schema of a request that have no bounds.
    fn unbounded(document: &Value, at: &str, schema: &Value, found: &mut Vec<String>) {
        if let Some(target) = schema["$ref"].as_str() {
            let target = document.pointer(target.trim_start_matches('#')).unwrap();
            return unbounded(document, at, target, found);
        }
        let types = &schema["type"];
        let is_number = |it: &Value| *it == "integer" || *it == "number";
        let is_one =
            is_number(types) || types.as_array().is_some_and(|it| it.iter().any(is_number));
        if is_one && !(schema["minimum"].is_number() && schema["maximum"].is_number()) {
            found.push(at.to_owned());
        }
        match schema {
            Value::Object(parts) => {
                for (name, part) in parts {
                    unbounded(document, &format!("{at}/{name}"), part, found);
                }
            }
            Value::Array(parts) => {
                for part in parts {
                    unbounded(document, at, part, found);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn a_precedence_is_a_whole_number_in_any_notation() {
        let read = serde_json::from_str::<super::PrecedenceNumber>;
        for (text, number) in [("0", 0), ("37", 37), ("37.0", 37), ("2.55e2", 255)] {
            assert_eq!(read(text).unwrap().0, number, "{text}");
        }
        for text in ["-1", "256", "0.5", "1e300", "\"1\""] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_number_of_a_request_has_its_bounds() {
        let document: Value = serde_json::from_str(&super::document()).unwrap();
        let mut found = Vec::new();
        for operation in operations(&document) {
            let name = operation["operationId"].as_str().unwrap();
            for part in ["parameters", "requestBody"] {
                unbounded(&document, name, &operation[part], &mut found);
            }
        }
        assert_eq!(
            found, [""; 0],
            "declare minimum and maximum of each number in a request"
        );
    }

    #[test]
    fn names_of_fields_are_snake_case() {
        let document: Value = serde_json::from_str(&super::document()).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let is_snake = |name: &str| {
            let mut bytes = name.bytes();
            bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        let named = schemas.iter().flat_map(|(schema, it)| {
            let fields = it["properties"].as_object().into_iter().flatten();
            fields.map(move |(field, _)| (schema, field))
        });
        let others: Vec<_> = named.filter(|(_, field)| !is_snake(field)).collect();
        assert!(
            others.is_empty(),
            "{others:?} are not in snake_case, as docs/API.md promises"
        );
    }
}
