//! Memory of live agents at rest: started and never written to, and after a restart of the server.

use std::time::Duration;

use antiphon_bench::{Connection, Error, heading};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::model;

const AGENTS: usize = 2_000;

/// How long states may be kept in memory.
const SETTLED_AFTER: Duration = Duration::from_secs(15);

pub(crate) fn measure(runtime: &Runtime) -> Result<(), Error> {
    heading(
        &format!("memory of the server for each of {AGENTS} live agents at rest"),
        "growth -- agents",
    );
    runtime.block_on(async {
        let (_model, project) = model::project("")?;
        for number in 0..AGENTS {
            let text = format!(
                "---\nname: agent-{number}\ndescription: Waits.\nmodel: {}\n---\nYou wait.\n",
                model::name(0)
            );
            project.write(&format!(".antiphon/agents/agent-{number}.md"), &text)?;
        }
        let served = project.serve(&[])?;
        let mut connection = Connection::open(&served.address()?).await?;
        let before = served.process().resident_kib()?;
        for number in 0..AGENTS {
            connection.post(&format!("/v1/agents/agent-{number}/start"), &json!({})).await?;
        }
        tokio::time::sleep(SETTLED_AFTER).await;
        row("started", served.process().resident_kib()?.saturating_sub(before));
        served.end()?;
        let served = project.serve(&[])?;
        tokio::time::sleep(SETTLED_AFTER).await;
        row("after a restart", served.process().resident_kib()?.saturating_sub(before));
        served.end()
    })
}

fn row(name: &str, kib: u64) {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let each = kib as f64 / AGENTS as f64;
    println!("{name:24}{each:>10.2} KiB");
}
