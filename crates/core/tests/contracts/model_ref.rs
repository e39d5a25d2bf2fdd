//! Names of models.

use antiphon_core::{MODEL_REF_BYTES_MAX, ModelRef, ModelRefError};
use serde_json::json;

use crate::{both_ways, read, refusal};

#[test]
fn a_model_is_named_by_its_provider_and_its_own_name() {
    for (text, provider, model) in [
        ("anthropic/claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("local/org/model.gguf", "local", "org/model.gguf"),
        ("my_proxy-2.0/m:free@x", "my_proxy-2.0", "m:free@x"),
        ("a//b", "a", "/b"),
    ] {
        let named = ModelRef::parse(text).unwrap();
        assert_eq!((named.provider(), named.model()), (provider, model));
        assert_eq!(named.to_string(), text);
        assert_eq!(text.parse(), Ok(named.clone()));
        both_ways(&named, &json!(text));
    }
    assert_eq!(
        read::<ModelRef>(r#"" scripted/hello\n""#),
        ModelRef::parse("scripted/hello").unwrap()
    );
}

#[test]
fn a_text_that_names_no_model_is_refused_with_an_example() {
    let long = format!("a/{}", "b".repeat(MODEL_REF_BYTES_MAX - 1));
    for text in [
        "",
        "/",
        "a",
        "a/",
        "/b",
        "a b/c",
        "a/b c",
        "a/b\nc",
        "ä/b",
        "a/\u{0}",
        "http://x/y",
        long.as_str(),
    ] {
        assert_eq!(ModelRef::parse(text), Err(ModelRefError { found: text.to_owned() }));
        assert_eq!(
            refusal::<ModelRef>(json!(text)),
            format!("`{text}` names no model: write PROVIDER/MODEL, for instance `scripted/hello`")
        );
    }
    let longest = format!("a/{}", "b".repeat(MODEL_REF_BYTES_MAX - 2));
    assert!(ModelRef::parse(&longest).is_ok());
}
