//! A user's project on a machine with a policy: each command runs in a mount namespace with an `/etc` of its
//! own. As root, and as an ordinary user if the test is root.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::users;

/// Makes an `/etc` with the policy of the world, then becomes the user and the program.
const ENTER: &str = r#"
set -e
world=$1 user=$2
shift 2
mount -t tmpfs -o mode=755 tmpfs "$world/etc"
cp -a /etc/. "$world/etc/" 2>/dev/null || true
rm -rf "$world/etc/antiphon"
if [ -e "$world/prepare" ]; then
    mkdir -m 755 "$world/etc/antiphon"
    (cd "$world/etc/antiphon" && umask 022 && . "$world/prepare")
fi
mount --bind "$world/etc" /etc
cd "$world/project"
if [ "$user" = root ]; then exec "$@"; fi
exec setpriv --reuid="$user" --regid="$user" --clear-groups -- "$@"
"#;

/// Puts the policy of the world in its place.
const INSTALL: &str = "cp \"$world/policy.toml\" policy.toml && chmod 644 policy.toml\n";

/// A project of a user on a machine of its own.
pub(crate) struct World {
    folder: tempfile::TempDir,
    user: Option<u32>,
}

/// Exit code and output of a command.
pub(crate) struct Seen {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }

    /// Checks that the policy refused the command, and where it says so.
    #[track_caller]
    pub(crate) fn is_refused(&self, part: &str) {
        assert_eq!(self.code, 3, "{part}: {}{}", self.out, self.err);
        self.names_policy(part);
    }

    #[track_caller]
    pub(crate) fn names_policy(&self, part: &str) {
        let text = format!("{}{}", self.out, self.err);
        assert!(
            text.contains("/etc/antiphon/policy.toml") && text.contains(part),
            "{part}: {text}"
        );
    }

    #[track_caller]
    pub(crate) fn is_done(&self, part: &str) {
        assert_eq!(self.code, 0, "{part}: {}{}", self.out, self.err);
        assert!(self.out.contains(part), "{part}: {}{}", self.out, self.err);
    }
}

impl World {
    /// One for each user that the test can be. The model makes these calls, one after the other.
    pub(crate) fn all(calls: &[&str]) -> Vec<Self> {
        users::all().into_iter().map(|user| Self::new(calls, user)).collect()
    }

    fn new(calls: &[&str], user: Option<u32>) -> Self {
        let world = Self { folder: users::folder_of(user), user };
        let binary = env!("CARGO_BIN_EXE_antiphon");
        let linked = fs::hard_link(binary, world.path("antiphon"));
        linked.or_else(|_| fs::copy(binary, world.path("antiphon")).map(drop)).unwrap();
        for made in ["etc", "project", "home/.config/antiphon/agents"] {
            fs::create_dir_all(world.path(made)).unwrap();
        }
        let replies = calls.iter().enumerate().map(|(turn, call)| {
            format!("[[reply]]\nwhen = {{ turn = {turn} }}\nstep = [{{ call = {call} }}]\nusage = {{ input_tokens = 1000, output_tokens = 1000 }}\n")
        });
        let mut script = "name = \"work\"\n".to_owned() + &replies.collect::<String>();
        script += "[[reply]]\nstep = [{ text = \"{{last_result}}\" }]\nusage = { input_tokens = 1000, output_tokens = 1000 }\n";
        world.write("project/work.toml", &script);
        // The root of the project is here, and not where this repository is.
        fs::create_dir(world.path("project/.git")).unwrap();
        fs::write(world.path("project/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        for owned in ["", "project", "home"] {
            world.own(&world.path(owned));
        }
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file of the user.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        let folder = path.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        self.own(folder);
        fs::write(&path, text).unwrap();
        self.own(&path);
    }

    /// Makes a folder of the user.
    pub(crate) fn folder(&self, name: &str) {
        fs::create_dir(self.path(name)).unwrap();
        self.own(&self.path(name));
    }

    pub(crate) fn configure(&self, text: &str) {
        self.write("home/.config/antiphon/config.toml", text);
    }

    fn own(&self, path: &Path) {
        let Some(user) = self.user else { return };
        chown(path, Some(user), Some(user)).unwrap();
        if path.is_dir() && path != self.path("") {
            for entry in fs::read_dir(path).unwrap() {
                self.own(&entry.unwrap().path());
            }
        }
    }

    /// The policy of the machine from now on.
    pub(crate) fn policy(&self, text: &str) {
        fs::write(self.path("policy.toml"), text).unwrap();
        self.prepare(INSTALL);
    }

    /// Commands of root in `/etc/antiphon`, from now on.
    pub(crate) fn prepare(&self, commands: &str) {
        fs::write(self.path("prepare"), commands).unwrap();
    }

    pub(crate) fn no_policy(&self) {
        let _ = fs::remove_file(self.path("prepare"));
    }

    /// Whether the user is the owner of the policy.
    pub(crate) fn is_root(&self) -> bool {
        self.user.is_none()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        if !users::is_root() {
            command.arg("--map-root-user");
        }
        let user = self.user.map_or("root".to_owned(), |user| user.to_string());
        command
            .args(["--mount", "--propagation", "private", "sh", "-c", ENTER, "enter"])
            .args([self.path(""), user.into(), self.path("antiphon")])
            .args(arguments)
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    pub(crate) fn antiphon(&self, arguments: &[&str]) -> Seen {
        seen(self.command(arguments))
    }

    pub(crate) fn antiphon_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Seen {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        seen(command)
    }

    /// Runs a task of the script.
    pub(crate) fn run(&self, more: &[&str]) -> Seen {
        let begin = ["run", "go", "--model", "scripted/work", "--script", "work.toml"];
        self.antiphon(&[&begin, more].concat())
    }

    pub(crate) fn serve(&self, more: &[&str]) -> Server {
        let mut command = self.command(&[&["serve", "--listen", "127.0.0.1:0"], more].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first.rsplit("//").next().unwrap().to_owned();
        let token = self.antiphon(&["token"]).out.trim().to_owned();
        Server { child, address, token }
    }
}

fn seen(mut command: Command) -> Seen {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Seen { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
}

/// A server of the world. It ends when it is dropped.
pub(crate) struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Server {
    /// Status and body of the answer.
    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, token, length) = (&self.address, &self.token, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `sh` and `unshare` have become the server.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server on loopback that greets. It ends with the test's process.
pub(crate) fn greeter() -> (u16, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::<Mutex<usize>>::default();
    let seen = Arc::clone(&count);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let lines = BufReader::new(&client).lines().map_while(Result::ok);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            *seen.lock().unwrap() += 1;
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nwelcome";
            let _ = (&client).write_all(answer.as_bytes());
        }
    });
    (port, count)
}
