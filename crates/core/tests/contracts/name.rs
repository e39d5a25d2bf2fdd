//! Names of agents and of sources.

use antiphon_core::{AgentName, NAME_BYTES_MAX, NameError, RESERVED_NAMES, SourceName};
use serde_json::json;

use crate::{both_ways, read, refusal};

#[test]
fn a_name_is_trimmed_and_kept() {
    let longest = "n".repeat(NAME_BYTES_MAX);
    for (text, name) in [
        ("dev-backend", "dev-backend"),
        ("  Dev Backend.v2 \n", "Dev Backend.v2"),
        ("_private", "_private"),
        ("9lives", "9lives"),
        ("Zoë 日本", "Zoë 日本"),
        ("users", "users"),
        ("a..b", "a..b"),
        (longest.as_str(), longest.as_str()),
    ] {
        let parsed = AgentName::parse(text).unwrap();
        assert_eq!(parsed.as_str(), name);
        assert_eq!(parsed.to_string(), name);
        assert_eq!(text.parse(), Ok(parsed.clone()));
        assert_eq!(String::from(parsed.clone()), name);
        both_ways(&parsed, &json!(name));
        assert_eq!(read::<AgentName>(&json!(text).to_string()), parsed);
        both_ways(&SourceName::parse(text).unwrap(), &json!(name));
    }
}

#[test]
fn a_text_that_is_no_name_is_refused_with_the_rule_it_breaks() {
    let long = "é".repeat(33);
    let table = [
        ("", NameError::Blank, "a name must not be blank"),
        (" \t", NameError::Blank, "a name must not be blank"),
        (
            long.as_str(),
            NameError::TooLong { bytes: 66 },
            "a name may have 64 bytes at most, this one has 66",
        ),
        (
            "../up",
            NameError::Forbidden { found: '/' },
            "a name may hold letters, digits, spaces and `_ - .`, not '/'",
        ),
        (
            "a\\b",
            NameError::Forbidden { found: '\\' },
            "a name may hold letters, digits, spaces and `_ - .`, not '\\\\'",
        ),
        (
            "a\u{0}b",
            NameError::Forbidden { found: '\u{0}' },
            "a name may hold letters, digits, spaces and `_ - .`, not '\\0'",
        ),
        (
            ".hidden",
            NameError::Start { found: '.' },
            "a name must start with a letter, a digit or `_`, not '.'",
        ),
        (
            "--help",
            NameError::Start { found: '-' },
            "a name must start with a letter, a digit or `_`, not '-'",
        ),
    ];
    for (text, error, message) in table {
        assert_eq!(AgentName::parse(text), Err(error.clone()));
        assert_eq!(SourceName::parse(text), Err(error.clone()));
        assert_eq!(error.to_string(), message);
        assert_eq!(refusal::<AgentName>(json!(text)), message);
    }
}

#[test]
fn an_agent_cannot_have_a_reserved_name_in_any_case_and_a_source_can() {
    for reserved in RESERVED_NAMES {
        for text in [reserved.to_owned(), reserved.to_uppercase(), format!(" {reserved} ")] {
            let name = text.trim().to_owned();
            assert_eq!(AgentName::parse(&text), Err(NameError::Reserved { name: name.clone() }));
            assert_eq!(refusal::<AgentName>(json!(text)), format!("the name `{name}` is reserved"));
            assert_eq!(SourceName::parse(&text).map(String::from), Ok(name));
        }
    }
}
