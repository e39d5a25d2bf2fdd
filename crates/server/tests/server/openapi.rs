//! What the API says of itself: everything, to everybody, and the same as `docs/openapi.json`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::client::{Reply, request, say};
use crate::world::{Served, TOKEN};

/// Asks as a stranger.
async fn ask(served: &Served, path: &str) -> Reply {
    let text = request(served.address, "GET", path, None);
    say(served.address, &text.replacen(&format!("authorization: Bearer {TOKEN}\r\n"), "", 1)).await
}

async fn document(served: &Served) -> Value {
    let reply = ask(served, "/openapi.json").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.head.contains("content-type: application/json"), "{reply:?}");
    reply.json()
}

/// Every operation, with its path and method.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    });
    operations.collect()
}

#[tokio::test]
async fn the_document_in_docs_is_the_one_that_is_served() {
    let served = Served::new().await;
    let written = serde_json::to_string_pretty(&document(&served).await).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &written).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == written,
        "docs/openapi.json is old: UPDATE=1 cargo nextest run -p antiphon-server openapi"
    );
    served.ended().await;
}
