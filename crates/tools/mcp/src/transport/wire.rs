//! Encodes and decodes protocol messages.

use antiphon_core::RawJson;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorData, GetExtensions, RequestId, ServerJsonRpcMessage,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::transport::repair::repair;

/// Largest message a server may send, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Arguments of a call exactly as the model wrote them, attached to the request: `1.0` stays `1.0`
/// and long numbers keep all digits.
#[derive(Clone)]
pub(crate) struct RawArguments(pub(crate) RawJson);

/// Encodes a message as JSON on one line.
pub(crate) fn encode(message: &ClientJsonRpcMessage) -> Result<Vec<u8>, serde_json::Error> {
    let arguments = match message {
        ClientJsonRpcMessage::Request(request) => {
            request.request.extensions().get::<RawArguments>()
        }
        ClientJsonRpcMessage::Response(_)
        | ClientJsonRpcMessage::Notification(_)
        | ClientJsonRpcMessage::Error(_) => None,
    };
    let Some(RawArguments(arguments)) = arguments else {
        return serde_json::to_vec(message);
    };
    let mut fields: Map<String, Value> = serde_json::from_value(serde_json::to_value(message)?)?;
    let mut params: Map<String, Value> =
        fields.remove("params").map(serde_json::from_value).transpose()?.unwrap_or_default();
    params.remove("arguments");
    let mut parts = raw(&params)?;
    parts.insert("arguments".to_owned(), RawValue::from_string(arguments.as_str().to_owned())?);
    let params = serde_json::value::to_raw_value(&parts)?;
    let mut whole = raw(&fields)?;
    whole.insert("params".to_owned(), params);
    serde_json::to_vec(&whole)
}

/// Decodes a message. Repairs parts that do not fit the protocol where possible.
pub(crate) fn decode(bytes: &[u8]) -> Result<ServerJsonRpcMessage, serde_json::Error> {
    let mut value: Value = serde_json::from_slice(bytes)?;
    repair(&mut value);
    serde_json::from_value(value)
}

/// Error message in place of an answer that is too large.
pub(crate) fn too_large(id: RequestId) -> ServerJsonRpcMessage {
    let reason = format!(
        "the answer is larger than {} MiB and was discarded: ask for less",
        MESSAGE_BYTES_MAX / 1024 / 1024
    );
    ServerJsonRpcMessage::error(ErrorData::internal_error(reason, None), Some(id))
}

/// Error message in place of an answer that cannot be parsed.
pub(crate) fn unreadable(id: RequestId) -> ServerJsonRpcMessage {
    let reason = "the answer is not valid, or nested too deeply, and was discarded";
    ServerJsonRpcMessage::error(ErrorData::internal_error(reason, None), Some(id))
}

type Parts = std::collections::BTreeMap<String, Box<RawValue>>;

fn raw(fields: &Map<String, Value>) -> Result<Parts, serde_json::Error> {
    let part = |(name, value): (&String, &Value)| {
        Ok((name.clone(), serde_json::value::to_raw_value(value)?))
    };
    fields.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};

    use super::*;

    #[test]
    fn arguments_reach_the_server_as_the_model_wrote_them() {
        let written = r#"{"n":123456789012345678901234567890,"x":1.0,"t":"a\u00e4"}"#;
        let mut request = CallToolRequest::new(CallToolRequestParams::new("sum"));
        request.extensions.insert(RawArguments(RawJson::parse(written).unwrap()));
        let message = ClientJsonRpcMessage::request(
            ClientRequest::CallToolRequest(request),
            RequestId::Number(3),
        );
        let text = String::from_utf8(encode(&message).unwrap()).unwrap();
        assert!(text.contains(&format!(r#""arguments":{written}"#)), "{text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&value["jsonrpc"], &value["id"], &value["method"], &value["params"]["name"]),
            (&"2.0".into(), &3.into(), &"tools/call".into(), &"sum".into())
        );
    }

    fn json() -> impl proptest::strategy::Strategy<Value = Value> {
        use proptest::prelude::*;
        let names = prop_oneof![
            Just("tools"),
            Just("content"),
            Just("isError"),
            Just("name"),
            Just("inputSchema"),
            Just("type"),
            Just("text"),
            Just("_meta"),
            Just("id"),
            Just("structuredContent"),
            Just("nextCursor"),
            Just("resultType"),
            Just("data"),
            Just("resource"),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            prop_oneof![Just("text"), Just("image"), Just("resource")].prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((names.clone(), inner), 0..6).prop_map(|fields| {
                    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
                }),
            ]
        })
    }

    proptest::proptest! {
        #[test]
        fn every_answer_is_read_with_any_result(result in json()) {
            let message = serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": result});
            let bytes = serde_json::to_vec(&message).unwrap();
            // `null` is no result.
            proptest::prop_assert!(decode(&bytes).is_ok() || message["result"].is_null());
        }
    }

    #[test]
    fn what_is_no_message_is_an_error_and_not_a_panic() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for bytes in [b"".as_slice(), b"{", b"7", b"{}", b"\xff\xfe", deep.as_bytes()] {
            assert!(decode(bytes).is_err());
        }
    }
}
