//! Tools to try a worker with. They run in the worker; one test runs them at home, to compare.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use antiphon_core::port::ToolContext;
use antiphon_core::{Effect, RawJson, Tool, ToolError, ToolExecutor, ToolResult};
use async_trait::async_trait;
use serde::Deserialize;

/// The tools, and what they do to the world.
const TOOLS: [(&str, Effect); 11] = [
    ("look", Effect::ReadOnly),
    ("act", Effect::SideEffect),
    ("hang", Effect::SideEffect),
    ("scatter", Effect::SideEffect),
    ("read", Effect::ReadOnly),
    ("write", Effect::Idempotent),
    ("connect", Effect::ReadOnly),
    ("environment", Effect::ReadOnly),
    ("eat", Effect::ReadOnly),
    ("spin", Effect::ReadOnly),
    ("command", Effect::SideEffect),
];

/// Tools that work in a folder.
pub(crate) struct BenchTools {
    pub(crate) root: PathBuf,
    /// What grandchildren sleep for, to be recognized.
    pub(crate) token: String,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    on: String,
    #[serde(default)]
    bytes: usize,
}

impl BenchTools {
    /// Leaves a line that a test can count.
    fn note(&self, file: &str, line: &str) -> std::io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.root.join(file))?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Leaves processes that do not want to be found.
    fn scatter(&self) -> std::io::Result<()> {
        for start in ["exec sleep", "setsid sleep", "trap '' TERM HUP; setsid sleep"] {
            let command = format!("{start} {} &", self.token);
            Command::new("bash").args(["-c", &command]).stdin(Stdio::null()).status()?;
        }
        Ok(())
    }

    async fn run(&self, tool: &str, arguments: Arguments, context: ToolContext) -> Outcome {
        let on = &arguments.on;
        Ok(match tool {
            "look" => ToolResult::text(format!("saw {on}")),
            "act" => {
                self.note("acts", on)?;
                ToolResult::text(format!("did {on}"))
            }
            "hang" => {
                self.scatter()?;
                self.note("hangs", on)?;
                context.cancel.await;
                return Ok(None);
            }
            "scatter" => {
                self.scatter()?;
                ToolResult::text("scattered")
            }
            "read" => ToolResult::text(fs::read_to_string(on)?),
            "write" => {
                fs::write(on, "written")?;
                ToolResult::text("written")
            }
            "connect" => {
                TcpStream::connect(on)?;
                ToolResult::text("connected")
            }
            "environment" => {
                ToolResult::text(format!("{:?}", std::env::vars().collect::<Vec<_>>()))
            }
            "eat" => ToolResult::text(format!("{}", eat(arguments.bytes))),
            "spin" => ToolResult::text(format!("{}", spin())),
            _ => {
                let output = Command::new("bash").args(["-c", on]).stdin(Stdio::null()).output()?;
                ToolResult::text(String::from_utf8_lossy(&output.stdout))
            }
        }
        .into())
    }
}

type Outcome = std::io::Result<Option<ToolResult>>;

/// Takes memory, so many bytes at a time, and uses it.
fn eat(bytes: usize) -> usize {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    loop {
        eaten.push(vec![7; bytes]);
        if std::hint::black_box(&eaten).len() == usize::MAX {
            return eaten.len();
        }
    }
}

fn spin() -> u64 {
    let mut turns = 0_u64;
    while std::hint::black_box(turns) != u64::MAX {
        turns += 1;
    }
    turns
}

#[async_trait]
impl ToolExecutor for BenchTools {
    fn tools(&self) -> Vec<Arc<Tool>> {
        let tool = |(name, _): &(&str, Effect)| Tool {
            name: (*name).to_owned(),
            description: (*name).to_owned(),
            parameters: RawJson::parse(r#"{"type":"object"}"#).unwrap(),
        };
        TOOLS.iter().map(|listed| tool(listed).into()).collect()
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        TOOLS.iter().find(|(name, _)| *name == tool).map(|(_, effect)| *effect)
    }

    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let arguments = arguments.to::<Arguments>().map_err(|error| {
            ToolError::InvalidArguments { tool: tool.to_owned(), reason: error.to_string() }
        })?;
        match self.run(tool, arguments, context).await {
            Ok(Some(result)) => Ok(result),
            Ok(None) => Err(ToolError::Canceled),
            Err(error) => Ok(ToolResult::failed(error.to_string())),
        }
    }
}
