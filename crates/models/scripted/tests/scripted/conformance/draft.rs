//! Converts the steps of a scenario to steps of a script, in which a block is one step.

use antiphon_conformance::provider::{Step, StopWord, Unsupported};
use antiphon_core::Usage;
use antiphon_scripted::CHUNK_CHARS_MAX;

/// Longest repeated unit that is searched, in bytes.
const UNIT_BYTES_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Draft {
    entries: Vec<Entry>,
    deltas: usize,
    pub(crate) usage: Option<Usage>,
    pub(crate) stop: Option<StopWord>,
}

enum Entry {
    Block(Block),
    Alive,
}

struct Block {
    number: u32,
    kind: Kind,
    sent: String,
    ended: bool,
    /// Another call continued while this one was open.
    interleaved: bool,
}

enum Kind {
    Text,
    Thinking { signature: Option<String> },
    Call { id: String, name: String },
}

impl Draft {
    pub(crate) fn take(&mut self, step: &Step) -> Result<(), Unsupported> {
        match step {
            Step::Text { block, delta } => self.grow(*block, || Ok(Kind::Text), delta)?,
            Step::Thinking { block, delta } => {
                self.grow(*block, || Ok(Kind::Thinking { signature: None }), delta)?;
            }
            Step::Signature { block, signature: sign } => {
                if let Some(Block { kind: Kind::Thinking { signature }, .. }) = self.find(*block) {
                    *signature = Some(sign.clone());
                }
            }
            Step::CallBegin { block, id, name } => {
                self.interleave();
                let call = Kind::Call { id: id.clone(), name: name.clone() };
                self.grow(*block, || Ok(call), "")?;
            }
            Step::CallDelta { block, delta } => {
                let broken = || Err(Unsupported::because("a call is written in one piece"));
                self.grow(*block, broken, delta)?;
            }
            Step::BlockEnd { block } => {
                self.blocks().filter(|known| known.number == *block).for_each(|b| b.ended = true);
            }
            Step::Alive => self.entries.push(Entry::Alive),
            Step::Usage(usage) => self.usage = Some(*usage),
            Step::Stop(word) => self.stop = Some(*word),
        }
        Ok(())
    }

    /// A chunk size that gives at least as many deltas as the scenario has.
    pub(crate) fn chunk_chars(&mut self) -> usize {
        let chars: usize = self.blocks().map(|block| block.sent.chars().count()).sum();
        let chars_max = usize::try_from(CHUNK_CHARS_MAX).unwrap_or(usize::MAX);
        (chars / self.deltas.max(1)).clamp(1, chars_max)
    }

    pub(crate) fn calls_interleave(&mut self) -> bool {
        self.blocks().any(|block| block.interleaved)
    }

    pub(crate) fn steps(&self) -> Result<Vec<String>, Unsupported> {
        let step = |entry: &Entry| match entry {
            Entry::Block(block) => block.step(),
            Entry::Alive => Ok("{ alive = true }".to_owned()),
        };
        self.entries.iter().map(step).collect()
    }

    /// Extends a block. A keep-alive starts a new one, because no block contains one.
    fn grow(
        &mut self,
        number: u32,
        kind: impl FnOnce() -> Result<Kind, Unsupported>,
        delta: &str,
    ) -> Result<(), Unsupported> {
        self.deltas += 1;
        if let Some(block) = self.find(number) {
            block.sent.push_str(delta);
            return Ok(());
        }
        self.entries.push(Entry::Block(Block {
            number,
            kind: kind()?,
            sent: delta.to_owned(),
            ended: false,
            interleaved: false,
        }));
        Ok(())
    }

    fn interleave(&mut self) {
        let calls = self.blocks().filter(|block| matches!(block.kind, Kind::Call { .. }));
        calls.filter(|call| !call.ended).for_each(|call| call.interleaved = true);
    }

    fn find(&mut self, number: u32) -> Option<&mut Block> {
        let recent = self.entries.iter_mut().rev().map_while(|entry| match entry {
            Entry::Block(block) => Some(block),
            Entry::Alive => None,
        });
        recent.into_iter().find(|block| block.number == number)
    }

    fn blocks(&mut self) -> impl Iterator<Item = &mut Block> {
        self.entries.iter_mut().filter_map(|entry| match entry {
            Entry::Block(block) => Some(block),
            Entry::Alive => None,
        })
    }
}

impl Block {
    fn step(&self) -> Result<String, Unsupported> {
        let mut fields = match &self.kind {
            Kind::Text => {
                let (unit, times) = folded(&self.sent);
                vec![format!("text = {}", template(unit)?), format!("repeat = {times}")]
            }
            Kind::Thinking { signature } => {
                let signature = signature.as_deref();
                let signature = signature.map(|text| format!("signature = {}", quoted(text)));
                let thinking = format!("thinking = {}", template(&self.sent)?);
                [thinking].into_iter().chain(signature).collect()
            }
            Kind::Call { id, name } => {
                let [id, name, json] = [id, name, &self.sent].map(|text| quoted(text));
                vec![format!("call = {{ id = {id}, name = {name}, arguments_json = {json} }}")]
            }
        };
        if !self.ended {
            fields.push("unfinished = true".to_owned());
        }
        Ok(format!("{{ {} }}", fields.join(", ")))
    }
}

/// A repeated text and its count: a long text does not fit into a script otherwise.
fn folded(text: &str) -> (&str, usize) {
    let repeats =
        |unit: &&str| text.len().is_multiple_of(unit.len()) && text.split(unit).all(str::is_empty);
    let units = (1..=UNIT_BYTES_MAX).filter_map(|bytes| text.get(..bytes));
    let unit = units.into_iter().find(repeats).unwrap_or(text);
    (unit, text.len().checked_div(unit.len()).unwrap_or(1))
}

fn template(text: &str) -> Result<String, Unsupported> {
    if text.contains("{{") {
        return Err(Unsupported::because("`{{` begins a placeholder"));
    }
    Ok(quoted(text))
}

/// TOML accepts the strings of JSON except for one character.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
