//! Plain HTTP: checks an absolute-form request and forwards it.

use antiphon_hosts::HostPort;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, CONTENT_TYPE, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{Request, Response, StatusCode, Uri, Version};

/// The body of an answer.
pub(crate) type Body = BoxBody<Bytes, hyper::Error>;

/// Headers about one connection, which a proxy does not pass on.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    EXPECT,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The same, which have no constant.
const HOP_BY_HOP_NAMES: [&str; 2] = ["keep-alive", "proxy-connection"];

/// The target of an absolute-form request. The error is a text for the client.
pub(crate) fn target(request: &Request<Incoming>) -> Result<HostPort, String> {
    let uri = request.uri();
    if uri.scheme() != Some(&Scheme::HTTP) {
        return Err("this is a proxy: send `CONNECT host:port`, or an `http://` URL".to_owned());
    }
    let authority = uri.authority().ok_or("the URL has no host")?;
    if authority.as_str().contains('@') {
        return Err("the URL has a user name in it: send it as a header".to_owned());
    }
    let target =
        HostPort::parse(authority.as_str(), Some(80)).map_err(|error| error.to_string())?;
    let mut named = request.headers().get_all(HOST).iter();
    match (named.next(), named.next()) {
        (None, _) if request.version() < Version::HTTP_11 => Ok(target),
        (Some(host), None) if is_same(host, &target) => Ok(target),
        (Some(_), None) => Err("the `Host` header is not the host of the URL".to_owned()),
        (None, _) | (Some(_), Some(_)) => Err("one `Host` header is needed".to_owned()),
    }
}

fn is_same(host: &HeaderValue, target: &HostPort) -> bool {
    let named = host.to_str().ok().and_then(|host| HostPort::parse(host, Some(80)).ok());
    named.as_ref() == Some(target)
}

/// The request as the host gets it: origin-form, without headers of this hop.
pub(crate) fn outbound(
    mut request: Request<Incoming>,
    target: &HostPort,
) -> Result<Request<Incoming>, String> {
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    strip(headers);
    let host = if target.port == 80 { target.host.to_string() } else { target.to_string() };
    headers.insert(HOST, HeaderValue::from_str(&host).map_err(|error| error.to_string())?);
    Ok(request)
}

/// The answer as the client gets it.
pub(crate) fn inbound(mut answer: Response<Incoming>) -> Response<Body> {
    strip(answer.headers_mut());
    answer.map(BodyExt::boxed)
}

fn strip(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in listed.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    for name in HOP_BY_HOP_NAMES {
        headers.remove(name);
    }
}

/// An answer of the proxy itself.
pub(crate) fn own_answer(status: StatusCode, text: String) -> Response<Body> {
    let body = Full::new(Bytes::from(text + "\n")).map_err(|never| match never {}).boxed();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}
