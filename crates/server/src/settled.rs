//! Orders whose futures cannot move between threads: they are carried out on one, to their end.

use antiphon_core::ErrorCode;
use antiphon_runtime::{Orchestrator, OrchestratorError};
use tokio::runtime::Handle;

use crate::api_error::ApiError;

/// Carries out an order on a thread of its own. Once begun it is carried out, also when nobody
/// waits for it any more.
pub(crate) async fn settled<T, F>(
    orchestrator: &Orchestrator,
    order: impl FnOnce(Orchestrator) -> F + Send + 'static,
) -> Result<T, ApiError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, OrchestratorError>>,
{
    let (orchestrator, runtime) = (orchestrator.clone(), Handle::current());
    let done = tokio::task::spawn_blocking(move || runtime.block_on(order(orchestrator))).await;
    let fault = |_| ApiError::new(ErrorCode::InternalError, "a fault in the program");
    Ok(done.map_err(fault)??)
}
