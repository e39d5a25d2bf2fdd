//! `antiphon run`: ask a model and stream its answer.

use std::borrow::Cow;
use std::io::{IsTerminal, Read, Write};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Instant;

use antiphon_core::port::{Clock, IdSource, RandomIds, SystemClock};
use antiphon_core::{
    Cancel, Message, MessageStream, ModelRef, PriceTable, ProviderError, Request, Session,
    SessionId, StreamError, StreamEvent, TokenUsage, UserMessage, sendable, visible,
};
use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::failure::Failure;
use crate::models::Models;

/// Largest prompt that is read from standard input.
const PROMPT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Ask a model and stream its answer to standard output.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  antiphon run \"Who are you?\"
  git diff | antiphon run --system 'Review this change.'
  antiphon run --save talk.json \"Hello\" && antiphon run --session talk.json \"Go on\"
  antiphon run --model anthropic/claude-sonnet-4-5 \"Hello\"
  antiphon run --model scripted/mine --script mine.toml \"Hello\"")]
pub(crate) struct Run {
    /// What to ask; read from standard input when absent or `-`.
    prompt: Option<String>,

    /// Who answers, as PROVIDER/MODEL; the configured one, or `scripted/hello`, when absent.
    #[arg(long, env = "ANTIPHON_MODEL")]
    model: Option<ModelRef>,

    /// Answer from this script (see docs/scripted.md) in place of a built-in one.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// Try again at most this often when the model cannot answer for a reason that may pass.
    #[arg(long, value_name = "N")]
    retries: Option<usize>,

    /// The longest answer wanted, in tokens.
    #[arg(long, value_name = "N")]
    max_tokens: Option<NonZeroU32>,

    /// The system prompt of a new conversation.
    #[arg(long, value_name = "TEXT", conflicts_with = "session")]
    system: Option<String>,

    /// Go on with the conversation in this session file, and save it there.
    #[arg(long, value_name = "FILE", conflicts_with = "save")]
    session: Option<PathBuf>,

    /// Save the conversation to this session file.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

impl Run {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let models = Models::new(Config::load()?)
            .with_script(self.script.clone())
            .with_retries(self.retries);
        let model = self.model.clone().unwrap_or_else(|| models.config().default_model());
        let provider = models.provider(&model)?;
        let mut session = self.open_session()?;
        session.push(UserMessage::text(self.prompt()?, SystemClock.now()));

        let request = Request {
            model: model.model().to_owned(),
            system_prompt: session.system_prompt.clone(),
            messages: sendable(&session.messages),
            max_tokens: self.max_tokens,
            ..Request::default()
        };
        let token = CancellationToken::new();
        let cancel = Cancel::when(token.clone().cancelled_owned());
        let started = Instant::now();
        let stream = MessageStream::open(&*provider, request, cancel, SystemClock.now());
        let outcome = show(stream, &token, &mut session).await;
        account(&session, &models.config().prices, started);
        if let Some(path) = self.session.as_ref().or(self.save.as_ref()) {
            antiphon_session_file::save(path, &session)
                .map_err(|error| Failure::failed(error.to_string()))?;
        }
        outcome
    }

    fn open_session(&self) -> Result<Session, Failure> {
        match &self.session {
            Some(path) => {
                antiphon_session_file::load(path).map_err(|error| Failure::usage(error.to_string()))
            }
            None => Ok(Session::new(
                SessionId::from(RandomIds.next()),
                self.system.clone().unwrap_or_default(),
                SystemClock.now(),
            )),
        }
    }

    fn prompt(&self) -> Result<String, Failure> {
        let prompt = match self.prompt.as_deref() {
            Some("-") | None => read_stdin()?,
            Some(prompt) => prompt.to_owned(),
        };
        if prompt.trim().is_empty() {
            return Err(Failure::usage("the prompt is empty: give one as an argument or on stdin"));
        }
        Ok(prompt)
    }
}

fn read_stdin() -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        eprintln!("antiphon: reading the prompt from the terminal, end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(PROMPT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("cannot read the prompt: {error}")))?;
    if bytes.len() as u64 > PROMPT_BYTES_MAX {
        return Err(Failure::usage(format!(
            "the prompt is too long: {PROMPT_BYTES_MAX} bytes at most"
        )));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage("the prompt is not UTF-8"))
}

/// Shows the answer as it comes and adds what there is of it to the session, also when it
/// broke off.
async fn show(
    mut stream: MessageStream,
    token: &CancellationToken,
    session: &mut Session,
) -> Result<(), Failure> {
    let mut shown = false;
    let outcome = loop {
        let event = tokio::select! {
            event = stream.next() => event,
            _ = tokio::signal::ctrl_c(), if !token.is_cancelled() => {
                token.cancel();
                continue;
            }
        };
        match event {
            Ok(Some(event)) => shown |= print(&event)?,
            Ok(None) => break Ok(()),
            Err(error) => break Err(failure(&error)),
        }
    };
    if shown {
        println!();
    }
    if let Ok(message) = stream.message() {
        session.push(message);
    }
    outcome
}

/// Prints what a reader wants to see of an event. Says whether that was anything.
fn print(event: &StreamEvent) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    let text = match event {
        StreamEvent::TextDelta { delta } => Cow::Borrowed(delta.as_str()),
        StreamEvent::ToolCallEnd { call } => {
            let arguments = call.arguments.object().map_or("(malformed)", |json| json.as_str());
            Cow::Owned(format!("\n→ {} {arguments}\n", call.name))
        }
        StreamEvent::ThinkingDelta { .. }
        | StreamEvent::ToolCallBegin { .. }
        | StreamEvent::ToolCallDelta { .. } => return Ok(false),
    };
    // What a model writes must not drive the terminal.
    let text = if out.is_terminal() { Cow::Owned(visible(&text)) } else { text };
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    // Nobody reads any more: the same as Ctrl-C.
    printed.map(|()| true).map_err(|_| Failure::interrupted())
}

/// On a terminal, what the answer took: `31 + 12 tokens, $0.0003, 1.4 s`.
fn account(session: &Session, prices: &PriceTable, started: Instant) {
    let Some(Message::Assistant(answer)) = session.messages.last() else { return };
    if !std::io::stderr().is_terminal() {
        return;
    }
    let tokens = TokenUsage::from(answer.usage);
    let cost = answer.model.as_ref().and_then(|model| prices.cost(model, answer.usage));
    let cost = cost.map_or("cost unknown".to_owned(), |cost| cost.to_string());
    let seconds = started.elapsed().as_secs_f64();
    eprintln!(
        "{} + {} tokens, {cost}, {seconds:.1} s",
        tokens.prompt_tokens, tokens.completion_tokens
    );
}

fn failure(error: &StreamError) -> Failure {
    match error {
        StreamError::Canceled | StreamError::Closed => Failure::interrupted(),
        StreamError::Provider(
            ProviderError::Connection { .. }
            | ProviderError::Timeout { .. }
            | ProviderError::Overloaded { .. }
            | ProviderError::RateLimited { .. }
            | ProviderError::Server { .. }
            | ProviderError::Cut,
        ) => Failure::unavailable(error.to_string()),
        StreamError::Provider(
            ProviderError::InvalidRequest { .. }
            | ProviderError::ContextOverflow { .. }
            | ProviderError::Authentication { .. }
            | ProviderError::Permission { .. }
            | ProviderError::NotFound { .. }
            | ProviderError::Protocol { .. },
        ) => Failure::failed(error.to_string()),
    }
}
