//! Definitions of agents: callable agents, and defaults.

use std::collections::BTreeMap;

use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, Profile, RunnerConfig, Runtime, SilentIntents,
    TaskLimits,
};
use serde_json::json;

use crate::{both_ways, refusal};

fn only(names: &[&str]) -> CallableAgents {
    CallableAgents::Only(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn an_agent_with_defaults_may_call_no_agent_and_runs_here() {
    let name = AgentName::parse("reviewer").unwrap();
    let expected = AgentDefinition {
        name: name.clone(),
        description: String::new(),
        profile: Profile::Native,
        model: None,
        fallbacks: vec![],
        tools: None,
        parallel_tools: Vec::new(),
        agents: only(&[]),
        runtimes: vec![],
        limits: TaskLimits::default(),
        silent_intents: SilentIntents::default(),
        intents: BTreeMap::new(),
        output_schema: None,
        context: "You review.".to_owned(),
    };
    assert_eq!(AgentDefinition::new(name, "You review."), expected);
}

#[test]
fn an_agent_may_call_listed_agents_and_no_ad_hoc_agent() {
    for (agents, calls, allowed) in [
        (CallableAgents::Any, Some("writer"), true),
        (CallableAgents::Any, Some(""), true),
        (CallableAgents::Any, None, true),
        (only(&["writer", "editor"]), Some("writer"), true),
        (only(&["writer", "editor"]), Some("editor"), true),
        (only(&["writer", "editor"]), Some("lawyer"), false),
        // Names are compared whole, as they are.
        (only(&["writer", "editor"]), Some("write"), false),
        (only(&["writer", "editor"]), Some("Writer"), false),
        (only(&["writer", "editor"]), Some("writer "), false),
        (only(&["writer", "editor"]), Some(""), false),
        (only(&["writer", "editor"]), None, false),
        (only(&[]), Some("writer"), false),
        (only(&[]), Some(""), false),
        (only(&[]), None, false),
    ] {
        assert_eq!(agents.allows(calls), allowed, "{agents:?} {calls:?}");
    }
}

#[test]
fn by_default_an_agent_may_call_no_agent() {
    assert_eq!(CallableAgents::default(), only(&[]));
    assert!(CallableAgents::default().allows_none());
    assert!(!CallableAgents::Any.allows_none());
    assert!(!only(&["writer"]).allows_none());
}

#[test]
fn whom_an_agent_may_call_is_a_word_or_a_list() {
    both_ways(&CallableAgents::Any, &json!("any"));
    both_ways(&only(&["writer", "editor"]), &json!({"only": ["writer", "editor"]}));
    both_ways(&only(&[]), &json!({"only": []}));
    for (json, reason) in [
        (json!("nobody"), "unknown variant `nobody`, expected one of `any`, `anybody`, `only`"),
        (
            json!({"except": []}),
            "unknown variant `except`, expected one of `any`, `anybody`, `only`",
        ),
        (json!("only"), "invalid type: unit variant, expected newtype variant"),
        (json!({"only": "writer"}), "invalid type: string \"writer\", expected a sequence"),
        (json!(["writer"]), "invalid type: sequence, expected string or map"),
    ] {
        assert_eq!(refusal::<CallableAgents>(json), reason);
    }
}

#[test]
fn a_runtime_goes_by_the_kind_of_its_runner() {
    assert_eq!(Runtime::Local.kind(), "local");
    let runner = RunnerConfig::new("sandbox").with_config(json!({"memory_mib": 64}));
    assert_eq!(Runtime::Runner(runner).kind(), "sandbox");
}
