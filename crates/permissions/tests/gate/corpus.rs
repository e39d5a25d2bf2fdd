use crate::world::{explain, gate};
use serde_json::json;
#[test]
fn corpus() {
    let Ok(list) = std::env::var("CORPUS") else { return };
    let gate = gate("mode = \"workspace\"");
    let (mut ok, mut bad) = (0, 0);
    for path in std::fs::read_to_string(list).unwrap().lines() {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        if text.len() > 64 * 1024 {
            continue;
        }
        let e = explain(&gate, "bash", &json!({"command": text}).to_string(), &[]);
        match e.findings.iter().find(|f| f.because.contains("not understood")) {
            None => ok += 1,
            Some(f) => {
                bad += 1;
                println!("{path}: {}", f.because)
            }
        }
    }
    println!("ok {ok} bad {bad}");
}
#[test]
fn stats() {
    let Ok(list) = std::env::var("SCRIPTS") else { return };
    let gate = gate("mode = \"workspace\"\ndeny=[\"bash(boom *)\"]");
    for text in std::fs::read_to_string(list).unwrap().split('\0') {
        let e = explain(&gate, "bash", &json!({"command": text}).to_string(), &[]);
        println!("{e}\n");
    }
}
