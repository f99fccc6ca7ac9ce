//! One visit to one URI, from issue to outcome, without I/O.
//!
//! Fetching, storage, time and threads belong to the caller. Everything here computes: settings, plugin calls, decisions.

pub mod annotations;
pub mod around;
pub mod budget;
pub mod change;
pub mod consideration;
pub mod digest;
pub mod extraction;
pub mod found;
pub mod link_attributes;
pub mod policy;
pub mod precedence;
pub mod redirect;
pub mod scope;
pub mod standing;
pub mod status;
pub mod swings;
pub mod synthetic;
