//! The typed client of the HTTP API and its event stream.
