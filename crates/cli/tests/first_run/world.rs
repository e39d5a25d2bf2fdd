//! A user without any settings, and servers of models.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use antiphon_model_server::{ModelServer, RecordedRequest, Reply};
use tokio::runtime::Runtime;

use crate::project_folder::{ProjectFolder, antiphon, home};

/// A key that the servers accept.
pub(crate) const KEY: &str = "sk-ant-right-0123456789";

/// What the servers answer.
pub(crate) const ANSWER: &str = "Ahoy.";

/// A project of a user without settings.
pub(crate) struct World(ProjectFolder);

pub(crate) struct Seen {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self(ProjectFolder::new());
        fs::remove_file(world.config()).unwrap();
        world
    }

    pub(crate) fn config(&self) -> PathBuf {
        home(self.0.path()).join(".config/antiphon/config.toml")
    }

    pub(crate) fn write_config(&self, text: &str) {
        fs::write(self.config(), text).unwrap();
    }

    pub(crate) fn config_text(&self) -> String {
        fs::read_to_string(self.config()).unwrap_or_default()
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    /// The binary, which finds no server of models on the usual port of Ollama.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = antiphon(self.0.path());
        command.args(arguments).env("OLLAMA_HOST", "127.0.0.1:9").stdin(Stdio::null());
        command
    }

    pub(crate) fn seen(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Seen {
        seen(self.command(arguments).envs(variables.iter().copied()))
    }
}

pub(crate) fn seen(command: &mut Command) -> Seen {
    let output = command.output().unwrap();
    Seen {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A server of models that runs beside the test.
pub(crate) struct Server {
    _runtime: Runtime,
    pub(crate) server: ModelServer,
}

impl Server {
    fn start(answer: impl Fn(&RecordedRequest) -> Reply + Send + Sync + 'static) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = runtime
            .block_on(ModelServer::start(move |request: &RecordedRequest, _| answer(request)));
        Self { server: server.unwrap(), _runtime: runtime }
    }

    /// Speaks the wire of Anthropic, and accepts [`KEY`] alone.
    pub(crate) fn anthropic() -> Self {
        Self::start(|request| {
            if request.header("x-api-key") != Some(KEY) {
                let body = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
                return Reply::json(401, body);
            }
            if request.method == "GET" {
                return Reply::json(200, r#"{"data":[{"id":"claude-sonnet-5-5"}]}"#);
            }
            Reply::events(concat!(
                "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
                "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
                "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Ahoy.\"}}\n\n",
                "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
                "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
                "data: {\"type\":\"message_stop\"}\n\n",
            ))
        })
    }

    /// Speaks the wire of OpenAI without a key, as a server of this machine does.
    pub(crate) fn local() -> Self {
        Self::start(|request| {
            if request.method == "GET" {
                return Reply::json(
                    200,
                    r#"{"object":"list","data":[{"id":"qwen3:8b"},{"id":"llama4"}]}"#,
                );
            }
            Reply::events(concat!(
                "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Ahoy.\"},\"finish_reason\":null}]}\n\n",
                "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
                "data: [DONE]\n\n",
            ))
        })
    }

    /// The model that the last request named.
    pub(crate) fn asked_model(&self) -> String {
        let requests = self.server.requests();
        let posted = requests.iter().rev().find(|request| request.method == "POST").unwrap();
        posted.json()["model"].as_str().unwrap().to_owned()
    }
}
