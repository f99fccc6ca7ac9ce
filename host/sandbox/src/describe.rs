//! Descriptions of a component's plugins, and their validation.

use std::collections::BTreeSet;

use crate::handles::{HandlesProblem, Matcher};
use crate::{Description, Keep, Keeper, Kind, settings_schema};

/// Plugins that one component may hold.
const PLUGINS_MAX: usize = 64;
/// Longest name of a plugin, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Longest version, in bytes.
const VERSION_BYTES_MAX: usize = 64;
/// Longest summary, in bytes.
const SUMMARY_BYTES_MAX: usize = 1_000;
/// Kept values that one plugin may declare.
const KEEPS_MAX: usize = 32;

/// The kinds that this version calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Callable {
    Extractor,
    Filter,
    DigestStripper,
    ChangeEvaluator,
    WaitEvaluator,
    Precedence,
    Observer,
    PageBehavior,
}

impl Callable {
    pub(crate) const ALL: [Self; 8] = [
        Self::Extractor,
        Self::Filter,
        Self::DigestStripper,
        Self::ChangeEvaluator,
        Self::WaitEvaluator,
        Self::Precedence,
        Self::Observer,
        Self::PageBehavior,
    ];

    /// The name of its interface, which is also that of its kind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Extractor => "extractor",
            Self::Filter => "filter",
            Self::DigestStripper => "digest-stripper",
            Self::ChangeEvaluator => "change-evaluator",
            Self::WaitEvaluator => "wait-evaluator",
            Self::Precedence => "precedence",
            Self::Observer => "observer",
            Self::PageBehavior => "page-behavior",
        }
    }

    /// Finds a kind. The error is the name of a kind that this version does not call.
    pub(crate) fn of(kind: &Kind) -> Result<Self, &str> {
        Ok(match kind {
            Kind::Extractor => Self::Extractor,
            Kind::Filter => Self::Filter,
            Kind::DigestStripper => Self::DigestStripper,
            Kind::ChangeEvaluator => Self::ChangeEvaluator,
            Kind::WaitEvaluator => Self::WaitEvaluator,
            Kind::Precedence => Self::Precedence,
            Kind::Observer => Self::Observer,
            Kind::PageBehavior => Self::PageBehavior,
            Kind::Other(name) => return Err(name),
        })
    }
}

/// Error in a component's description of itself. A fragment that follows the component's origin.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DescriptionProblem {
    /// `describe` returned an empty list.
    #[error("describes no plugin")]
    None,
    /// More plugins than a component may hold.
    #[error("describes {0} plugins; {PLUGINS_MAX} are allowed")]
    TooMany(usize),
    /// An invalid name.
    #[error(
        "names a plugin `{0}`; names are lower-case words joined by hyphens, at most {NAME_BYTES_MAX} bytes"
    )]
    Name(String),
    /// One name for two plugins.
    #[error("describes two plugins named `{0}`")]
    Twice(String),
    /// A version that is not a semantic version.
    #[error(
        "gives plugin `{plugin}` the version `{version}`, which is not a semantic version such as `1.2.3`"
    )]
    Version {
        /// The plugin.
        plugin: String,
        /// The version given.
        version: String,
    },
    /// An invalid summary.
    #[error(
        "gives plugin `{0}` a summary that is not a sentence: it has control characters or more than {SUMMARY_BYTES_MAX} bytes"
    )]
    Summary(String),
    /// A plugin without a kind.
    #[error("describes plugin `{0}` without any kind")]
    NoKind(String),
    /// A kind that this version does not call.
    #[error(
        "describes plugin `{plugin}` as {kind}, a kind that this version of opilio does not call"
    )]
    Kind {
        /// The plugin.
        plugin: String,
        /// The kind's name.
        kind: String,
    },
    /// A kind whose interface the component does not export.
    #[error(
        "describes plugin `{plugin}` as {kind}, but does not export the interface opilio:plugin/{kind}"
    )]
    NotExported {
        /// The plugin.
        plugin: String,
        /// The kind's name.
        kind: &'static str,
    },
    /// A settings schema that cannot be used.
    #[error("gives plugin `{plugin}` a settings schema that cannot be used: {problem}")]
    Schema {
        /// The plugin.
        plugin: String,
        /// The JSON parser's message, or the bound that the schema exceeds.
        problem: String,
    },
    /// Invalid declarations of kept values.
    #[error("plugin `{plugin}` {problem}")]
    Keeps {
        /// The plugin.
        plugin: String,
        /// The error in them.
        problem: String,
    },
    /// Invalid patterns of handled documents.
    #[error("plugin `{plugin}`: {problem}")]
    Handles {
        /// The plugin.
        plugin: String,
        /// The error in them.
        problem: HandlesProblem,
    },
}

