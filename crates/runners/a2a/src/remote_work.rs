//! Output of a remote task until now, bounded, and the growth of its text.

use a2a::{Artifact, Part, PartContent, Task, TaskArtifactUpdateEvent};

use crate::failure::Failure;
use crate::part_text::of_text_parts;

/// Bytes of all artifacts of a task, at most.
pub(crate) const WORK_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes that a part counts beside its content.
const PART_BYTES: usize = 32;

/// The artifacts of a remote task.
#[derive(Debug, Default)]
pub(crate) struct RemoteWork {
    artifacts: Vec<Artifact>,
    bytes: usize,
    /// The text of the first artifact that was shown.
    shown: String,
}

/// How the text that is shown changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TextChange {
    Nothing,
    More(String),
    /// The text begins anew.
    Anew(String),
}

impl RemoteWork {
    pub(crate) fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    /// Takes the artifacts of a task as a whole.
    pub(crate) fn replace(&mut self, task: &mut Task) -> Result<TextChange, Failure> {
        let artifacts = task.artifacts.take().unwrap_or_default();
        // An agent that does not keep its artifacts has sent them as events.
        if artifacts.is_empty() {
            return Ok(TextChange::Nothing);
        }
        self.bytes = 0;
        for artifact in &artifacts {
            self.count(&artifact.parts)?;
        }
        self.artifacts = artifacts;
        Ok(self.show_whole())
    }

    /// Takes an update of one artifact.
    pub(crate) fn update(
        &mut self,
        update: TaskArtifactUpdateEvent,
    ) -> Result<TextChange, Failure> {
        let Artifact { artifact_id, .. } = &update.artifact;
        self.count(&update.artifact.parts)?;
        let known = self.artifacts.iter().position(|known| known.artifact_id == *artifact_id);
        match known {
            Some(index) if update.append == Some(true) => {
                Ok(self.append(index, update.artifact.parts))
            }
            Some(index) => {
                let before = self.artifacts[index].parts.iter().map(bytes_of).sum::<usize>();
                self.bytes = self.bytes.saturating_sub(before);
                self.artifacts[index] = update.artifact;
                Ok(if index == 0 { self.show_whole() } else { TextChange::Nothing })
            }
            None => {
                self.artifacts.push(update.artifact);
                Ok(if self.artifacts.len() == 1 { self.show_whole() } else { TextChange::Nothing })
            }
        }
    }

    fn append(&mut self, index: usize, parts: Vec<Part>) -> TextChange {
        let known = &mut self.artifacts[index].parts;
        let continues = known.last().is_none_or(|last| last.as_text().is_some());
        let mut more = (index == 0 && continues).then(String::new);
        for part in parts {
            if let (Some(text), Some(more)) = (part.as_text(), &mut more) {
                more.push_str(text);
            } else {
                more = None;
            }
            match (known.last_mut().map(|last| &mut last.content), &part.content) {
                (Some(PartContent::Text(before)), PartContent::Text(text)) => before.push_str(text),
                (Some(_) | None, _) => known.push(part),
            }
        }
        match more.filter(|more| !more.is_empty()) {
            Some(more) => {
                self.shown.push_str(&more);
                TextChange::More(more)
            }
            None => TextChange::Nothing,
        }
    }

    fn show_whole(&mut self) -> TextChange {
        let text = self.artifacts.first().map(|first| of_text_parts(&first.parts));
        let text = text.unwrap_or_default();
        let more = text.strip_prefix(self.shown.as_str()).map(str::to_owned);
        let is_first = self.shown.is_empty();
        self.shown.clone_from(&text);
        match more {
            Some(more) if more.is_empty() => TextChange::Nothing,
            Some(more) => TextChange::More(more),
            None if is_first => TextChange::More(text),
            None => TextChange::Anew(text),
        }
    }

    fn count(&mut self, parts: &[Part]) -> Result<(), Failure> {
        self.bytes += parts.iter().map(bytes_of).sum::<usize>();
        if self.bytes > WORK_BYTES_MAX {
            let reason = format!("its artifacts have more than {WORK_BYTES_MAX} bytes");
            return Err(Failure::Refused(reason));
        }
        Ok(())
    }
}

fn bytes_of(part: &Part) -> usize {
    PART_BYTES
        + match &part.content {
            PartContent::Text(text) | PartContent::Url(text) => text.len(),
            PartContent::Raw(bytes) => bytes.len(),
            PartContent::Data(data) => data.to_string().len(),
        }
}
