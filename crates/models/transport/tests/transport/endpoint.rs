//! Addresses of providers.

use antiphon_model_transport::{Endpoint, EndpointError};

#[test]
fn an_invalid_address_is_refused_with_the_reason() {
    let url = |found: &str, reason: &str| EndpointError::Url {
        found: found.to_owned(),
        reason: reason.to_owned(),
    };
    let scheme = |found: &str| EndpointError::Scheme { found: found.to_owned() };
    let cases = [
        ("", url("", "relative URL without a base")),
        ("api.example.com", url("api.example.com", "relative URL without a base")),
        ("http://", url("http://", "empty host")),
        ("http://x:99999", url("http://x:99999", "invalid port number")),
        ("ftp://x", scheme("ftp://x")),
        ("localhost:8080", scheme("localhost:8080")),
        ("file:///etc/passwd", scheme("file:///etc/passwd")),
        ("https://key@x", EndpointError::Userinfo),
        ("https://user:key@x", EndpointError::Userinfo),
        ("https://:key@x", EndpointError::Userinfo),
    ];
    for (text, error) in cases {
        assert_eq!(Endpoint::parse(text), Err(error), "{text}");
    }
}

#[test]
fn a_path_is_appended_to_the_address() {
    let cases = [
        ("https://x", "/v1/messages", "https://x/v1/messages"),
        ("https://x/", "v1/messages", "https://x/v1/messages"),
        (" https://x/proxy/ ", "/v1/messages", "https://x/proxy/v1/messages"),
        ("https://x/a?version=2", "/b", "https://x/a/b?version=2"),
        ("https://x", "/a?b#c", "https://x/a%3Fb%23c"),
    ];
    for (base, path, whole) in cases {
        let endpoint = Endpoint::parse(base).expect("an address").at(path);
        assert_eq!(endpoint.to_string(), whole);
    }
}

#[test]
fn the_host_is_the_name_of_the_machine() {
    for (url, host) in [
        ("https://API.example.com:8443/v1", "api.example.com"),
        ("http://127.0.0.1:8080", "127.0.0.1"),
        ("http://[::1]/api.example.com", "[::1]"),
    ] {
        assert_eq!(Endpoint::parse(url).expect("an address").host(), host);
    }
}

#[test]
fn a_query_is_added_to_the_address() {
    let endpoint = Endpoint::parse("https://x/a").expect("an address").with_query("alt", "sse");
    assert_eq!(endpoint.to_string(), "https://x/a?alt=sse");
    assert_eq!(endpoint.with_query("b", "c d").to_string(), "https://x/a?alt=sse&b=c+d");
}
