//! What of a history goes to a model that did not write it.

use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, AssistantMessage, IdRule, InputBlock, Message, ModelRef, OpaqueBlock, RawJson,
    Signature, StopReason, ThinkingBlock, ToolArguments, ToolCallBlock, ToolCallId,
    ToolResultMessage, Usage, UserMessage, for_model,
};

use crate::ten;

const PLAIN: IdRule = IdRule::Plain { bytes_max: 64 };

fn model(text: &str) -> ModelRef {
    ModelRef::parse(text).unwrap()
}

fn asked(text: &str) -> Arc<Message> {
    UserMessage::text(text, ten()).into()
}

fn thought(signature: Option<&str>) -> AssistantBlock {
    AssistantBlock::Thinking(ThinkingBlock {
        thinking: "hm".to_owned(),
        signature: signature.map(|text| Signature(text.to_owned())),
    })
}

fn sealed() -> AssistantBlock {
    AssistantBlock::Opaque(OpaqueBlock {
        kind: "redacted_thinking".to_owned(),
        value: RawJson::empty_object(),
    })
}

fn call(id: &str, signature: Option<&str>) -> AssistantBlock {
    AssistantBlock::ToolCall(ToolCallBlock {
        id: ToolCallId::parse(id).unwrap(),
        name: "read".to_owned(),
        arguments: ToolArguments::Object(RawJson::empty_object()),
        signature: signature.map(|text| Signature(text.to_owned())),
    })
}

fn answered(by: &str, content: Vec<AssistantBlock>) -> Arc<Message> {
    AssistantMessage {
        content,
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: String::new(),
        usage: Usage::default(),
        model: (!by.is_empty()).then(|| model(by)),
        timestamp: ten(),
    }
    .into()
}

fn result(id: &str) -> Arc<Message> {
    ToolResultMessage {
        tool_call_id: ToolCallId::parse(id).unwrap(),
        tool_name: "read".to_owned(),
        content: vec![InputBlock::text("ok")],
        is_error: false,
        timestamp: ten(),
    }
    .into()
}

#[test]
fn a_model_gets_back_all_it_wrote_itself() {
    let history = [
        asked("go"),
        answered("p/m", vec![thought(Some("c2ln")), sealed(), call("a", Some("c2ln"))]),
        result("a"),
    ];
    assert_eq!(for_model(&history, &model("p/m"), IdRule::Any), history);
    let sent = for_model(&history, &model("p/m"), PLAIN);
    assert_eq!(sent, history);
    assert!(std::iter::zip(&history, &sent).all(|(a, b)| Arc::ptr_eq(a, b)), "all are shared");
}

#[test]
fn only_what_changes_is_copied() {
    let history = [
        asked("go"),
        answered("p/other", vec![AssistantBlock::text("hm"), thought(None)]),
        answered("p/other", vec![AssistantBlock::text("ah")]),
        answered("p/m", vec![call("fine", None), call("not:fine", None)]),
        result("fine"),
        result("not:fine"),
    ];
    let sent = for_model(&history, &model("p/m"), PLAIN);
    let shared: Vec<bool> =
        std::iter::zip(&history, &sent).map(|(a, b)| Arc::ptr_eq(a, b)).collect();
    assert_eq!(shared, [true, false, true, false, true, false]);
}

#[test]
fn the_notes_seals_and_signatures_of_another_model_stay_behind() {
    let text = AssistantBlock::text("hi");
    for writer in ["p/other", "other/m", ""] {
        let history = [
            asked("go"),
            answered(writer, vec![thought(None), sealed(), text.clone(), call("a", Some("c2ln"))]),
            result("a"),
            answered(writer, vec![thought(Some("c2ln")), sealed()]),
        ];
        assert_eq!(
            for_model(&history, &model("p/m"), IdRule::Any),
            [asked("go"), answered(writer, vec![text.clone(), call("a", None)]), result("a"),]
        );
    }
}

#[test]
fn an_id_the_provider_refuses_is_renamed_in_call_and_result() {
    let history = [
        answered("p/m", vec![call("functions.read:0", None), call("fine", None)]),
        result("functions.read:0"),
        result("fine"),
    ];
    assert_eq!(
        for_model(&history, &model("p/m"), PLAIN),
        [
            answered("p/m", vec![call("call_0", None), call("fine", None)]),
            result("call_0"),
            result("fine"),
        ]
    );
    assert_eq!(for_model(&history, &model("p/m"), IdRule::Any), history);
}

#[test]
fn ids_of_one_length_are_made_where_they_are_wanted() {
    let nine = IdRule::Exactly { bytes: 9 };
    let history = [
        answered("p/m", vec![call("D681PevKs", None), call("call_abcd", None), call("c1", None)]),
        result("D681PevKs"),
        result("call_abcd"),
        result("c1"),
        answered("p/m", vec![call("c00000001", None), call("D681PevKs", None)]),
        result("c00000001"),
        result("D681PevKs"),
    ];
    let first = ["D681PevKs", "c00000001", "c00000002"];
    let second = ["c00000003", "c00000004"];
    let step = |ids: &[&str]| {
        let answer = answered("p/m", ids.iter().map(|id| call(id, None)).collect());
        [vec![answer], ids.iter().map(|id| result(id)).collect()].concat()
    };
    let expected = [step(&first), step(&second)].concat();
    assert_eq!(for_model(&history, &model("p/m"), nine), expected);
    assert_eq!(for_model(&expected, &model("p/m"), nine), expected);
}

#[test]
fn an_id_used_twice_in_a_session_is_renamed_the_second_time() {
    let step = |id| [answered("p/m", vec![call(id, None)]), result(id)];
    assert_eq!(
        for_model(&[step("call_1"), step("call_1"), step("call_1")].concat(), &model("p/m"), PLAIN),
        [step("call_1"), step("call_2"), step("call_3")].concat()
    );
}

#[test]
fn what_cannot_be_sent_goes_to_no_model() {
    let history = [asked("go"), answered("p/m", vec![call("a", None)]), asked("again")];
    assert_eq!(for_model(&history, &model("p/m"), IdRule::Any), [asked("go"), asked("again")]);
}