/// Checks the descriptions of a component against themselves and against the kinds that it exports. An export that no description
/// names is never called: some languages' toolchains fix the exports before they see what a plugin is.
pub(crate) fn check(
    plugins: &[Description],
    exported: &BTreeSet<Callable>,
) -> Result<(), DescriptionProblem> {
    match plugins.len() {
        0 => return Err(DescriptionProblem::None),
        n if n > PLUGINS_MAX => return Err(DescriptionProblem::TooMany(n)),
        _ => {}
    }
    let mut names = BTreeSet::new();
    for plugin in plugins {
        check_one(plugin, exported)?;
        if !names.insert(&plugin.name) {
            return Err(DescriptionProblem::Twice(plugin.name.clone()));
        }
    }
    Ok(())
}

fn check_one(
    description: &Description,
    exported: &BTreeSet<Callable>,
) -> Result<(), DescriptionProblem> {
    let plugin = description.name.clone();
    if plugin.len() > NAME_BYTES_MAX || !is_name(&plugin) {
        return Err(DescriptionProblem::Name(
            crate::notes::clip(&plugin, NAME_BYTES_MAX).to_owned(),
        ));
    }
    if description.version.len() > VERSION_BYTES_MAX || !is_version(&description.version) {
        return Err(DescriptionProblem::Version {
            plugin,
            version: crate::notes::clip(&description.version, VERSION_BYTES_MAX).to_owned(),
        });
    }
    let summary = &description.summary;
    if summary.len() > SUMMARY_BYTES_MAX || summary.contains(char::is_control) {
        return Err(DescriptionProblem::Summary(plugin));
    }
    if description.kinds.is_empty() {
        return Err(DescriptionProblem::NoKind(plugin));
    }
    for kind in &description.kinds {
        let callable = Callable::of(kind).map_err(|name| DescriptionProblem::Kind {
            plugin: plugin.clone(),
            kind: crate::notes::clip(name, NAME_BYTES_MAX).to_owned(),
        })?;
        if !exported.contains(&callable) {
            return Err(DescriptionProblem::NotExported {
                plugin,
                kind: callable.name(),
            });
        }
    }
    if let Err(problem) = settings_schema::check(&description.settings_schema) {
        return Err(DescriptionProblem::Schema { plugin, problem });
    }
    check_keeps(&plugin, &description.keeps)?;
    match Matcher::new(&description.handles) {
        Ok(_) => Ok(()),
        Err(problem) => Err(DescriptionProblem::Handles { plugin, problem }),
    }
}

fn check_keeps(plugin: &str, keeps: &[Keep]) -> Result<(), DescriptionProblem> {
    let faulty = |problem: String| DescriptionProblem::Keeps {
        plugin: plugin.to_owned(),
        problem,
    };
    if keeps.len() > KEEPS_MAX {
        let all = keeps.len();
        return Err(faulty(format!(
            "declares {all} values to keep; {KEEPS_MAX} are allowed"
        )));
    }
    for (at, keep) in keeps.iter().enumerate() {
        let name = crate::notes::clip(&keep.name, NAME_BYTES_MAX);
        if name.len() < keep.name.len() || !is_name(name) {
            return Err(faulty(format!(
                "keeps `{name}`; names are lower-case words joined by hyphens, at most {NAME_BYTES_MAX} bytes"
            )));
        }
        if let Keeper::Other(keeper) = &keep.keeper {
            let keeper = crate::notes::clip(keeper, NAME_BYTES_MAX);
            return Err(faulty(format!(
                "keeps `{name}` with a {keeper}; this version of opilio keeps values with a uri or a site"
            )));
        }
        let is_same = |other: &Keep| other.name == keep.name && other.keeper == keep.keeper;
        if keeps[..at].iter().any(is_same) {
            return Err(faulty(format!("declares twice that it keeps `{name}`")));
        }
    }
    Ok(())
}

/// Returns `true` if a text is a name: lower-case words joined by hyphens. A word begins with a letter or digit.
pub(crate) fn is_name(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    text.split('-').all(is_word)
}

