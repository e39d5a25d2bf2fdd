//! `antiphon mcp add`, `list`, `test` and `remove`.

use crate::world::World;

const STORE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tools/store.py");

#[test]
fn a_server_is_added_tried_listed_and_removed() {
    let world = World::new();
    let add = ["mcp", "add", "store", "--env", "LAMP=secret-oil", "--", "python3", STORE, "--flag"];
    let added = world.seen(&add, &[]);
    assert_eq!(added.code, 0, "{}", added.err);
    let twice = world.seen(&add, &[]);
    assert_eq!(twice.code, 2, "{}", twice.err);
    assert!(twice.err.contains("antiphon mcp remove store"), "{}", twice.err);
    let listed = world.seen(&["mcp", "list"], &[]).out;
    assert!(listed.contains(&format!("python3 {STORE} --flag")), "{listed}");
    assert!(!listed.contains("secret-oil"), "{listed}");
    let tested = world.seen(&["mcp", "test", "store"], &[]);
    assert_eq!(tested.code, 0, "{}", tested.err);
    assert!(tested.out.contains("mcp__store__count\n"), "{}", tested.out);
    let json = world.seen(&["mcp", "test", "store", "--json"], &[]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["seconds"].as_f64().unwrap() > 0.0, "{json}");
    assert_eq!(world.seen(&["mcp", "remove", "store"], &[]).code, 0);
    assert_eq!(world.seen(&["mcp", "remove", "store"], &[]).code, 2);
    assert_eq!(world.seen(&["mcp", "list", "--json"], &[]).out, "[]\n");
}

#[test]
fn what_does_not_work_says_so() {
    let world = World::new();
    assert_eq!(world.seen(&["mcp", "add", "gone", "--", "/nonexistent/server"], &[]).code, 0);
    let seen = world.seen(&["mcp", "test", "gone"], &[]);
    assert_eq!(seen.code, 4, "{}", seen.err);
    assert!(seen.err.contains("/nonexistent/server"), "{}", seen.err);
    let none = world.seen(&["mcp", "test", "other"], &[]);
    assert_eq!(none.code, 2, "{}", none.err);
    let before = world.config_text();
    let name = world.seen(&["mcp", "add", "bad__name", "--", "true"], &[]);
    assert_eq!(name.code, 2, "{}", name.err);
    let url = world.seen(&["mcp", "add", "web", "--env", "A=b", "https://host/mcp"], &[]);
    assert_eq!(url.code, 2, "{}", url.err);
    assert_eq!(world.config_text(), before);
}
