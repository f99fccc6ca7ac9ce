//! Members while JetStream has no room for their sessions.

use std::time::Duration;

use async_nats::jetstream::{self, stream};
use opilio_cluster::{Availability, Member};

use crate::server::{NatsServer, ServerMembers as _};

/// Time limit of each wait in this test.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_full_jetstream_is_reported_and_the_session_continues_when_there_is_space() {
    let limit = "jetstream { store_dir: STORE, max_file_store: 1MB }\n";
    let Some(server) = NatsServer::start_with(limit) else {
        return;
    };
    let cluster = server.cluster("a").await;
    let (member, _events) = Member::join(&cluster, "test").await.unwrap();
    let reach = async |wanted: Availability| {
        let mut status = member.status();
        let reached = status.wait_for(|status| status.availability == wanted);
        let reached = tokio::time::timeout(PATIENCE, reached).await;
        assert!(
            reached.is_ok_and(|status| status.is_ok()),
            "{wanted:?} was not reached"
        );
    };
    reach(Availability::Working).await;

    let client = async_nats::connect(format!("127.0.0.1:{}", server.port))
        .await
        .unwrap();
    let others = jetstream::new(client);
    let config = stream::Config {
        name: "others".to_owned(),
        subjects: vec!["others".to_owned()],
        ..stream::Config::default()
    };
    others.create_stream(config).await.unwrap();
    loop {
        let sent = others.publish("others", vec![0_u8; 200_000].into());
        if sent.await.unwrap().await.is_err() {
            break;
        }
    }
    reach(Availability::Full).await;
    let lapsed = async {
        while member.time_left().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, lapsed).await.unwrap();

    others.delete_stream("others").await.unwrap();
    reach(Availability::Working).await;
    assert!(member.time_left().is_some());
    assert_eq!(member.sessions_lost(), 0);
}
