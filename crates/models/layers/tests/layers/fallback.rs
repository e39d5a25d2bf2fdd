use std::sync::Arc;

use antiphon_core::{Cancel, ModelRef, Piece, Provider, ProviderError, Request, StopReason};
use antiphon_layers::{Fallback, FallbackModel};

use crate::fault::{context_overflow, invalid_request, lasting, server, transient};
use crate::piece::{answer, asides, outputs, text};
use crate::test_provider::{Action, TestProvider, say};
use crate::world::{Read, ask, message, request, scripted};

fn choice(model: &str, provider: impl Provider + 'static) -> FallbackModel {
    FallbackModel { model: ModelRef::parse(model).expect("a model"), provider: Arc::new(provider) }
}

fn two(first: &TestProvider, second: &TestProvider) -> Fallback {
    Fallback::new(choice("a/first", first.clone()), [choice("b/second/big", second.clone())])
}

/// The request with the name of that model.
fn asked_of(model: &str) -> Request {
    Request { model: model.to_owned(), ..request("ask") }
}

/// Errors that are not the request's fault.
fn faults() -> Vec<ProviderError> {
    let own = [invalid_request(), context_overflow()];
    let others = lasting().into_iter().filter(|error| !own.contains(error));
    transient().into_iter().chain(others).collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_model_answers_if_it_can() {
    let (first, second) = (TestProvider::sending(answer("1")), TestProvider::sending(answer("2")));
    assert_eq!(ask(&two(&first, &second)).await, Read::whole(answer("1")));
    assert_eq!(first.requests(), [asked_of("first")]);
    assert_eq!(second.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_the_next_model_is_called_by_its_own_name() {
    for error in faults() {
        let (first, second) = (TestProvider::failing(error), TestProvider::sending(answer("2")));
        assert_eq!(ask(&two(&first, &second)).await, Read::whole(answer("2")));
        assert_eq!(first.requests(), [asked_of("first")]);
        assert_eq!(second.requests(), [asked_of("second/big")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_malformed_or_too_long_request_is_not_sent_to_all() {
    for error in [invalid_request(), context_overflow()] {
        let (first, second) =
            (TestProvider::failing(error.clone()), TestProvider::sending(answer("2")));
        assert_eq!(ask(&two(&first, &second)).await, Read::failed(error));
        assert_eq!(second.count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_shown_piece_no_other_model_is_called() {
    for piece in outputs() {
        let acts = vec![Action::Send(piece.clone()), Action::Fail(server(None))];
        let (first, second) =
            (TestProvider::in_turn(vec![acts]), TestProvider::sending(answer("2")));
        let failure = Some(server(None));
        let read = ask(&two(&first, &second)).await;
        assert_eq!(read, Read { pieces: vec![piece], failure });
        assert_eq!(second.count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn before_a_shown_piece_the_next_model_is_called() {
    for piece in asides() {
        let acts = vec![Action::Send(piece.clone()), Action::Fail(server(None))];
        let (first, second) =
            (TestProvider::in_turn(vec![acts]), TestProvider::sending(answer("2")));
        let pieces = [vec![piece], answer("2")].concat();
        assert_eq!(ask(&two(&first, &second)).await, Read::whole(pieces));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ends_incomplete_is_interrupted() {
    let (cut, second) =
        (TestProvider::sending(vec![Piece::Alive]), TestProvider::sending(answer("2")));
    let pieces = [vec![Piece::Alive], answer("2")].concat();
    assert_eq!(ask(&two(&cut, &second)).await, Read::whole(pieces));
    let shown = TestProvider::sending(vec![text(0, "sh")]);
    let failure = Some(ProviderError::Cut);
    let read = ask(&two(&shown, &second)).await;
    assert_eq!(read, Read { pieces: vec![text(0, "sh")], failure });
}

#[tokio::test(start_paused = true)]
async fn models_are_called_in_order_and_the_last_failure_is_returned() {
    let models: Vec<TestProvider> = (0..5_u16)
        .map(|number| {
            let (message, retry_after) = (String::new(), None);
            let status = 500 + number;
            TestProvider::failing(ProviderError::Server { status, message, retry_after })
        })
        .collect();
    let choices: Vec<FallbackModel> = (0..)
        .zip(&models)
        .map(|(number, model)| {
            let seen = models[..number].to_vec();
            let model = model.clone();
            // Each checks that those before it were called.
            let checked = Checked { inner: model, before: seen };
            choice(&format!("a/m{number}"), checked)
        })
        .collect();
    let mut choices = choices.into_iter();
    let first = choices.next().expect("five");
    let read = ask(&Fallback::new(first, choices)).await;
    let (message, retry_after) = (String::new(), None);
    assert_eq!(read, Read::failed(ProviderError::Server { status: 504, message, retry_after }));
    for (number, model) in models.iter().enumerate() {
        assert_eq!(model.requests(), [asked_of(&format!("m{number}"))]);
    }
}

struct Checked {
    inner: TestProvider,
    before: Vec<TestProvider>,
}

impl Provider for Checked {
    fn open(&self, request: Request) -> antiphon_core::PieceSource {
        for before in &self.before {
            assert_eq!((before.count(), before.running()), (1, 0), "one at a time, in order");
        }
        self.inner.open(request)
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_error_of_the_request_ends_the_search() {
    let (first, second) =
        (TestProvider::failing(server(None)), TestProvider::failing(invalid_request()));
    let third = TestProvider::sending(answer("3"));
    let all =
        Fallback::new(choice("a/1", first), [choice("a/2", second), choice("a/3", third.clone())]);
    assert_eq!(ask(&all).await, Read::failed(invalid_request()));
    assert_eq!(third.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_single_model_is_called_once() {
    let only = TestProvider::in_turn(vec![vec![Action::Fail(server(None))], say(answer("again"))]);
    let read = ask(&Fallback::new(choice("a/1", only.clone()), [])).await;
    assert_eq!((read, only.count()), (Read::failed(server(None)), 1));
}

#[tokio::test(start_paused = true)]
async fn the_message_names_the_model_that_answered() {
    let broken = scripted("[[reply]]\nsteps = [{ error = { kind = 'overloaded' } }]");
    let spare = scripted("name = 'spare'\n[[reply]]\nsteps = [{ text = 'here' }]");
    let both = Fallback::new(choice("a/1", broken), [choice("a/2", spare)]);
    let (message, failure) = message(&both, request("a"), Cancel::never()).await;
    let model = ModelRef::parse("scripted/spare").expect("a model");
    assert_eq!((failure, message.text()), (None, "here".to_owned()));
    assert_eq!((message.model, message.stop_reason), (Some(model), StopReason::EndTurn));
}
