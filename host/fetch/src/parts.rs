//! The parts of a fetcher that every exchange needs.

use std::sync::Arc;

use crate::abort::Abort;
use crate::config::{FetcherBuildError, FetcherConfig};
use crate::dns::Names;
use crate::http2_servers::Http2Servers;
use crate::pool::Pool;
use crate::request::check_headers;
use crate::scratch::Scratch;
use crate::throttle::Throttle;
use crate::tls::Tls;

/// Parts that every exchange needs.
#[derive(Debug)]
pub(crate) struct Parts {
    pub config: FetcherConfig,
    pub tls: Arc<Tls>,
    pub pool: Arc<Pool>,
    pub names: Arc<Names>,
    pub scratch: Arc<Scratch>,
    /// Servers that speak HTTP/2 and nothing else.
    pub http2: Arc<Http2Servers>,
    pub cut: Abort,
    pub throttle: Throttle,
}

impl Parts {
    /// Parts of a first fetcher.
    pub(crate) fn new(config: FetcherConfig) -> Result<Self, FetcherBuildError> {
        check_headers(&config)?;
        let tls = Tls::build(&config.trust)?;
        Ok(Parts {
            pool: Arc::default(),
            names: Arc::new(Names::new(
                config.hosts.clone(),
                config.name_servers.clone(),
                tls.strict.clone(),
            )),
            scratch: Arc::new(Scratch::new(
                config.scratch_dir.clone(),
                config.scratch_bytes_max,
                config.spool_memory_total_max,
            )),
            http2: Arc::default(),
            cut: Abort::new(),
            throttle: Throttle::new(),
            tls: Arc::new(tls),
            config,
        })
    }

    /// Parts with other settings, which share what [`crate::Fetcher::with`] lists.
    pub(crate) fn with(&self, config: FetcherConfig) -> Result<Self, FetcherBuildError> {
        check_headers(&config)?;
        let tls = match config.trust == self.config.trust {
            true => self.tls.clone(),
            false => Arc::new(Tls::build(&config.trust)?),
        };
        Ok(Parts {
            pool: self.pool.clone(),
            names: match config.hosts == self.config.hosts
                && config.name_servers == self.config.name_servers
            {
                true => self.names.clone(),
                false => Arc::new(Names::new(
                    config.hosts.clone(),
                    config.name_servers.clone(),
                    tls.strict.clone(),
                )),
            },
            scratch: self.scratch.clone(),
            http2: self.http2.clone(),
            cut: self.cut.clone(),
            throttle: self.throttle.clone(),
            tls,
            config,
        })
    }
}
