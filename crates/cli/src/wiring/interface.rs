//! Interface on the project's socket of an owner of the journal that is no server.

use antiphon_interface_transport::Interface;

/// The APIs of models that clients know. Both list models on the same route.
pub(crate) fn model_apis() -> Interface {
    let openai = antiphon_openai_api::interface_beside(antiphon_anthropic_api::models);
    antiphon_anthropic_api::interface().merge(openai)
}

/// All HTTP interfaces, without webhooks.
pub(crate) fn interface() -> Interface {
    antiphon_http::interface(None).merge(model_apis())
}
