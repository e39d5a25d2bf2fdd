//! The policy as it is written, and what follows from it.
//!
//! A limit of hosts holds only in the sandbox. So where the policy limits the network, also by a rule, commands may not leave
//! the sandbox, programs in terminals may not run and Unix sockets are closed, unless the policy says
//! otherwise in so many words.

use std::collections::BTreeMap;

use antiphon_core::{ModelRef, Price, SpendLimits};
use antiphon_mcp::ServerName;
use antiphon_permissions::{HostLimit, PermissionMode, PolicyRules, RuleEntry};
use serde::Deserialize;
use toml::Spanned;

use super::model::{AllowedModel, ModelEntry, normalized};
use super::server::{ServerTable, servers};
use super::{Limit, POLICY_PATH, Policy, PolicyLine};
use crate::settings::spend_limit;

/// The file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Document {
    mode_max: Option<Spanned<PermissionMode>>,
    models: Option<Spanned<Vec<ModelEntry>>>,
    terminals: Option<Spanned<bool>>,
    peers: Option<Spanned<Vec<String>>>,
    network: NetworkTable,
    sandbox: SandboxTable,
    mcp: Option<BTreeMap<ServerName, ServerTable>>,
    budget: BudgetTable,
    prices: BTreeMap<ModelRef, Price>,
    permissions: PermissionsTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct NetworkTable {
    hosts: Option<Spanned<Vec<String>>>,
    deny: Option<Spanned<Vec<String>>>,
    whole: Option<Spanned<bool>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SandboxTable {
    may_leave: Option<Spanned<bool>>,
    unix_sockets: Option<Spanned<bool>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BudgetTable {
    daily_usd: Option<Spanned<f64>>,
    monthly_usd: Option<Spanned<f64>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PermissionsTable {
    ask: Vec<Spanned<RuleEntry>>,
    deny: Vec<Spanned<RuleEntry>>,
}

/// Reads a policy. The error names the line, and what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Policy, String> {
    let source = Source(text);
    let document: Document = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        format!("line {}: {}", source.line(at), error.message().trim_end())
    })?;
    let network = source.network(&document.network, &document.permissions)?;
    let no_way_out = match &document.sandbox.may_leave {
        Some(may_leave) => source.if_false(may_leave),
        None => network.limit.clone(),
    };
    // A rule against every command without the sandbox means the same.
    let denied =
        document.permissions.deny.iter().find(|it| it.get_ref().rule.0.trim() == "unsandboxed");
    let no_way_out = no_way_out.or_else(|| denied.map(|entry| source.place(entry)));
    let mode_max = source.mode_max(document.mode_max.as_ref(), no_way_out.as_ref())?;
    let derived = |said: Option<&Spanned<bool>>, otherwise: Option<&PolicyLine>| match said {
        Some(said) => source.if_false(said),
        None => otherwise.cloned(),
    };
    let rules = source.rules(document.permissions, &network, no_way_out.as_ref())?;
    let mcp = document.mcp.map(servers).transpose()?;
    let mcp = mcp.map(|value| Limit { value, place: source.table("mcp") });
    let about_server = |entry: &&RuleEntry| {
        let server = entry.rule.0.trim_start().strip_prefix("mcp__");
        server.is_some_and(|server| !server.starts_with('*'))
    };
    if let (None, Some(entry)) = (&mcp, rules.ask.iter().chain(&rules.deny).find(about_server)) {
        return Err(format!(
            "`{}`: users choose the names of their MCP servers, so a rule about one needs [mcp] with that server",
            entry.rule
        ));
    }
    Ok(Policy {
        is_found: true,
        mode_max,
        models: document.models.map(|models| source.models(models)).transpose()?,
        no_unix_sockets: derived(document.sandbox.unix_sockets.as_ref(), network.limit.as_ref()),
        no_terminals: derived(document.terminals.as_ref(), no_way_out.as_ref()),
        no_whole_network: network.limit,
        no_way_out,
        peers: document.peers.map(|peers| source.peers(peers)).transpose()?,
        mcp,
        budget: source.budget(&document.budget)?,
        prices: document.prices.into_iter().collect(),
        rules,
        narrowed: Vec::new(),
    })
}

/// What the policy says about the network.
struct NetworkLimits {
    hosts: Option<HostLimit>,
    deny: Option<RuleEntry>,
    /// The line that limits the network, if one does.
    limit: Option<PolicyLine>,
}

/// The text of a policy, to name its lines.
struct Source<'a>(&'a str);

