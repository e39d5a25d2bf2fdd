//! The guide says what is true.

use antiphon_permissions::{Bounds, Effects, Gate, PermissionConfig};

use crate::world::{ROOT, explain, script};

const GUIDE: &str = include_str!("../../../../../docs/permissions.md");

fn blocks(language: &str) -> Vec<&'static str> {
    GUIDE
        .split(&format!("```{language}\n"))
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect()
}

fn gate(block: &str) -> Gate {
    let document: toml::Table = toml::from_str(block).unwrap();
    let config: PermissionConfig = document["permissions"].clone().try_into().unwrap();
    let effects = Effects::new(crate::world::effect);
    Gate::new(
        &config,
        Bounds {
            root: ROOT.into(),
            sandbox: antiphon_permissions::Sandbox::OfCommand,
            hidden: Vec::new(),
            effects,
        },
    )
    .unwrap()
}

#[test]
fn every_configuration_in_the_guide_is_one() {
    let blocks = blocks("toml");
    assert!(blocks.len() >= 2);
    for block in blocks {
        gate(block);
    }
}

/// Rows of the form "| `command` | verdict | … |".
#[test]
fn the_commands_in_the_guide_become_what_it_says() {
    let gate = gate(blocks("toml")[0]);
    let mut rows = 0;
    for line in GUIDE.lines() {
        let cells: Vec<&str> =
            line.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect();
        let [call, verdict @ ("allow" | "ask" | "deny"), ..] = cells.as_slice() else { continue };
        let call = call.trim_matches('`').replace("\\|", "|");
        let decision = match call.split_once(": ") {
            Some((tool @ ("read" | "write" | "edit"), path)) => {
                let arguments = serde_json::json!({ "path": path }).to_string();
                explain(&gate, tool, &arguments, &[]).decision()
            }
            Some(("tool", tool)) => explain(&gate, tool, "{}", &[]).decision(),
            _ => script(&gate, &call),
        };
        assert_eq!(decision.to_string(), *verdict, "{call}");
        rows += 1;
    }
    assert!(rows >= 15, "{rows} rows");
}
