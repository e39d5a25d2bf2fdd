//! The description of a route beside its types.

use schemars::{Schema, json_schema};

use super::error_responses::fails;
use super::generator::{
    DescribedStatus, HeaderStyle, MediaType, Operation, Parameter, ParameterData,
    ParameterSchemaOrContent, PathStyle, ReferenceOr, ResponseDescription, SchemaObject,
    TransformOperation,
};

/// Placeholder for the name of the path parameter, which only the route knows.
pub(super) const PATH_PARAMETER: &str = "(here)";

/// Extension with the level that an API key needs, where the method does not say.
pub const LEVEL: &str = "x-level";

/// Media type of an event stream.
pub const EVENT_STREAM: &str = "text/event-stream";

/// The subject of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// Tasks and their events.
    Tasks,
    /// Agents and their inboxes.
    Agents,
    /// Sessions.
    Sessions,
    /// Approvals.
    Approvals,
    /// Usage and spend limits.
    Money,
    /// Chat completions.
    Chat,
    /// A2A: agents of other systems.
    A2a,
    /// MCP: agents as tools.
    Mcp,
    /// State of the server.
    Server,
    /// The description of the API.
    About,
}

impl Tag {
    /// All tags, in the order of the page.
    pub const ALL: [Self; 10] = [
        Self::Tasks,
        Self::Agents,
        Self::Sessions,
        Self::Approvals,
        Self::Money,
        Self::Chat,
        Self::A2a,
        Self::Mcp,
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
            Self::A2a => "a2a",
            Self::Mcp => "mcp",
            Self::Server => "server",
            Self::About => "about",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Tasks => "Tasks: created, watched and ended.",
            Self::Agents => "Agents, their inboxes, and requests to them.",
            Self::Sessions => "Sessions: conversations of one or more tasks.",
            Self::Approvals => "Tool calls that wait for a decision of a person.",
            Self::Money => "Usage, cost and spend limits.",
            Self::Chat => "Chat completions, compatible with OpenAI's API.",
            Self::A2a => "The Agent2Agent protocol (A2A) 1.0.",
            Self::Mcp => "The Model Context Protocol (MCP).",
            Self::Server => "Health and metrics of the server.",
            Self::About => "The description of this API.",
        }
    }
}

/// Describes a route.
pub trait DescribeRoute: Sized {
    /// Sets the operation id, the tag and the summary.
    fn describe(self, id: &str, tag: Tag, summary: &str) -> Self;

    /// Adds error responses beside those of its types.
    fn fails(self, statuses: &[u16]) -> Self;

    /// Adds a response that the types do not describe. An empty media type is a response without a body.
    fn responds(self, status: u16, media_type: &str, description: &str) -> Self;

    /// Adds another media type to a response.
    fn or_media_type(self, status: u16, media_type: &str) -> Self;

    /// Adds an optional request header.
    fn header(self, name: &str, description: &str, schema: Schema) -> Self;

    /// Adds the request header `Idempotency-Key`.
    fn with_idempotency_key(self) -> Self {
        let bytes_max = crate::KEY_BYTES_MAX;
        let schema = json_schema!({ "type": "string", "minLength": 1, "maxLength": bytes_max });
        let description = "A key of your choice: requests with the same key are done once.";
        self.header("Idempotency-Key", description, schema).fails(&[400])
    }

    /// Adds the request header `traceparent`.
    fn with_traceparent(self) -> Self {
        let description = "The trace that the task belongs to (W3C Trace Context).";
        self.header("traceparent", description, json_schema!({ "type": "string" }))
    }
}

impl DescribeRoute for TransformOperation<'_> {
    fn describe(self, id: &str, tag: Tag, summary: &str) -> Self {
        self.id(id).tag(tag.name()).summary(summary)
    }

    fn fails(mut self, statuses: &[u16]) -> Self {
        fails(self.inner_mut(), statuses);
        self
    }

    fn responds(mut self, status: u16, media_type: &str, description: &str) -> Self {
        let description = description.to_owned();
        let mut response = ResponseDescription { description, ..ResponseDescription::default() };
        if !media_type.is_empty() {
            response.content.insert(media_type.to_owned(), body(media_type));
        }
        let responses = &mut self.inner_mut().responses.get_or_insert_default().responses;
        responses.insert(DescribedStatus::Code(status), ReferenceOr::Item(response));
        self
    }

    fn or_media_type(mut self, status: u16, media_type: &str) -> Self {
        let responses = self.inner_mut().responses.as_mut();
        let response = responses
            .and_then(|responses| responses.responses.get_mut(&DescribedStatus::Code(status)));
        if let Some(ReferenceOr::Item(response)) = response {
            response.content.insert(media_type.to_owned(), body(media_type));
        }
        self
    }

    fn header(mut self, name: &str, description: &str, schema: Schema) -> Self {
        let parameter = Parameter::Header {
            parameter_data: parameter(name, Some(description), false, schema),
            style: HeaderStyle::Simple,
        };
        self.inner_mut().parameters.push(ReferenceOr::Item(parameter));
        self
    }
}

/// The body of a response that the types do not describe.
fn body(media_type: &str) -> MediaType {
    let json_schema = match media_type {
        _ if media_type.ends_with("json") => json_schema!({ "type": "object" }),
        EVENT_STREAM => event_schema(),
        _ => json_schema!({ "type": "string" }),
    };
    let schema = SchemaObject { json_schema, external_docs: None, example: None };
    MediaType { schema: Some(schema), ..MediaType::default() }
}

/// Schema of one server-sent event.
pub fn event_schema() -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "id": {
                "description": "Where to go on: the value for `Last-Event-ID`. Absent: this event is not kept.",
                "type": "string",
            },
            "event": { "description": "Type of the event. Absent: `data` says it.", "type": "string" },
            "data": { "description": "The event, as JSON text.", "type": "string" },
        },
        "required": ["data"],
    })
}

/// Adds the path parameter, which the document names later.
pub fn path_parameter(operation: &mut Operation, schema: Schema) {
    let parameter = Parameter::Path {
        parameter_data: parameter(PATH_PARAMETER, None, true, schema),
        style: PathStyle::Simple,
    };
    operation.parameters.push(ReferenceOr::Item(parameter));
}

fn parameter(
    name: &str,
    description: Option<&str>,
    required: bool,
    schema: Schema,
) -> ParameterData {
    let schema = SchemaObject { json_schema: schema, external_docs: None, example: None };
    ParameterData {
        name: name.to_owned(),
        description: description.map(str::to_owned),
        required,
        deprecated: None,
        format: ParameterSchemaOrContent::Schema(schema),
        example: None,
        examples: [].into(),
        explode: None,
        extensions: [].into(),
    }
}
