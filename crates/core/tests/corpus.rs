//! Replays the corpora of the fuzz targets, so that nothing a fuzzer found comes back unseen.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod fuzz_bodies;

use std::fs;
use std::path::Path;

/// Runs a target's body on every file of its corpus, which must not be empty.
fn replay(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the corpus is there") {
        let path = entry.expect("the corpus can be listed").path();
        println!("{}", path.display());
        body(&fs::read(&path).expect("the corpus can be read"));
        count += 1;
    }
    assert!(count > 0, "{} is empty", folder.display());
}

#[test]
fn the_corpus_of_the_parsers_does_no_harm() {
    replay("parse", fuzz_bodies::parse::parse);
}

#[test]
fn the_corpus_of_the_streams_does_no_harm() {
    replay("stream", fuzz_bodies::stream::stream);
}

#[test]
fn no_input_at_all_does_no_harm() {
    fuzz_bodies::parse::parse(&[]);
    fuzz_bodies::stream::stream(&[]);
}
