//! JetStream storage of the cluster's account.

use async_nats::jetstream::account::{Account, Limits};

use crate::connection::ClusterConnection;
use crate::error::ClusterError;

/// JetStream file storage of the account, over all its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JetStreamStorage {
    /// Bytes in use.
    pub used: u64,
    /// Maximum bytes of the account; `None` if it has no limit of its own. Then `max_file_store` of the servers applies, which
    /// clients cannot query.
    pub limit: Option<u64>,
}

impl ClusterConnection {
    /// Queries the storage of the account. If the account has a limit for each number of replicas (a tier), returns the fullest
    /// tier.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn storage(&self) -> Result<JetStreamStorage, ClusterError> {
        let account = self.data.query_account().await;
        let account = account
            .map_err(|error| ClusterError::of_request("a question about the account", error))?;
        Ok(fullest(&account))
    }
}

impl JetStreamStorage {
    fn new(used: u64, limits: &Limits) -> Self {
        let limit = limits.max_storage.and_then(|max| u64::try_from(max).ok());
        // The limit is zero for an account with tiers.
        let limit = limit.filter(|max| *max > 0);
        Self { used, limit }
    }

    /// Returns the share of the limit that is in use.
    fn share(&self) -> f64 {
        let of = |limit: u64| self.used as f64 / limit as f64;
        self.limit.map_or(0.0, of)
    }
}

fn fullest(account: &Account) -> JetStreamStorage {
    let whole = JetStreamStorage::new(account.storage, &account.limits);
    let tiers = account.tiers.values();
    let tiers = tiers.map(|tier| JetStreamStorage::new(tier.storage, &tier.limits));
    let limited = tiers.filter(|tier| tier.limit.is_some());
    limited.fold(whole, |fullest, tier| {
        match fullest.limit.is_none() || tier.share() > fullest.share() {
            true => tier,
            false => fullest,
        }
    })
}

#[cfg(test)]
mod tests {
    use async_nats::jetstream::account::Tier;

    use super::*;

    fn limits(max_storage: Option<i64>) -> Limits {
        Limits {
            max_storage,
            ..Limits::default()
        }
    }

    #[test]
    fn the_limit_is_that_of_the_account_or_of_its_fullest_tier() {
        let check = |max: Option<i64>, tiers: &[(u64, i64)], expected: (u64, Option<u64>)| {
            let tiers = tiers.iter().zip(1..).map(|((storage, max), replicas)| {
                let tier = Tier {
                    storage: *storage,
                    limits: limits(Some(*max)),
                    ..Tier::default()
                };
                (format!("R{replicas}"), tier)
            });
            let account = Account {
                storage: 70,
                limits: limits(max),
                tiers: tiers.collect(),
                ..Account::default()
            };
            let found = fullest(&account);
            assert_eq!((found.used, found.limit), expected);
        };
        check(None, &[], (70, None));
        check(Some(100), &[], (70, Some(100)));
        check(Some(0), &[], (70, None));
        check(Some(0), &[(10, 100), (60, 80)], (60, Some(80)));
        check(Some(0), &[(60, 80), (10, 100)], (60, Some(80)));
    }
}
