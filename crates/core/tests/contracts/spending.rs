//! Spending by day, payer, agent and model, in any order.

use antiphon_core::*;
use chrono::{DateTime, NaiveDate, Utc};

use crate::at;

fn task(agent: &str, payer: Option<&str>) -> TaskSummary {
    let created = TaskCreated {
        payer: payer.map(str::to_owned),
        ..TaskCreated::new(agent, SessionId::parse("s1").unwrap())
    };
    TaskSummary::created(TaskId::parse("t1").unwrap(), &created, DateTime::UNIX_EPOCH)
}

fn tokens(input_tokens: u64) -> Usage {
    Usage { input_tokens, ..Usage::default() }
}

fn paid(model: &str, input_tokens: u64) -> EventBody {
    let purpose = None;
    UsageRecorded { model: model.to_owned(), usage: tokens(input_tokens), purpose }.into()
}

fn raised(nano_usd: u64, payer: Option<&str>) -> EventBody {
    let payer = payer.map(str::to_owned);
    BudgetRaised { nano_usd, payer, by: "me".to_owned(), comment: None }.into()
}

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn spent(
    on: &str,
    payer: Option<&str>,
    agent: &str,
    model: &str,
    of: (u64, u64),
) -> AccountSpending {
    let (payer, agent) = (payer.map(str::to_owned), agent.to_owned());
    let account = Account { day: day(on), payer, agent, model: model.to_owned() };
    AccountSpending { account, calls: of.0, usage: tokens(of.1) }
}

#[test]
fn what_is_paid_is_added_up_by_day_payer_agent_and_model() {
    let (eve, midnight) = (at("2026-02-28T23:59:59.999Z"), at("2026-03-01T00:00:00Z"));
    let happened: [(TaskSummary, EventBody, DateTime<Utc>); 8] = [
        (task("dev", None), paid("p/m", 1), eve),
        (task("dev", None), paid("p/m", 2), eve),
        (task("dev", None), paid("p/m", 4), midnight),
        (task("dev", Some("key")), paid("p/m", 8), eve),
        (task("lead", None), paid("p/m", 16), eve),
        (task("dev", None), paid("p/n", 32), eve),
        // A payer without a name pays nothing.
        (task("dev", Some("")), paid("p/n", 64), eve),
        (task("dev", None), StatusChanged::new(TaskStatus::Running).into(), eve),
    ];
    let expected = vec![
        spent("2026-02-28", None, "dev", "p/m", (2, 3)),
        spent("2026-02-28", None, "dev", "p/n", (2, 96)),
        spent("2026-02-28", None, "lead", "p/m", (1, 16)),
        spent("2026-02-28", Some("key"), "dev", "p/m", (1, 8)),
        spent("2026-03-01", None, "dev", "p/m", (1, 4)),
    ];
    for backwards in [false, true] {
        let mut happened = happened.clone();
        if backwards {
            happened.reverse();
        }
        let mut fold = SpendingFold::default();
        for (task, body, at) in &happened {
            fold.apply(task, body, *at);
        }
        let days = DayRange { from: day("2026-02-28"), to: day("2026-03-01") };
        let found = fold.during(days, Position(9));
        let all = Spending { spent: expected.clone(), raised: vec![], head: Position(9) };
        assert_eq!(found, all);
        let march = DayRange { from: day("2026-03-01"), to: NaiveDate::MAX };
        assert_eq!(fold.during(march, Position(0)).spent, expected[4..]);
        assert_eq!(fold.take().spent, expected);
        assert!(fold.is_empty());
    }
}

#[test]
fn what_is_allowed_is_added_up_by_day_and_payer() {
    let mut fold = SpendingFold::default();
    let now = at("2026-03-01T12:00:00Z");
    for (nano_usd, payer) in [(1, None), (2, None), (4, Some("key")), (u64::MAX, Some("key"))] {
        fold.apply(&task("orders", None), &raised(nano_usd, payer), now);
    }
    let entry = |payer: Option<&str>, nano_usd| RaisedLimit {
        day: day("2026-03-01"),
        payer: payer.map(str::to_owned),
        by: Cost { nano_usd },
    };
    let found = fold.take();
    assert_eq!(found.raised, [entry(None, 3), entry(Some("key"), u64::MAX)]);
    assert_eq!(found.spent, []);
}

#[test]
fn what_was_spent_costs_what_its_model_costs() {
    let price: Price = serde_json::from_str(r#"{"input":1.0,"output":4.0}"#).unwrap();
    let prices: PriceTable = [(ModelRef::parse("p/m").unwrap(), price)].into_iter().collect();
    let cost = |model| spent("2026-03-01", None, "dev", model, (1, 1000)).cost(&prices);
    assert_eq!(cost("p/m"), Some(Cost { nano_usd: 1_000_000 }));
    assert_eq!(cost("p/n"), None);
    assert_eq!(cost("no model"), None);
}
