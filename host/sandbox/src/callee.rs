//! The plugin that is called, and the URI or task for which it is called.

use std::sync::Arc;

use crate::Keep;
use crate::limits::Limits;
use crate::owner::Owner;
use crate::table::Tables;

/// Name of the task of a call of `describe`. It takes the place of a URI.
pub(crate) const DESCRIBE: &str = "describe";
/// Name of the task of a call that configures a plugin.
pub(crate) const CONFIGURE: &str = "configure";

/// The called plugin: its limits, and its resources in the host.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    /// The name that the profile gives the plugin.
    pub(crate) name: Arc<str>,
    /// Its own name and version; `None` before it has described itself.
    pub(crate) described: Option<Arc<str>>,
    pub(crate) limits: Limits,
    pub(crate) keeps: Vec<Keep>,
    pub(crate) tables: Tables,
}

impl Callee {
    /// Makes a callee that is not a plugin yet: it has only limits.
    pub(crate) fn not_configured(
        name: &str,
        described: Option<Arc<str>>,
        limits: Limits,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            described,
            limits,
            keeps: Vec::new(),
            tables: Tables::default(),
        })
    }

    /// The owner of the kept values that are read or set.
    pub(crate) fn owner(&self) -> Owner<'_> {
        Owner {
            plugin: &self.name,
            keeps: &self.keeps,
            limits: &self.limits,
        }
    }
}

/// The plugin being called and the URI it is called for.
#[derive(Clone, Debug)]
pub(crate) struct CallTarget {
    pub(crate) callee: Arc<Callee>,
    /// The URI in work, or the name of another task.
    pub(crate) uri: Arc<str>,
}

impl CallTarget {
    /// Returns `true` if the call is for the plugin itself and not for a document.
    pub(crate) fn is_setup(&self) -> bool {
        matches!(&*self.uri, DESCRIBE | CONFIGURE)
    }
}