impl Source<'_> {
    fn line(&self, at: usize) -> usize {
        self.0.get(..at).unwrap_or_default().matches('\n').count() + 1
    }

    fn place<T>(&self, value: &Spanned<T>) -> PolicyLine {
        let line = self.line(value.span().start);
        let text = self.0.lines().nth(line - 1).unwrap_or_default().trim().to_owned();
        PolicyLine { line, text }
    }

    /// The first line of a table.
    fn table(&self, name: &str) -> PolicyLine {
        let begins = |line: &str| {
            let rest = line.trim_start().trim_start_matches('[').trim_start();
            let rest = rest.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with([']', '.', ' ', '=']))
        };
        let found = self.0.lines().enumerate().find(|(_, line)| begins(line));
        let (index, text) = found.unwrap_or((0, name));
        PolicyLine { line: index + 1, text: text.trim().to_owned() }
    }

    fn if_false(&self, said: &Spanned<bool>) -> Option<PolicyLine> {
        (!*said.get_ref()).then(|| self.place(said))
    }

    fn limit<T, R>(
        &self,
        spanned: Spanned<T>,
        read: impl FnOnce(T) -> Result<R, String>,
    ) -> Result<Limit<R>, String> {
        let place = self.place(&spanned);
        let value = read(spanned.into_inner())
            .map_err(|reason| format!("line {}: {reason}", place.line))?;
        Ok(Limit { value, place })
    }

    fn mode_max(
        &self,
        said: Option<&Spanned<PermissionMode>>,
        no_way_out: Option<&PolicyLine>,
    ) -> Result<Option<Limit<PermissionMode>>, String> {
        let Some(said) = said else {
            // Mode `full` has no sandbox.
            let bounded = |place: &PolicyLine| Limit {
                value: PermissionMode::Workspace,
                place: place.clone(),
            };
            return Ok(no_way_out.map(bounded));
        };
        let (value, place) = (*said.get_ref(), self.place(said));
        match no_way_out {
            Some(bounded) if value == PermissionMode::Full => Err(format!(
                "line {}: mode `full` has no sandbox, which line {} (`{}`) requires",
                place.line, bounded.line, bounded.text
            )),
            Some(_) | None => Ok(Some(Limit { value, place })),
        }
    }

    fn models(&self, models: Spanned<Vec<ModelEntry>>) -> Result<Limit<Vec<AllowedModel>>, String> {
        self.limit(models, |models| models.into_iter().map(AllowedModel::of).collect())
    }

    fn peers(&self, peers: Spanned<Vec<String>>) -> Result<Limit<Vec<String>>, String> {
        let address =
            |url: &String| normalized(url).ok_or_else(|| format!("`{url}` is not an address"));
        self.limit(peers, |peers| peers.iter().map(address).collect())
    }

    fn network(
        &self,
        table: &NetworkTable,
        permissions: &PermissionsTable,
    ) -> Result<NetworkLimits, String> {
        let NetworkTable { hosts, deny, whole } = table;
        let hosts_at = hosts.as_ref().map(|hosts| self.place(hosts));
        let deny_at = deny.as_ref().map(|deny| self.place(deny));
        let is_about_hosts = |entry: &&Spanned<RuleEntry>| {
            let rule = entry.get_ref().rule.0.trim();
            rule == "network" || rule.starts_with("network(")
        };
        let mut rules = permissions.deny.iter().chain(&permissions.ask);
        let rule_at = rules.find(is_about_hosts).map(|entry| self.place(entry));
        let limit = hosts_at.clone().or_else(|| deny_at.clone()).or(rule_at);
        if let (Some(limit), Some(whole)) = (&limit, whole)
            && *whole.get_ref()
        {
            return Err(format!(
                "line {}: the whole network contradicts line {} (`{}`)",
                self.place(whole).line,
                limit.line,
                limit.text
            ));
        }
        let limit = limit.or_else(|| whole.as_ref().and_then(|whole| self.if_false(whole)));
        let hosts = hosts.as_ref().zip(hosts_at).map(|(hosts, place)| HostLimit {
            hosts: hosts.get_ref().clone(),
            origin: place.to_string(),
        });
        let deny = deny.as_ref().zip(deny_at).filter(|(deny, _)| !deny.get_ref().is_empty());
        let deny = deny.map(|(deny, place)| RuleEntry {
            reason: Some(format!("{POLICY_PATH}, line {}", place.line)),
            ..RuleEntry::from(format!("network({})", deny.get_ref().join(" ")).as_str())
        });
        Ok(NetworkLimits { hosts, deny, limit })
    }

    fn rules(
        &self,
        table: PermissionsTable,
        network: &NetworkLimits,
        no_way_out: Option<&PolicyLine>,
    ) -> Result<PolicyRules, String> {
        let entry = |spanned: Spanned<RuleEntry>| {
            let line = self.place(&spanned).line;
            let entry = spanned.into_inner();
            let own = entry.reason.as_ref().map(|own| format!(": {own}")).unwrap_or_default();
            RuleEntry { reason: Some(format!("{POLICY_PATH}, line {line}{own}")), ..entry }
        };
        let mut deny: Vec<RuleEntry> = table.deny.into_iter().map(entry).collect();
        deny.extend(network.deny.clone());
        deny.extend(no_way_out.map(|place| RuleEntry {
            reason: Some(place.to_string()),
            ..RuleEntry::from("unsandboxed")
        }));
        let ask = table.ask.into_iter().map(entry).collect();
        let rules = PolicyRules { ask, deny, hosts: network.hosts.clone() };
        rules.check().map_err(|error| error.to_string())?;
        Ok(rules)
    }

    fn budget(&self, table: &BudgetTable) -> Result<Option<Limit<SpendLimits>>, String> {
        let BudgetTable { daily_usd, monthly_usd } = table;
        let Some(first) = daily_usd.as_ref().or(monthly_usd.as_ref()) else { return Ok(None) };
        let place = self.place(first);
        let limit = |name: &str, usd: Option<&Spanned<f64>>| {
            spend_limit(name, usd.map(|usd| *usd.get_ref())).map_err(|error| error.to_string())
        };
        let value = SpendLimits {
            daily_nano_usd_max: limit("[budget] daily_usd", daily_usd.as_ref())?,
            monthly_nano_usd_max: limit("[budget] monthly_usd", monthly_usd.as_ref())?,
        };
        Ok(Some(Limit { value, place }))
    }
}
