//! A synthetic changing web in virtual time around the real frontier, profile and plugins.
