//! `cargo +nightly fuzz run parse`; the body is shared with the test that replays the corpus.

#![no_main]

#[path = "../../crates/core/tests/fuzz_bodies/parse.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::parse(data));
