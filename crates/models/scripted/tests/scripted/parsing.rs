use antiphon_scripted::{
    ANSWER_BYTES_MAX, CHUNK_CHARS_MAX, DELAY_MS_MAX, REPEAT_MAX, REPLIES_MAX, SCRIPT_BYTES_MAX,
    STEPS_MAX, Script, ScriptError,
};
use proptest::prelude::*;

fn refusal(text: &str) -> String {
    Script::parse(text).expect_err("it is refused").to_string()
}

/// Why a script with one reply of one step is refused. The error must name the line of the step.
fn step_refusal(step: &str) -> String {
    let text = format!("[[reply]]\nsteps = [\n  {{ {step} }},\n]");
    let refusal = refusal(&text);
    let place = format!("line 3, `{{ {step} }},`: ");
    assert!(refusal.starts_with(&place), "{refusal}");
    refusal[place.len()..].to_owned()
}

#[test]
fn an_error_names_the_line_and_what_is_wrong() {
    let text = "name = 'a'\n\n[[reply]]\nwhen = { turn = 0, trun = 1 }\nsteps = []";
    assert_eq!(
        Script::parse(text),
        Err(ScriptError::Line {
            line: 4,
            excerpt: "when = { turn = 0, trun = 1 }".to_owned(),
            reason: "unknown field `trun`, expected one of `turn`, `tool_results`, \
                     `results_since_user`, `last_user_contains`, `last_result_contains`, \
                     `last_result_is_error`, `system_contains`, `tool_offered`, `attempt`"
                .to_owned(),
        })
    );
}

#[test]
fn unknown_fields_are_refused_everywhere() {
    for text in [
        "nam = 'a'\n[[reply]]\nsteps = []",
        "[[reply]]\nstepp = []",
        "[[reply]]\nsteps = []\nusage = { tokens = 1 }",
        "[[reply]]\nsteps = [{ txt = 'a' }]",
        "[[reply]]\nsteps = [{ call = { name = 'a', args = {} } }]",
        "[[reply]]\nsteps = [{ opaque = { kind = 'a', value_json = '1', value = 1 } }]",
        "[[reply]]\nsteps = [{ error = { kind = 'cut', message = 'a' } }]",
        "[[reply]]\nsteps = [{ error = { kind = 'permission', status = 403 } }]",
        "[[reply]]\nsteps = [{ error = { kind = 'timeout', phase = 'stall', message = 'a' } }]",
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains("unknown field"), "{text}: {refusal}");
    }
}

#[test]
fn a_step_has_one_kind_and_only_its_fields() {
    let cases = [
        (
            "",
            "a step needs one of `text`, `thinking`, `call`, `opaque`, `alive`, `delay_ms`, \
             `error`, `cut`, `stall`",
        ),
        ("text = 'a', cut = true", "a step does one thing: write `text` and `cut` as two steps"),
        ("thinking = 'a', repeat = 2", "`repeat` does not belong to a step with `thinking`"),
        ("text = 'a', signature = 'b'", "`signature` does not belong to a step with `text`"),
        ("stall = true, unfinished = true", "`unfinished` does not belong to a step with `stall`"),
        (
            "cut = false",
            "`alive`, `cut`, `stall` and `unfinished` can only be `true`: leave the field out \
             instead",
        ),
        ("alive = true, repeat = 2", "`repeat` does not belong to a step with `alive`"),
        (
            "call = { name = 'a', arguments = {}, arguments_json = '{}' }",
            "a call has either `arguments` or `arguments_json`, not both",
        ),
        (
            "opaque = { kind = 'a', value_json = '{' }",
            "`value_json`: not valid JSON: EOF while parsing an object at line 1 column 1",
        ),
    ];
    for (step, reason) in cases {
        assert_eq!(step_refusal(step), reason);
    }
}

#[test]
fn arguments_that_json_does_not_have_are_refused() {
    let call = |value: &str| {
        step_refusal(&format!("call = {{ name = 'a', arguments = {{ x = [{value}] }} }}"))
    };
    assert_eq!(call("nan"), "JSON has no number `NaN`: use a string or `arguments_json`");
    assert_eq!(call("2024-05-01"), "JSON has no dates: write \"2024-05-01\" as a string");
}

#[test]
fn only_known_placeholders_are_accepted() {
    let known =
        "expected one of `{{last_user}}`, `{{last_result}}`, `{{last_result/…}}`, `{{turn}}`";
    for name in ["user", " turn ", ""] {
        assert_eq!(
            step_refusal(&format!("text = '{{{{{name}}}}}'")),
            format!("unknown placeholder `{{{{{name}}}}}`, {known}")
        );
    }
    assert_eq!(
        step_refusal("call = { name = 'a', arguments = { x = 'b {{turn' } }"),
        "`{{` is never closed with `}}`"
    );
}

#[test]
fn an_unknown_word_is_refused_with_the_known_ones() {
    assert_eq!(
        step_refusal("error = { kind = 'boom' }"),
        "unknown variant `boom`, expected one of `invalid_request`, `context_overflow`, \
         `authentication`, `permission`, `not_found`, `rate_limited`, `overloaded`, `server`, \
         `connection`, `timeout`, `cut`, `protocol`"
    );
    assert_eq!(
        step_refusal("error = { kind = 'timeout', phase = 'later' }"),
        "unknown variant `later`, expected one of `connect`, `first_byte`, `stall`"
    );
    assert_eq!(
        refusal("[[reply]]\nsteps = []\nstop = 'tired'"),
        "line 3, `stop = 'tired'`: unknown variant `tired`, expected one of `end_turn`, \
         `length`, `tool_use`, `error`, `aborted`, `unknown`"
    );
}

