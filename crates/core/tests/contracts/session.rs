//! Sessions.

use antiphon_core::{Message, Session, SessionId, UserMessage};

use crate::at;

#[test]
fn a_session_begins_empty_and_takes_messages_in_order() {
    let (noon, later) = (at("2026-02-18T12:00:00Z"), at("2026-02-18T12:05:00Z"));
    let id = SessionId::parse("session-id").unwrap();
    let mut session = Session::new(id.clone(), "You are...", noon);
    let empty = Session {
        id,
        system_prompt: "You are...".to_owned(),
        created_at: noon,
        updated_at: noon,
        messages: vec![],
    };
    assert_eq!(session, empty);

    let (first, second) = (UserMessage::text("a", later), UserMessage::text("b", noon));
    session.push(first.clone());
    session.push(Message::User(second.clone()));
    assert_eq!(
        session,
        Session { updated_at: later, messages: vec![first.into(), second.into()], ..empty }
    );
}