/// Returns `true` if a text is a version: `MAJOR.MINOR.PATCH`, with or without the parts that may follow after a hyphen or plus
/// sign.
fn is_version(text: &str) -> bool {
    let (core, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let is_number = |number: &str| {
        !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
            && (number == "0" || !number.starts_with('0'))
    };
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && rest.len() != 1
        && rest
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b".-+".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Handles;

    fn plugin(name: &str) -> Description {
        Description {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            summary: String::new(),
            kinds: vec![Kind::Filter],
            handles: Handles {
                media_types: Vec::new(),
                uris: Vec::new(),
            },
            settings_schema: "{}".to_owned(),
            keeps: Vec::new(),
            attributes: Vec::new(),
        }
    }

    #[track_caller]
    fn check_refused(plugins: &[Description], exported: &[Callable], expected: &str) {
        let problem = check(plugins, &exported.iter().copied().collect())
            .map_err(|problem| problem.to_string());
        assert!(
            problem
                .as_ref()
                .is_err_and(|problem| problem.contains(expected)),
            "{problem:?}"
        );
    }

    #[test]
    fn a_description_that_matches_the_exports_is_accepted() {
        let plugins = [
            plugin("a"),
            Description {
                kinds: vec![Kind::Filter, Kind::Extractor],
                ..plugin("b-2")
            },
        ];
        assert_eq!(
            check(
                &plugins,
                &BTreeSet::from([Callable::Filter, Callable::Extractor, Callable::Observer])
            ),
            Ok(())
        );
    }

    #[test]
    fn invalid_descriptions_are_refused() {
        use Callable::Filter;
        check_refused(&[], &[], "no plugin");
        check_refused(&vec![plugin("a"); 65], &[Filter], "65 plugins");
        check_refused(
            &[plugin("a"), plugin("a")],
            &[Filter],
            "two plugins named `a`",
        );
        check_refused(
            &[plugin("a")],
            &[],
            "does not export the interface opilio:plugin/filter",
        );
        check_refused(
            &[Description {
                kinds: vec![],
                ..plugin("a")
            }],
            &[Filter],
            "without any kind",
        );
        check_refused(
            &[Description {
                kinds: vec![Kind::Observer],
                ..plugin("a")
            }],
            &[],
            "does not export the interface opilio:plugin/observer",
        );
        check_refused(
            &[Description {
                kinds: vec![Kind::Other("x".into())],
                ..plugin("a")
            }],
            &[],
            "as x",
        );
        for summary in ["two\nlines", "\u{1b}[2J", &"x".repeat(1_001)] {
            check_refused(
                &[Description {
                    summary: summary.into(),
                    ..plugin("a")
                }],
                &[Filter],
                "a summary that is not a sentence",
            );
        }
        check_refused(
            &[Description {
                version: format!("1.0.0-{}", "x".repeat(60)),
                ..plugin("a")
            }],
            &[Filter],
            "which is not a semantic version",
        );
        for schema in ["", "[]", "{", "true"] {
            check_refused(
                &[Description {
                    settings_schema: schema.into(),
                    ..plugin("a")
                }],
                &[Filter],
                "schema",
            );
        }
        let handles = Handles {
            media_types: vec!["html".into()],
            uris: Vec::new(),
        };
        check_refused(
            &[Description {
                handles,
                ..plugin("a")
            }],
            &[Filter],
            "media type pattern",
        );
        let keep = |name: &str, keeper: Keeper| Keep {
            name: name.to_owned(),
            keeper,
            version: 1,
        };
        for (keeps, expected) in [
            (vec![keep("a b", Keeper::Uri)], "keeps `a b`; names are"),
            (
                vec![keep("a", Keeper::Other("crawl".into()))],
                "keeps `a` with a crawl",
            ),
            (
                vec![keep("a", Keeper::Uri), keep("a", Keeper::Uri)],
                "twice that it keeps `a`",
            ),
            (
                (0..33)
                    .map(|n| keep(&format!("a{n}"), Keeper::Site))
                    .collect(),
                "33 values to keep",
            ),
        ] {
            check_refused(
                &[Description {
                    keeps,
                    ..plugin("a")
                }],
                &[Filter],
                expected,
            );
        }
        for name in ["", "A", "a_b", "-a", "a-", "a--b", "ä"] {
            check_refused(&[plugin(name)], &[Filter], "lower-case words");
        }
        for version in [
            "", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.x", "1.2.3-", "v1.2.3", "1.2.3-ä",
        ] {
            check_refused(
                &[Description {
                    version: version.into(),
                    ..plugin("a")
                }],
                &[Filter],
                "version",
            );
        }
    }

    #[test]
    fn semantic_versions_may_have_pre_release_and_build() {
        for version in ["0.1.0", "1.2.3-rc.1", "1.2.3+x", "10.20.30-a+b"] {
            assert!(is_version(version), "{version}");
        }
    }
}
