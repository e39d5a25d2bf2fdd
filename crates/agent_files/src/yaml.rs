//! Front matter as a tree with line numbers.
//!
//! Supports the part of YAML that front matter needs: fields, lists, texts, comments. Refuses anchors,
//! aliases, tags, directives and a second document, so that a small file cannot become a large tree. Also
//! refuses duplicate fields and trees that are too deep or too large.

use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value as Json};

use crate::problem::AgentFileError;

/// Deepest nesting of lists and fields.
pub const NESTING_MAX: usize = 32;

/// Most values in the front matter of a file.
pub const NODES_MAX: usize = 4096;

/// A value with its line.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    /// A text, number, boolean or null: the reader of the field decides.
    Text {
        text: String,
        /// Written without quotes.
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<Field>),
}

/// A value with a name.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) value: Node,
}

/// Reads front matter whose first line is `first_line` of its file.
pub(crate) fn read(text: &str, first_line: usize) -> Result<Vec<Field>, AgentFileError> {
    let options = granit_parser::options! {
        disallow_directives: true,
        emit_comments: false,
        emit_unresolved_aliases: true,
        flow_nesting_limit: NESTING_MAX,
        block_nesting_limit: NESTING_MAX,
    };
    let mut tree = Tree::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| {
            let line = error.marker().line().max(1) + first_line - 1;
            AgentFileError::new(line, format!("{}{}", error.info(), hint(&error.info())))
        })?;
        tree.take(event, span.start.line().max(1) + first_line - 1)?;
    }
    match tree.root {
        None => Ok(Vec::new()),
        Some(Node { value: Value::Map(fields), .. }) => Ok(fields),
        Some(Node { line, value: Value::Text { .. } | Value::List(_) }) => {
            Err(AgentFileError::new(line, "front matter is made of fields: write `NAME: VALUE`"))
        }
    }
}

/// Advice for the most frequent error.
fn hint(info: &str) -> &'static str {
    if info.starts_with("mapping values") { ": put a text that holds `: ` in quotes" } else { "" }
}

/// Builds the tree without recursion.
#[derive(Default)]
struct Tree {
    root: Option<Node>,
    open: Vec<Open>,
    nodes: usize,
}

/// A list or fields that have not ended yet.
enum Open {
    List { line: usize, items: Vec<Node> },
    Map { line: usize, fields: Vec<Field>, key: Option<(usize, String)> },
}

impl Tree {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), AgentFileError> {
        if event.tag().is_some() {
            return Err(AgentFileError::new(
                line,
                "tags are not supported: put a text with `!` in quotes",
            ));
        }
        if event.anchor_id().is_some() {
            return Err(AgentFileError::new(
                line,
                "anchors are not supported: put a text with `&` in quotes",
            ));
        }
        match event {
            Event::Scalar(text, style, _, _) => {
                let plain = style == ScalarStyle::Plain;
                self.add(Node { line, value: Value::Text { text: text.into_owned(), plain } })
            }
            Event::SequenceStart(..) => self.begin(line, Open::List { line, items: Vec::new() }),
            Event::MappingStart(..) => {
                self.begin(line, Open::Map { line, fields: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List { line, items }) => {
                    self.add(Node { line, value: Value::List(items) })
                }
                Some(Open::Map { line, fields, key: _ }) => {
                    self.add(Node { line, value: Value::Map(fields) })
                }
                None => Ok(()),
            },
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err(AgentFileError::new(
                line,
                "aliases are not supported: put a text with `*` in quotes",
            )),
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(..)
            | Event::DocumentEnd
            | Event::Anchor(..) => Ok(()),
            // Events of later versions of the parser.
            _ => Err(AgentFileError::new(line, "this is not supported: put it in quotes")),
        }
    }

    fn begin(&mut self, line: usize, open: Open) -> Result<(), AgentFileError> {
        if matches!(self.open.last(), Some(Open::Map { key: None, .. })) {
            return Err(AgentFileError::new(line, "the name of a field must be a text"));
        }
        if self.open.len() >= NESTING_MAX {
            return Err(AgentFileError::new(
                line,
                format!("it is nested deeper than {NESTING_MAX} levels"),
            ));
        }
        self.open.push(open);
        Ok(())
    }

    /// Adds a complete value to its parent.
    fn add(&mut self, node: Node) -> Result<(), AgentFileError> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(AgentFileError::new(
                node.line,
                format!("there are more than {NODES_MAX} values"),
            ));
        }
        match self.open.last_mut() {
            None if self.root.is_some() => Err(AgentFileError::new(
                node.line,
                "there is a second document in the front matter",
            )),
            None => {
                self.root = Some(node);
                Ok(())
            }
            Some(Open::List { items, .. }) => {
                items.push(node);
                Ok(())
            }
            Some(Open::Map { fields, key, .. }) => match (key.take(), node) {
                (Some((line, name)), value) => {
                    fields.push(Field { line, name, value });
                    Ok(())
                }
                (None, Node { line, value: Value::Text { text, .. } }) => {
                    if let Some(first) = fields.iter().find(|field| field.name == text) {
                        let first = first.line;
                        let reason = format!("`{text}` is defined already, in line {first}");
                        return Err(AgentFileError::new(line, reason));
                    }
                    *key = Some((line, text));
                    Ok(())
                }
                (None, Node { line, value: Value::List(_) | Value::Map(_) }) => {
                    Err(AgentFileError::new(line, "the name of a field must be a text"))
                }
            },
        }
    }
}

impl Node {
    /// Whether the value is empty or a null word.
    pub(crate) fn is_null(&self) -> bool {
        match &self.value {
            Value::Text { text, plain } => {
                *plain && ["", "~", "null", "Null", "NULL"].contains(&text.as_str())
            }
            Value::List(_) | Value::Map(_) => false,
        }
    }

    /// As JSON: an unquoted word is a boolean, a decimal number or a text.
    pub(crate) fn to_json(&self) -> Result<Json, AgentFileError> {
        match &self.value {
            _ if self.is_null() => Ok(Json::Null),
            Value::Text { text, plain: true } => self.plain(text),
            Value::Text { text, plain: false } => Ok(Json::String(text.clone())),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(fields) => {
                let json = |field: &Field| Ok((field.name.clone(), field.value.to_json()?));
                fields.iter().map(json).collect::<Result<Map<_, _>, _>>().map(Json::Object)
            }
        }
    }

    fn plain(&self, text: &str) -> Result<Json, AgentFileError> {
        match text {
            "true" | "True" | "TRUE" => return Ok(Json::Bool(true)),
            "false" | "False" | "FALSE" => return Ok(Json::Bool(false)),
            _ => {}
        }
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let unsigned = digits.trim_start_matches(['.']).to_ascii_lowercase();
        if digits.starts_with('.') && ["inf", "nan"].contains(&unsigned.as_str()) {
            return Err(AgentFileError::new(self.line, format!("JSON has no number `{text}`")));
        }
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && digits.contains(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
        if !is_number {
            return Ok(Json::String(text.to_owned()));
        }
        let text = text.strip_prefix('+').unwrap_or(text);
        let whole = text.parse::<i64>().map(Number::from);
        let number = whole.or_else(|_| text.parse::<u64>().map(Number::from)).ok();
        // A date or a version looks like a number but is a text.
        let number = number.or_else(|| text.parse().ok().and_then(Number::from_f64));
        Ok(number.map_or_else(|| Json::String(text.to_owned()), Json::Number))
    }
}
