//! What agents can do here, and what of it they may.

use std::sync::Arc;

use antiphon_core::ToolExecutor;
use antiphon_core::port::Gate;
use antiphon_runtime::{Asking, NoTools, OpenGate};

use crate::commands::Ask;
use crate::config::Config;
use crate::failure::Failure;
use crate::project::Project;

/// What agents can do here, and what of it they may.
pub(crate) struct Hands {
    pub(crate) tools: Arc<dyn ToolExecutor>,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) asking: Asking,
}

impl Hands {
    /// Nothing at all: for those who only look.
    pub(crate) fn none() -> Self {
        Self { tools: Arc::new(NoTools), gate: Arc::new(OpenGate), asking: Asking::Refuse }
    }

    /// What becomes of a call that needs somebody's word.
    pub(crate) fn asking(self, ask: Option<Ask>, somebody: bool) -> Self {
        let asking = match ask {
            Some(Ask::Terminal | Ask::Wait) => Asking::Wait { patience: None },
            Some(Ask::Refuse) => Asking::Refuse,
            None if somebody => Asking::Wait { patience: None },
            None => Asking::Refuse,
        };
        Self { asking, ..self }
    }

    pub(crate) fn of(_: &Project, _: &Config, _: &[String]) -> Result<Self, Failure> {
        Ok(Self::none())
    }
}
