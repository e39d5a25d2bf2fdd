//! Cards, and the addresses in them and in the settings.

use antiphon_a2a::{A2aRunner, RemoteAgentConfig, RemoteAgents};
use antiphon_core::port::Runner as _;
use serde_json::{Value, json};

use crate::fake_agent::{Answer, FakeAgent, card};
use crate::local::{HASTY, Local, runner};

async fn refused(change: impl Fn(&mut Value), words: &str) {
    let fake = FakeAgent::new(|_, _| Answer::Error(-32601)).await;
    let mut text = card(&fake.url, true);
    change(&mut text);
    let fake = fake.with_card(200, text.to_string());
    refused_by(&fake, words).await;
    assert!(fake.requests("SendStreamingMessage").is_empty(), "nothing is sent to it");
}

async fn refused_by(fake: &FakeAgent, words: &str) {
    let local = Local::new(&fake.url);
    let (code, error) = local.failure("hi").await;
    assert_eq!(code, "runner_refused", "{error}");
    assert!(error.contains(words) && error.len() < 800, "{words}: {error}");
    local.stop().await;
}

#[tokio::test]
async fn cards_that_are_wrong_are_refused_with_the_reason() {
    refused(|card| card["name"] = json!(7), "its card: ").await;
    refused(|card| card["supportedInterfaces"] = json!([]), "lists no interface").await;
    refused(|card| card["supportedInterfaces"] = json!("x"), "its card: ").await;
    refused(|card| card["supportedInterfaces"][1]["protocolBinding"] = json!("SMOKE"), "`SMOKE`")
        .await;
    refused(|card| card["supportedInterfaces"][1]["url"] = json!("no address"), "not an address")
        .await;
    let fake = FakeAgent::new(|_, _| Answer::Error(-32601)).await.with_card(200, "not JSON");
    refused_by(&fake, "not JSON").await;
    let long = " ".repeat(300 * 1024);
    let fake = FakeAgent::new(|_, _| Answer::Error(-32601)).await.with_card(200, long);
    refused_by(&fake, "262144 bytes").await;
}

#[tokio::test]
async fn an_agent_of_the_older_protocol_is_refused_with_its_version() {
    let old = |card: &mut Value| {
        *card = json!({
            "name": "old", "url": "http://127.0.0.1:1/", "protocolVersion": "0.3.0",
            "preferredTransport": "JSONRPC", "skills": [],
        });
    };
    refused(old, "it speaks A2A 0.3.0").await;
    let newer = |card: &mut Value| card["supportedInterfaces"][1]["protocolVersion"] = json!("0.3");
    refused(newer, "it speaks A2A 0.3").await;
}

#[tokio::test]
async fn an_interface_at_another_host_is_refused_unless_the_user_names_it() {
    for url in [
        "http://127.0.0.1:1/rpc",
        "http://169.254.169.254/rpc",
        "https://agents.example/rpc",
        "file:///etc/passwd",
        "http://localhost.agents.example/rpc",
    ] {
        let change = |card: &mut Value| card["supportedInterfaces"][1]["url"] = json!(url);
        refused(change, "another host").await;
    }
}

#[test]
fn addresses_that_are_not_allowed_are_refused_in_the_settings() {
    let add = |card: &str, token: bool, hosts: &[&str]| {
        let config = RemoteAgentConfig {
            card: card.to_owned(),
            token: token.then(|| "secret".into()),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            header: None,
            card_keys: None,
        };
        RemoteAgents::default().add("x", &config).map_err(|error| error.to_string())
    };
    assert_eq!(add("https://agents.example", true, &[]), Ok(()));
    assert_eq!(add("http://127.0.0.1:7117/a2a/x", true, &[]), Ok(()));
    assert_eq!(add("http://corp.example", false, &["corp.example=private"]), Ok(()));
    for (card, token, words) in [
        ("nonsense", false, "not an address"),
        ("file:///etc/passwd", false, "http or https"),
        ("http://agents.example", false, "https"),
        ("https://user:pass@agents.example", false, "password"),
        ("http://169.254.169.254/card", false, "not a public"),
    ] {
        let error = add(card, token, &[]).unwrap_err();
        assert!(error.contains(words), "{card}: {error}");
    }
    let error = add("http://corp.example", true, &["corp.example=private"]).unwrap_err();
    assert!(error.contains("in the clear") && !error.contains("secret"), "{error}");
}

