//! What a route says of itself beside its types.

use aide::openapi::{
    HeaderStyle, MediaType, Operation, Parameter, ParameterData, ParameterSchemaOrContent,
    ReferenceOr, Response, SchemaObject, StatusCode,
};
use aide::transform::TransformOperation;
use schemars::{Schema, json_schema};

use super::refusals::fails;

/// Stands for the name of what is in the path, which only the route knows.
pub(super) const HERE: &str = "(here)";

/// How far a key has to reach, where the method does not say.
pub(crate) const LEVEL: &str = "x-level";

/// The kind of a stream of events.
pub(crate) const STREAM: &str = "text/event-stream";

/// What a route is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    Tasks,
    Agents,
    Sessions,
    Approvals,
    Money,
    Chat,
    Server,
    About,
}

impl Tag {
    /// Every one, in the order of the page.
    pub(crate) const ALL: [Self; 8] = [
        Self::Tasks,
        Self::Agents,
        Self::Sessions,
        Self::Approvals,
        Self::Money,
        Self::Chat,
        Self::Server,
        Self::About,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Agents => "agents",
            Self::Sessions => "sessions",
            Self::Approvals => "approvals",
            Self::Money => "money",
            Self::Chat => "chat",
            Self::Server => "server",
            Self::About => "about",
        }
    }

    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Tasks => "Work that is given, watched and ended.",
            Self::Agents => "Agents, their inboxes, and requests to them.",
            Self::Sessions => "Conversations.",
            Self::Approvals => "Questions to a person.",
            Self::Money => "What is spent, and what may be.",
            Self::Chat => "OpenAI's API, and canonical chat.",
            Self::Server => "How the server is.",
            Self::About => "What this API is.",
        }
    }
}

/// What a route says of itself beside its types.
pub(crate) trait Telling: Sized {
    /// Its name, what it is about, and what it does in a line.
    fn told(self, id: &str, tag: Tag, summary: &str) -> Self;

    /// The ways it fails beside those that its types know.
    fn fails(self, statuses: &[u16]) -> Self;

    /// An answer whose body the types do not tell. No kind is no body.
    fn answers(self, status: u16, kind: &str, meaning: &str) -> Self;

    /// Another kind of body that an answer may have.
    fn also(self, status: u16, kind: &str) -> Self;

    /// A header that may come with the request.
    fn header(self, name: &str, meaning: &str, schema: Schema) -> Self;

    /// It takes an `Idempotency-Key`.
    fn keyed(self) -> Self {
        let bytes_max = crate::idempotency::KEY_BYTES_MAX;
        let schema = json_schema!({ "type": "string", "minLength": 1, "maxLength": bytes_max });
        let meaning = "Your own name for the request: repeated under it, it is done once.";
        self.header("Idempotency-Key", meaning, schema).fails(&[400])
    }

    /// It takes a `traceparent`.
    fn traced(self) -> Self {
        let meaning = "The trace that the task belongs to, as W3C has it.";
        self.header("traceparent", meaning, json_schema!({ "type": "string" }))
    }
}

impl Telling for TransformOperation<'_> {
    fn told(self, id: &str, tag: Tag, summary: &str) -> Self {
        self.id(id).tag(tag.name()).summary(summary)
    }

    fn fails(mut self, statuses: &[u16]) -> Self {
        fails(self.inner_mut(), statuses);
        self
    }

    fn answers(mut self, status: u16, kind: &str, meaning: &str) -> Self {
        let mut response = Response { description: meaning.to_owned(), ..Response::default() };
        if !kind.is_empty() {
            response.content.insert(kind.to_owned(), body(kind));
        }
        let responses = &mut self.inner_mut().responses.get_or_insert_default().responses;
        responses.insert(StatusCode::Code(status), ReferenceOr::Item(response));
        self
    }

    fn also(mut self, status: u16, kind: &str) -> Self {
        let responses = self.inner_mut().responses.as_mut();
        let response = responses.and_then(|told| told.responses.get_mut(&StatusCode::Code(status)));
        if let Some(ReferenceOr::Item(response)) = response {
            response.content.insert(kind.to_owned(), body(kind));
        }
        self
    }

    fn header(mut self, name: &str, meaning: &str, schema: Schema) -> Self {
        let parameter = Parameter::Header {
            parameter_data: parameter(name, Some(meaning), false, schema),
            style: HeaderStyle::Simple,
        };
        self.inner_mut().parameters.push(ReferenceOr::Item(parameter));
        self
    }
}

/// A body of which the types say nothing.
fn body(kind: &str) -> MediaType {
    let json_schema = match kind {
        "application/json" => json_schema!({ "type": "object" }),
        STREAM => streamed(),
        _ => json_schema!({ "type": "string" }),
    };
    let schema = SchemaObject { json_schema, external_docs: None, example: None };
    MediaType { schema: Some(schema), ..MediaType::default() }
}

/// One event of a stream.
pub(crate) fn streamed() -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "id": { "type": "string" },
            "event": { "type": "string" },
            "data": { "type": "string" },
        },
        "required": ["data"],
    })
}

/// What is in the path.
pub(crate) fn in_path(operation: &mut Operation, schema: Schema) {
    let parameter = Parameter::Path {
        parameter_data: parameter(HERE, None, true, schema),
        style: aide::openapi::PathStyle::Simple,
    };
    operation.parameters.push(ReferenceOr::Item(parameter));
}

fn parameter(name: &str, meaning: Option<&str>, required: bool, schema: Schema) -> ParameterData {
    let schema = SchemaObject { json_schema: schema, external_docs: None, example: None };
    ParameterData {
        name: name.to_owned(),
        description: meaning.map(str::to_owned),
        required,
        deprecated: None,
        format: ParameterSchemaOrContent::Schema(schema),
        example: None,
        examples: [].into(),
        explode: None,
        extensions: [].into(),
    }
}
