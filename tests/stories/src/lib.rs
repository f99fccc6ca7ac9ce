//! Tells stories.
