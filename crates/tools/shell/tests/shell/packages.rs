//! Package managers in the sandbox install from a server on loopback whose host is allowed.

use std::process::Command;

use crate::bench::Bench;
use crate::network::{Server, answer, bench};

/// Runs a program outside of the sandbox, to prepare a package.
fn prepare(bench: &Bench, program: &str, args: &[&str]) {
    let done = Command::new(program).args(args).current_dir(bench.folder.path()).status().unwrap();
    assert!(done.success(), "{program}");
}

#[tokio::test]
async fn pip_installs_from_an_allowed_host_and_from_no_other() {
    const WHEEL: &str = "greeting-1.0-py3-none-any.whl";
    let plain = Bench::new();
    let pack = format!(
        "import zipfile\n\
         with zipfile.ZipFile('{WHEEL}', 'w') as wheel:\n\
         \x20   info = 'greeting-1.0.dist-info/'\n\
         \x20   wheel.writestr('greeting.py', 'print(\"installed\")')\n\
         \x20   wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: greeting\\nVersion: 1.0\\n')\n\
         \x20   wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
         \x20   wheel.writestr(info + 'RECORD', '')\n"
    );
    prepare(&plain, "python3", &["-c", &pack]);
    let wheel = std::fs::read(plain.folder.path().join(WHEEL)).unwrap();
    let server = Server::start(|_| {
        Box::new(move |path| match path {
            "/simple/greeting/" => {
                let page =
                    format!("<html><body><a href=\"/files/{WHEEL}\">{WHEEL}</a></body></html>");
                answer("200 OK", "Content-Type: text/html\r\n", page.as_bytes())
            }
            path if path.starts_with("/files/") => answer("200 OK", "", &wheel),
            _ => answer("404 Not Found", "", b""),
        })
    });
    let server = server.await;
    let port = server.port;
    let bench = bench(&format!("pypi.test:{port}=loopback"));
    bench.works("python3 -m venv env").await;
    let install = |host: &str| {
        format!(
            "env/bin/pip install --disable-pip-version-check --retries 0 --trusted-host {host} \
             --index-url http://{host}:{port}/simple greeting"
        )
    };
    let refused = bench.run(&install("elsewhere.test")).await;
    assert!(refused.is_error, "{}", refused.text);
    assert!(refused.text.contains(&format!("refused elsewhere.test:{port}")), "{}", refused.text);
    assert!(server.seen().is_empty());
    let said = bench.run(&install("pypi.test")).await;
    assert!(said.text.contains("Successfully installed greeting-1.0"), "{}", said.text);
    assert!(said.text.contains(&format!("[network: pypi.test:{port}: ")), "{}", said.text);
    assert_eq!(bench.works("env/bin/python -c 'import greeting'").await, "installed\n");
}

#[tokio::test]
async fn npm_installs_from_an_allowed_host() {
    let plain = Bench::new();
    let make = "mkdir package && echo '{\"name\":\"greeting\",\"version\":\"1.0.0\"}' > \
                package/package.json && echo 'console.log(\"installed\")' > package/index.js && \
                tar -czf greeting-1.0.0.tgz package";
    prepare(&plain, "sh", &["-c", make]);
    let tarball = std::fs::read(plain.folder.path().join("greeting-1.0.0.tgz")).unwrap();
    let server = Server::start(|port| {
        let about = serde_json::json!({
            "name": "greeting",
            "dist-tags": { "latest": "1.0.0" },
            "versions": { "1.0.0": {
                "name": "greeting",
                "version": "1.0.0",
                "dist": { "tarball": format!("http://npm.test:{port}/greeting-1.0.0.tgz") },
            } },
        });
        Box::new(move |path| match path {
            "/greeting" => {
                let headers = "Content-Type: application/json\r\n";
                answer("200 OK", headers, about.to_string().as_bytes())
            }
            "/greeting-1.0.0.tgz" => answer("200 OK", "", &tarball),
            _ => answer("404 Not Found", "", b"{}"),
        })
    });
    let server = server.await;
    let port = server.port;
    let bench = bench(&format!("npm.test:{port}=loopback"));
    let install = format!(
        "npm_config_cache=/tmp/npm npm install --no-audit --no-fund --fetch-retries=0 \
         --registry http://npm.test:{port}/ greeting"
    );
    let said = bench.run(&install).await;
    assert!(!said.is_error, "{}", said.text);
    assert!(said.text.contains(&format!("[network: npm.test:{port}: ")), "{}", said.text);
    assert_eq!(bench.works("node node_modules/greeting/index.js").await, "installed\n");
    // Node's own client reads the variables too, where it is new enough to.
    assert!(server.seen().contains(&"/greeting-1.0.0.tgz".to_owned()));
}
