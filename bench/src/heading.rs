//! What a benchmark prints first.

/// Prints what is measured, and the command that measures it again. `bench` is the name of the benchmark, and the part
/// of it behind `--`.
pub fn heading(what: &str, bench: &str) {
    println!("{what}");
    println!("again: ANTIPHON=PROGRAM cargo bench --package antiphon-bench --bench {bench}\n");
}
