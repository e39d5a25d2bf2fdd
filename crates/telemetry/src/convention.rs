//! Names of OpenTelemetry's semantic conventions for generative AI, version 1.41, and our own. The
//! conventions still change, so the names are only here.

pub(crate) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";

pub(crate) const OPERATION_NAME: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER_NAME: &str = "gen_ai.provider.name";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const USAGE_CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
pub(crate) const USAGE_CACHE_CREATION: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(crate) const CONVERSATION_ID: &str = "gen_ai.conversation.id";
pub(crate) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(crate) const ERROR_TYPE: &str = "error.type";

pub(crate) const SERVICE_NAME: &str = "service.name";
pub(crate) const SERVICE_VERSION: &str = "service.version";
pub(crate) const SERVICE_INSTANCE_ID: &str = "service.instance.id";

pub(crate) const CHAT: &str = "chat";
pub(crate) const INVOKE_AGENT: &str = "invoke_agent";
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";
pub(crate) const TOOL_TYPE_FUNCTION: &str = "function";

pub(crate) const TASK_ID: &str = "antiphon.task.id";
pub(crate) const TASK_STATUS: &str = "antiphon.task.status";
pub(crate) const TASK_TURNS: &str = "antiphon.task.turns";
pub(crate) const PURPOSE: &str = "antiphon.purpose";
pub(crate) const PURPOSE_COMPACTION: &str = "compaction";

/// Metric names in Prometheus form: dots become underscores, the unit comes last.
pub(crate) const OPERATION_DURATION: &str = "gen_ai_client_operation_duration";
pub(crate) const TOKEN_USAGE: &str = "gen_ai_client_token_usage";

/// The bucket boundaries that the conventions recommend.
pub(crate) const OPERATION_DURATION_S: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
pub(crate) const TOKEN_USAGE_TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The conventions' name of a provider, where it differs from ours.
pub(crate) fn provider_name(provider: &str) -> &str {
    match provider {
        "gemini" => "gcp.gemini",
        other => other,
    }
}

/// Input tokens including cached ones, as the conventions count them.
pub(crate) fn input_tokens(usage: antiphon_core::Usage) -> u64 {
    let cached = [usage.cache_read_tokens, usage.cache_write_tokens];
    cached.into_iter().flatten().fold(usage.input_tokens, u64::saturating_add)
}
