//! Prices and costs.

use antiphon_core::{Cost, ModelRef, Price, PriceTable, Usage, UsdPerMillion};
use serde_json::json;

use crate::{both_ways, read, refusal};

fn model(text: &str) -> ModelRef {
    ModelRef::parse(text).unwrap()
}

fn usd(price: f64) -> UsdPerMillion {
    UsdPerMillion::try_from(price).unwrap()
}

fn flat(price: f64) -> Price {
    Price { input: usd(price), output: usd(price), cache_read: None, cache_write: None }
}

fn table() -> PriceTable {
    ["p/gpt", "p/gpt-5", "p/gpt-5-mini", "q/gpt-5"]
        .into_iter()
        .zip(1_u8..)
        .map(|(name, price)| (model(name), flat(price.into())))
        .collect()
}

#[test]
fn a_price_is_in_dollars_per_million_tokens() {
    both_ways(&flat(3.0), &json!({"input": 3.0, "output": 3.0}));
    both_ways(
        &Price { cache_read: Some(usd(0.3)), cache_write: Some(usd(3.75)), ..flat(15.0) },
        &json!({"input": 15.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}),
    );
    assert_eq!(
        refusal::<Price>(json!({"input": 1, "output": 1, "inptu": 2})),
        "unknown field `inptu`, expected one of `input`, `output`, `cache_read`, `cache_write`"
    );
}

#[test]
fn a_number_that_is_no_price_is_refused() {
    for (number, found) in [(json!(-0.01), "-0.01"), (json!(100_000.5), "100000.5")] {
        assert_eq!(
            refusal::<UsdPerMillion>(number),
            format!("a price is from 0 to 100000 US dollars per million tokens, not {found}")
        );
    }
    assert!(UsdPerMillion::try_from(f64::NAN).is_err());
    assert!(UsdPerMillion::try_from(0.0).is_ok() && UsdPerMillion::try_from(100_000.0).is_ok());
}

#[test]
fn each_kind_of_token_has_its_price_and_cached_ones_cost_as_much_as_others_unless_said() {
    let usage = Usage {
        input_tokens: 1000,
        output_tokens: 100,
        cache_read_tokens: Some(10),
        cache_write_tokens: Some(1),
    };
    let plain = Price { input: usd(1.0), output: usd(2.0), cache_read: None, cache_write: None };
    assert_eq!(plain.cost(usage), Cost { nano_usd: 1_211_000 });
    let cached = Price { cache_read: Some(usd(0.5)), cache_write: Some(usd(3.0)), ..plain };
    assert_eq!(cached.cost(usage), Cost { nano_usd: 1_208_000 });
    let endless = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, ..usage };
    assert_eq!(plain.cost(endless), Cost { nano_usd: u64::MAX });
}

#[test]
fn costs_add_up_and_read_as_dollars() {
    let costs = [Cost { nano_usd: 1 }, Cost { nano_usd: 2 }, Cost { nano_usd: u64::MAX }];
    assert_eq!(costs[..2].iter().copied().sum::<Cost>(), Cost { nano_usd: 3 });
    assert_eq!(costs.into_iter().sum::<Cost>(), Cost { nano_usd: u64::MAX });
    both_ways(&Cost { nano_usd: 12 }, &json!(12));
    for (nano_usd, text) in [
        (0, "$0.0000"),
        (1, "$0.000000001"),
        (99_999, "$0.000099999"),
        (100_000, "$0.0001"),
        (12_300_000, "$0.0123"),
        (1_234_500_000, "$1.2345"),
    ] {
        assert_eq!(Cost { nano_usd }.to_string(), text);
    }
}

#[test]
fn a_model_has_its_own_price_or_that_of_the_model_it_is_a_version_of() {
    let prices = table();
    for (name, price) in [
        ("p/gpt", Some(1.0)),
        ("p/gpt-5", Some(2.0)),
        ("p/gpt-5-2025-08-07", Some(2.0)),
        ("p/gpt-5-latest", Some(2.0)),
        ("p/gpt-5@20250807", Some(2.0)),
        ("p/gpt-5-mini-001", Some(3.0)),
        ("q/gpt-5-preview", Some(4.0)),
        ("p/gpt-5-nano", None),
        ("p/gpt-5.1", None),
        ("p/gpt5", None),
        ("r/gpt-5", None),
    ] {
        assert_eq!(prices.price(&model(name)), price.map(flat), "{name}");
    }
    let usage = Usage { input_tokens: 1, ..Usage::default() };
    assert_eq!(prices.cost(&model("p/gpt"), usage), Some(Cost { nano_usd: 1000 }));
    assert_eq!(prices.cost(&model("r/gpt"), usage), None);
}

#[test]
fn a_table_is_read_from_json_and_extended_by_another() {
    let mut prices: PriceTable = read(r#"{"p/a":{"input":1,"output":1}}"#);
    prices.extend(read(r#"{"p/a":{"input":2,"output":2},"p/b":{"input":3,"output":3}}"#));
    let all: Vec<(String, Price)> =
        prices.iter().map(|(model, price)| (model.to_string(), *price)).collect();
    assert_eq!(all, [("p/a".to_owned(), flat(2.0)), ("p/b".to_owned(), flat(3.0))]);
    assert_eq!(PriceTable::default(), read("{}"));
}

#[test]
fn a_small_price_is_kept_as_it_was_given() {
    both_ways(&usd(0.018_75), &json!(0.018_75));
    let tokens = Usage { input_tokens: 1_000_000, ..Usage::default() };
    assert_eq!(flat(0.018_75).cost(tokens), Cost { nano_usd: 18_750_000 });
}
