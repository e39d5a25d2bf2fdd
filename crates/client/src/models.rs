//! Models that a server knows.

use antiphon_core::ModelRef;
use serde::Deserialize;

use crate::client::{Client, Query};
use crate::error::ClientError;

/// Stands for the agents in the list, which the OpenAI API names as models too.
const OWNER_OF_AGENTS: &str = "antiphon";

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ListedModel>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
    owned_by: String,
}

impl Client {
    /// The server's default model and the models of its agents. It asks no provider.
    pub async fn models(&self) -> Result<Vec<ModelRef>, ClientError> {
        let list: ModelList = self.get(&["v1", "models"], Query::NONE).await?;
        let models = list.data.iter().filter(|listed| listed.owned_by != OWNER_OF_AGENTS);
        Ok(models.filter_map(|listed| ModelRef::parse(&listed.id).ok()).collect())
    }
}
