//! One page over HTTP: each host is decided about, resolved once, and connected to at an address that was checked.

use std::time::Duration;

use antiphon_core::escaped;
use antiphon_hosts::{Access, HostAccess, HostPort};
use antiphon_outbound::pinned_client;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Response, StatusCode};
use url::Url;

/// Most bytes of a page. The rest is not read.
pub const PAGE_BYTES_MAX: usize = 5 * 1024 * 1024;

/// Most redirects that are followed.
pub const REDIRECTS_MAX: usize = 5;

/// How long a page may take, with its redirects.
pub const TIME_MAX: Duration = Duration::from_secs(30);

/// What is asked for, in this order.
const ACCEPTED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5";

/// A page as it came.
#[derive(Debug)]
pub(crate) struct Download {
    /// Where it was in the end.
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    /// The body had more than [`PAGE_BYTES_MAX`] bytes.
    pub(crate) is_cut: bool,
}

/// Gets a page. The error is for the model.
pub(crate) async fn download(mut url: Url, access: &HostAccess) -> Result<Download, String> {
    for hop in 0..=REDIRECTS_MAX {
        check(&url, access, hop)?;
        let response = get(&url, access).await?;
        match redirect(&response)? {
            Some(next) => url = next,
            None => return read(url, response).await,
        }
    }
    Err(format!("the page redirects more than {REDIRECTS_MAX} times"))
}

/// Whether the host of a URL may be reached.
fn check(url: &Url, access: &HostAccess, hop: usize) -> Result<(), String> {
    let target = HostPort::of_url(url).map_err(|error| error.to_string())?;
    let shown = escaped(url.as_str()).into_owned();
    match access.of(&target) {
        Access::Allowed => Ok(()),
        Access::Denied => Err(format!("a rule of the user denies the host of {shown}")),
        Access::NotAllowed if hop > 0 => Err(format!(
            "the page redirects to {shown}, whose host is not allowed yet: call `web_fetch` with that URL to ask for it"
        )),
        Access::NotAllowed => Err(format!("the user has not allowed the host of {shown}")),
    }
}

async fn get(url: &Url, access: &HostAccess) -> Result<Response, String> {
    let allows = |target: &HostPort, address| access.allows_address(target, address);
    let client = pinned_client(url, allows).await.map_err(|error| error.to_string())?;
    let request = client.get(url.clone()).header(ACCEPT, ACCEPTED);
    // A compressed body could become any size.
    let response = request.header(ACCEPT_ENCODING, "identity").send().await;
    response
        .map_err(|error| format!("{} cannot be reached: {}", escaped(url.as_str()), cause(&error)))
}

/// Where a response redirects to.
fn redirect(response: &Response) -> Result<Option<Url>, String> {
    if !response.status().is_redirection() {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let text = location.to_str().map_err(|_| "the page redirects to what is no URL".to_owned())?;
    let next = response.url().join(text);
    next.map(Some).map_err(|error| format!("the page redirects to what is no URL: {error}"))
}

async fn read(url: Url, mut response: Response) -> Result<Download, String> {
    let text = |name| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().trim().to_ascii_lowercase()
    };
    let (content_type, encoding) = (text(CONTENT_TYPE), text(CONTENT_ENCODING));
    if !matches!(encoding.as_str(), "" | "identity") {
        return Err(format!(
            "the page came compressed ({}), which was not asked for: it is not read",
            escaped(&encoding)
        ));
    }
    let status = response.status();
    let (mut body, mut is_cut) = (Vec::new(), false);
    while let Some(chunk) = response.chunk().await.map_err(|error| {
        format!("the page broke off after {} bytes: {}", body.len(), cause(&error))
    })? {
        let left = PAGE_BYTES_MAX - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(left)]);
        if chunk.len() > left {
            is_cut = true;
            break;
        }
    }
    Ok(Download { url, status, content_type, body, is_cut })
}

/// The innermost cause of an error.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    escaped(&cause.to_string()).into_owned()
}
