//! The configuration of schedules and its errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon_core::{
    HandlingMode, Interaction, InteractionContent, InteractionId, RenderClass, RenderMetadata,
    Salience, Sender,
};
use antiphon_project::schedules::{
    BODY_BYTES_MAX, Cron, Every, SCHEDULES_MAX, Schedule, ScheduleConfig, ScheduleError, Schedules,
    When, WhenError,
};
use antiphon_schedule::Tick;
use proptest::prelude::*;

use super::{schedule, schedules, tables, time};

/// The error for a schedule `s` with these lines.
fn refused(lines: &str) -> String {
    let tables = tables(&format!("[schedules.s]\nagent = \"scribe\"\n{lines}"));
    Schedules::from_config(tables).unwrap_err().to_string()
}

/// The parser's error for these lines.
fn misread(lines: &str) -> String {
    toml::from_str::<ScheduleConfig>(lines).unwrap_err().message().to_owned()
}

#[test]
fn a_table_has_all_fields_of_a_schedule() {
    let all = schedules(
        r#"
        [schedules.standup]
        agent = "lead"
        cron = "0 9 * * mon-fri"
        zone = "Europe/Vienna"
        body = "What is open?"
        salience = "important"
        wake = false

        [schedules.tidy]
        agent = "scribe"
        every = "2h 30m"
        "#,
    );
    let standup = Schedule {
        name: "standup".parse().unwrap(),
        agent: "lead".parse().unwrap(),
        when: When::Cron(Cron::parse("0 9 * * mon-fri", "Europe/Vienna").unwrap()),
        body: "What is open?".to_owned(),
        salience: Some(Salience::Important),
        wake: false,
    };
    let tidy = Schedule {
        name: "tidy".parse().unwrap(),
        agent: "scribe".parse().unwrap(),
        when: When::Every(Every::parse("150m").unwrap()),
        body: String::new(),
        salience: None,
        wake: true,
    };
    assert_eq!(all, Schedules::new(vec![standup, tidy]).unwrap());
}

#[test]
fn a_tick_is_an_external_event() {
    let hourly = schedule("every = \"1h\"\nbody = \"Look.\"\nsalience = \"urgent\"");
    let tick = Tick::new(Arc::new(hourly), time("2026-11-20T09:00:00Z"));
    assert_eq!(tick.key, "schedule:s:2026-11-20T09:00:00Z");
    let later = Tick::new(Arc::clone(&tick.schedule), time("2026-11-20T09:00:00.5Z"));
    assert_eq!(later.key, "schedule:s:2026-11-20T09:00:00.500Z");
    let id = InteractionId::new();
    let expected = Interaction {
        id,
        from: Sender::External("s".parse().unwrap()),
        content: InteractionContent::Message { body: "Look.".to_owned(), blocks: None },
        handling_mode: HandlingMode::Queue,
        render_metadata: Some(RenderMetadata {
            class: RenderClass::ExternalEvent,
            salience: Salience::Urgent,
        }),
    };
    assert_eq!(tick.interaction(id), expected);
    assert_eq!(antiphon_core::render(&expected), "[EVENT via s] Look.");
}

#[test]
fn a_schedule_has_exactly_one_time() {
    let nothing = "[schedules.s]: it has no time: give one of `every`, `cron` and `at`";
    assert_eq!(refused("body = \"x\""), nothing);
    let (every, cron) = ("every = \"5m\"\n", "cron = \"* * * * *\"\n");
    let at = "at = \"2026-11-20T09:00:00Z\"\n";
    for (lines, both) in [
        (format!("{every}{cron}"), "`every` and `cron`"),
        (format!("{every}{at}"), "`every` and `at`"),
        (format!("{cron}{at}"), "`cron` and `at`"),
        (format!("{every}{cron}{at}"), "`every` and `cron`"),
    ] {
        let expected =
            format!("[schedules.s]: it has both {both}: give one of `every`, `cron` and `at`");
        assert_eq!(refused(&lines), expected);
    }
}

