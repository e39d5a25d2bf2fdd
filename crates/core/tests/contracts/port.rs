//! Values of the ports: topics, embeddings, errors, cancellation.

use std::time::Duration;

use antiphon_core::port::{
    BusError, Cancel, Clock, EmbedderError, Embedding, EmbeddingError, IdSource, JournalError,
    RandomIds, RunnerError, SystemClock, TOPIC_BYTES_MAX, TimeoutPhase, Topic, TopicError,
    VectorStoreError,
};
use antiphon_core::{Position, ProviderError, Seq, TaskId, ToolError};
use futures_executor::block_on;
use futures_util::FutureExt;

#[test]
fn a_topic_is_words_joined_by_dots() {
    let longest = "t".repeat(TOPIC_BYTES_MAX);
    for text in ["task", "task.t-1.events_2", longest.as_str()] {
        let topic = Topic::parse(text).unwrap();
        assert_eq!((topic.as_str(), topic.to_string()), (text, text.to_owned()));
    }
    let long = "t".repeat(TOPIC_BYTES_MAX + 1);
    for text in ["", ".", "a.", ".a", "a..b", "a b", "a/b", "é", "a.*", ">", long.as_str()] {
        let error = Topic::parse(text).unwrap_err();
        assert_eq!(error, TopicError { found: text.to_owned() });
        assert_eq!(
            error.to_string(),
            format!(
                "`{text}` is not a topic: use words of letters, digits, `_`, `-`, joined by dots"
            )
        );
    }
}

#[test]
fn an_embedding_is_finite_and_not_empty() {
    let embedding = Embedding::new(vec![0.0, -1.5]).unwrap();
    assert_eq!((embedding.as_slice(), embedding.dimension()), (&[0.0, -1.5][..], 2));
    assert_eq!(Embedding::new(vec![]), Err(EmbeddingError::Empty));
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(
            Embedding::new(vec![0.0, odd, odd]),
            Err(EmbeddingError::NotFinite { index: 1 })
        );
    }
}

#[test]
fn a_cancellation_that_fired_stays_fired() {
    assert_eq!(Cancel::never().now_or_never(), None);
    let mut cancel = Cancel::when(std::future::ready(()));
    assert_eq!(format!("{cancel:?}"), "Cancel { fired: false, .. }");
    for _ in 0..3 {
        block_on(&mut cancel);
    }
    assert_eq!(format!("{cancel:?}"), "Cancel { fired: true, .. }");
}

#[test]
fn fresh_identifiers_sort_in_the_order_they_were_made() {
    let made: Vec<_> = (0..100).map(|_| RandomIds.next()).collect();
    assert!(made.is_sorted());
    assert!(SystemClock.now() <= SystemClock.now());
}

/// Every error of a provider, whether asking again may help, and how long to wait.
fn provider_errors() -> Vec<(ProviderError, bool, Option<Duration>, &'static str)> {
    let (message, wait) = (|| "m".to_owned(), Some(Duration::from_secs(3)));
    let timeout = |phase| ProviderError::Timeout { phase };
    #[rustfmt::skip]
    let table = vec![
        (ProviderError::InvalidRequest { message: message() }, false, None,
            "the provider refused the request: m"),
        (ProviderError::ContextOverflow { message: message() }, false, None,
            "the conversation does not fit the model's context window: m"),
        (ProviderError::Authentication { message: message() }, false, None,
            "the provider did not accept the key: m"),
        (ProviderError::Permission { message: message() }, false, None,
            "the key may not do this: m"),
        (ProviderError::NotFound { message: message() }, false, None,
            "the provider knows no such model or address: m"),
        (ProviderError::RateLimited { message: message(), retry_after: wait }, true, wait,
            "the provider's rate limit is reached: m"),
        (ProviderError::Overloaded { message: message(), retry_after: wait }, true, wait,
            "the provider is overloaded: m"),
        (ProviderError::Server { status: 500, message: message(), retry_after: None }, true, None,
            "the provider failed (status 500): m"),
        (ProviderError::Connection { message: message() }, true, None,
            "the provider cannot be reached: m"),
        (timeout(TimeoutPhase::Connect), true, None,
            "the provider took too long to accept the connection"),
        (timeout(TimeoutPhase::FirstByte), true, None,
            "the provider took too long to begin its answer"),
        (timeout(TimeoutPhase::Stall), true, None,
            "the provider took too long to go on with its answer"),
        (ProviderError::Cut, true, None, "the answer was cut off"),
        (ProviderError::Protocol { message: message() }, false, None,
            "the provider sent something unexpected: m"),
    ];
    table
}

#[test]
fn an_error_of_a_provider_says_what_to_do_next() {
    for (error, transient, retry_after, text) in provider_errors() {
        assert_eq!(
            (error.is_transient(), error.retry_after(), error.to_string()),
            (transient, retry_after, text.to_owned())
        );
    }
}

#[test]
fn the_errors_of_the_other_ports_read_as_sentences() {
    let task_id = TaskId::parse("t1").unwrap();
    let reason = || "full".to_owned();
    let tool = || "bash".to_owned();
    let said = [
        JournalError::Stale { task_id: task_id.clone(), expected: Seq(1), actual: Seq(2) }
            .to_string(),
        JournalError::Ended { task_id: task_id.clone() }.to_string(),
        JournalError::Invalid { task_id, reason: reason() }.to_string(),
        JournalError::Unavailable { reason: reason() }.to_string(),
        JournalError::Corrupt { position: Position(9), reason: reason() }.to_string(),
        BusError::ClaimLost { id: "w".to_owned() }.to_string(),
        BusError::Full { queue: Topic::parse("q").unwrap(), limit: 2 }.to_string(),
        BusError::Unavailable { reason: reason() }.to_string(),
        ToolError::Unknown { name: tool() }.to_string(),
        ToolError::InvalidArguments { tool: tool(), reason: reason() }.to_string(),
        ToolError::Canceled.to_string(),
        ToolError::Unavailable { tool: tool(), reason: reason() }.to_string(),
        VectorStoreError::Dimension { expected: 3, found: 2 }.to_string(),
        VectorStoreError::Unavailable { reason: reason() }.to_string(),
        EmbedderError::TooLong { index: 1 }.to_string(),
        EmbedderError::Unavailable { reason: reason() }.to_string(),
        RunnerError::Unavailable { reason: reason() }.to_string(),
        RunnerError::Refused { reason: reason() }.to_string(),
        RunnerError::from(JournalError::Unavailable { reason: reason() }).to_string(),
    ];
    let expected = [
        "task t1 is at 2, not at 1: another writer was first",
        "task t1 has ended: nothing can be added to it",
        "invalid append to task t1: full",
        "the journal is not available: full",
        "the journal is damaged at position 9: full",
        "the claim on `w` is lost: its lease ran out",
        "`q` is full: it holds 2 at most",
        "the bus is not available: full",
        "there is no tool `bash`",
        "invalid arguments for `bash`: full",
        "canceled",
        "`bash` could not be run: full",
        "this store holds vectors of dimension 3, not 2",
        "the vector store is not available: full",
        "text 1 is too long to embed",
        "the embedder is not available: full",
        "the runner cannot be reached: full",
        "the runner refuses: full",
        "the journal is not available: full",
    ];
    assert_eq!(said, expected);
}
