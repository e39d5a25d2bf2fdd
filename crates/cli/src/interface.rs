//! What an owner of the journal that is no server has on the project's socket.

use antiphon_interface_transport::Interface;

/// All HTTP interfaces, without webhooks.
pub(crate) fn interface() -> Interface {
    antiphon_http::interface(None).merge(antiphon_openai_api::interface())
}
