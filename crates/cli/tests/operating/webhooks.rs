//! Events from outside, as the user's configuration lets them in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::json;

use crate::project_folder::{home, state};
use crate::server::{Project, Server};

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const CONFIG: &str = r#"
[webhooks.ci]
agent = "scribe"
secret_env = "CI_SECRET"
salience = "important"

[webhooks.off]
agent = "scribe"
secret_env = "OFF_SECRET"
scheme = "github"
"#;

fn project() -> Project {
    let project = Project::new();
    project.configure(CONFIG);
    let agents = home(project.path()).join(".config/antiphon/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let scribe = "---\nname: scribe\ndescription: writes\nmodel: scripted/hello\n---\nYou write.\n";
    std::fs::write(agents.join("scribe.md"), scribe).unwrap();
    project
}

/// The lines that sign a body.
pub(crate) fn signed(id: &str, body: &str) -> String {
    let now = chrono::Utc::now().timestamp();
    let secret = STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
    let signature = STANDARD.encode(hmac::sign(&key, format!("{id}.{now}.{body}").as_bytes()));
    format!("webhook-id: {id}\r\nwebhook-timestamp: {now}\r\nwebhook-signature: v1,{signature}\r\n")
}

#[test]
fn an_event_reaches_its_agent_once_also_over_a_crash() {
    let project = project();
    let secrets = [("CI_SECRET", SECRET), ("OFF_SECRET", " ")];
    let server = Server::with(&project, &[], &secrets);
    let body = r#"{"body": "The build is red", "build": 7}"#;
    let send = |server: &Server, source: &str, lines: &str| {
        server.ask("", &format!("POST /v1/events/{source}"), lines, body)
    };
    let lines = signed("msg_1", body);
    let accepted = (202, json!({"receipt": "accepted"}).to_string());
    assert_eq!(send(&server, "ci", &lines), accepted);
    server.kill();
    let server = Server::with(&project, &[], &secrets);
    assert_eq!(send(&server, "ci", &lines), (202, json!({"receipt": "deduplicated"}).to_string()));
    assert_eq!(send(&server, "ci", &signed("msg_2", body)), accepted);
    assert_eq!(send(&server, "ci", "").0, 401);
    // Off and unknown are the same.
    assert_eq!(send(&server, "off", &lines), send(&server, "nobody", &lines));
    assert_eq!(send(&server, "off", &lines).0, 404);
    server.end();
    assert!(project.log().contains("OFF_SECRET is not set"), "{}", project.log());
}

#[test]
fn a_doctor_says_which_events_are_taken_and_shows_no_secret() {
    let project = project();
    let output = project.command(&["doctor", "--json"]).env("CI_SECRET", SECRET).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        report["webhooks"],
        json!([
            {
                "source": "ci", "agent": "scribe", "scheme": "standard", "status": "ready",
                "detail": "CI_SECRET is set",
            },
            {
                "source": "off", "agent": "scribe", "scheme": "github", "status": "not_configured",
                "detail": "off", "remedy": "set OFF_SECRET to use it",
            },
        ])
    );
    let output = project.command(&["doctor"]).env("CI_SECRET", "too short").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("WEBHOOK"), "{said}");
    assert!(said.contains("a secret has at least 16 bytes"), "{said}");
    assert!(!said.contains("too short"), "{said}");
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn webhooks_that_make_no_sense_are_refused_before_anything_is_begun() {
    for (config, says) in [
        ("agent = \"a\"\nsecret_env = \"SHORT\"", "at least 16 bytes"),
        ("agent = \"a\"\nsecret_env = \"CUT\"", "expected base64"),
        ("agent = \"a\"", "secret_env"),
        ("secret_env = \"SHORT\"", "agent"),
        ("agent = \"a\"\nsecret = \"in the file\"\nsecret_env = \"X\"", "secret"),
        ("agent = \"a\"\nsecret_env = \"X\"\nscheme = \"none\"", "none"),
        ("agent = \"a\"\nsecret_env = \"X\"\nbody_bytes_max = 100000000", "body_bytes_max"),
        ("agent = \"a\"\nsecret_env = \"X\"\nrate_per_minute = 0", "rate limit"),
    ] {
        let project = Project::new();
        project.configure(&format!("[webhooks.ci]\n{config}\n"));
        let mut command = project.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("SHORT", "s3cr3t").env("CUT", "whsec_s3cr3t!");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{config}: {said}");
        assert!(said.contains(says) && !said.contains("s3cr3t"), "{config}: {said}");
        assert!(!state(project.path()).join("journal.db").exists(), "nothing was begun");
    }
}
