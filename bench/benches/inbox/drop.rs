//! From a dropped file to its response.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::OrderExecutor;
use antiphon_core::{Order, OrderError, OrderResult, OrderStatus, Sender};
use antiphon_file_drop::{FileDropSettings, drop_and_wait, watch};
use antiphon_runtime::{Arrival, Orchestrator, Receipt};
use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::world::{self, SILENT};
use crate::{Error, summary};

const TIMES: usize = 300;

pub(crate) async fn compare() -> Result<(), Error> {
    println!("{:46}{}", "from a dropped file to its response", summary(dropped().await?));
    Ok(())
}

async fn dropped() -> Result<Vec<Duration>, Error> {
    let folder = world::folder()?;
    let names = [SILENT.to_owned()];
    let (orchestrator, _asked) = world::orchestrator(world::journal(folder.path())?, &names)?;
    let stop = CancellationToken::new();
    let orders = Arc::new(Sending(orchestrator.clone()));
    let service = watch(folder.path(), FileDropSettings::default(), orders, stop.clone());
    let (watched, times) = tokio::join!(service, model_requests(folder.path(), stop));
    watched?;
    orchestrator.shutdown(Duration::ZERO).await;
    times
}

async fn model_requests(project: &Path, stop: CancellationToken) -> Result<Vec<Duration>, Error> {
    // Also stops the service after an error.
    let _stop = stop.drop_guard();
    let requests = project.join(".antiphon/requests");
    let mut times = Vec::new();
    for n in 0..TIMES {
        let request = format!(r#"{{"action":"send","name":"{SILENT}","message":"Number {n}."}}"#);
        let began = Instant::now();
        let patience = Duration::from_secs(10);
        let response = drop_and_wait(&requests, "bench", request.into_bytes(), patience).await?;
        times.push(began.elapsed());
        if !response.ok {
            return Err(format!("{response:?}").into());
        }
    }
    Ok(times)
}

/// Sends interactions and does nothing else.
struct Sending(Orchestrator);

#[async_trait]
impl OrderExecutor for Sending {
    async fn execute(&self, order: Order, _: &str, key: &str) -> Result<OrderResult, OrderError> {
        let refused = |message: String| OrderError::Refused { code: "REFUSED".to_owned(), message };
        let Order::Send { to, content, .. } = order else { return Err(refused("no".to_owned())) };
        let arrival = Arrival {
            content,
            key: Some(key.to_owned()),
            ..Arrival::message(to, Sender::User, "")
        };
        match self.0.admit(arrival).await.map_err(|error| refused(error.to_string()))? {
            Receipt::Accepted { .. } | Receipt::Deduplicated { .. } => {
                Ok(OrderResult::new(OrderStatus::Accepted))
            }
            other @ (Receipt::Filtered | Receipt::Rejected(_)) => {
                Err(refused(format!("{other:?}")))
            }
        }
    }
}
