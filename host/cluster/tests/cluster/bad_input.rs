//! Mistakes of operators: each causes an error with the remedy, and changes nothing.

use std::time::Duration;

use opilio_cluster::partition::PartitionCount;
use opilio_cluster::{
    ClusterConfig, ClusterConnection, ClusterJob, JobStorage, NatsLogin, NatsTls,
};

use crate::server::{NatsServer, ServerMembers as _, free_port, open};

/// Fails unless opening the cluster fails with an error that contains all these texts.
#[track_caller]
fn check(config: ClusterConfig, parts: &[&str]) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let error = open(config).await.err().map(|error| error.to_string());
        let error = error.unwrap_or_else(|| panic!("{caller}: no error"));
        for part in parts {
            assert!(error.contains(part), "{caller}: {error}");
        }
        assert!(!error.contains('\n'), "{error}");
    }
}

#[tokio::test]
async fn a_wrong_address_is_named() {
    let port = free_port();
    let config = |server: String| ClusterConfig::new("a", vec![server]);
    check(
        config(format!("127.0.0.1:{port}")),
        &["no NATS server answers at 127.0.0.1", "cluster.servers"],
    )
    .await;
    check(
        config("http://[".to_owned()),
        &["invalid address in cluster.servers"],
    )
    .await;
}

#[tokio::test]
async fn wrong_credentials_are_named() {
    let Some(server) = NatsServer::start_with("authorization { user: u, password: right }\n")
    else {
        return;
    };
    let config = |login| ClusterConfig {
        login,
        ..server.config("a")
    };
    let login = |password: &str| NatsLogin::Password {
        user: "u".to_owned(),
        password: password.to_owned(),
    };
    check(
        config(login("wrong")),
        &["refuses user \"u\"", "cluster.password-file"],
    )
    .await;
    check(
        config(NatsLogin::Anonymous),
        &[
            "refuses a client without credentials",
            "cluster.credentials",
        ],
    )
    .await;
    open(config(login("right"))).await.unwrap();
    let missing = NatsLogin::Credentials("/nonexistent/a.creds".into());
    check(
        config(missing),
        &["cannot read /nonexistent/a.creds", "cluster.credentials"],
    )
    .await;
}

#[tokio::test]
async fn credentials_files_are_used() {
    // A JWT of `nsc` needs an operator; the key alone shows that the nonce is signed with the seed of the file.
    let Some(server) = NatsServer::start_with("authorization { user: u, password: p }\n") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.creds");
    std::fs::write(&file, "no key").unwrap();
    let config = ClusterConfig {
        login: NatsLogin::Credentials(file.clone()),
        ..server.config("a")
    };
    check(config, &["cannot read", "a.creds"]).await;
    let creds = "-----BEGIN NATS USER JWT-----\neyJ0eXAiOiJKV1QifQ.e30.AA\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\nSUAIO3FHUX5PNV2LQIIP7TZ3N4L7TX3W53MQGEIVYFIGA635OZCKEYHFLM\n------END USER NKEY SEED------\n";
    std::fs::write(&file, creds).unwrap();
    let config = ClusterConfig {
        login: NatsLogin::Credentials(file),
        ..server.config("a")
    };
    check(config, &["refuses the credentials in", "a.creds"]).await;
}

#[tokio::test]
async fn disabled_jetstream_is_named() {
    let Some(server) = NatsServer::without_jetstream() else {
        return;
    };
    check(
        server.config("a"),
        &["JetStream is disabled in nats-server", "-js"],
    )
    .await;
    let accounts =
        "jetstream { store_dir: STORE }\naccounts { A: { users: [ { user: u, password: p } ] } }\n";
    let Some(server) = NatsServer::start_with(accounts) else {
        return;
    };
    let login = NatsLogin::Password {
        user: "u".to_owned(),
        password: "p".to_owned(),
    };
    check(
        ClusterConfig {
            login,
            ..server.config("a")
        },
        &["JetStream is disabled for the account"],
    )
    .await;
}

#[tokio::test]
async fn replicas_without_servers_are_named() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let config = ClusterConfig {
        replicas: 3,
        ..server.config("a")
    };
    check(config, &["cannot keep 3 replicas", "cluster.replicas = 1"]).await;
}

