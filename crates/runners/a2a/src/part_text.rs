//! The parts of a message or an artifact as text. A file is named and not fetched; a text file is its text.

use a2a::{Artifact, Part, PartContent};
use serde_json::Value;

use crate::failure::words;

/// The text of parts, in order.
pub(crate) fn of_parts(parts: &[Part]) -> String {
    let texts: Vec<String> = parts.iter().map(of_part).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// The text of artifacts: each after the first begins with its name.
pub(crate) fn of_artifacts(artifacts: &[Artifact]) -> String {
    let texts = artifacts.iter().enumerate().map(|(index, artifact)| {
        let text = of_text_parts(&artifact.parts);
        if index == 0 {
            return text;
        }
        let name = artifact.name.as_deref().unwrap_or(&artifact.artifact_id);
        format!("[{}]\n{text}", words(name))
    });
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// The text of the parts of an artifact. Neighboring texts are chunks of one text.
pub(crate) fn of_text_parts(parts: &[Part]) -> String {
    let (mut text, mut was_text) = (String::new(), true);
    for part in parts {
        let is_text = part.as_text().is_some();
        if !(text.is_empty() || is_text && was_text) {
            text.push('\n');
        }
        text.push_str(&of_part(part));
        was_text = is_text;
    }
    text
}

/// The only data of parts, if there is one.
pub(crate) fn only_data(parts: &[Part]) -> Option<&Value> {
    match parts {
        [Part { content: PartContent::Data(data), .. }] => Some(data),
        _ => None,
    }
}

fn of_part(part: &Part) -> String {
    let name = part.filename.as_deref().map_or_else(|| "file".to_owned(), words);
    match &part.content {
        PartContent::Text(text) => text.clone(),
        PartContent::Data(data) => data.to_string(),
        PartContent::Url(url) => format!("[{name} at {}]", words(url)),
        PartContent::Raw(bytes) => {
            let kind = part.media_type.as_deref().unwrap_or("application/octet-stream");
            match std::str::from_utf8(bytes) {
                Ok(text) if kind.starts_with("text/") => text.to_owned(),
                Ok(_) | Err(_) => format!("[{name}, {}, {} bytes]", words(kind), bytes.len()),
            }
        }
    }
}
