//! Nodes that join a shared crawl without its profile, over a real `nats-server`.

use std::collections::BTreeSet;

use opilio_stories::until;
use opilio_test_nats::{NatsServer, free_port};
use opilio_test_web::Web;

use crate::command::Home;
use crate::shared_crawl::{SITES, all_uris, configuration, host, pages, web};

/// Returns a component with the shipped HTML extractor and an added section, so that its digest differs.
fn own_component() -> Vec<u8> {
    let mut component = opilio_builtin::find("html").unwrap().component.to_vec();
    component.extend(b"\0\x08\x06remark!");
    component
}

/// Returns the home of a node of the cluster without a profile.
fn node(server: &NatsServer, name: &str) -> Home {
    let home = Home::new();
    home.file("opilio.toml", configuration(server, name));
    home
}

/// Writes the profile of the crawl into the home of a node, with its list of seeds, component, password and cookies.
fn add_profile(home: &Home, web: &Web, component: &[u8]) {
    std::fs::create_dir(home.path().join("own")).unwrap();
    let seeds = (0..SITES).map(|site| web.url(&host(site), "/") + "\n");
    home.file("own/seeds.txt", seeds.collect::<String>());
    home.file("own/links.wasm", component);
    home.file("password", "secret\n");
    home.file("cookies.txt", "# Netscape HTTP Cookie File\n");
    home.profile(
        "name = 'shared'\nseeds-file = 'own/seeds.txt'\nstacks.extract = ['http', 'links']\n\
         [plugins.links]\ncomponent = './own/links.wasm#html'\n\
         [cookies]\nload = 'cookies.txt'\n\
         [credentials.staff]\nhosts = ['intranet.localhost']\nuser = 'u'\npassword = { file = 'password' }",
    );
}

const START: [&str; 8] = [
    "crawl",
    "p.toml",
    "--job",
    "job",
    "--cluster-job",
    "news",
    "--nodes",
    "a,b",
];

const JOIN: [&str; 5] = ["crawl", "--cluster-job", "news", "--job", "job"];

#[track_caller]
fn assert_refused(home: &Home, arguments: &[&str], code: i32, expected: &str) {
    let ended = home.run(arguments).code(code);
    assert!(ended.err.contains(expected), "{ended:?}");
    assert!(!home.job().exists(), "{ended:?}");
}

#[test]
fn a_job_of_one_machine_cannot_join() {
    let home = Home::new();
    std::fs::create_dir(home.job()).unwrap();
    home.file("job/job.json", "{}");
    let ended = home.run(&JOIN).code(2);
    let expected = "job job is not part of a shared crawl: name another directory";
    assert!(ended.err.contains(expected), "{ended:?}");
}

#[test]
fn a_crawl_that_cannot_reach_its_cluster_fails_with_the_cause() {
    let home = Home::new();
    home.profile("name = 'shared'\nseeds = ['http://a.localhost/']");
    let refused = |port: u16, expected: &str| {
        let text = format!("[cluster]\nservers = [\"127.0.0.1:{port}\"]\nnode = \"a\"\n");
        home.file("opilio.toml", text);
        assert_refused(&home, &START, 1, expected);
        assert_refused(&home, &JOIN, 1, expected);
    };
    let port = free_port();
    refused(
        port,
        &format!("no NATS server answers at 127.0.0.1:{port}: start nats-server there"),
    );
    if let Some(server) = NatsServer::without_jetstream() {
        refused(server.port, "JetStream is disabled in nats-server");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_the_profile_fetches_it_and_crawls_its_part() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let web = web().await;
    let (home_a, home_b) = (node(&server, "a"), node(&server, "b"));
    assert_refused(&home_b, &JOIN, 1, "the cluster has no job \"news\"");
    add_profile(&home_a, &web, &own_component());
    let mut a = home_a.start(&START);
    until("the first node crawls", || !web.requests().is_empty()).await;

    // The first node waits for the second one meanwhile.
    let other = node(&server, "c");
    other.file("password", "secret\n");
    other.file("cookies.txt", "");
    let expected = "node \"c\" (cluster.node) is not one of the job's nodes (a, b)";
    assert_refused(&other, &JOIN, 1, expected);
    let changed = node(&server, "b");
    let shipped = opilio_builtin::find("html").unwrap().component;
    add_profile(&changed, &web, shipped);
    let expected = "plugin \"links\" has another component here than in job \"news\"";
    assert_refused(&changed, &START, 1, expected);
    let twin = node(&server, "a");
    add_profile(&twin, &web, &own_component());
    let expected = "another process works on part \"a\" of the job: stop it first";
    assert_refused(&twin, &START, 1, expected);
    let divided = node(&server, "b");
    let text = configuration(&server, "b").replace("partitions = 16", "partitions = 32");
    divided.file("opilio.toml", text);
    let expected = "cluster.partitions is 32, but the cluster was created with 16: write 16";
    assert_refused(&divided, &JOIN, 1, expected);
    let seed = [&JOIN[..], &["--seed", "http://a.localhost/"]].concat();
    assert_refused(&home_b, &seed, 2, "--seed needs a profile");
    // Cookies and passwords are not sent to other machines.
    assert_refused(
        &home_b,
        &JOIN,
        2,
        "cookies.txt (write the path of a cookie file",
    );
    home_b.file("cookies.txt", "# Netscape HTTP Cookie File\n");
    assert_refused(&home_b, &JOIN, 2, "credentials.staff: cannot read");
    home_b.file("password", "secret\n");
    let mut b = home_b.start(&JOIN);
    assert_eq!((a.wait(), b.wait()), (0, 0));
    let (of_a, of_b) = (pages(&home_a.job()), pages(&home_b.job()));
    assert!(!of_a.is_empty() && !of_b.is_empty());
    let all: BTreeSet<String> = of_a.keys().chain(of_b.keys()).cloned().collect();
    assert_eq!(all, all_uris(&web));
    assert_eq!(all.len(), of_a.len() + of_b.len());

    // The job of the joined node has its own copies of the files and can be resumed like others.
    home_b.run(&["crawl", "job"]).code(0);
    let copies = std::fs::read_dir(home_b.job().join("cluster-files")).unwrap();
    assert_eq!(copies.count(), 2);
}
