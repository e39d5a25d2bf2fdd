use antiphon_core::{Provider, ProviderError};
use antiphon_scripted::ATTEMPTS_MAX;

use crate::world::{Asked, message, pieces, provider, text};

#[tokio::test]
async fn the_first_reply_that_fits_is_given() {
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
    let asked = Asked::new().user("a");
    assert_eq!(text(&provider, &asked).await, "first");
    let asked = asked.assistant("b").user("c");
    assert_eq!(text(&provider, &asked).await, "second");
    let asked = asked.assistant("d").user("e");
    assert_eq!(text(&provider, &asked).await, "later");
}

/// What a script of one condition and a fallback says to a request.
async fn fits(when: &str, asked: Asked) -> bool {
    let provider = provider(&format!(
        "[[reply]]\nwhen = {{ {when} }}\nsteps = [{{ text = \"fits\" }}]\n\
         [[reply]]\nsteps = [{{ text = \"does not\" }}]"
    ));
    text(&provider, &asked).await == "fits"
}

#[tokio::test]
async fn results_are_counted_in_total_and_since_the_user() {
    let asked = || {
        Asked::new()
            .user("a")
            .assistant("b")
            .result("1")
            .user("c")
            .assistant("d")
            .result("2")
            .result("3")
    };
    assert!(fits("tool_results = 3", asked()).await);
    assert!(!fits("tool_results = 2", asked()).await);
    assert!(fits("results_since_user = 2", asked()).await);
    assert!(!fits("results_since_user = 3", asked()).await);
    assert!(fits("results_since_user = 0", Asked::new()).await);
}

#[tokio::test]
async fn the_last_user_text_and_the_system_prompt_are_searched() {
    let asked = || Asked::new().system("Be brief.").user("old").user("new one");
    assert!(fits("last_user_contains = 'new'", asked()).await);
    assert!(!fits("last_user_contains = 'old'", asked()).await);
    assert!(!fits("last_user_contains = 'New'", asked()).await);
    assert!(!fits("last_user_contains = ''", Asked::new()).await);
    assert!(fits("system_contains = 'brief'", asked()).await);
    assert!(!fits("system_contains = 'long'", asked()).await);
}

#[tokio::test]
async fn the_last_result_is_searched_and_its_failure_known() {
    let good = || Asked::new().user("a").assistant("b").failure("x").result("fine");
    let bad = || Asked::new().user("a").assistant("b").result("x").failure("broken");
    assert!(fits("last_result_contains = 'fine'", good()).await);
    assert!(!fits("last_result_contains = 'x'", good()).await);
    assert!(fits("last_result_is_error = false", good()).await);
    assert!(fits("last_result_is_error = true", bad()).await);
    assert!(!fits("last_result_is_error = true", good()).await);
    assert!(!fits("last_result_is_error = false", Asked::new()).await);
}

#[tokio::test]
async fn a_tool_must_be_offered_by_its_name() {
    assert!(fits("tool_offered = 'grep'", Asked::new().tool("read").tool("grep")).await);
    assert!(!fits("tool_offered = 'grep'", Asked::new().tool("read")).await);
}

#[tokio::test]
async fn all_conditions_of_a_reply_must_hold() {
    let asked = || Asked::new().user("hello");
    assert!(fits("turn = 0, last_user_contains = 'hello'", asked()).await);
    assert!(!fits("turn = 1, last_user_contains = 'hello'", asked()).await);
}

#[tokio::test]
async fn a_request_that_no_reply_fits_is_described() {
    let provider = provider(
        "name = 'narrow'\n[[reply]]\nwhen = { turn = 7, attempt = 1 }\nsteps = [{ text = 'x' }]",
    );
    let asked = Asked::new().tool("read").user("a").assistant("b").result("c");
    let message = "no reply of scripted/narrow fits this request: turn 1, tool results 1 \
                   (1 since the user), tools offered 1, attempt 1, last user text \"a\"";
    let error = ProviderError::InvalidRequest { message: message.to_owned() };
    assert_eq!(pieces(&provider, asked.request()).await, (Vec::new(), Some(error)));
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
async fn attempts_are_counted_for_each_request_by_itself() {
    let provider = provider(COUNTING);
    let (this, other) = (Asked::new().user("this"), Asked::new().user("other"));
    assert_eq!(text(&provider, &this).await, "once");
    assert_eq!(text(&provider, &other).await, "once");
    assert_eq!(text(&provider, &this).await, "twice");
    assert_eq!(text(&provider, &this).await, "often");
    assert_eq!(text(&provider.clone(), &other).await, "twice");
}

#[tokio::test]
async fn an_answer_that_is_never_read_is_no_attempt() {
    let provider = provider(COUNTING);
    let asked = Asked::new().user("a");
    drop(provider.open(asked.request()));
    assert_eq!(text(&provider, &asked).await, "once");
}

#[tokio::test]
async fn the_oldest_request_is_forgotten_when_too_many_are_counted() {
    let provider = provider(COUNTING);
    let asked = |n: usize| Asked::new().user(&n.to_string());
    for n in 0..=ATTEMPTS_MAX {
        assert_eq!(text(&provider, &asked(n)).await, "once");
    }
    assert_eq!(text(&provider, &asked(1)).await, "twice");
    assert_eq!(text(&provider, &asked(0)).await, "once");
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
    for asked in [Asked::new().user("a"), Asked::new().user("a").assistant("b").result("c")] {
        let said = pieces(&first, asked.request()).await;
        assert_eq!(pieces(&first, asked.request()).await, said);
        assert_eq!(pieces(&second, asked.request()).await, said);
        assert_eq!(message(&first, asked.request()).await, message(&second, asked.request()).await);
    }
}
