//! JSON kept as the text it arrived as.

use antiphon_core::{DEPTH_MAX, RawJson, RawJsonError};
use serde_json::{Value, json};

use crate::refusal;

/// An array nested `depth` levels deep.
fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

#[test]
fn the_text_is_kept_byte_for_byte_without_the_space_around_it() {
    for text in [
        "null",
        "1.0",
        "1e2",
        "-0",
        "123456789012345678901234567890",
        r#""\u00e9\/""#,
        r#"{"b":1,"a":2,"b":3}"#,
        r#"{ "a" : [ 1 , 2 ] }"#,
    ] {
        let raw = RawJson::parse(&format!(" \n{text}\t")).unwrap();
        assert_eq!(raw.as_str(), text);
        assert_eq!((raw.to_string(), format!("{raw:?}")), (text.to_owned(), text.to_owned()));
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
        assert_eq!(serde_json::from_str::<RawJson>(text).unwrap(), raw);
        assert_eq!(raw.is_object(), text.starts_with('{'));
    }
}

#[test]
fn equal_is_what_has_equal_bytes() {
    let parse = |text| RawJson::parse(text).unwrap();
    assert_eq!(parse(" 1 "), parse("1"));
    assert_ne!(parse("1"), parse("1.0"));
    assert_ne!(parse(r#"{"a":1}"#), parse(r#"{ "a":1}"#));
}

#[test]
fn a_value_in_memory_has_a_text() {
    assert_eq!(RawJson::of(&json!({"a": [1]})).unwrap().as_str(), r#"{"a":[1]}"#);
    assert_eq!(RawJson::empty_object().as_str(), "{}");
    assert_eq!(RawJson::string("a\"\n").as_str(), r#""a\"\n""#);
    assert_eq!(RawJson::parse("[1,2]").unwrap().to::<Vec<u8>>().unwrap(), [1, 2]);
    assert!(RawJson::parse("[1,2]").unwrap().to::<String>().is_err());
}

#[test]
fn what_is_not_json_is_refused_with_the_place() {
    for (text, reason) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("{", "EOF while parsing an object at line 1 column 1"),
        ("{} {}", "trailing characters at line 1 column 4"),
        ("NaN", "expected value at line 1 column 1"),
        ("'a'", "expected value at line 1 column 1"),
    ] {
        let error = RawJsonError::Syntax { reason: reason.to_owned() };
        assert_eq!(error.to_string(), format!("not valid JSON: {reason}"));
        assert_eq!(RawJson::parse(text), Err(error));
    }
}

#[test]
fn nesting_is_allowed_to_the_limit_and_not_one_level_more() {
    let deepest = RawJson::parse(&nested(DEPTH_MAX)).unwrap();
    assert!(deepest.to::<Value>().is_ok());
    assert_eq!(RawJson::parse(&nested(DEPTH_MAX + 1)), Err(RawJsonError::TooDeep));
    assert_eq!(
        serde_json::from_str::<RawJson>(&nested(DEPTH_MAX + 1)).unwrap_err().to_string(),
        format!("JSON is nested deeper than {DEPTH_MAX} levels")
    );
    let mut value = json!(null);
    for _ in 0..=DEPTH_MAX {
        value = json!([value]);
    }
    assert_eq!(RawJson::of(&value), Err(RawJsonError::TooDeep));
}

#[test]
fn brackets_in_texts_are_not_nesting() {
    for text in [json!("[".repeat(1000)).to_string(), json!({"{\"[\\": "]]}}\\\"["}).to_string()] {
        assert_eq!(RawJson::parse(&text).unwrap().as_str(), text);
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_still_raw_json() {
    for value in [json!(null), json!(1), json!("x"), json!([]), json!({})] {
        let raw: RawJson = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(raw.as_str(), value.to_string());
    }
    assert!(!refusal::<Vec<RawJson>>(json!(1)).is_empty());
}

#[test]
fn every_stored_value_can_be_read_later() {
    for text in [r#"{"a":"\ud800"}"#, r#"{"a":1e999}"#, r#"{"\udfff":0}"#] {
        if let Ok(raw) = RawJson::parse(text) {
            assert!(raw.to::<Value>().is_ok(), "{text}");
        }
    }
}

#[test]
fn the_deepest_json_still_fits_an_event_that_a_watcher_parses() {
    let inside = format!(
        r#"{{"data":{{"message":{{"content":[{{"arguments":{{"a":{}}}}}]}}}}}}"#,
        nested(DEPTH_MAX - 1)
    );
    assert!(serde_json::from_str::<Value>(&inside).is_ok());
}
