//! Opilio.