#[test]
fn steps_and_replies_without_effect_are_refused() {
    let cases = [
        ("", "line 1, ``: a script needs at least one `[[reply]]`"),
        (
            "[[reply]]\nstop = 'length'",
            "line 1, `[[reply]]`: a reply needs steps: write `steps = []` for an empty answer",
        ),
        (
            "[[reply]]\nwhen = {}\nsteps = []\n\n[[reply]]\nsteps = []",
            "line 5, `[[reply]]`: this reply is never used: the one before has no `when`, so it \
             always fits",
        ),
        (
            "[[reply]]\nsteps = [\n{ cut = true },\n{ text = 'a' }]",
            "line 4, `{ text = 'a' }]`: nothing can follow `cut`: remove this step",
        ),
        (
            "[[reply]]\nusage = { input_tokens = 1 }\nsteps = [{ error = { kind = 'cut' } }]",
            "line 1, `[[reply]]`: `usage` is never sent in a reply that ends with `error`: \
             remove one",
        ),
        (
            "name = 'a b'\n[[reply]]\nsteps = []",
            "line 1, `name = 'a b'`: `name` must not be empty, hold white space or make \
             `scripted/NAME` longer than 200 bytes",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(text), expected);
    }
}

#[test]
fn everything_has_a_limit() {
    let top = |line: &str| refusal(&format!("{line}\n[[reply]]\nsteps = []"));
    assert_eq!(
        top("chunk_chars = 0"),
        format!(
            "line 1, `chunk_chars = 0`: `chunk_chars` must be from 1 to {CHUNK_CHARS_MAX}, not 0"
        )
    );
    let delay = DELAY_MS_MAX + 1;
    assert_eq!(
        top(&format!("delay_ms = {delay}")),
        format!(
            "line 1, `delay_ms = {delay}`: `delay_ms` must be from 0 to {DELAY_MS_MAX}, not {delay}"
        )
    );
    assert_eq!(
        step_refusal("text = 'a', repeat = 0"),
        format!("`repeat` must be from 1 to {REPEAT_MAX}, not 0")
    );
    assert_eq!(
        step_refusal(&format!("text = 'fourteen chars', repeat = {REPEAT_MAX}")),
        format!("`repeat` makes the text longer than {ANSWER_BYTES_MAX} bytes")
    );
    let steps = "{ text = 'a' },".repeat(STEPS_MAX + 1);
    assert_eq!(
        refusal(&format!("[[reply]]\nsteps = [{steps}]")),
        format!(
            "line 1, `[[reply]]`: a reply may have {STEPS_MAX} steps at most, this one has {}",
            STEPS_MAX + 1
        )
    );
    let reply = "[[reply]]\nwhen = { turn = 1 }\nsteps = []\n";
    assert_eq!(
        refusal(&reply.repeat(REPLIES_MAX + 1)),
        format!(
            "line {}, `[[reply]]`: a script may have {REPLIES_MAX} replies at most",
            REPLIES_MAX * 3 + 1
        )
    );
    assert_eq!(
        Script::parse(&" ".repeat(SCRIPT_BYTES_MAX + 1)),
        Err(ScriptError::TooLarge { bytes: SCRIPT_BYTES_MAX + 1 })
    );
}

#[test]
fn steps_can_be_tables_or_an_array() {
    let tables = "[[reply]]\n[[reply.step]]\ntext = 'a'\n[[reply.step]]\ncut = true";
    let row = "[[reply]]\nsteps = [{ text = 'a' }, { cut = true }]";
    assert_eq!(Script::parse(tables), Script::parse(row));
    assert!(Script::parse(row).is_ok());
    assert!(refusal("[[reply]]\nsteps = []\nstep = []").contains("duplicate field"));
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Script::parse(&deep).is_err());
}

/// Texts that pass the TOML parser more often than random ones.
fn nearly_a_script() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "[[reply]]\n",
        "[[reply.step]]\n",
        "steps = [",
        "]",
        "{ ",
        " }",
        ", ",
        "\n",
        " = ",
        "text = ",
        "thinking = ",
        "'{{turn}}'",
        "'{{'",
        "\"ä\"",
        "call = ",
        "name = ",
        "'a'",
        "arguments = ",
        "arguments_json = ",
        "error = ",
        "kind = ",
        "'server'",
        "status = ",
        "repeat = ",
        "delay_ms = ",
        "cut = ",
        "stall = ",
        "alive = ",
        "true",
        "false",
        "1",
        "-1",
        "nan",
        "99999999999",
        "2024-05-01",
        "opaque = ",
        "value_json = ",
        "when = ",
        "turn = ",
        "attempt = ",
        "0",
        "stop = ",
        "'length'",
        "usage = ",
        "input_tokens = ",
    ]);
    prop::collection::vec(words, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn any_text_is_parsed_without_a_panic(text in any::<String>()) {
        let _ = Script::parse(&text);
    }

    #[test]
    fn any_near_script_is_parsed_without_a_panic(text in nearly_a_script()) {
        let _ = Script::parse(&text);
    }

    #[test]
    fn any_damaged_script_is_parsed_without_a_panic(
        at in 0_usize..4096, length in 0_usize..40, put in "[\\PC\n]{0,6}",
    ) {
        let script = include_str!("../../../../../examples/scripts/tools.toml");
        let chars: Vec<char> = script.chars().collect();
        let at = at % chars.len();
        let end = (at + length).min(chars.len());
        let damaged: String = chars[..at].iter().copied().chain(put.chars())
            .chain(chars[end..].iter().copied()).collect();
        let _ = Script::parse(&damaged);
    }
}
