//! Recording a provider and replaying it, through the public door.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod anthropic;
mod difference;
mod docs;
mod file;
mod limit;
mod recording;
mod redacting;
mod replaying;
mod said;
mod world;
