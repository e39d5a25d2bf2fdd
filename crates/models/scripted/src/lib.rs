//! A model that answers from a script, or from a recording of another model.
//!
//! [`ScriptedProvider`] plays a [`Script`], a TOML text described in `docs/scripted.md`. The reply
//! depends on the request alone, so the same conversation gets the same answers in another process,
//! after a crash, or on another machine. The only exception is the condition `attempt`, which is
//! counted in memory and starts again with the process.
//!
//! [`Script::parse`] refuses an invalid script with a [`ScriptError`] that names the line. A
//! request without a matching reply fails with
//! [`InvalidRequest`](antiphon_core::ProviderError::InvalidRequest).
//!
//! A real model can be made deterministic: [`Recorder`] records the exchanges of any provider and
//! [`Replay`] answers from that [`Recording`], as `docs/record-replay.md` describes.

mod answer_builder;
mod attempts;
mod block;
mod condition;
mod error;
mod pace;
mod playback;
mod provider;
mod recorder;
mod recording;
mod replay;
mod reply;
mod request_facts;
mod script;
mod step;
mod template;
mod tokens;

pub use answer_builder::ANSWER_BYTES_MAX;
pub use attempts::ATTEMPTS_MAX;
pub use error::ScriptError;
pub use pace::{CHUNK_CHARS_DEFAULT, CHUNK_CHARS_MAX, DELAY_MS_MAX};
pub use provider::ScriptedProvider;
pub use recorder::Recorder;
pub use recording::{LINE_BYTES_MAX, RECORDING_BYTES_MAX, Recording, RecordingError};
pub use replay::Replay;
pub use reply::STEPS_MAX;
pub use script::{REPLIES_MAX, SCRIPT_BYTES_MAX, Script};
pub use step::REPEAT_MAX;
