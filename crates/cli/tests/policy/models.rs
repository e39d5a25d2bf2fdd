//! Models, however they are named.

use crate::world::{World, greeter};

const READ: &str = "{ name = \"glob\", arguments = { pattern = \"*.toml\" } }";

const POLICY: &str = "models = [\"anthropic/claude-*\", \"scripted/hello\"]\n";

#[test]
fn no_flag_setting_variable_or_agent_gets_another_model() {
    for world in World::all(&[READ]) {
        world.run(&[]).is_done("work.toml");
        world.policy(POLICY);
        let part = "line 1: `models = ";
        world.run(&[]).is_refused(part);
        world.antiphon(&["run", "go", "--model", "scripted/hello"]).is_done("");
        world.antiphon(&["run", "go", "--model", "openai/gpt-5"]).is_refused(part);
        world
            .antiphon_with(&[("ANTIPHON_MODEL", "scripted/work")], &["run", "go"])
            .is_refused(part);
        let recording = ["run", "go", "--model", "openai/gpt-5", "--replay", "work.toml"];
        world.antiphon(&recording).is_refused(part);
        let work = world.path("project/work.toml");
        world.configure(&format!(
            "model = \"scripted/work\"\n[scripts]\nwork = \"{}\"\n",
            work.display()
        ));
        world.antiphon(&["run", "go"]).is_refused(part);
        world.antiphon(&["run", "go", "--model", "anthropic/../x"]).is_refused(part);
        let agent = |front: &str| {
            let text = format!("---\ndescription: An agent.\n{front}\n---\nWork.\n");
            world.write("home/.config/antiphon/agents/own.md", &text);
            world.antiphon(&["run", "go", "--agent", "own"])
        };
        agent("model: scripted/work").is_refused(part);
        let seen = agent("model: scripted/hello\nfallbacks: [scripted/work]");
        assert_ne!(seen.code, 0, "{}{}", seen.out, seen.err);
        seen.names_policy(part);
        agent("model: scripted/hello").is_done("");
        world.configure("[models.\"scripted/hello\"]\nfallbacks = [\"scripted/work\"]\n");
        world.antiphon(&["run", "go", "--model", "scripted/hello"]).is_refused(part);
    }
}

#[test]
fn a_provider_with_the_name_of_an_allowed_one_is_never_asked() {
    let (port, count) = greeter();
    for world in World::all(&[]) {
        *count.lock().unwrap() = 0;
        let url = format!("http://127.0.0.1:{port}");
        let run =
            ["run", "go", "--model", "anthropic/claude-x", "--retries", "0", "--max-seconds", "2"];
        let variables = [("ANTHROPIC_BASE_URL", url.as_str()), ("ANTHROPIC_API_KEY", "k")];
        world.antiphon_with(&variables, &run);
        let before = *count.lock().unwrap();
        assert!(before > 0, "it is asked without the policy");
        world.policy(POLICY);
        world.antiphon_with(&variables, &run).is_refused("is not allowed at http://127.0.0.1");
        for kind in ["anthropic", "openai"] {
            let own = format!(
                "[providers.anthropic]\nkind = \"{kind}\"\nbase_url = \"{url}\"\napi_key = \"k\"\n"
            );
            world.configure(&own);
            world.antiphon(&run).is_refused("is not allowed at http://127.0.0.1");
            world.configure(&own.replace("providers.anthropic", "providers.own"));
            world.antiphon(&["run", "go", "--model", "own/claude-x"]).is_refused("models = ");
        }
        assert_eq!(*count.lock().unwrap(), before);
    }
}

#[test]
fn a_recorded_task_is_not_continued_with_a_model_that_is_not_allowed() {
    for world in World::all(&[
        "{ name = \"bash\", arguments = { command = \"git push\", without_sandbox = true } }",
    ]) {
        assert_eq!(world.run(&["--ask", "wait"]).code, 3);
        assert_eq!(world.antiphon(&["approvals", "deny", "last"]).code, 0);
        world.policy(POLICY);
        let resumed = world.antiphon(&["run", "--resume", "last"]);
        assert_ne!(resumed.code, 0);
        resumed.names_policy("scripted/work");
        let resumed = world.antiphon(&["tasks", "resume", "last"]);
        assert_ne!(resumed.code, 0);
        resumed.names_policy("scripted/work");
        world.no_policy();
        assert_eq!(world.antiphon(&["run", "--resume", "last"]).code, 0);
        world.policy(POLICY);
        let continued = world.antiphon(&["run", "go", "--session", "last"]);
        assert_ne!(continued.code, 0);
        continued.names_policy("scripted/work");
    }
}

#[test]
fn no_request_of_a_client_gets_another_model() {
    for world in World::all(&[READ]) {
        world.policy(POLICY);
        let server = world.serve(&[]);
        let (status, body) =
            server.post("/v1/tasks", r#"{"message":"go","model":"scripted/team"}"#);
        assert_eq!(status, 403, "{body}");
        assert!(body.contains("/etc/antiphon/policy.toml, line 1"), "{body}");
        let (status, body) =
            server.post("/v1/tasks", r#"{"message":"go","model":"scripted/hello"}"#);
        assert_eq!(status, 201, "{body}");
        let chat = r#"{"model":"scripted/team","messages":[{"role":"user","content":"go"}]}"#;
        let (status, body) = server.post("/v1/chat/completions", chat);
        assert!(status >= 400 && body.contains("/etc/antiphon/policy.toml"), "{status} {body}");
        let agent =
            r#"{"name":"own","description":"An agent.","context":"Work.","model":"scripted/team"}"#;
        let (status, body) = server.post("/v1/agents", agent);
        assert!(status < 300, "{status} {body}");
        let (status, body) = server.post("/v1/tasks", r#"{"message":"go","agent":"own"}"#);
        assert_eq!(status, 403, "{body}");
    }
}
