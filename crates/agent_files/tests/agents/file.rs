//! One file.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;

use antiphon_agent_files::{FIELDS, LIMITS, SCHEMA_BYTES_MAX, parse};
use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, DESCRIPTION_BYTES_MAX, ModelRef, Profile, RawJson,
    RunnerConfig, Runtime, TaskLimits,
};
use proptest::prelude::*;
use serde_json::json;

use super::read;

const WHOLE: &str = r#"---
# Everything there is.
name: reviewer
description: >
  Reviews a change,
  and says what is wrong.
profile: native
model: [anthropic/claude-sonnet-4-5, openai/gpt-5]
fallbacks:
  - local/org/model.gguf
tools: [read, grep, mcp__github__get_issue]
parallel_tools: [bash]
agents: [tester, "style 2"]
runtimes:
  - sandbox
  - kind: loopback
    config: {peer: office, nested: {tries: 3, ratio: 0.5, on: true, none: ~, version: "1.0"}}
  - local
limits:
  turns: 20
  answer_tokens: 4096
  tool_calls: 100
  tokens: 5000000000
  cost_usd: 0.50
  wall_clock_s: 600
  depth: 3
  fan_out: 5
  tasks: 50
silent_intents: [status_changed, mob.peer_added]
intents:
  review: {type: object, required: [branch]}
  "status of": {type: "null"}
output_schema:
  type: object
  properties:
    verdict: {enum: [approve, "reject"]}
    score: {type: integer, minimum: 1}
  required: [verdict]
---

# Reviewer

You review changes.

---

Rules below a line.
"#;

