//! The baseline: the same requests, all at once, without a journal and an orchestrator.

use reqwest::header::CONTENT_TYPE;
use serde_json::json;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::Error;
use crate::model::TEXT;
use crate::team::{CONTEXT, prompt};
use crate::usage::{Meter, ResourceUsage};

pub(crate) fn run(children: u32, url: &str) -> Result<ResourceUsage, Error> {
    // Fails when a provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = reqwest::Client::builder().tcp_nodelay(true).build()?;
        ask_all(&client, url, 1).await?;
        let meter = Meter::start()?;
        ask_all(&client, url, children).await?;
        meter.stop()
    })
}

async fn ask_all(client: &reqwest::Client, url: &str, children: u32) -> Result<(), Error> {
    let mut requests = JoinSet::new();
    for number in 0..children {
        let body = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": CONTEXT },
                { "role": "user", "content": prompt(number) },
            ],
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        let request = client
            .post(format!("{url}/chat/completions"))
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        requests.spawn(async move { request.send().await?.text().await });
    }
    while let Some(answer) = requests.join_next().await {
        if !answer??.contains(TEXT) {
            return Err("that is not the answer".into());
        }
    }
    Ok(())
}
