//! The network by host, as a person meets it in the binary. Servers are on loopback; hosts that are
//! refused are never resolved.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/project_folder.rs"]
mod project_folder;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use assert_cmd::Command;
use serde_json::Value;

use project_folder::{ProjectFolder, antiphon as binary, home};

/// Records the path of each request and greets. It ends with the test's process.
fn server() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&seen);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let mut lines = BufReader::new(&client).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
            log.lock().unwrap().push(first.split(' ').nth(1).unwrap_or_default().to_owned());
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nwelcome";
            let _ = (&client).write_all(answer.as_bytes());
        }
    });
    (port, seen)
}

/// A project whose model runs one command, for which it asks for `hosts`.
fn project(command: &str, hosts: &str, config: &str) -> ProjectFolder {
    project_in(ProjectFolder::new(), command, hosts, config)
}

fn project_in(folder: ProjectFolder, command: &str, hosts: &str, config: &str) -> ProjectFolder {
    let script = format!(
        "name = \"work\"\n[[reply]]\nwhen = {{ turn = 0 }}\nstep = [{{ call = {{ name = \"bash\", \
         arguments = {{ command = '''{command}''', hosts = {hosts} }} }} }}]\n\
         [[reply]]\nstep = [{{ text = \"{{{{last_result}}}}\" }}]\n"
    );
    fs::write(folder.path().join("work.toml"), script).unwrap();
    fs::create_dir_all(home(folder.path()).join(".config/antiphon")).unwrap();
    fs::write(home(folder.path()).join(".config/antiphon/config.toml"), config).unwrap();
    folder
}

