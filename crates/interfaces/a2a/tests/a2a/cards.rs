//! Agent cards: what they declare, and how they are signed (sections 8 and 3.1.11 of the specification).

use antiphon_a2a_api::{CardKey, ExposedAgents};
use antiphon_core::AgentName;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::world::{Reply, World, request};

const CARD: &str = "/a2a/helper/.well-known/agent-card.json";

/// A world whose cards everyone can read.
async fn listed() -> World {
    let names = ["other", "helper"].map(|name| AgentName::parse(name).unwrap());
    World::with(ExposedAgents::Listed(names.to_vec()), &[]).await
}

/// Reads a path without credentials.
async fn open(world: &World, path: &str, more: &str) -> Reply {
    let text = request("GET", path, more, None);
    let lines = text.lines().filter(|line| !line.starts_with("authorization"));
    world.raw(&(lines.collect::<Vec<_>>().join("\r\n") + "\r\n\r\n")).await
}

#[tokio::test]
async fn a_card_declares_its_interfaces() {
    let world = listed().await;
    let port = world.server.address.port();
    for (path, agent) in [("/.well-known/agent-card.json", "other"), (CARD, "helper")] {
        let reply = open(&world, path, "").await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(reply.head.contains("etag: \"") && reply.head.contains("cache-control: "));
        let card = reply.json();
        assert_eq!(card["name"], agent);
        for required in ["description", "version", "capabilities", "skills", "defaultInputModes"] {
            assert!(!card[required].is_null(), "{required}: {card}");
        }
        assert_eq!(card["securityRequirements"][0]["schemes"]["bearer"]["list"], json!(["write"]));
        let interfaces = card["supportedInterfaces"].as_array().unwrap();
        let bindings: Vec<&Value> =
            interfaces.iter().map(|interface| &interface["protocolBinding"]).collect();
        assert_eq!(bindings, ["JSONRPC", "HTTP+JSON"]);
        for interface in interfaces {
            assert_eq!(interface["protocolVersion"], "1.0");
            assert_eq!(interface["url"], format!("http://localhost:{port}/a2a/{agent}"));
        }
    }
    world.ended().await;
}

#[tokio::test]
async fn the_extended_card_needs_credentials() {
    let world = listed().await;
    let card = world.rpc("GetExtendedAgentCard", json!({})).await;
    assert_eq!(card["result"]["name"], "helper", "{card}");
    let text = request("GET", "/a2a/helper/extendedAgentCard", "a2a-version: 1.0\r\n", None);
    assert_eq!(world.raw(&text).await.json()["name"], "helper");
    let stranger = world.raw(&text.replacen("authorization: Bearer ", "x-not: ", 1)).await;
    assert_eq!(stranger.status, 401);
    world.ended().await;
}

/// Whether a signature of a card is that of the key, over the card as it was received.
fn is_signed(card: &Value, keys: &Value) -> bool {
    let mut unsigned = card.clone();
    unsigned.as_object_mut().unwrap().remove("signatures");
    let payload = serde_json_canonicalizer::to_vec(&unsigned).unwrap();
    let signature = &card["signatures"][0];
    let protected = signature["protected"].as_str().unwrap();
    let decode = |text: &Value| BASE64_URL_SAFE_NO_PAD.decode(text.as_str().unwrap()).unwrap();
    let header: Value = serde_json::from_slice(&decode(&signature["protected"])).unwrap();
    assert_eq!((&header["alg"], &header["typ"]), (&json!("ES256"), &json!("JOSE")));
    assert!(header["jku"].as_str().unwrap().ends_with("/.well-known/jwks.json"), "{header}");
    let key = keys["keys"].as_array().unwrap().iter().find(|key| key["kid"] == header["kid"]);
    let key = key.unwrap_or_else(|| panic!("no key {header}: {keys}"));
    let point = [&[4][..], &decode(&key["x"]), &decode(&key["y"])].concat();
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
    let signed = format!("{protected}.{}", BASE64_URL_SAFE_NO_PAD.encode(payload));
    key.verify(signed.as_bytes(), &decode(&signature["signature"])).is_ok()
}

#[tokio::test]
async fn cards_are_signed_with_the_key_of_the_state_folder() {
    let world = listed().await;
    let keys = open(&world, "/.well-known/jwks.json", "").await;
    assert_eq!(keys.status, 200, "{keys:?}");
    let keys = keys.json();
    assert_eq!(keys, CardKey::in_state(world.folder.path()).unwrap().public());
    assert!(!keys.to_string().contains("\"d\""), "the private part is shown: {keys}");
    let public = open(&world, CARD, "").await.json();
    let extended = world.rpc("GetExtendedAgentCard", json!({})).await["result"].clone();
    for card in [public, extended] {
        assert!(is_signed(&card, &keys), "{card}");
        let mut changed = card.clone();
        changed["supportedInterfaces"][0]["url"] = json!("https://evil.example");
        assert!(!is_signed(&changed, &keys), "a changed card is still signed");
    }
    world.ended().await;
}

/// A signature has a random part; what it signs is known by its tag all the same.
#[tokio::test]
async fn the_tag_of_a_card_is_that_of_what_is_signed() {
    let world = listed().await;
    let (first, second) = (open(&world, CARD, "").await, open(&world, CARD, "").await);
    assert_ne!(first.json()["signatures"], second.json()["signatures"]);
    let tag = |reply: &Reply| {
        reply.head.lines().find(|line| line.starts_with("etag: ")).unwrap().to_owned()
    };
    assert_eq!(tag(&first), tag(&second));
    let other = open(&world, "/.well-known/agent-card.json", "").await;
    assert_ne!(tag(&first), tag(&other), "another card");
    world.ended().await;
}

#[tokio::test]
async fn the_public_key_of_an_unlisted_server_needs_credentials() {
    let world = World::new().await;
    assert_eq!(open(&world, "/.well-known/jwks.json", "").await.status, 401);
    assert_eq!(world.http("GET", "/.well-known/jwks.json", None).await.status, 200);
    world.ended().await;
}
