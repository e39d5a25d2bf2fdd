//! The contract of tools, on a real server.

use antiphon_conformance::tool::{self, Example, ToolFixture};
use serde_json::json;

use crate::real::npm;
use crate::world::{ready, with};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_of_a_server_keep_the_contract_of_tools() {
    let allow = json!({"allow": [
        "echo", "get-sum", "get-tiny-image", "get-structured-content", "trigger-long-running-operation",
        "get-resource-reference",
    ]});
    let mcp = ready(with(npm("server-everything", &["stdio"]), allow)).await;
    let bench = ToolFixture::new(mcp)
        .example(Example::of("mcp__s__echo").good(r#"{"message":"hi"}"#).bad("{}"))
        .example(Example::of("mcp__s__get-sum").good(r#"{"a":1,"b":2}"#).bad(r#"{"a":"1","b":2}"#))
        .example(Example::of("mcp__s__get-tiny-image").good("{}"))
        .example(
            Example::of("mcp__s__get-structured-content")
                .good(r#"{"location":"Chicago"}"#)
                .bad(r#"{"location":"Atlantis"}"#),
        )
        .example(
            Example::of("mcp__s__get-resource-reference")
                .good(r#"{"resourceType":"Text","resourceId":1}"#)
                .failing(r#"{"resourceType":"Text","resourceId":-1}"#)
                .bad(r#"{"resourceType":7}"#),
        )
        .example(
            Example::of("mcp__s__trigger-long-running-operation")
                .slow(r#"{"duration":600,"steps":2}"#)
                .bad(r#"{"steps":"many"}"#),
        );
    let passed = tool::check(async || bench.clone()).await.unwrap();
    assert_eq!(passed.checks.len(), tool::checks().len(), "{passed:?}");
}