/// Exit code, output, errors.
fn antiphon(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::from_std(binary(folder))
        .args(arguments)
        .timeout(std::time::Duration::from_secs(60))
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn run(folder: &Path, more: &[&str]) -> (i32, String, String) {
    let begin = ["run", "go", "--model", "scripted/work", "--script", "work.toml"];
    antiphon(folder, &[&begin, more].concat())
}

#[test]
fn a_host_is_off_by_default_and_the_model_reads_how_to_ask_for_it() {
    for folder in ProjectFolder::each() {
        let folder = project_in(folder, "curl -sSf https://packages.test/", "[]", "");
        let (code, out, err) = run(folder.path(), &[]);
        assert_eq!(code, 0, "{err}");
        assert!(out.contains("refused packages.test:443: the user has not allowed"), "{out}");
        assert!(out.contains("\"hosts\": [\"packages.test\"]"), "{out}");
    }
}

#[test]
fn without_a_person_to_ask_the_rule_is_named_and_with_it_the_host_is_reached() {
    let (port, seen) = server();
    let (command, rule) =
        (format!("curl -sSf http://localhost:{port}/a"), format!("network(localhost:{port})"));
    let folder = project(&command, &format!("[\"localhost:{port}\"]"), "");
    let (code, out, err) = run(folder.path(), &[]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("not allowed") && out.contains(&rule), "{out}");
    assert!(seen.lock().unwrap().is_empty());
    let (_, out, _) = run(folder.path(), &["--allow", &rule]);
    assert!(out.starts_with("welcome"), "{out}");
    assert!(out.contains(&format!("[network: localhost:{port}: 1 connection, ")), "{out}");
    // The rule is enough: the call need not name the host.
    let folder = project(&command, "[]", "");
    assert!(run(folder.path(), &["--allow", &rule]).1.starts_with("welcome"));
    let config = format!("[permissions]\nallow = [\"{rule}\"]\n");
    let folder = project(&command, "[]", &config);
    assert!(run(folder.path(), &[]).1.starts_with("welcome"));
    assert_eq!(*seen.lock().unwrap(), ["/a", "/a", "/a"]);
    let (code, _, err) = run(folder.path(), &["--allow", "network(*.com)"]);
    assert!(code == 2 && err.contains("too broad"), "{code} {err}");
}

#[test]
fn a_person_is_asked_about_a_new_host_and_can_allow_it_always() {
    for folder in ProjectFolder::each() {
        asks_about_a_new_host(folder);
    }
}

fn asks_about_a_new_host(folder: ProjectFolder) {
    let (port, seen) = server();
    let command = format!("curl -sSf http://localhost:{port}/b");
    let folder = project_in(folder, &command, &format!("[\"localhost:{port}\"]"), "");
    let (code, _, err) = run(folder.path(), &["--ask", "wait"]);
    assert_eq!(code, 3, "{err}");
    let listed = antiphon(folder.path(), &["approvals", "list", "--json"]).1;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["rule"], format!("network(localhost:{port})"));
    let reason = listed[0]["reason"].as_str().unwrap();
    assert!(reason.contains(&format!("the host `localhost:{port}`")), "{reason}");
    assert!(seen.lock().unwrap().is_empty());
    assert_eq!(antiphon(folder.path(), &["approvals", "allow", "--always", "last"]).0, 0);
    let (code, out, err) = antiphon(folder.path(), &["run", "--resume", "last"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("welcome"), "{out}");
    let kept = home(folder.path()).join(".config/antiphon/permissions.toml");
    assert!(fs::read_to_string(kept).unwrap().contains("network(localhost"));
    // A later task is not asked.
    assert!(run(folder.path(), &[]).1.starts_with("welcome"));
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[test]
fn what_is_allowed_once_is_not_allowed_again_and_nothing_in_the_project_allows_a_host() {
    let (port, seen) = server();
    let command = format!("curl -sSf http://localhost:{port}/c");
    let folder = project(&command, &format!("[\"localhost:{port}\"]"), "");
    let rule = format!("[permissions]\nallow = [\"network(localhost:{port})\", \"network\"]\n");
    fs::create_dir_all(folder.path().join(".antiphon")).unwrap();
    for name in ["antiphon.toml", ".antiphon/antiphon.toml", ".antiphon/config.toml"] {
        fs::write(folder.path().join(name), &rule).unwrap();
    }
    assert_eq!(run(folder.path(), &["--ask", "wait"]).0, 3);
    assert_eq!(antiphon(folder.path(), &["approvals", "allow", "last"]).0, 0);
    let resumed = antiphon(folder.path(), &["run", "--resume", "last"]);
    assert!(resumed.1.contains("welcome"), "{} {}", resumed.1, resumed.2);
    assert_eq!(run(folder.path(), &["--ask", "wait"]).0, 3);
    assert_eq!(antiphon(folder.path(), &["approvals", "deny", "last"]).0, 0);
    let resumed = antiphon(folder.path(), &["run", "--resume", "last"]);
    assert!(resumed.1.contains("denied"), "{}", resumed.1);
    assert_eq!(*seen.lock().unwrap(), ["/c"]);
}

#[test]
fn a_page_is_got_from_an_allowed_host_alone() {
    let (port, seen) = server();
    let folder = ProjectFolder::new();
    let script = format!(
        "name = \"work\"\n[[reply]]\nwhen = {{ turn = 0 }}\nstep = [{{ call = {{ name = \"web_fetch\", \
         arguments = {{ url = \"http://127.0.0.1:{port}/page\" }} }} }}]\n\
         [[reply]]\nstep = [{{ text = \"{{{{last_result}}}}\" }}]\n"
    );
    fs::write(folder.path().join("work.toml"), script).unwrap();
    let rule = format!("network(127.0.0.1:{port})");
    let (code, out, err) = run(folder.path(), &[]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains(&rule) && !out.contains("welcome"), "{out}");
    assert!(seen.lock().unwrap().is_empty(), "no packet is sent");
    let (code, out, err) = run(folder.path(), &["--allow", &rule]);
    assert_eq!(code, 0, "{err}");
    let lines: Vec<&str> = out.lines().collect();
    let [said, begin, "welcome", end] = lines[..] else { panic!("{out}") };
    assert!(said.contains("It is data"), "{out}");
    assert!(begin.starts_with("=== ") && begin == end && said.contains(&begin[4..]), "{out}");
    assert_eq!(*seen.lock().unwrap(), ["/page"]);
}
