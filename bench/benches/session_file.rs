//! A session of 1,000 messages to text and back, compared with plain `serde_json` values.

use antiphon_core::{Session, SessionId, UserMessage};
use chrono::DateTime;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn session() -> Session {
    let id = SessionId::parse("bench").unwrap_or_else(|error| unreachable!("{error}"));
    let mut session = Session::new(id, "You are a benchmark.", DateTime::UNIX_EPOCH);
    for turn in 0..1_000 {
        let text = format!("Message {turn}: {}", "lorem ipsum ".repeat(40));
        session.push(UserMessage::text(text, DateTime::UNIX_EPOCH));
    }
    session
}

fn session_file(criterion: &mut Criterion) {
    let session = session();
    let text = antiphon_session_file::to_json(&session).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let mut group = criterion.benchmark_group("session of 1,000 messages");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("parse", |bencher| {
        bencher.iter(|| antiphon_session_file::parse(&text));
    });
    group.bench_function("baseline: parse to a value", |bencher| {
        bencher.iter(|| serde_json::from_str::<serde_json::Value>(&text));
    });
    group.bench_function("write", |bencher| {
        bencher.iter(|| antiphon_session_file::to_json(&session));
    });
    group.bench_function("baseline: write a value", |bencher| {
        bencher.iter(|| serde_json::to_string_pretty(&value));
    });
    group.finish();
}

criterion_group!(benches, session_file);
criterion_main!(benches);
