//! The daemon: many jobs, their REST API and the web console.
