//! What may have an effect: the policy of the machine, the user's trust in what a project brings, and paths that
//! neither commands nor file tools see.

pub(crate) mod hidden_paths;
pub mod machine_policy;
pub mod permission_overview;
pub mod trust;