#[tokio::test]
async fn other_settings_than_those_of_the_cluster_are_named() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let cluster = server.cluster("a").await;
    let partitions = PartitionCount::new(32).unwrap();
    let config = ClusterConfig {
        partitions,
        ..server.config("b")
    };
    check(
        config,
        &["cluster.partitions is 32", "created with 16", "write 16"],
    )
    .await;
    let config = ClusterConfig {
        time_to_live: Duration::from_secs(9),
        ..server.config("b")
    };
    check(
        config,
        &[
            "cluster.time-to-live is \"9s\"",
            "created with \"2s\"",
            "write \"2s\"",
        ],
    )
    .await;
    let config = ClusterConfig {
        time_to_live: Duration::from_millis(2_500),
        ..server.config("b")
    };
    check(config, &["cluster.time-to-live is \"2500ms\""]).await;

    // A bucket of a later version, with other fields.
    let client = async_nats::connect(format!("127.0.0.1:{}", server.port))
        .await
        .unwrap();
    let jetstream = async_nats::jetstream::new(client);
    let bucket = jetstream
        .get_key_value("opilio_members_test")
        .await
        .unwrap();
    bucket
        .put("format", "{\"format\":2,\"shards\":7}".into())
        .await
        .unwrap();
    check(
        server.config("b"),
        &[
            "the cluster has format 2",
            "has 1",
            "same version on all nodes",
        ],
    )
    .await;
    let error = cluster.nodes().await.err();
    assert!(error.is_none(), "{error:?}");
}

#[tokio::test]
async fn a_job_that_exists_and_one_that_does_not_are_named() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let cluster = server.cluster("a").await;
    let create = |name: &'static str, text: &'static [u8]| {
        let cluster = cluster.clone();
        async move {
            ClusterJob::create(
                &cluster,
                name,
                &[("profile.toml", text)],
                JobStorage::default(),
            )
            .await
        }
    };
    create("news", b"first").await.unwrap();
    let error = create("news", b"second").await.unwrap_err().to_string();
    assert!(error.contains("has a job \"news\" already"), "{error}");
    let job = ClusterJob::open(&cluster, "news").await.unwrap();
    assert_eq!(job.read_file("profile.toml").await.unwrap(), b"first");
    let error = ClusterJob::open(&cluster, "olds")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("no job \"olds\""), "{error}");
    // A manifest of a later version, with other fields.
    let client = async_nats::connect(format!("127.0.0.1:{}", server.port))
        .await
        .unwrap();
    let jobs = async_nats::jetstream::new(client)
        .get_key_value("opilio_jobs")
        .await
        .unwrap();
    jobs.put("later", "{\"format\":2,\"layers\":[]}".into())
        .await
        .unwrap();
    let error = ClusterJob::open(&cluster, "later")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("same version on all nodes"), "{error}");
    // A damaged manifest, without streams.
    jobs.put(
        "damaged",
        "{\"format\":1,\"streams\":0,\"files\":{}}".into(),
    )
    .await
    .unwrap();
    let damaged = ClusterJob::open(&cluster, "damaged").await;
    let error = damaged.unwrap_err().to_string();
    assert!(error.contains("malformed manifest of a job"), "{error}");
    let error = create("later", b"").await.unwrap_err().to_string();
    assert!(error.contains("has a job \"later\" already"), "{error}");
    let error = create("a.b", b"").await.unwrap_err().to_string();
    assert!(error.contains("invalid name of a job \"a.b\""), "{error}");
    let error = cluster.drain("nobody").await.unwrap_err().to_string();
    assert!(error.contains("no node \"nobody\""), "{error}");
}

#[tokio::test]
async fn a_file_without_room_in_the_object_store_is_named_and_no_job_is_created() {
    let limit = "jetstream { store_dir: STORE, max_file_store: 1MB }\n";
    let Some(server) = NatsServer::start_with(limit) else {
        return;
    };
    let cluster = server.cluster("a").await;
    let large = vec![0; 4_000_000];
    let files = [("plugins/own.wasm", large.as_slice())];
    let created = ClusterJob::create(&cluster, "news", &files, JobStorage::default()).await;
    let error = created.unwrap_err().to_string();
    assert!(
        error.contains("no room for a file: raise max_file_store"),
        "{error}"
    );
    let error = ClusterJob::open(&cluster, "news").await.unwrap_err();
    assert!(error.to_string().contains("no job \"news\""), "{error}");
}

#[tokio::test]
async fn tls_is_used_and_its_errors_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(file("cert.pem"), certified.cert.pem()).unwrap();
    std::fs::write(file("key.pem"), certified.signing_key.serialize_pem()).unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["other.example".to_owned()]).unwrap();
    std::fs::write(file("other.pem"), other.cert.pem()).unwrap();
    let tls = format!(
        "tls {{ cert_file: {:?}, key_file: {:?} }}\n",
        file("cert.pem"),
        file("key.pem")
    );
    let Some(server) = NatsServer::start_with(&tls) else {
        return;
    };
    let config = |authorities: &str| ClusterConfig {
        tls: Some(NatsTls {
            authorities: Some(file(authorities)),
            ..NatsTls::default()
        }),
        ..server.config("a")
    };
    open(config("cert.pem")).await.unwrap();
    check(config("other.pem"), &["cannot set up TLS", "[cluster.tls]"]).await;
    check(
        config("missing.pem"),
        &["cannot read", "missing.pem", "cluster.tls.authorities"],
    )
    .await;
    let connection = ClusterConnection::open(config("cert.pem")).await.unwrap();
    assert!(connection.link().borrow().is_up);
}
