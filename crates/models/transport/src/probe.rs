//! A short request that checks whether a provider is reachable and accepts the key.

use antiphon_core::ProviderError;

use crate::client::Transport;
use crate::endpoint::Post;
use crate::failure::{HttpFailure, connection};

/// Most bytes of a document that are read.
pub const DOCUMENT_BYTES_MAX: usize = 4 * 1024 * 1024;

impl Transport {
    /// Fetches the JSON document at the address of `post`. The body of `post` is not sent.
    pub async fn get(&self, post: Post) -> Result<String, ProviderError> {
        let request = self.client().get(post.endpoint.url().clone()).headers(post.headers);
        let mut response = request.send().await.map_err(|error| connection(&error))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| connection(&error))? {
            if body.len() + chunk.len() > DOCUMENT_BYTES_MAX {
                return Err(ProviderError::Protocol {
                    message: format!("a document of more than {DOCUMENT_BYTES_MAX} bytes"),
                });
            }
            body.extend_from_slice(&chunk);
        }
        if status == 200 {
            Ok(String::from_utf8_lossy(&body).into_owned())
        } else {
            let mut failure = HttpFailure::new(status, &headers, &body);
            post.secrets.redact(&mut failure.body);
            Err(failure.by_status(None))
        }
    }
}
