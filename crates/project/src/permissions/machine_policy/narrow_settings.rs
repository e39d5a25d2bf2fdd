//! Finished settings within the policy of this machine. What the policy does not allow is taken out of them,
//! with a note for the user. What a command or a request asks for beyond its settings is refused where it
//! takes effect.

use std::num::NonZeroU64;

use antiphon_core::{ModelRef, Price, PriceTable, SpendLimits};

use super::model::normalized;
use super::{Policy, PolicyLine};
use crate::error::ProjectError;
use crate::settings::{UserSettings, built_in_prices};

/// Narrows finished settings to the policy of this machine. Narrowing them again changes nothing.
pub(crate) fn narrow(settings: UserSettings) -> Result<UserSettings, ProjectError> {
    narrow_to(settings, Policy::load()?)
}

pub(super) fn narrow_to(
    mut settings: UserSettings,
    mut policy: Policy,
) -> Result<UserSettings, ProjectError> {
    // Of the time before, if they are narrowed again.
    let mut notes = std::mem::take(&mut settings.policy.narrowed);
    narrow_sandbox(&mut settings, &policy, &mut notes);
    narrow_runners(&mut settings, &policy, &mut notes);
    narrow_servers(&mut settings, &policy, &mut notes);
    if let Some(limit) = &policy.budget {
        settings.budget = lower(settings.budget, limit.value);
        settings.prices = prices(&settings, &policy)?;
    }
    policy.narrowed = notes;
    settings.policy = policy;
    Ok(settings)
}

fn narrow_sandbox(settings: &mut UserSettings, policy: &Policy, notes: &mut Vec<String>) {
    if let Some(limit) = policy.mode_max.as_ref().filter(|it| settings.permissions.mode > it.value)
    {
        let (mode, widest) = (settings.permissions.mode, limit.value);
        notes.push(format!("the mode is `{widest}` and not `{mode}` ({})", limit.place));
        settings.permissions.mode = widest;
    }
    let mut close = |is_open: &mut bool, place: &Option<PolicyLine>, what: &str| {
        if let Some(place) = place.as_ref().filter(|_| *is_open) {
            *is_open = false;
            notes.push(format!("{what} has no effect ({place})"));
        }
    };
    close(&mut settings.sandbox.network, &policy.no_whole_network, "`sandbox.network`");
    close(&mut settings.sandbox.unix_sockets, &policy.no_unix_sockets, "`sandbox.unix_sockets`");
}

fn narrow_runners(settings: &mut UserSettings, policy: &Policy, notes: &mut Vec<String>) {
    if let Some(place) = policy.no_terminals.as_ref().filter(|_| !settings.terminals.is_empty()) {
        let names: Vec<String> =
            settings.terminals.keys().map(|name| format!("`{name}`")).collect();
        notes.push(format!("no programs in terminals: {} ({place})", names.join(", ")));
        settings.terminals.clear();
    }
    let Some(limit) = &policy.peers else { return };
    settings.peers.retain(|name, peer| {
        let is_allowed = normalized(&peer.url).is_some_and(|url| limit.value.contains(&url));
        if !is_allowed {
            notes.push(format!("the peer `{name}` is not used ({})", limit.place));
        }
        is_allowed
    });
    settings.a2a.remote.retain(|name, agent| {
        let is_allowed = origin(&agent.card).is_some_and(|url| limit.value.contains(&url));
        if !is_allowed {
            notes.push(format!("the remote agent `{name}` is not used ({})", limit.place));
        }
        is_allowed
    });
}

/// Scheme, host and port of an address.
fn origin(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let host = rest.split('/').next()?;
    normalized(&format!("{scheme}://{host}"))
}

fn narrow_servers(settings: &mut UserSettings, policy: &Policy, notes: &mut Vec<String>) {
    let Some(limit) = &policy.mcp else { return };
    settings.mcp.0.retain(|name, config| match policy.check_server(name, config) {
        Ok(()) => {
            if let Some(allowed) = limit.value.get(name) {
                allowed.secure(config);
            }
            true
        }
        Err(reason) => {
            notes.push(reason.to_string());
            false
        }
    });
}

/// The lower of each limit.
pub(crate) fn lower(own: SpendLimits, most: SpendLimits) -> SpendLimits {
    fn least(own: Option<NonZeroU64>, most: Option<NonZeroU64>) -> Option<NonZeroU64> {
        own.into_iter().chain(most).min()
    }
    SpendLimits {
        daily_nano_usd_max: least(own.daily_nano_usd_max, most.daily_nano_usd_max),
        monthly_nano_usd_max: least(own.monthly_nano_usd_max, most.monthly_nano_usd_max),
    }
}

/// The prices that a budget of the policy counts with: its own, and the built-in ones. A user can set higher
/// ones; a lower one would make the budget last longer.
fn prices(settings: &UserSettings, policy: &Policy) -> Result<PriceTable, ProjectError> {
    let mut prices = built_in_prices()?;
    prices.extend(policy.prices.clone());
    let own = settings.models.iter().filter_map(|(model, config)| Some((model, config.price?)));
    let higher = |(model, own): &(&ModelRef, Price)| {
        prices.price(model).is_some_and(|known| is_at_least(own, &known))
    };
    let higher: PriceTable =
        own.filter(higher).map(|(model, price)| (model.clone(), price)).collect();
    prices.extend(higher);
    Ok(prices)
}

fn is_at_least(own: &Price, known: &Price) -> bool {
    let amounts = |price: &Price| {
        [
            price.input,
            price.output,
            price.cache_read.unwrap_or(price.input),
            price.cache_write.unwrap_or(price.input),
        ]
        .map(f64::from)
    };
    amounts(own).iter().zip(amounts(known)).all(|(own, known)| *own >= known)
}
