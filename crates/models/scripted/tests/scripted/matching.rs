use antiphon_core::{Provider, ProviderError};
use antiphon_scripted::ATTEMPTS_MAX;

use crate::world::{RequestBuilder, message, pieces, provider, text};

#[tokio::test]
async fn the_first_matching_reply_is_given() {
    let provider = provider(
        r#"
        [[reply]]
        when = { turn = 1 }
        steps = [{ text = "second" }]
        [[reply]]
        when = { turn = 0 }
        steps = [{ text = "first" }]
        [[reply]]
        steps = [{ text = "later" }]
        "#,
    );
    let request = RequestBuilder::new().user("a");
    assert_eq!(text(&provider, &request).await, "first");
    let request = request.assistant("b").user("c");
    assert_eq!(text(&provider, &request).await, "second");
    let request = request.assistant("d").user("e");
    assert_eq!(text(&provider, &request).await, "later");
}

/// Whether a script with this condition matches a request.
async fn fits(when: &str, request: RequestBuilder) -> bool {
    let provider = provider(&format!(
        "[[reply]]\nwhen = {{ {when} }}\nsteps = [{{ text = \"fits\" }}]\n\
         [[reply]]\nsteps = [{{ text = \"does not\" }}]"
    ));
    text(&provider, &request).await == "fits"
}

#[tokio::test]
async fn results_are_counted_in_total_and_since_the_user() {
    let request = || {
        RequestBuilder::new()
            .user("a")
            .assistant("b")
            .result("1")
            .user("c")
            .assistant("d")
            .result("2")
            .result("3")
    };
    assert!(fits("tool_results = 3", request()).await);
    assert!(!fits("tool_results = 2", request()).await);
    assert!(fits("results_since_user = 2", request()).await);
    assert!(!fits("results_since_user = 3", request()).await);
    assert!(fits("results_since_user = 0", RequestBuilder::new()).await);
}

#[tokio::test]
async fn the_last_user_text_and_the_system_prompt_are_searched() {
    let request = || RequestBuilder::new().system("Be brief.").user("old").user("new one");
    assert!(fits("last_user_contains = 'new'", request()).await);
    assert!(!fits("last_user_contains = 'old'", request()).await);
    assert!(!fits("last_user_contains = 'New'", request()).await);
    assert!(!fits("last_user_contains = ''", RequestBuilder::new()).await);
    assert!(fits("system_contains = 'brief'", request()).await);
    assert!(!fits("system_contains = 'long'", request()).await);
}

#[tokio::test]
async fn the_last_result_is_searched_and_its_failure_known() {
    let good = || RequestBuilder::new().user("a").assistant("b").failure("x").result("fine");
    let bad = || RequestBuilder::new().user("a").assistant("b").result("x").failure("broken");
    assert!(fits("last_result_contains = 'fine'", good()).await);
    assert!(!fits("last_result_contains = 'x'", good()).await);
    assert!(fits("last_result_is_error = false", good()).await);
    assert!(fits("last_result_is_error = true", bad()).await);
    assert!(!fits("last_result_is_error = true", good()).await);
    assert!(!fits("last_result_is_error = false", RequestBuilder::new()).await);
}

#[tokio::test]
async fn a_tool_must_be_offered_by_its_name() {
    assert!(fits("tool_offered = 'grep'", RequestBuilder::new().tool("read").tool("grep")).await);
    assert!(!fits("tool_offered = 'grep'", RequestBuilder::new().tool("read")).await);
}

#[tokio::test]
async fn all_conditions_of_a_reply_must_hold() {
    let request = || RequestBuilder::new().user("hello");
    assert!(fits("turn = 0, last_user_contains = 'hello'", request()).await);
    assert!(!fits("turn = 1, last_user_contains = 'hello'", request()).await);
}

#[tokio::test]
async fn a_request_without_a_matching_reply_is_described() {
    let provider = provider(
        "name = 'narrow'\n[[reply]]\nwhen = { turn = 7, attempt = 1 }\nsteps = [{ text = 'x' }]",
    );
    let request = RequestBuilder::new().tool("read").user("a").assistant("b").result("c");
    let message = "no reply of scripted/narrow fits this request: turn 1, tool results 1 \
                   (1 since the user), tools offered 1, attempt 1, last user text \"a\"";
    let error = ProviderError::InvalidRequest { message: message.to_owned() };
    assert_eq!(pieces(&provider, request.request()).await, (Vec::new(), Some(error)));
}

const COUNTING: &str = "
    [[reply]]
    when = { attempt = 1 }
    steps = [{ text = 'once' }]
    [[reply]]
    when = { attempt = 2 }
    steps = [{ text = 'twice' }]
    [[reply]]
    steps = [{ text = 'often' }]
";

#[tokio::test]
async fn attempts_are_counted_per_request() {
    let provider = provider(COUNTING);
    let (this, other) = (RequestBuilder::new().user("this"), RequestBuilder::new().user("other"));
    assert_eq!(text(&provider, &this).await, "once");
    assert_eq!(text(&provider, &other).await, "once");
    assert_eq!(text(&provider, &this).await, "twice");
    assert_eq!(text(&provider, &this).await, "often");
    assert_eq!(text(&provider.clone(), &other).await, "twice");
}

#[tokio::test]
async fn an_answer_that_is_never_polled_is_not_an_attempt() {
    let provider = provider(COUNTING);
    let request = RequestBuilder::new().user("a");
    drop(provider.open(request.request()));
    assert_eq!(text(&provider, &request).await, "once");
}

#[tokio::test]
async fn above_the_limit_the_oldest_request_is_forgotten() {
    let provider = provider(COUNTING);
    let request = |n: usize| RequestBuilder::new().user(&n.to_string());
    for n in 0..=ATTEMPTS_MAX {
        assert_eq!(text(&provider, &request(n)).await, "once");
    }
    assert_eq!(text(&provider, &request(1)).await, "twice");
    assert_eq!(text(&provider, &request(0)).await, "once");
}

#[tokio::test]
async fn another_process_gives_the_same_answer() {
    let script = "
        [[reply]]
        when = { turn = 0 }
        steps = [{ thinking = 'hm' }, { call = { name = 'read', arguments = { b = 1, a = 2 } } }]
        [[reply]]
        steps = [{ text = '{{turn}} {{last_user}} {{last_result}}' }]
    ";
    let (first, second) = (provider(script), provider(script));
    for request in [
        RequestBuilder::new().user("a"),
        RequestBuilder::new().user("a").assistant("b").result("c"),
    ] {
        let sent = pieces(&first, request.request()).await;
        assert_eq!(pieces(&first, request.request()).await, sent);
        assert_eq!(pieces(&second, request.request()).await, sent);
        assert_eq!(
            message(&first, request.request()).await,
            message(&second, request.request()).await
        );
    }
}
