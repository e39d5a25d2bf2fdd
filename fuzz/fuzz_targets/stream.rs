//! `cargo +nightly fuzz run stream`; the body is shared with the test that replays the corpus.

#![no_main]

#[path = "../../crates/core/tests/fuzz_bodies/stream.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::stream(data));
