//! A real model on each of the three wires it speaks.

#[path = "support/project_folder.rs"]
mod project_folder;

use std::path::Path;
use std::process::Command;

use project_folder::ProjectFolder;

#[test]
fn a_real_model_answers_on_every_wire_of_its_server() {
    let local_model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/local-model");
    let script = r#"
        for provider in local local-anthropic local-responses; do
            printf '%s: ' "$provider"
            "$ANTIPHON" run --retries 0 --max-tokens 8 --model "$provider/smollm2" 'Say hello.' || exit
        done
        "$ANTIPHON" doctor"#;
    let folder = ProjectFolder::new();
    let output = Command::new(local_model)
        .current_dir(folder.path())
        .env("ANTIPHON_STATE", folder.path().with_file_name("state"))
        .args(["sh", "-c", script])
        .env("ANTIPHON", env!("CARGO_BIN_EXE_antiphon"))
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    for provider in ["local", "local-anthropic", "local-responses"] {
        let answer = out.lines().find_map(|line| line.strip_prefix(&format!("{provider}: ")));
        assert!(answer.is_some_and(|answer| !answer.trim().is_empty()), "{provider}: {out}");
        assert!(out.contains(&format!("✓  {provider}")), "{out}");
    }
}
