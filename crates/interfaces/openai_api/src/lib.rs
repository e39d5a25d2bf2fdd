//! The OpenAI-compatible HTTP interface.
