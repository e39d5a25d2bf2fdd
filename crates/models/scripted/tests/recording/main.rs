//! Recording a provider and replaying it, through the public API.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod anthropic;
mod difference;
mod docs;
mod file;
mod fixed_provider;
mod limit;
mod recording;
mod redaction;
mod replay;
mod world;