#[test]
fn a_file_sets_every_field_of_an_agent() {
    let model = |name: &str| ModelRef::parse(name).unwrap();
    let nested = json!({"tries": 3, "ratio": 0.5, "on": true, "none": null, "version": "1.0"});
    let schema = r#"{"type":"object","properties":{"verdict":{"enum":["approve","reject"]},"score":{"type":"integer","minimum":1}},"required":["verdict"]}"#;
    let expected = AgentDefinition {
        name: AgentName::parse("reviewer").unwrap(),
        description: "Reviews a change, and says what is wrong.".to_owned(),
        profile: Profile::Native,
        model: Some(model("anthropic/claude-sonnet-4-5")),
        fallbacks: vec![model("openai/gpt-5"), model("local/org/model.gguf")],
        tools: Some(["read", "grep", "mcp__github__get_issue"].map(str::to_owned).into()),
        parallel_tools: vec!["bash".to_owned()],
        agents: CallableAgents::Only(["tester", "style 2"].map(str::to_owned).into()),
        runtimes: vec![
            Runtime::Runner(RunnerConfig::new("sandbox")),
            Runtime::Runner(
                RunnerConfig::new("loopback")
                    .with_config(json!({"peer": "office", "nested": nested})),
            ),
            Runtime::Local,
        ],
        limits: TaskLimits {
            turns_max: NonZeroU32::new(20),
            answer_tokens_max: NonZeroU32::new(4096),
            tool_calls_max: NonZeroU32::new(100),
            tokens_max: NonZeroU64::new(5_000_000_000),
            cost_nano_usd_max: NonZeroU64::new(500_000_000),
            wall_clock_s_max: NonZeroU32::new(600),
            depth_max: NonZeroU32::new(3),
            fan_out_max: NonZeroU32::new(5),
            tasks_max: NonZeroU32::new(50),
        },
        silent_intents: ["status_changed", "mob.peer_added"].into_iter().collect(),
        intents: [
            ("review", r#"{"type":"object","required":["branch"]}"#),
            ("status of", r#"{"type":"null"}"#),
        ]
        .map(|(intent, schema)| (intent.to_owned(), RawJson::parse(schema).unwrap()))
        .into(),
        output_schema: Some(RawJson::parse(schema).unwrap()),
        context: "# Reviewer\n\nYou review changes.\n\n---\n\nRules below a line.".to_owned(),
    };
    assert_eq!(read("reviewer", WHOLE), Ok(expected));
}

#[test]
fn the_full_example_has_every_field_and_limit() {
    for name in FIELDS.iter().chain(&LIMITS) {
        assert!(WHOLE.contains(&format!("{name}:")), "{name}");
    }
}

#[test]
fn absent_fields_have_defaults() {
    let expected = AgentDefinition {
        description: "Works.".to_owned(),
        ..AgentDefinition::new(AgentName::parse("a").unwrap(), "You work.")
    };
    assert_eq!(read("a", "---\ndescription: Works.\n---\nYou work."), Ok(expected));
}

#[test]
fn a_file_without_front_matter_is_its_context_and_begins_with_its_description() {
    let agent = read("a", "\n\n## Finds things\n\nYou find things.\n").unwrap();
    assert_eq!(agent.description, "Finds things");
    assert_eq!(agent.context, "## Finds things\n\nYou find things.");
    let long = read("a", &format!("#\n# {}", "é".repeat(DESCRIPTION_BYTES_MAX))).unwrap();
    assert_eq!(long.description, "é".repeat(DESCRIPTION_BYTES_MAX / 2));
}

#[test]
fn it_does_not_matter_how_an_editor_saves_a_file() {
    let plain = read("reviewer", WHOLE);
    assert_eq!(read("reviewer", &format!("\u{feff}{WHOLE}")), plain);
    assert_eq!(read("reviewer", &WHOLE.replace('\n', "\r\n")), plain);
    assert_eq!(read("reviewer", WHOLE.trim_end()), plain);
    assert_eq!(read("reviewer", &WHOLE.replace("---\n", "---  \n")).is_ok(), plain.is_ok());
}

#[test]
fn lists_are_written_as_other_tools_write_them() {
    let reported =
        |field: &str| read("a", &format!("---\ndescription: d\n{field}\n---\nb")).unwrap();
    let tools = Some(vec!["read".to_owned(), "grep".to_owned()]);
    for field in ["tools: read, grep", "tools: [read, grep]", "tools:\n- read\n- 'grep'"] {
        assert_eq!(reported(field).tools, tools, "{field}");
    }
    assert_eq!(reported("tools: []").tools, Some(Vec::new()));
    assert_eq!(reported("agents: any").agents, CallableAgents::Any);
    assert_eq!(reported("agents: [any]").agents, CallableAgents::Only(vec!["any".to_owned()]));
    assert!(reported("agents: []").agents.allows_none());
    assert_eq!(reported("runtimes: local").runtimes, [Runtime::Local]);
    assert_eq!(reported("model: a/b, c/d").fallbacks, [ModelRef::parse("c/d").unwrap()]);
    let usd = |amount: &str| reported(&format!("limits: {{cost_usd: {amount}}}")).limits;
    for (amount, nano) in [("2", 2_000_000_000), (".5", 500_000_000), ("0.000000001", 1)] {
        assert_eq!(usd(amount).cost_nano_usd_max, NonZeroU64::new(nano), "{amount}");
    }
}

#[test]
fn hidden_characters_are_escaped_in_the_context_and_removed_from_the_description() {
    let hidden = "\u{e0041}\u{200b}";
    let text = format!("---\ndescription: Wor{hidden}ks.\n---\nYou{hidden} work.");
    let agent = read("a", &text).unwrap();
    let context = r"You\u{e0041}\u{200b} work.";
    assert_eq!((agent.description.as_str(), agent.context.as_str()), ("Works.", context));
}

#[test]
fn a_schema_may_be_in_a_file_of_its_own() {
    let text = "---\ndescription: d\noutput_schema: schemas/out.json\n---\nb";
    let mut requested = Vec::new();
    let agent = parse("a", text.as_bytes(), &mut |path: &Path| {
        requested.push(path.to_owned());
        Ok(br#"{ "type": "string" }"#.to_vec())
    });
    let schema = RawJson::parse(r#"{ "type": "string" }"#).unwrap();
    assert_eq!(agent.unwrap().output_schema, Some(schema));
    assert_eq!(requested, [Path::new("schemas/out.json")]);
    let cases: [(&[u8], &str); 5] = [
        (b"{", "`output_schema`: schemas/out.json: not valid JSON"),
        (b"[]", "`output_schema`: a schema is an object"),
        (b"{\"type\": 3}", "`output_schema`: 3 is not valid"),
        (b"\xff", "it is not UTF-8"),
        (&vec![b' '; SCHEMA_BYTES_MAX + 1], "it has more than"),
    ];
    for (bytes, reason) in cases {
        let fault = parse("a", text.as_bytes(), &mut |_: &Path| Ok(bytes.to_vec())).unwrap_err();
        assert_eq!(fault.line, 3);
        assert!(fault.reason.contains(reason), "{fault}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse("a", &bytes, &mut |_: &Path| Ok(bytes.clone()));
    }

    #[test]
    fn no_front_matter_panics_and_every_fault_is_in_the_file(
        lines in proptest::collection::vec(
            "(name|description|model|tools|agents|runtimes|limits|output_schema|x)?(: |:|- )?\
             [ -~\u{e9}\u{200b}]{0,12}",
            0..12,
        ),
    ) {
        let text = format!("---\n{}\n---\nbody", lines.join("\n"));
        if let Err(fault) = read("a", &text) {
            prop_assert!((1..=lines.len() + 4).contains(&fault.line), "{fault}\n{text}");
        }
    }

    #[test]
    fn a_text_in_quotes_is_taken_as_it_is(description in "[ -~äß€]{1,60}") {
        let quoted = serde_json::Value::from(description.as_str());
        let read = read("a", &format!("---\ndescription: {quoted}\n---\nb"));
        match description.trim() {
            "" => prop_assert!(read.is_err()),
            text => prop_assert_eq!(read.unwrap().description, text),
        }
    }
}
