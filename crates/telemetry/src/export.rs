//! Sending spans to a collector.

pub(crate) mod collector;
pub(crate) mod exporter;
mod otlp;
