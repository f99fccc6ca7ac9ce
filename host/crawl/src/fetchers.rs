//! Fetchers for the `fetch` settings of a profile and its overrides. They share connections, look-ups and scratch space. They
//! differ in limits, headers, trusted certificates, proxy and similar settings.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use opilio_fetch::{AddressPolicy, Fetcher, FetcherConfig, Proxy, ProxyKind, Trust};
use opilio_profile::{
    AllowedAddresses, Fetch, FetchProxy, HostPattern, Profile, ProxyNames, SecretProblem, TlsTrust,
};

/// Maximum of fetchers kept. Beyond it, all are dropped, and each is made again when it is needed.
const KEPT_MAX: usize = 1_000;

/// The fetchers of a crawl. A change of the profile replaces them as a whole.
pub struct Fetchers {
    set: RwLock<Arc<FetcherSet>>,
}

/// The fetchers of one profile.
pub struct FetcherSet {
    base: Fetcher,
    /// Configuration of `base`, from which fetchers with other settings are made.
    config: FetcherConfig,
    fetch: Fetch,
    others: Mutex<HashMap<Fetch, Fetcher>>,
}

/// Error of making a fetcher.
#[derive(Debug, thiserror::Error)]
pub enum FetcherError {
    /// The configuration is invalid.
    #[error(transparent)]
    Build(#[from] opilio_fetch::FetcherBuildError),
    /// The proxy's password is not available at the place that the profile names.
    #[error("fetch.proxy-password: the password of the proxy is missing")]
    Password(#[source] SecretProblem),
}

impl Fetchers {
    /// Makes the fetchers of a profile. Bodies too large for memory go to `scratch`.
    pub(crate) fn new(profile: &Profile, scratch: PathBuf) -> Result<Self, FetcherError> {
        let fetch = profile.settings().fetch.clone();
        let mut config = of_all(profile, scratch);
        config.scratch_bytes_max = fetch.scratch_max.map(|size| size.bytes());
        config.spool_memory_total_max = in_memory(fetch.spool_memory_total.bytes());
        let own = with(&config, &fetch).map_err(FetcherError::Password)?;
        let set = FetcherSet {
            base: Fetcher::new(own)?,
            config,
            fetch,
            others: Mutex::default(),
        };
        Ok(Fetchers {
            set: RwLock::new(Arc::new(set)),
        })
    }

    /// Returns the fetchers of a changed profile. They share connections, scratch space and limits with the fetchers in effect.
    /// Changes of the maxima of scratch space and spool memory have no effect.
    pub fn changed(&self, profile: &Profile) -> Result<FetcherSet, FetcherError> {
        let set = self.set();
        let fetch = profile.settings().fetch.clone();
        let config = FetcherConfig {
            scratch_bytes_max: set.config.scratch_bytes_max,
            spool_memory_total_max: set.config.spool_memory_total_max,
            ..of_all(profile, set.config.scratch_dir.clone())
        };
        let own = with(&config, &fetch).map_err(FetcherError::Password)?;
        Ok(FetcherSet {
            base: set.base.with(own)?,
            config,
            fetch,
            others: Mutex::default(),
        })
    }

    /// Puts a set into effect. Fetches in flight finish with the previous set.
    pub(crate) fn put_in_force(&self, set: FetcherSet) {
        *self.set.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
    }

    /// Returns the fetcher of the profile itself.
    pub fn base(&self) -> Fetcher {
        self.set().base.clone()
    }

    /// Returns the fetcher for URIs with these settings.
    pub(crate) fn of(&self, fetch: &Fetch) -> Result<Fetcher, FetcherError> {
        let set = self.set();
        if *fetch == set.fetch {
            return Ok(set.base.clone());
        }
        let mut others = set.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = others.get(fetch) {
            return Ok(known.clone());
        }
        let config = with(&set.config, fetch).map_err(FetcherError::Password)?;
        let made = set.base.with(config)?;
        if others.len() >= KEPT_MAX {
            others.clear();
        }
        others.insert(fetch.clone(), made.clone());
        Ok(made)
    }

    fn set(&self) -> Arc<FetcherSet> {
        self.set
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Returns the configuration that is common to all fetches of a crawl.
fn of_all(profile: &Profile, scratch: PathBuf) -> FetcherConfig {
    let mut config = FetcherConfig::new(profile.user_agent.clone(), scratch);
    config.from = profile.operator.from.clone();
    let hosts = profile.dns.hosts.iter().map(|(pattern, address)| {
        let name = match pattern {
            HostPattern::Host(name) => name.clone(),
            HostPattern::Below(domain) => format!("*.{domain}"),
        };
        (name, *address)
    });
    config.hosts = hosts.collect();
    config.name_servers = profile.dns.servers.clone();
    config
}

/// Returns the configuration with the settings that may differ by URI.
fn with(config: &FetcherConfig, fetch: &Fetch) -> Result<FetcherConfig, SecretProblem> {
    let mut config = config.clone();
    for (name, value) in &fetch.headers {
        config
            .headers
            .retain(|(own, _)| !own.eq_ignore_ascii_case(name));
        config.headers.push((name.clone(), value.clone()));
    }
    config.accept_encoding = fetch.accept_encoding.clone();
    config.connect_timeout = fetch.connect_timeout;
    config.response_timeout = fetch.response_timeout;
    config.first_byte_timeout = fetch.first_byte_timeout;
    config.total_timeout = fetch.total_timeout;
    config.header_timeout = fetch.header_timeout;
    config.rate_min = fetch.min_rate.map(|size| size.bytes());
    config.header_bytes_max = in_memory(fetch.header_max.bytes());
    config.headers_max = fetch.headers_max;
    config.body_bytes_max = fetch.body_max.map(|size| size.bytes());
    config.spool_memory_max = in_memory(fetch.spool_memory.bytes());
    let allows = |class| fetch.allow_addresses.contains(&class);
    config.addresses = AddressPolicy {
        private: allows(AllowedAddresses::Private),
        loopback: allows(AllowedAddresses::Loopback),
        link_local: allows(AllowedAddresses::LinkLocal),
        metadata: allows(AllowedAddresses::Metadata),
    };
    config.allow_ports = fetch.allow_ports.clone();
    config.family = fetch.family;
    config.bind = fetch.bind.clone();
    config.proxy = match &fetch.proxy {
        Some(written) => Some(Arc::new(proxy(written)?)),
        None => None,
    };
    config.trust = match fetch.tls_trust {
        TlsTrust::Platform => Trust::Platform,
        TlsTrust::Record => Trust::Record,
    };
    config.keep_alive = fetch.keep_alive;
    Ok(config)
}

fn proxy(written: &FetchProxy) -> Result<Proxy, SecretProblem> {
    let credentials = match (&written.user, &written.password) {
        (Some(user), Some(password)) => Some((user.clone(), password.read()?)),
        _ => None,
    };
    let except = written.except.iter().map(|pattern| match pattern {
        HostPattern::Host(name) => name.clone(),
        HostPattern::Below(domain) => format!(".{domain}"),
    });
    Ok(Proxy {
        kind: match written.socks {
            true => ProxyKind::Socks5,
            false => ProxyKind::Http,
        },
        host: written.host.clone(),
        port: written.port,
        credentials,
        remote_names: written.names == ProxyNames::Remote,
        except: except.collect(),
    })
}

fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
