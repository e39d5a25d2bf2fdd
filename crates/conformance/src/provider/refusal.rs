//! Refusals of a provider: each reason is another error variant.

use std::time::Duration;

use antiphon_core::StopReason;
use antiphon_core::port::ProviderError;

use super::reader::read_failing;
use super::{Ending, Refusal, Step, Wire};
use crate::suite::{Finding, Outcome, ensure, equal};

pub(super) async fn a_refused_request_is_invalid(wire: &dyn Wire) -> Outcome {
    let error = refused(wire, Refusal::InvalidRequest).await?;
    is(&error, matches!(error, ProviderError::InvalidRequest { .. }))
}

pub(super) async fn a_refused_key_is_an_authentication_error(wire: &dyn Wire) -> Outcome {
    let error = refused(wire, Refusal::Authentication).await?;
    is(&error, matches!(error, ProviderError::Authentication { .. }))
}

pub(super) async fn a_rate_limit_says_how_long_to_wait(wire: &dyn Wire) -> Outcome {
    let retry_after = Duration::from_secs(17);
    let error = refused(wire, Refusal::RateLimited { retry_after }).await?;
    is(&error, matches!(error, ProviderError::RateLimited { .. }))?;
    equal("how long to wait", &error.retry_after(), &Some(retry_after))
}

pub(super) async fn a_fault_at_the_provider_is_a_server_error(wire: &dyn Wire) -> Outcome {
    let error = refused(wire, Refusal::Server).await?;
    is(&error, matches!(error, ProviderError::Server { status: 500, .. }))
}

pub(super) async fn a_key_without_permission_is_a_permission_error(wire: &dyn Wire) -> Outcome {
    let error = refused(wire, Refusal::Permission).await?;
    is(&error, matches!(error, ProviderError::Permission { .. }))
}

pub(super) async fn a_model_that_does_not_exist_is_not_found(wire: &dyn Wire) -> Outcome {
    let error = refused(wire, Refusal::NotFound).await?;
    is(&error, matches!(error, ProviderError::NotFound { .. }))
}

pub(super) async fn a_conversation_too_long_is_an_overflow(wire: &dyn Wire) -> Outcome {
    let error = refused(wire, Refusal::ContextOverflow).await?;
    is(&error, matches!(error, ProviderError::ContextOverflow { .. }))
}

pub(super) async fn an_overloaded_provider_says_so(wire: &dyn Wire) -> Outcome {
    let error = refused(wire, Refusal::Overloaded).await?;
    is(&error, matches!(error, ProviderError::Overloaded { .. }))
}

pub(super) async fn a_refusal_in_mid_answer_keeps_the_text(wire: &dyn Wire) -> Outcome {
    let ending = Ending::Refused(Refusal::Overloaded);
    let (error, message) = read_failing(wire, ending, [Step::text(0, "so far")]).await?;
    ensure!(
        error != ProviderError::Cut && error.is_transient(),
        "what the provider said in mid-answer is taken for: {error}"
    );
    equal("the text", message.text().as_str(), "so far")?;
    equal("its stop reason", &message.stop_reason, &StopReason::Error)
}

pub(super) async fn garbage_is_a_protocol_error(wire: &dyn Wire) -> Outcome {
    let (error, message) = read_failing(wire, Ending::Garbage, [Step::text(0, "so far")]).await?;
    is(&error, matches!(error, ProviderError::Protocol { .. }))?;
    equal("the text", message.text().as_str(), "so far")
}

async fn refused(wire: &dyn Wire, refusal: Refusal) -> Result<ProviderError, Finding> {
    let (error, message) = read_failing(wire, Ending::Refused(refusal), []).await?;
    equal("the content", &message.content, &vec![])?;
    Ok(error)
}

fn is(error: &ProviderError, expected: bool) -> Outcome {
    ensure!(expected, "it is taken for: {error:?}");
    Ok(())
}
