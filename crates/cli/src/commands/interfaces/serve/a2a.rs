//! The A2A interface, from the user's settings.

use std::path::Path;

use antiphon_a2a_api::{A2a, A2aConfig, ExposedAgents};
use antiphon_outbound::OutboundRules;
use antiphon_project::settings;

use crate::failure::Failure;

/// The A2A interface of a server with this address.
pub(super) fn a2a(
    settings: &settings::A2aConfig,
    state: &Path,
    url: Option<&str>,
) -> Result<A2a, Failure> {
    let hosts = settings.push_hosts.iter().map(String::as_str);
    let push_hosts = OutboundRules::parse(hosts)
        .map_err(|error| Failure::usage(format!("[a2a] push_hosts: {error}")))?;
    let agents = ExposedAgents::of_setting(settings.agents.as_ref());
    let config = A2aConfig {
        agents,
        url: settings.url.clone(),
        is_tls: url.is_some_and(|url| url.starts_with("https")),
        push_hosts,
        state: state.to_owned(),
    };
    A2a::new(config).map_err(|error| Failure::failed(error.to_string()))
}
