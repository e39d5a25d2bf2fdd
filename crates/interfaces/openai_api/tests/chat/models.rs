//! Who can be named.

use serde_json::json;

use crate::client::{request, say};
use crate::world::TestServer;

#[tokio::test]
async fn agents_and_known_models_are_listed_and_shown() {
    let server = TestServer::new().await;
    let model = |id: &str, owner: &str| json!({ "id": id, "object": "model", "created": 0, "owned_by": owner });
    let listed = say(&server, &request("GET", "/v1/models", "", "")).await;
    let expected = json!([
        model("boss", "antiphon"),
        model("helper", "antiphon"),
        model("scripted/test", "scripted"),
    ]);
    assert_eq!(listed.json(), json!({ "object": "list", "data": expected }));
    for path in ["/v1/models/scripted/test", "/v1/models/scripted%2Ftest"] {
        let shown = say(&server, &request("GET", path, "", "")).await;
        assert_eq!(shown.json(), model("scripted/test", "scripted"));
    }
    let none = say(&server, &request("GET", "/v1/models/nobody", "", "")).await;
    assert_eq!((none.status, &none.json()["error"]["code"]), (404, &json!("model_not_found")));
    server.ended().await;
}
