//! The content of a prompt as blocks of a user message. Links and embedded texts become quoted text: data, with the
//! address that it came from.

use antiphon_core::IMAGE_BYTES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::schema::{ContentBlock, EmbeddedResourceResource, Error};

/// A prompt.
#[derive(Debug, PartialEq)]
pub(crate) struct PromptContent {
    /// All of its text.
    pub(crate) text: String,
    /// Blocks in the form of a user message.
    pub(crate) blocks: Vec<Value>,
}

impl PromptContent {
    pub(crate) fn parse(content: Vec<ContentBlock>) -> Result<Self, Error> {
        let mut prompt = Self { text: String::new(), blocks: Vec::new() };
        for block in content {
            prompt.push(block)?;
        }
        let is_empty = prompt.text.trim().is_empty();
        if is_empty && prompt.blocks.iter().all(|block| block["type"] == "text") {
            return Err(refused("the prompt is empty: send a text, a resource or an image"));
        }
        Ok(prompt)
    }

    fn push(&mut self, block: ContentBlock) -> Result<(), Error> {
        if let ContentBlock::Text(text) = block {
            self.push_text(&text.text);
        } else if let ContentBlock::Image(image) = block {
            self.push_image(&image.mime_type, &image.data)?;
        } else if let ContentBlock::ResourceLink(link) = block {
            self.push_text(&format!("[{}]({})", link.name, link.uri));
        } else if let ContentBlock::Resource(embedded) = block {
            self.push_resource(embedded.resource)?;
        } else {
            return Err(refused("a prompt may hold texts, images, links and resources"));
        }
        Ok(())
    }

    fn push_resource(&mut self, resource: EmbeddedResourceResource) -> Result<(), Error> {
        if let EmbeddedResourceResource::TextResourceContents(text) = resource {
            let fence = fence(&text.text);
            self.push_text(&format!("{}\n{fence}\n{}\n{fence}", text.uri, text.text));
            return Ok(());
        }
        if let EmbeddedResourceResource::BlobResourceContents(blob) = resource
            && let Some(kind) = blob.mime_type.filter(|kind| kind.starts_with("image/"))
        {
            return self.push_image(&kind, &blob.blob);
        }
        Err(refused("an embedded resource has to be a text or an image"))
    }

    fn push_text(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        self.blocks.push(json!({ "type": "text", "text": text }));
    }

    fn push_image(&mut self, mime_type: &str, data: &str) -> Result<(), Error> {
        let decoded = STANDARD.decode(data);
        let bytes = decoded.map_err(|_| refused("the data of an image is not base64"))?;
        if bytes.len() > IMAGE_BYTES_MAX {
            return Err(refused(&format!("an image may have {IMAGE_BYTES_MAX} bytes at most")));
        }
        self.blocks.push(json!({ "type": "image", "mime_type": mime_type, "data": data }));
        Ok(())
    }
}

/// A fence that the text does not hold.
fn fence(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    fence
}

fn refused(reason: &str) -> Error {
    Error::invalid_params().data(json!({ "details": reason }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(content: Value) -> Result<PromptContent, Error> {
        PromptContent::parse(serde_json::from_value(content).unwrap())
    }

    #[test]
    fn every_kind_of_content_reaches_the_model() {
        let prompt = parse(json!([
            { "type": "text", "text": "Look" },
            { "type": "resource_link", "name": "main.rs", "uri": "file:///p/main.rs" },
            { "type": "resource", "resource": { "uri": "file:///p/a.md", "text": "```\nx\n```" } },
            { "type": "image", "mimeType": "image/png", "data": "aGk=" },
        ]))
        .unwrap();
        let text = "Look\n[main.rs](file:///p/main.rs)\nfile:///p/a.md\n````\n```\nx\n```\n````";
        assert_eq!(prompt.text, text);
        assert_eq!(prompt.blocks.len(), 4);
        assert_eq!(prompt.blocks[3]["mime_type"], "image/png");
    }

    #[test]
    fn an_empty_prompt_a_sound_and_a_broken_image_are_refused() {
        for content in [
            json!([]),
            json!([{ "type": "text", "text": " " }]),
            json!([{ "type": "audio", "mimeType": "audio/wav", "data": "aGk=" }]),
            json!([{ "type": "image", "mimeType": "image/png", "data": "!" }]),
        ] {
            assert!(parse(content.clone()).is_err(), "{content}");
        }
    }
}
