//! Settings of a job that change after it was made: when a change takes effect.

use serde::{Deserialize, Serialize};

/// When a change of a setting takes effect.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// For whatever begins from then on.
    AtOnce,
    /// When the job goes on the next time.
    NextStart,
    /// Never: it was settled when the job was made.
    Never,
}
