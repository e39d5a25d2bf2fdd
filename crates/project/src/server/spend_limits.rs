//! Spend limits of API keys, from the file of keys. When the file cannot be read, the server accepts no key,
//! and running tasks of keys continue under the project's budget.

use antiphon_core::SpendLimits;
use antiphon_keys::KeyRing;
use antiphon_runtime::SpendLimitSource;

/// Spend limits of a project's keys.
pub(crate) struct KeySpendLimits(pub(crate) KeyRing);

impl SpendLimitSource for KeySpendLimits {
    fn limits(&self, payer: &str) -> SpendLimits {
        payer.parse().map(|id| self.0.spend_of(id)).unwrap_or_default()
    }

    fn limited(&self) -> Vec<(String, SpendLimits)> {
        let keys = self.0.list().unwrap_or_default();
        let limited = keys.into_iter().filter(|key| !key.spend.is_empty());
        limited.map(|key| (key.id.to_string(), key.spend)).collect()
    }
}