#[test]
fn a_configuration_names_a_remote_agent_and_nothing_else() {
    let runner = runner("https://agents.example", &[]);
    assert_eq!(runner.check(&json!({ "peer": "there" })), Ok(()));
    assert_eq!(runner.check(&json!({})), Ok(()));
    assert_eq!(runner.with_defaults(&json!({})), json!({ "peer": "there" }));
    let unknown = runner.check(&json!({ "peer": "nowhere" })).unwrap_err();
    assert_eq!(unknown, "there is no remote agent `nowhere`, only there");
    for config in [
        json!({ "peer": "there", "card": "http://127.0.0.1/" }),
        json!({ "card": "http://127.0.0.1/" }),
        json!({ "peer": "there", "token": "x" }),
        json!("there"),
    ] {
        assert!(runner.check(&config).is_err(), "{config}");
    }
    let none = A2aRunner::new(RemoteAgents::default(), HASTY);
    let error = none.check(&json!({ "peer": "there" })).unwrap_err();
    assert_eq!(error, "there is no remote agent `there`: none is configured");
}

/// A key on P-256, and the card of an agent that it has signed as RFC 7515 and RFC 8785 have it.
#[tokio::test]
async fn a_card_that_has_to_be_signed_is_refused_unless_it_is() {
    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING as ES256, EcdsaKeyPair, KeyPair as _};

    let random = SystemRandom::new();
    let der = EcdsaKeyPair::generate_pkcs8(&ES256, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ES256, der.as_ref(), &random).unwrap();
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    let (x, y) = (BASE64.encode(x), BASE64.encode(y));
    let keys = json!({ "keys": [{ "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "one" }] });
    let sign = |card: &Value, header: Value| {
        let protected = BASE64.encode(header.to_string());
        let canonical = serde_json_canonicalizer::to_vec(card).unwrap();
        let signed = format!("{protected}.{}", BASE64.encode(canonical));
        let signature = BASE64.encode(pair.sign(&random, signed.as_bytes()).unwrap());
        let mut signed = card.clone();
        signed["signatures"] = json!([{ "protected": protected, "signature": signature }]);
        signed
    };
    let es256 = json!({ "alg": "ES256", "kid": "one", "typ": "JOSE" });
    let fake = FakeAgent::new(|_, _| Answer::Error(-32601)).await;
    let plain = card(&fake.url, true);
    let signed = sign(&plain, es256.clone());
    // Signed without its empty fields, and sent with them.
    let mut full = plain.clone();
    full.as_object_mut().unwrap().remove("skills");
    let mut with_empty = sign(&full, es256.clone());
    with_empty["skills"] = json!([]);
    with_empty["iconUrl"] = json!("");
    let mut changed = signed.clone();
    changed["name"] = json!("mallory");
    let mut unsigned = signed.clone();
    unsigned["signatures"] = json!([]);
    let mut cut = signed.clone();
    cut["signatures"][0]["signature"] = json!("AAAA");
    let of_another = sign(&plain, json!({ "alg": "ES256", "kid": "two" }));
    let none = sign(&plain, json!({ "alg": "none", "kid": "one" }));
    let critical = sign(&plain, json!({ "alg": "ES256", "kid": "one", "crit": ["x"] }));
    for (card, reason) in [
        (signed, None),
        (with_empty, None),
        (changed, Some("none of its signatures")),
        (unsigned, Some("it is not signed")),
        (plain.clone(), Some("it is not signed")),
        (cut, Some("none of its signatures")),
        (of_another, Some("none of its signatures")),
        (none, Some("none of its signatures")),
        (critical, Some("none of its signatures")),
    ] {
        let fake = FakeAgent::new(|_, _| Answer::Error(-32601)).await;
        // Each agent has an address of its own, which is signed too.
        let text = card.to_string();
        let served = fake.with_card(200, text.clone());
        let mut agents = RemoteAgents::default();
        let config = RemoteAgentConfig {
            card: served.url.clone(),
            hosts: vec!["127.0.0.1=loopback".to_owned()],
            card_keys: Some(keys.to_string()),
            ..RemoteAgentConfig::default()
        };
        agents.add("there", &config).unwrap();
        let journal = std::sync::Arc::new(antiphon_conformance::reference::MemoryJournal::new());
        let local = Local::with(A2aRunner::new(agents, HASTY), journal);
        let (code, error) = local.failure("hi").await;
        match reason {
            Some(reason) => assert!(error.contains(reason), "{text}: {error}"),
            // It is asked where the card says: the agent that the card was made for answers no method.
            None => assert!(!error.contains("sign"), "{code}: {error}"),
        }
        local.stop().await;
    }
}

#[test]
fn keys_of_cards_that_cannot_be_read_are_refused() {
    for wrong in ["", "{}", "{\"keys\":[]}", "{\"keys\":[{\"kty\":\"RSA\"}]}"] {
        let card_keys = Some(wrong.to_owned());
        let config = RemoteAgentConfig {
            card: "http://127.0.0.1:1/".to_owned(),
            card_keys,
            ..RemoteAgentConfig::default()
        };
        let error = RemoteAgents::default().add("there", &config).unwrap_err().to_string();
        assert!(error.contains("`card_keys`"), "{wrong}: {error}");
    }
}
