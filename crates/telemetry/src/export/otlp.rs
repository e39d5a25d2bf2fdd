//! Encodes spans as OTLP.

use chrono::{DateTime, Utc};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span, Status, span, status,
};
use prost::Message;

use crate::convention;
use crate::trace::span::{AttributeValue, FinishedSpan, SpanKind, SpanStatus};

/// The body of a request.
pub(crate) fn body(resource: &Resource, spans: &[FinishedSpan]) -> Vec<u8> {
    let scope = InstrumentationScope {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let spans = ScopeSpans {
        scope: Some(scope),
        spans: spans.iter().map(span).collect(),
        schema_url: convention::SCHEMA_URL.to_owned(),
    };
    let resource_spans = vec![ResourceSpans {
        resource: Some(resource.clone()),
        scope_spans: vec![spans],
        schema_url: convention::SCHEMA_URL.to_owned(),
    }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

/// The resource that sends the spans.
pub(crate) fn resource(attributes: impl IntoIterator<Item = (&'static str, String)>) -> Resource {
    let attributes = attributes.into_iter().map(|(key, text)| text_of(key, text)).collect();
    Resource { attributes, ..Resource::default() }
}

fn span(span: &FinishedSpan) -> Span {
    let kind = match span.kind {
        SpanKind::Internal => span::SpanKind::Internal,
        SpanKind::Client => span::SpanKind::Client,
    };
    let code = match span.status {
        SpanStatus::Unset => status::StatusCode::Unset,
        SpanStatus::Error => status::StatusCode::Error,
    };
    Span {
        trace_id: span.trace_id.as_bytes().to_vec(),
        span_id: span.span_id.as_bytes().to_vec(),
        parent_span_id: span.parent.map(|id| id.as_bytes().to_vec()).unwrap_or_default(),
        // Sampled.
        flags: 1,
        name: span.name.clone(),
        kind: kind.into(),
        start_time_unix_nano: nanos(span.began),
        // Clocks may be set back, but a span must not end before it starts.
        end_time_unix_nano: nanos(span.ended.max(span.began)),
        attributes: span.attributes.iter().map(|(key, value)| attribute(key, value)).collect(),
        // No message: it could quote the conversation.
        status: Some(Status { code: code.into(), message: String::new() }),
        ..Span::default()
    }
}

fn attribute(key: &str, value: &AttributeValue) -> KeyValue {
    match value {
        AttributeValue::Text(text) => text_of(key, text.clone()),
        AttributeValue::Int(number) => key_value(key, any_value::Value::IntValue(*number)),
        AttributeValue::Texts(texts) => {
            let text = |text: &String| AnyValue {
                value: Some(any_value::Value::StringValue(text.clone())),
            };
            let values = texts.iter().map(text).collect();
            key_value(key, any_value::Value::ArrayValue(ArrayValue { values }))
        }
    }
}

fn text_of(key: &str, text: String) -> KeyValue {
    key_value(key, any_value::Value::StringValue(text))
}

fn key_value(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// Nanoseconds since 1970; 0 for times out of range.
fn nanos(at: DateTime<Utc>) -> u64 {
    at.timestamp_nanos_opt().and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or_default()
}
