//! The facts about a request that conditions and templates use. All but `attempt` depend on the
//! request alone.

use std::fmt;

use antiphon_core::{InputBlock, Message, Request};

/// Longest excerpt of a user's text in an error, in characters.
const EXCERPT_CHARS_MAX: usize = 80;

/// The facts of one request.
#[derive(Debug)]
pub(crate) struct RequestFacts<'a> {
    pub(crate) request: &'a Request,
    /// Number of assistant messages.
    pub(crate) turn: usize,
    pub(crate) tool_results: usize,
    pub(crate) results_since_user: usize,
    pub(crate) last_user: Option<String>,
    pub(crate) last_result: Option<LastResult>,
    /// Number of times this request occurred, for scripts that use it.
    pub(crate) attempt: Option<u32>,
}

/// The newest tool result.
#[derive(Debug)]
pub(crate) struct LastResult {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

impl<'a> RequestFacts<'a> {
    pub(crate) fn of(request: &'a Request, attempt: Option<u32>) -> Self {
        let mut facts = Self {
            request,
            turn: 0,
            tool_results: 0,
            results_since_user: 0,
            last_user: None,
            last_result: None,
            attempt,
        };
        let (mut user, mut result) = (None, None);
        for message in &request.messages {
            match &**message {
                Message::User(message) => {
                    user = Some(message);
                    facts.results_since_user = 0;
                }
                Message::Assistant(_) => facts.turn += 1,
                Message::ToolResult(message) => {
                    result = Some(message);
                    facts.tool_results += 1;
                    facts.results_since_user += 1;
                }
            }
        }
        facts.last_user = user.map(|message| text_of(&message.content));
        facts.last_result = result.map(|message| LastResult {
            text: text_of(&message.content),
            is_error: message.is_error,
        });
        facts
    }
}

/// The text blocks, one per line. Images have no text.
fn text_of(content: &[InputBlock]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            InputBlock::Text(block) => Some(block.text.as_str()),
            InputBlock::Image(_) => None,
        })
        .collect();
    texts.join("\n")
}

/// Describes the request to the author of a script that has no reply for it.
impl fmt::Display for RequestFacts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "turn {}, tool results {} ({} since the user), tools offered {}",
            self.turn,
            self.tool_results,
            self.results_since_user,
            self.request.tools.len()
        )?;
        if let Some(attempt) = self.attempt {
            write!(f, ", attempt {attempt}")?;
        }
        match &self.last_user {
            Some(text) => {
                let excerpt: String = text.chars().take(EXCERPT_CHARS_MAX).collect();
                write!(f, ", last user text {excerpt:?}")
            }
            None => f.write_str(", no user message"),
        }
    }
}
