//! Requests that are refused, and that nothing is sent for.

use antiphon_egress_proxy::Refusal;
use antiphon_hosts::AddressClass;

use crate::world::{Server, World, status};

#[tokio::test]
async fn a_host_that_is_not_allowed_is_refused_before_it_is_resolved() {
    let world = World::new("allowed.test *.below.test", "bad.below.test").await;
    for host in [
        "other.test",
        "notallowed.test",
        "allowed.test.evil.test",
        "sub.allowed.test",
        "below.test",
        "1.1.1.1",
        "localhost",
        "[::1]",
        "0x7f.1",
    ] {
        assert_eq!(status(&world.connect(&format!("{host}:443")).await), 403, "{host}");
        assert_eq!(status(&world.get(&format!("http://{host}/")).await), 403, "{host}");
    }
    assert_eq!(status(&world.connect("allowed.test:22").await), 403);
    assert_eq!(status(&world.connect("bad.below.test:443").await), 403);
    assert_eq!(world.names.asked(), 0);
    let hosts = world.traffic.take().hosts;
    let refusal = |target: &str| {
        let host = hosts.iter().find(|host| host.target.to_string() == target);
        host.and_then(|host| host.refusal.clone())
    };
    assert_eq!(refusal("other.test:443"), Some(Refusal::NotAllowed));
    assert_eq!(refusal("127.0.0.1:443"), Some(Refusal::NotAllowed));
    assert_eq!(refusal("bad.below.test:443"), Some(Refusal::Denied));
    assert!(hosts.iter().all(|host| host.connections == 0));
}

#[tokio::test]
async fn every_special_address_of_an_allowed_name_is_refused() {
    use AddressClass::{LinkLocal, Loopback, Metadata, Multicast, Private, Reserved, Translated};
    let server = Server::hello().await;
    let port = server.port;
    let world = World::new(&format!("trap.test:{port}"), "").await;
    for (address, class) in [
        ("127.0.0.1", Loopback),
        ("::1", Loopback),
        ("10.1.2.3", Private),
        ("172.16.0.1", Private),
        ("192.168.1.1", Private),
        ("100.64.0.1", Private),
        ("fd12::1", Private),
        ("169.254.169.254", LinkLocal),
        ("fe80::1", LinkLocal),
        ("100.100.100.200", Metadata),
        ("fd00:ec2::254", Metadata),
        ("168.63.129.16", Metadata),
        ("224.0.0.1", Multicast),
        ("ff02::1", Multicast),
        ("::ffff:127.0.0.1", Translated),
        ("64:ff9b::7f00:1", Translated),
        ("2002:7f00:1::", Translated),
        ("0.0.0.0", Reserved),
        ("::", Reserved),
        ("255.255.255.255", Reserved),
    ] {
        world.names.set("trap.test", &[&[address]]);
        let answer = world.connect(&format!("trap.test:{port}")).await;
        assert_eq!(status(&answer), 403, "{address}: {answer}");
        let report = world.traffic.take();
        let expected = Refusal::Address { address: address.parse().unwrap(), class };
        assert_eq!(report.hosts[0].refusal, Some(expected), "{address}");
        assert_eq!(report.hosts[0].connections, 0);
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn no_rule_opens_a_metadata_or_translated_address() {
    let allow = "trap.test=private 169.254.169.254 [::ffff:127.0.0.1] 0.0.0.0 100.100.100.200";
    let world = World::new(allow, "").await;
    world.names.set("trap.test", &[&["169.254.169.254", "fd00:ec2::254", "::ffff:10.0.0.1"]]);
    for host in ["trap.test", "169.254.169.254", "[::ffff:127.0.0.1]", "0.0.0.0", "100.100.100.200"]
    {
        assert_eq!(status(&world.connect(&format!("{host}:80")).await), 403, "{host}");
    }
    assert!(world.traffic.take().hosts.iter().all(|host| host.connections == 0));
}

#[tokio::test]
async fn of_several_addresses_only_an_allowed_one_is_used() {
    let server = Server::hello().await;
    let port = server.port;
    let world = World::new(&format!("pkg.test:{port}=loopback"), "").await;
    world.names.set("pkg.test", &[&["169.254.169.254", "10.0.0.1", "127.0.0.1"]]);
    let answer = world.get(&format!("http://pkg.test:{port}/")).await;
    assert_eq!(status(&answer), 200, "{answer}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_denied_address_is_denied_under_any_name() {
    let server = Server::hello().await;
    let port = server.port;
    let allow = format!("pkg.test:{port}=loopback");
    let world = World::new(&allow, "127.0.0.1").await;
    world.names.set("pkg.test", &[&["127.0.0.1"]]);
    assert_eq!(status(&world.connect(&format!("pkg.test:{port}")).await), 403);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn ambiguous_requests_are_refused() {
    let server = Server::hello().await;
    let port = server.port;
    let world = World::new(&format!("localhost:{port}"), "").await;
    let url = format!("http://localhost:{port}/");
    for request in [
        format!("GET {url} HTTP/1.1\r\nHost: other.test\r\n\r\n"),
        format!("GET {url} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET {url} HTTP/1.1\r\nHost: localhost:{port}\r\nHost: other.test\r\n\r\n"),
        format!("GET {url} HTTP/1.1\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"),
        format!("GET https://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"),
        format!(
            "GET http://other.test@localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"
        ),
        format!("GET ftp://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"),
        "CONNECT localhost HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "CONNECT localhost:0 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "nonsense\r\n\r\n".to_owned(),
    ] {
        let answer = world.send(&request).await;
        assert_eq!(status(&answer), 400, "{request}{answer}");
    }
    assert!(server.requests().is_empty());
}
