//! Any content and any name: one response, no request lost, none executed twice.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use antiphon_file_drop::PassCounts;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, read};

fn here(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

fn at_once() -> World {
    let mut world = World::new();
    world.settings.settle = Duration::ZERO;
    world
}

fn any_value() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("spawn_agent"),
        Just("stop_agent"),
        Just("update_agent_context"),
        Just("send"),
        Just("invoke"),
        Just("cancel"),
        Just(""),
        Just("a"),
        Just("queue"),
        Just("x/y"),
    ];
    prop_oneof![
        8 => word.prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i32>().prop_map(Value::from),
        1 => any::<String>().prop_map(Value::from),
        1 => Just(json!([{"a": 1}])),
    ]
}

fn any_request() -> impl Strategy<Value = Vec<u8>> {
    let fields = [
        "action", "name", "profile", "context", "message", "intent", "params", "mode", "salience",
        "wake", "prompt", "model", "wait", "taskId", "id", "other",
    ];
    let field = (proptest::sample::select(fields.to_vec()), any_value());
    let object = proptest::collection::vec(field, 0..10).prop_map(|fields| {
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
        Value::Object(fields.collect()).to_string().into_bytes()
    });
    let cut = (object, any::<proptest::sample::Index>(), any::<bool>());
    cut.prop_map(|(mut text, at, whole)| {
        if !whole {
            text.truncate(at.index(text.len() + 1));
        }
        text
    })
}

fn any_name() -> impl Strategy<Value = Vec<u8>> {
    let bytes = proptest::collection::vec(
        any::<u8>().prop_filter("no name", |byte| *byte != 0 && *byte != b'/'),
        1..240,
    );
    bytes.prop_map(|mut name| {
        name.extend(b".json");
        name
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gets_one_response_and_is_executed_at_most_once(
        text in prop_oneof![any_request(), proptest::collection::vec(any::<u8>(), 0..200)]
    ) {
        here(async {
            let world = at_once();
            fs::write(world.path("a.json"), &text).unwrap();
            let tally = world.pass().await;
            assert_eq!(tally.answered + tally.set_aside, 1);
            let response = read(&world.path("a.response.json")).unwrap();
            assert_eq!(response.ok, world.orders.calls() == 1);
            assert_eq!(response.ok, response.error.is_none());
            assert_eq!(response.set_aside.is_some(), tally.set_aside == 1);
            let kept = response.set_aside.unwrap_or_else(|| "a.json".to_owned());
            assert_eq!(fs::read(world.path(&kept)).unwrap(), text);
            assert_eq!(world.pass().await, PassCounts::default());
        });
    }

    #[test]
    fn any_name_is_ignored_or_gets_one_response(name in any_name()) {
        here(async {
            let world = at_once();
            let name = OsString::from_vec(name);
            let path = world.path("").join(&name);
            fs::write(&path, r#"{"action":"stop_agent","name":"a"}"#).unwrap();
            let tally = world.pass().await;
            let bytes = name.as_bytes();
            let is_request = !bytes.starts_with(b".") && !bytes.starts_with(b"#")
                && !bytes.ends_with(b".response.json");
            assert_eq!(tally.answered + tally.set_aside, usize::from(is_request));
            let responses = world.names().into_iter().filter(|it| it.ends_with(".response.json"));
            assert_eq!(responses.count() >= 1, is_request || bytes.ends_with(b".response.json"));
            assert_eq!(world.pass().await, PassCounts::default());
        });
    }
}
