//! Work that goes on when a command has answered: calls of other processes' tasks that run here.

use std::pin::Pin;

/// Work that goes on when a command has answered.
#[derive(Default)]
pub(crate) struct RemainingWork(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl RemainingWork {
    pub(crate) fn set(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.0 = Some(Box::pin(work));
    }

    pub(crate) fn take(&mut self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        self.0.take()
    }
}