#[test]
fn a_field_that_does_not_apply_is_refused() {
    let zone = "zone = \"UTC\"\n";
    let from = "from = \"2026-11-20T09:00:00Z\"\n";
    let (zone_only, from_only) = (
        "[schedules.s]: `zone` applies only to `cron`: remove it",
        "[schedules.s]: `from` applies only to `every`: remove it",
    );
    assert_eq!(refused(&format!("every = \"5m\"\n{zone}")), zone_only);
    assert_eq!(refused(&format!("at = \"2026-11-20T09:00:00Z\"\n{zone}")), zone_only);
    assert_eq!(refused(&format!("cron = \"* * * * *\"\n{from}")), from_only);
    assert_eq!(refused(&format!("at = \"2026-11-20T09:00:00Z\"\n{from}")), from_only);
}

#[test]
fn an_invalid_period_is_refused_with_an_example() {
    let how = "Write numbers with units (s, m, h, d, w), such as \"90s\", \"5m\" or \"1h 30m\"";
    for (found, reason) in [
        ("", "value was empty"),
        ("5", "time unit needed, for example 5sec or 5ms"),
        ("often", "expected number at 0"),
        ("-5m", "expected number at 0"),
        ("5M", "months and years differ in length, `cron` knows them"),
        ("1 month", "months and years differ in length, `cron` knows them"),
        ("1y", "months and years differ in length, `cron` knows them"),
    ] {
        let expected = format!("[schedules.s]: `every` cannot be {found:?}: {reason}. {how}");
        assert_eq!(refused(&format!("every = {found:?}")), expected);
    }
    for (every, found) in
        [("0s", "0s"), ("999ms", "999ms"), ("1.5s", "1s 500ms"), ("53w", "1year 5days 18h")]
    {
        let expected = format!(
            "[schedules.s]: `every` cannot be {found}: a period has whole seconds, from 1s to 366d"
        );
        assert_eq!(refused(&format!("every = {every:?}")), expected);
    }
}

