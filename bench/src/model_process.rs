//! A model server in its own process: this program again, with a word that makes it one. It ends when its input is closed.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use crate::Error;

/// The process of a model server.
#[derive(Debug)]
pub struct ModelProcess {
    url: String,
    process: Child,
}

impl ModelProcess {
    /// Starts this program with these arguments. It prints its URL, see [`ModelProcess::wait`].
    pub fn start(arguments: &[&str]) -> Result<Self, Error> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        let output = process.stdout.take().ok_or("the model server has no output")?;
        BufReader::new(output).read_line(&mut url)?;
        Ok(Self { url: url.trim().to_owned(), process })
    }

    /// In that process: prints the URL, and waits until the input is closed.
    pub async fn wait(url: &str) -> Result<(), Error> {
        println!("{url}");
        tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
        Ok(())
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its socket address.
    pub fn socket(&self) -> Result<SocketAddr, Error> {
        Ok(self.url.trim_start_matches("http://").parse()?)
    }

    /// The lines of a configuration that make it the provider `upstream`.
    pub fn config(&self) -> String {
        format!("[providers.upstream]\nkind = \"openai\"\nbase_url = \"{}/v1\"\n", self.url)
    }
}

impl Drop for ModelProcess {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // It ends by itself; this only waits for it.
        let _ = self.process.wait();
    }
}
