//! Texts that are too long, and names and ids that would reach where they should not.

use antiphon_core::{
    AgentName, CanonicalMessage, Event, Interaction, Message, NameError, OrchestratorRequest,
    Sender, SessionId, SourceName, TaskId, ToolCallId, render,
};
use serde_json::json;

use crate::{TIME, UUID, answer, event, interaction, question, refusal};

const MEGABYTES: usize = 10 * 1024 * 1024;

#[test]
fn a_huge_text_is_taken_whole_where_text_may_be_huge() {
    let huge = "x".repeat(MEGABYTES);
    let message: Message =
        serde_json::from_str(&question(&json!({"type": "text", "text": huge}).to_string()))
            .unwrap();
    assert!(serde_json::to_string(&message).unwrap().len() > MEGABYTES);
    let body = json!({"type": "message", "body": huge}).to_string();
    let received: Interaction = serde_json::from_str(&interaction(&body)).unwrap();
    assert_eq!(render(&received).len(), MEGABYTES + "[MESSAGE from bob] ".len());
    let chat: CanonicalMessage = serde_json::from_value(
        json!({"id": UUID, "role": "user", "content": huge, "timestamp": TIME}),
    )
    .unwrap();
    assert_eq!(chat.content_len(), MEGABYTES);
}

#[test]
fn a_huge_id_or_name_is_refused_wherever_it_stands() {
    let huge = "x".repeat(MEGABYTES);
    let call = json!({"type": "tool_call", "id": huge, "name": "t", "arguments": {}}).to_string();
    assert!(refusal::<Message>(answer(&call)).starts_with("an identifier may have 256 bytes"));
    let created = json!({"agent": "a", "session_id": huge}).to_string();
    let said = refusal::<Event>(event("task_created", &created));
    assert!(said.contains("an identifier may have 256 bytes"), "{said}");
    let from = json!({"id": UUID, "from": huge, "content": {"type": "message", "body": ""}});
    assert!(refusal::<Interaction>(from.to_string()).starts_with("a name may have 64 bytes"));
    assert!(refusal::<AgentName>(json!(huge).to_string()).starts_with("a name may have 64 bytes"));
    refusal::<Interaction>(interaction(&json!({"type": huge}).to_string()));
}

#[test]
fn an_id_has_256_bytes_at_most_and_stays_on_its_line() {
    let (most, over) = ("é".repeat(128), "é".repeat(128) + "x");
    for id in [most.as_str(), "../../etc/passwd", "-rf", "日本"] {
        assert_eq!(TaskId::parse(id).map(|id| id.to_string()).as_deref(), Ok(id));
    }
    for id in [over.as_str(), "a\nb", "a\r", "\u{0}", "a b", "\u{2028}", "\u{85}", "\u{1b}[2J", ""]
    {
        assert!(TaskId::parse(id).is_err(), "{id:?}");
        assert!(SessionId::parse(id).is_err(), "{id:?}");
        refusal::<ToolCallId>(json!(id).to_string());
    }
}

#[test]
fn a_name_never_leaves_its_folder() {
    for name in [
        "../x",
        "..\\x",
        "/etc",
        "a/b",
        "a\\b",
        "C:x",
        "~",
        "~root",
        "a\u{0}.md",
        "a\u{2044}b",
        "a\u{FF0F}b",
        "%2e%2e",
        "a|b",
        "a;b",
        "$(x)",
        "`x`",
        "a\"b",
        "a'b",
        "a*",
        "a?",
        "a\nb",
        "a\tb",
        "a\u{200B}b",
        "a\u{202E}b",
        "\u{FEFF}a",
        "e\u{301}",
        "🙂",
        "\u{E0041}",
    ] {
        assert!(matches!(AgentName::parse(name), Err(NameError::Forbidden { .. })), "{name:?}");
        assert!(SourceName::parse(name).is_err(), "{name:?}");
        refusal::<AgentName>(json!(name).to_string());
    }
    for name in [".", "..", ".a", "...", "-", "-a", "--"] {
        assert!(matches!(AgentName::parse(name), Err(NameError::Start { .. })), "{name:?}");
    }
}

#[test]
fn no_sender_can_imitate_another() {
    for from in ["user", "event:webhook"] {
        assert!(!matches!(Sender::parse(from), Ok(Sender::Peer(_))));
    }
    for from in ["User", "ＵＳＥＲ:x", "event", "Event:x", "event:event:x", "event:../x", "system"]
    {
        assert!(!matches!(Sender::parse(from), Ok(Sender::User | Sender::External(_))), "{from}");
    }
}

#[test]
fn a_name_holds_no_letter_that_cannot_be_seen() {
    for filler in ['\u{115F}', '\u{1160}', '\u{3164}', '\u{FFA0}'] {
        for name in [format!("user{filler}"), format!("a{filler}b"), filler.to_string()] {
            assert!(AgentName::parse(&name).is_err(), "{name:?}");
        }
    }
}

#[test]
fn two_ids_that_look_alike_are_alike() {
    for id in ["t1\u{200B}", "t1\u{E0041}", "\u{202E}1t", "t1\u{FEFF}"] {
        assert!(TaskId::parse(id).is_err(), "{id:?}");
    }
}

#[test]
fn a_control_request_with_a_hostile_name_still_parses_and_the_name_does_not() {
    for name in ["../../x", "a\u{0}", "user", ".ssh"] {
        let json = json!({"action": "stop_agent", "name": name}).to_string();
        let request: OrchestratorRequest = serde_json::from_str(&json).unwrap();
        assert!(request.validate().is_ok());
        assert!(AgentName::parse(name).is_err());
    }
}