#[test]
fn an_invalid_expression_is_refused_with_an_example() {
    let how =
        "Write minute, hour, day of month, month and day of week, such as \"0 9 * * mon-fri\"";
    for (found, reason) in [
        ("", "it has 0 fields, not 5"),
        ("@daily", "it has 1 fields, not 5"),
        ("0 0 9 * * mon", "it has 6 fields, not 5"),
        ("0 9 * * monday", "\"monday\" is neither a day nor a month"),
        ("0 9 * * sunmon", "\"sunmon\" is neither a day nor a month"),
    ] {
        let expected = format!("[schedules.s]: `cron` cannot be {found:?}: {reason}. {how}");
        assert_eq!(refused(&format!("cron = {found:?}")), expected);
    }
    for found in ["60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "*/0 * * * *"]
    {
        let error = refused(&format!("cron = {found:?}"));
        assert!(
            error.starts_with(&format!("[schedules.s]: `cron` cannot be {found:?}: ")),
            "{error}"
        );
        assert!(error.ends_with(how), "{error}");
    }
    let never = "[schedules.s]: `cron` cannot be \"0 0 30 2 *\": there is no such day";
    assert_eq!(refused("cron = \"0 0 30 2 *\""), never);
}

#[test]
fn an_invalid_zone_is_refused_with_a_suggestion() {
    let zone = |zone: &str| refused(&format!("cron = \"* * * * *\"\nzone = {zone:?}"));
    let vienna = "[schedules.s]: `zone` cannot be \"europe/vienna\": write \"Europe/Vienna\"";
    assert_eq!(zone("europe/vienna"), vienna);
    let how = "write a name of the IANA database, such as \"Europe/Vienna\" or \"UTC\"";
    for found in ["", "Vienna", "+01:00", "../etc/localtime"] {
        assert_eq!(zone(found), format!("[schedules.s]: `zone` cannot be {found:?}: {how}"));
    }
}

#[test]
fn an_invalid_time_is_refused_with_an_example() {
    let how = "write date, time and offset, such as \"2026-11-20T09:00:00Z\" or \"2026-11-20T10:00:00+01:00\"";
    for found in ["", "tomorrow", "2026-11-20", "2026-11-20T09:00:00", "2026-02-30T09:00:00Z"] {
        let expected = format!("[schedules.s]: `at` cannot be {found:?}: {how}");
        assert_eq!(refused(&format!("at = {found:?}")), expected);
        let expected = format!("[schedules.s]: `from` cannot be {found:?}: {how}");
        assert_eq!(refused(&format!("every = \"5m\"\nfrom = {found:?}")), expected);
    }
}

#[test]
fn a_time_without_quotes_is_refused_with_advice() {
    let expected = "expected a time in quotes, such as \"2026-11-20T09:00:00Z\"";
    let error = misread("agent = \"a\"\nat = 2026-11-20T09:00:00Z");
    assert!(error.contains(expected), "{error}");
}

#[test]
fn unknown_fields_and_names_are_refused() {
    assert!(misread("agent = \"a\"\nevry = \"5m\"").starts_with("unknown field `evry`, expected"));
    assert_eq!(misread("every = \"5m\""), "missing field `agent`");
    assert_eq!(misread("agent = \"user\"\nevery = \"5m\""), "the name `user` is reserved");
    let error = misread("agent = \"a\"\nevery = \"5m\"\nsalience = \"loud\"");
    assert!(error.starts_with("unknown variant `loud`, expected one of `background`"), "{error}");
}

#[test]
fn texts_that_are_too_long_are_refused() {
    let long = "9".repeat(257);
    for (field, rest) in [
        ("every", ""),
        ("cron", ""),
        ("at", ""),
        ("zone", "cron = \"* * * * *\""),
        ("from", "every = \"5m\""),
    ] {
        let expected = format!("[schedules.s]: `{field}` may have 256 bytes at most");
        assert_eq!(refused(&format!("{field} = {long:?}\n{rest}")), expected);
    }
    let body = |bytes: usize| Schedule { body: "x".repeat(bytes), ..schedule("every = \"5m\"") };
    assert!(Schedules::new(vec![body(BODY_BYTES_MAX)]).is_ok());
    let expected = ScheduleError::Body { name: "s".parse().unwrap(), bytes: BODY_BYTES_MAX + 1 };
    assert_eq!(Schedules::new(vec![body(BODY_BYTES_MAX + 1)]), Err(expected));
}

#[test]
fn the_number_of_schedules_is_limited_and_names_are_unique() {
    let table = tables("[schedules.s]\nagent = \"a\"\nevery = \"5m\"").remove("s").unwrap();
    let named = |names: Vec<String>| -> BTreeMap<String, ScheduleConfig> {
        names.into_iter().map(|name| (name, table.clone())).collect()
    };
    let many = |count: usize| named((0..count).map(|n| n.to_string()).collect());
    let most = Schedules::from_config(many(SCHEDULES_MAX)).unwrap();
    assert_eq!(most.iter().count(), SCHEDULES_MAX);
    let expected = ScheduleError::TooMany { found: SCHEDULES_MAX + 1 };
    assert_eq!(Schedules::from_config(many(SCHEDULES_MAX + 1)), Err(expected));
    let expected = ScheduleError::Twice { name: "s".parse().unwrap() };
    assert_eq!(Schedules::from_config(named(vec!["s".into(), "s ".into()])), Err(expected));
    let error = Schedules::from_config(named(vec!["a:b".into()])).unwrap_err().to_string();
    assert!(error.starts_with("[schedules.\"a:b\"]: a name may hold letters"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_expression_is_parsed_without_a_panic(text in "[-0-9*/,#?+LWlw a-z@ß]{0,40}") {
        if let Ok(cron) = Cron::parse(&text, "Europe/Vienna") {
            let t = time("2026-03-29T00:59:59Z");
            let when = When::Cron(cron);
            prop_assert!(when.next_after(t).is_none_or(|next| next > t));
        }
    }

    #[test]
    fn any_numeric_fields_are_parsed_without_a_panic(
        fields in proptest::collection::vec("[0-9*]{1,3}([-/,#][0-9L*]{1,3})?", 5),
    ) {
        if let Ok(cron) = Cron::parse(&fields.join(" "), "America/New_York") {
            let t = time("2026-11-01T05:59:59Z");
            let when = When::Cron(cron);
            prop_assert!(when.last_due(t).is_none_or(|last| last <= t));
        }
    }

    #[test]
    fn any_period_is_parsed_without_a_panic(text in "[-0-9.smhdwyMµ ]{0,30}") {
        match Every::parse(&text) {
            Ok(every) => prop_assert!(every.period().as_secs() >= 1),
            Err(WhenError::Period { .. } | WhenError::Bounds { .. }) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
