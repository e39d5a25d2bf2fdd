//! The model of a task that a runner runs. It is called from here, and only within the limits. When
//! the spending is unknown, it is not called.

use std::sync::Arc;

use antiphon_core::{PieceSource, Provider, ProviderError, Request, TaskCreated};
use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use crate::budget::spend_limits::BudgetRefusal;
use crate::budget::tree_usage::Tree;
use crate::services::Services;
use crate::task::limits::{self, LimitReached};

/// The limits that a task shares with others.
#[derive(Clone)]
pub(crate) struct Bounds {
    pub(crate) services: Arc<Services>,
    pub(crate) trees: Vec<Arc<Tree>>,
    pub(crate) task: TaskCreated,
    /// Fired when the budget is spent.
    pub(crate) spent: CancellationToken,
}

/// A model that is called only while the limits allow it.
pub(crate) struct BoundedModel {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) bounds: Bounds,
}

impl Provider for BoundedModel {
    fn open(&self, request: Request) -> PieceSource {
        let Bounds { services, trees, task, spent } = self.bounds.clone();
        if let Some(limit) = limits::used_up(&trees, &services.deps.prices) {
            return refusing(limit.to_string());
        }
        if services.background.is_draining() {
            // No answer and no error: the runner is stopped, and the next process calls the model.
            return Box::pin(futures_util::stream::pending());
        }
        let provider = Arc::clone(&self.provider);
        let opening = async move {
            // Without exact sums no model is called.
            if let Err(error) = services.budget.ensure_loaded(task.payer.as_deref()).await {
                let message = error.to_string();
                return refused(ProviderError::Overloaded { message, retry_after: None });
            }
            open_within(&services, &*provider, &task, &spent, request)
        };
        Box::pin(futures_util::stream::once(opening).flatten())
    }
}

/// Calls the model, if the budget allows it.
fn open_within(
    services: &Services,
    provider: &dyn Provider,
    task: &TaskCreated,
    spent: &CancellationToken,
    request: Request,
) -> PieceSource {
    match services.budget.model_refusal(task) {
        None => provider.open(request),
        Some(BudgetRefusal::PriceUnknown { model }) => {
            refusing(LimitReached::PriceUnknown { model }.to_string())
        }
        Some(BudgetRefusal::Spent(_)) => {
            // No answer and no error: the runner is stopped, and the task waits for budget.
            spent.cancel();
            Box::pin(futures_util::stream::pending())
        }
    }
}

fn refusing(message: String) -> PieceSource {
    refused(ProviderError::InvalidRequest { message })
}

fn refused(error: ProviderError) -> PieceSource {
    Box::pin(futures_util::stream::iter([Err(error)]))
}

/// A provider without a model, for runners that call none.
pub(crate) struct NoModel;

impl Provider for NoModel {
    fn open(&self, _: Request) -> PieceSource {
        refusing("this runner has no model to ask".to_owned())
    }
}
