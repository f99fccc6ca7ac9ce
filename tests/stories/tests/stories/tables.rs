//! Tables of plugins whose files change.

use opilio_control::{Command, CommandResponse};
use opilio_stories::{Story, asked, crawl, html, site, until};
use opilio_test_web::{Gate, Web};

const WWW: &str = "www.story.localhost";
const OTHER: &str = "other.localhost";

/// Serves a page with a link to another host, behind a gate.
async fn one_link(gate: &Gate) -> Web {
    let gate = gate.clone();
    site(OTHER)
        .page("/", html("other"))
        .and(WWW)
        .answer("/", move |seen| {
            let host = seen.headers["host"].to_str().unwrap();
            let other = host.replace(WWW, OTHER);
            html(&format!("<a href='http://{other}/'>other</a>")).behind(&gate)
        })
        .serve()
        .await
}

fn with_table(list: &str) -> Story {
    let story = crawl();
    let file = story.file("list.txt", list);
    story.profile(&format!(
        "fetch.response-timeout = '100s'\n[tables.more]\nkind = 'surt-prefixes'\nfile = '{}'\nreload = '1ms'\n\
         [plugins.surt-scope]\ncomponent = 'builtin:surt-scope'\nsettings.tables = ['more']",
        file.display()
    ))
}

#[tokio::test]
async fn a_changed_table_applies_to_links_found_later() {
    let gate = Gate::of(2);
    let web = one_link(&gate).await;
    let story = with_table("# nothing yet\n").seed(web.url(WWW, "/"));
    let log = || std::fs::read_to_string(story.job().join("logs/job.log")).unwrap_or_default();
    let operator = async {
        until("the page is requested", || asked(&web).len() == 1).await;
        story.file(
            "list.txt",
            &format!("# hosts\n\n{}\tby hand\n", web.url(OTHER, "/")),
        );
        until("the table is read again", || {
            log().contains("table more => read again: 1 rows")
        })
        .await;
        let answers = story
            .order(Command::Tables { reload: false })
            .await
            .unwrap();
        gate.come();
        answers
    };
    let (result, answers) = story.run_with(operator).await;
    let result = result.finished();
    assert_eq!(result.sole(&web.url(OTHER, "/")).status, 200, "{}", log());
    let [CommandResponse::Tables { tables }] = answers.as_slice() else {
        panic!("{answers:?}")
    };
    let [table] = tables.as_slice() else {
        panic!("{tables:?}")
    };
    assert_eq!((table.name.as_str(), table.rows), ("more", 1));
    assert_eq!(
        (table.kind.as_str(), &table.problem),
        ("surt-prefixes", &None)
    );
}

#[tokio::test]
async fn a_table_with_an_invalid_row_keeps_its_old_rows_and_raises_an_alert() {
    let gate = Gate::of(2);
    let web = one_link(&gate).await;
    let story = with_table(&web.url(OTHER, "/")).seed(web.url(WWW, "/"));
    let log = || std::fs::read_to_string(story.job().join("logs/job.log")).unwrap_or_default();
    let operator = async {
        until("the page is requested", || asked(&web).len() == 1).await;
        story.file("list.txt", "http://a.org/\n# remark\nmailto:nobody\n");
        until("the table is refused", || {
            log().contains("alert table more => not updated")
        })
        .await;
        let answers = story.order(Command::Tables { reload: true }).await.unwrap();
        gate.come();
        answers
    };
    let (result, answers) = story.run_with(operator).await;
    let result = result.finished();
    assert_eq!(result.sole(&web.url(OTHER, "/")).status, 200);
    let log = log();
    assert!(
        log.contains("list.txt line 3: row 2: `mailto:nobody`"),
        "{log}"
    );
    assert_eq!(
        log.matches("alert table more").count(),
        2,
        "once after the change, and once for the command: {log}"
    );
    let [CommandResponse::Tables { tables }] = answers.as_slice() else {
        panic!("{answers:?}")
    };
    assert!(
        tables[0].problem.is_some() && tables[0].rows == 1,
        "{tables:?}"
    );
}

#[test]
fn a_table_that_cannot_be_read_is_an_error_of_the_profile() {
    let faulty = with_table("http://a.org/\nmailto:nobody\n").seed("http://s.localhost/");
    let refused = faulty.begin().map(drop).unwrap_err().to_string();
    assert!(refused.contains("list.txt line 2"), "{refused}");
    let missing = crawl()
        .profile("[tables.more]\nkind = 'regexes'\nfile = '/nowhere/list.txt'")
        .seed("http://s.localhost/");
    let refused = missing.begin().map(drop).unwrap_err().to_string();
    assert!(
        refused.contains("cannot read /nowhere/list.txt"),
        "{refused}"
    );
    assert!(refused.contains("story.toml:"), "{refused}");
}
