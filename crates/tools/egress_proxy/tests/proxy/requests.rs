//! Requests that are allowed.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::{Server, World, status};

#[tokio::test]
async fn a_request_reaches_an_allowed_host_in_origin_form() {
    let server = Server::hello().await;
    let port = server.port;
    let world = World::new(&format!("pkg.test:{port}=loopback"), "").await;
    world.names.set("pkg.test", &[&["127.0.0.1"]]);
    let answer = world
        .send(&format!(
            "GET http://PKG.test:{port}/simple/?q=1 HTTP/1.1\r\nHost: pkg.test.:{port}\r\n\
             Proxy-Authorization: Basic secret\r\nProxy-Connection: close\r\nTE: trailers\r\n\
             X-Hop: gone\r\nConnection: close, X-Hop\r\nX-Kept: yes\r\n\r\n"
        ))
        .await;
    assert_eq!(status(&answer), 200, "{answer}");
    assert!(answer.ends_with("hello"), "{answer}");
    let request = server.requests().remove(0).to_lowercase();
    assert!(request.starts_with("get /simple/?q=1 http/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("\r\nhost: pkg.test:{port}\r\n")), "{request}");
    assert!(request.contains("\r\nx-kept: yes\r\n"), "{request}");
    for stripped in ["secret", "proxy-", "te:", "x-hop", "connection"] {
        assert!(!request.contains(stripped), "{stripped} in {request}");
    }
    let report = world.traffic.take();
    let [host] = report.hosts.as_slice() else { unreachable!("{report:?}") };
    assert_eq!((host.target.to_string(), host.connections), (format!("pkg.test:{port}"), 1));
    assert!(host.sent_bytes > 40 && host.received_bytes > 40, "{host:?}");
    assert!(world.traffic.take().hosts.is_empty(), "each report has only what is new");
}

#[tokio::test]
async fn a_body_is_passed_on_and_the_connection_is_used_again() {
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let server = Server::answering(answer).await;
    let port = server.port;
    let world = World::new(&format!("localhost:{port}"), "").await;
    let mut client = world.client().await;
    for _ in 0..2 {
        let request = format!(
            "POST http://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\
             Content-Length: 0\r\n\r\n"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"0\r\n\r\n") {
            assert_ne!(client.read_buf(&mut answer).await.unwrap(), 0);
        }
        assert!(String::from_utf8(answer).unwrap().contains("abc"));
    }
    assert_eq!(server.requests().len(), 2);
    assert_eq!(world.names.asked(), 0, "no resolver is asked about localhost");
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_and_counts_them() {
    let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = echo.local_addr().unwrap().port();
    let world = World::new(&format!("pkg.test:{port}=loopback"), "").await;
    world.names.set("pkg.test", &[&["127.0.0.1"], &["10.0.0.1"]]);
    let mut client = world.client().await;
    let connect = format!("CONNECT pkg.test:{port} HTTP/1.1\r\nHost: pkg.test:{port}\r\n\r\n");
    client.write_all(connect.as_bytes()).await.unwrap();
    let (mut host, _) = echo.accept().await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        client.read_buf(&mut answer).await.unwrap();
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{answer:?}");
    client.write_all(b"\x16\x03\x01 to the host").await.unwrap();
    let mut read = [0; 15];
    host.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"\x16\x03\x01 to the host");
    host.write_all(b"back").await.unwrap();
    drop(host);
    let mut back = Vec::new();
    client.read_to_end(&mut back).await.unwrap();
    assert_eq!(back, b"back");
    let report = world.traffic.take();
    assert_eq!((report.hosts[0].sent_bytes, report.hosts[0].received_bytes), (15, 4));
    assert_eq!(world.names.asked(), 1, "a name is resolved once for each connection");
}

#[tokio::test]
async fn a_redirect_is_checked_like_any_request() {
    let redirect = "HTTP/1.1 302 Found\r\nLocation: http://other.test/\r\nContent-Length: 0\r\n\
                    Connection: close\r\n\r\n";
    let server = Server::answering(redirect).await;
    let port = server.port;
    let world = World::new(&format!("pkg.test:{port}=loopback"), "").await;
    world.names.set("pkg.test", &[&["127.0.0.1"]]);
    world.names.set("other.test", &[&["127.0.0.1"]]);
    let answer = world.get(&format!("http://pkg.test:{port}/")).await;
    assert_eq!(status(&answer), 302, "the client follows it, not the proxy: {answer}");
    assert_eq!(status(&world.get("http://other.test/").await), 403);
    assert_eq!(world.names.asked(), 1, "a refused host is not even resolved");
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_is_told() {
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let world = World::new(&format!("localhost:{port} unknown.test"), "").await;
    let answer = world.connect(&format!("localhost:{port}")).await;
    assert_eq!(status(&answer), 502, "{answer}");
    let answer = world.get("http://unknown.test/").await;
    assert_eq!(status(&answer), 502, "{answer}");
    let hosts = world.traffic.take().hosts;
    let failures: Vec<_> = hosts.iter().filter_map(|host| host.failure.clone()).collect();
    assert!(failures[0].contains("cannot be reached"), "{failures:?}");
    assert!(failures[1].contains("cannot be resolved"), "{failures:?}");
}
