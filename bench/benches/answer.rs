//! One answer of 10,000 deltas through the assembler, compared with appending the same deltas to a
//! string.

use antiphon_core::{Cancel, MessageStream, Piece, PieceSource, ProviderError};
use chrono::DateTime;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use futures_executor::block_on;

const DELTAS: u64 = 10_000;

fn pieces() -> Vec<Result<Piece, ProviderError>> {
    let delta = |_| Ok(Piece::Text { block: 0, delta: " antiphonal".to_owned() });
    (0..DELTAS).map(delta).chain([Ok(Piece::Done)]).collect()
}

fn answer(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("answer of 10,000 deltas");
    group.throughput(Throughput::Elements(DELTAS));
    group.bench_function("assembled", |bencher| {
        bencher.iter_batched(
            || -> PieceSource { Box::pin(futures_util::stream::iter(pieces())) },
            |source| {
                let stream = MessageStream::new(source, Cancel::never(), DateTime::UNIX_EPOCH);
                block_on(stream.complete())
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("baseline: push_str", |bencher| {
        bencher.iter_batched(
            pieces,
            |pieces| {
                let mut text = String::new();
                for piece in pieces {
                    if let Ok(Piece::Text { delta, .. }) = piece {
                        text.push_str(&delta);
                    }
                }
                text
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, answer);
criterion_main!(benches);
