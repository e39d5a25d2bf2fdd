//! Requests of a login. A server names its authorization server, so every host is resolved once and checked: it is a
//! public one, or the host that the user configured.

use std::time::Duration;

use antiphon_outbound::OutboundRules;
use reqwest::Url;
use reqwest::header::LOCATION;
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest,
};

/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Longest duration of a request.
const REQUEST_WAIT: Duration = Duration::from_secs(30);

/// Redirects that are followed, all on the same host.
const REDIRECTS_MAX: usize = 3;

/// Sends the requests of logins to one server.
pub(super) struct OAuthHttp {
    server: Url,
}

impl OAuthHttp {
    /// Requests about a server that the user configured.
    pub(super) fn new(server: &Url) -> Self {
        Self { server: server.clone() }
    }

    async fn send(
        &self,
        request: OAuthHttpRequest,
    ) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        let (parts, body) = request.request.into_parts();
        let mut url = Url::parse(&parts.uri.to_string())?;
        for _ in 0..=REDIRECTS_MAX {
            let client = self.rules(&url)?.client(&url).await?;
            let sent = client
                .request(parts.method.clone(), url.clone())
                .headers(parts.headers.clone())
                .timeout(REQUEST_WAIT)
                .body(body.clone())
                .send()
                .await
                .map_err(reqwest::Error::without_url)?;
            let follows = request.redirect_policy == OAuthHttpRedirectPolicy::Follow
                && sent.status().is_redirection();
            let place = sent.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            match place.filter(|_| follows).map(|place| url.join(place)).transpose()? {
                Some(next) if next.origin() == url.origin() => url = next,
                Some(_) => return Err("it redirects to another host".into()),
                None => return answer(sent).await,
            }
        }
        Err("it redirects too often".into())
    }

    /// The host that the user configured may be a private one, and so may a host on this machine be for a server on
    /// this machine.
    fn rules(&self, url: &Url) -> Result<OutboundRules, OAuthHttpClientError> {
        let is_own =
            url.host() == self.server.host() || (is_loopback(url) && is_loopback(&self.server));
        let (Some(host), true) = (url.host_str(), is_own) else {
            return Ok(OutboundRules::default());
        };
        let port = url.port_or_known_default().unwrap_or_default();
        let place = format!("{host}:{port}");
        let rules = [place.clone(), format!("{place}=private"), format!("{place}=loopback")];
        let is_name = host.parse::<std::net::Ipv4Addr>().is_err() && !host.starts_with('[');
        let rules = if is_name { &rules[..] } else { &rules[..1] };
        Ok(OutboundRules::parse(rules.iter().map(String::as_str))?)
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

async fn answer(
    mut sent: reqwest::Response,
) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
    let mut answer = http::Response::builder().status(sent.status());
    if let Some(headers) = answer.headers_mut() {
        headers.clone_from(sent.headers());
    }
    let mut body = Vec::new();
    while let Some(chunk) = sent.chunk().await.map_err(reqwest::Error::without_url)? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(format!("it answered with more than {ANSWER_BYTES_MAX} bytes").into());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(answer.body(body)?)
}

impl OAuthHttpClient for OAuthHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request))
    }
}
