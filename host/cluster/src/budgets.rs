//! Budgets of a crawl in the job's bucket. Each change is a compare-and-swap of the whole account. So no leader is needed, and no
//! failure can give a part of the budget to two nodes.

use crate::bucket::BucketError as KeyError;
use crate::budget::{BudgetAccount, BudgetError};
use crate::config::check_name;
use crate::error::ClusterError;
use crate::job::ClusterJob;

/// Maximum attempts to change an account that other nodes change at the same time. Each of a thousand nodes takes a part every few
/// minutes.
const ATTEMPTS_MAX: usize = 50;

/// The reason why a budget was not changed.
#[derive(Debug, thiserror::Error)]
pub enum BudgetChangeError {
    /// The change contradicts the account.
    #[error(transparent)]
    Account(#[from] BudgetError),
    /// The cluster fails.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl ClusterJob {
    /// Returns the account of a budget, or creates it.
    ///
    /// # Errors
    /// The name is invalid, or NATS fails.
    pub async fn budget(&self, name: &str, total: u64) -> Result<BudgetAccount, BudgetChangeError> {
        self.change_budget(name, total, |_| Ok(()))
            .await
            .map(|(account, ())| account)
    }

    /// Changes the account of a budget, and creates it with `total` if it does not exist. `change` may be called several times.
    ///
    /// # Errors
    /// `change` fails, the name is invalid, or NATS fails. After a temporary error the change may have been made. It is safe to
    /// repeat any change of an account.
    pub async fn change_budget<T>(
        &self,
        name: &str,
        total: u64,
        mut change: impl FnMut(&mut BudgetAccount) -> Result<T, BudgetError>,
    ) -> Result<(BudgetAccount, T), BudgetChangeError> {
        check_name("name of a budget", name)?;
        let key = format!("budgets.{name}");
        for _ in 0..ATTEMPTS_MAX {
            let entry = self.state.read(&key).await?;
            let revision = entry.as_ref().map_or(0, |entry| entry.revision);
            let before = match entry.and_then(|entry| entry.value) {
                None => None,
                Some(value) => Some(serde_json::from_slice::<BudgetAccount>(&value).map_err(
                    |_| ClusterError::Malformed {
                        kind: "budget",
                        stream: format!("KV_opilio_job_{}", self.name),
                        sequence: revision,
                    },
                )?),
            };
            let mut account = before.clone().unwrap_or_else(|| BudgetAccount::new(total));
            let result = change(&mut account)?;
            if before.as_ref() == Some(&account) {
                return Ok((account, result));
            }
            let json = serde_json::to_vec(&account).unwrap_or_default();
            match self.state.write(&key, json, revision).await {
                Ok(_) => return Ok((account, result)),
                Err(KeyError::Conflict) => {}
                Err(KeyError::Failed(error)) => return Err(error.into()),
            }
        }
        let (kind, source) = ("a budget", "too many attempts".into());
        Err(ClusterError::Unavailable { kind, source }.into())
    }
}
