//! How cost grows with what was there before: turns, sessions, tasks, watchers, agents.
//!
//! The release binary in its own process, against a model server over HTTP in another one; everything durable. Each part
//! prints its figures. With `GROWTH_DRAW=1` the parts that are curves draw them into `docs/`.
//!
//! | part       | measures                                                                        |
//! |------------|---------------------------------------------------------------------------------|
//! | `turns`    | a step with `read` at turn 10 … 5,000 of one task: wall and CPU                 |
//! | `sessions` | a task alone, and in a session of 300 and 1,000 tasks: CPU and wall             |
//! | `tasks`    | list, show, append and start with 1,000 … 100,000 tasks (`GROWTH_MILLION=1`: 1,000,000) |
//! | `watchers` | a step of a task with 1 … 1,000 watchers                                        |
//! | `agents`   | memory of a live agent at rest, fresh and after a restart                       |
//! | `start`    | start with 100,000 ended and 5,000 unfinished tasks                             |
//! | `run`      | `antiphon run` with 50 calls of `read`: step, and peak memory                   |
//! | `steps`    | durable steps per second of 100 tasks with `read`                               |
//! | `bash`     | a step with `bash -c true` in the sandbox: wall, and CPU with the commands       |

mod agents;
mod bash;
mod model;
mod run;
mod seed;
mod sessions;
mod start;
mod steps;
mod tasks;
mod turns;
mod watchers;

use std::path::Path;

use antiphon_bench::{Curve, Error, raise_files};
use tokio::runtime::{Builder, Runtime};

/// Variable that makes the parts draw their curves.
const DRAW: &str = "GROWTH_DRAW";

type Part = fn(&Runtime) -> Result<(), Error>;

/// What is measured: everything, or the names after `--`.
const PARTS: [(&str, Part); 9] = [
    ("turns", turns::measure),
    ("sessions", sessions::measure),
    ("tasks", tasks::measure),
    ("watchers", watchers::measure),
    ("agents", agents::measure),
    ("start", start::measure),
    ("run", run::measure),
    ("steps", steps::measure),
    ("bash", bash::measure),
];

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == model::WORD) {
        return model::serve();
    }
    raise_files()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let named: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    for (name, part) in PARTS {
        if named.is_empty() || named.iter().any(|word| *word == name) {
            part(&runtime)?;
            println!();
        }
    }
    Ok(())
}

/// Draws a curve into `docs/`, if that is asked for.
fn draw(name: &str, curve: &Curve) -> Result<(), Error> {
    if std::env::var_os(DRAW).is_none() {
        return Ok(());
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    curve.write(&docs.join(format!("growth-{name}.svg")))
}
