//! The site of the benchmark: articles and applications, distributed over several hosts of one server. An application is empty
//! until its script has fetched an answer.

use std::ops::Range;

use opilio_test_web::{Reply, Site, Web, WebBuilder};

/// Number of applications in ten pages.
pub(super) const APPLICATIONS_OF_TEN: usize = 3;

/// Number of links of a list.
const LIST: usize = 50;

/// Prefix of the paths that only the scripts of applications request.
pub(super) const ANSWERS: &str = "/api/";

/// The pages of each host.
pub(super) struct MixedSite {
    hosts: Vec<Vec<usize>>,
}

impl MixedSite {
    /// Distributes the pages. The numbers of applications of two hosts differ by one at most, and so do the numbers of articles.
    pub(super) fn deal(pages: Range<usize>, hosts: usize) -> Self {
        let (applications, articles): (Vec<_>, Vec<_>) =
            pages.partition(|page| is_application(*page));
        let mut pages_of_hosts = vec![Vec::new(); hosts];
        for kind in [applications, articles] {
            for (place, page) in kind.into_iter().enumerate() {
                pages_of_hosts[place % hosts].push(page);
            }
        }
        for of_host in &mut pages_of_hosts {
            of_host.sort_unstable();
        }
        Self {
            hosts: pages_of_hosts,
        }
    }

    /// Number of pages that are applications.
    pub(super) fn applications(&self) -> usize {
        let pages = self.hosts.iter().flatten();
        pages.filter(|page| is_application(**page)).count()
    }

    /// Serves on each host a home page that links to lists, and lists that link to its pages.
    pub(super) fn builder(&self) -> WebBuilder {
        let mut web = Web::builder();
        for (host, pages) in self.hosts.iter().enumerate() {
            fill(web.site(&name(host)), pages);
        }
        web
    }

    /// The home pages.
    pub(super) fn seeds(&self, web: &Web) -> Vec<String> {
        let hosts = 0..self.hosts.len();
        hosts.map(|host| web.url(&name(host), "/")).collect()
    }

    /// All pages: home pages, lists, articles and applications.
    pub(super) fn urls(&self, web: &Web) -> Vec<String> {
        let mut urls = self.seeds(web);
        for (host, pages) in self.hosts.iter().enumerate() {
            let lists = (0..pages.chunks(LIST).len()).map(list);
            let targets = lists.chain(pages.iter().map(|page| target(*page)));
            urls.extend(targets.map(|target| web.url(&name(host), &target)));
        }
        urls
    }
}

fn is_application(page: usize) -> bool {
    page % 10 < APPLICATIONS_OF_TEN
}

fn name(host: usize) -> String {
    format!("mixed-{host}.localhost")
}

fn fill(site: &mut Site, pages: &[usize]) {
    let lists = pages.chunks(LIST);
    let home = links((0..lists.len()).map(list));
    site.page("/", page("Home", &home));
    for (number, of_list) in lists.enumerate() {
        let of_list = links(of_list.iter().map(|number| target(*number)));
        site.page(&list(number), page("List", &of_list));
    }
    for &number in pages {
        let title = format!("Page {number}");
        let body = match is_application(number) {
            true => {
                let answer = format!("{{\"title\":\"{title}\",\"next\":{}}}", number / 2);
                let answer = Reply::ok("application/json", answer);
                site.page(&format!("{ANSWERS}{number}"), answer);
                "<div id=\"root\"></div><script type=\"module\" src=\"/app.js\"></script>".to_owned()
            }
            false => format!(
                "<article><h1>{title}</h1><img src=\"/logo.svg\" alt=\"\">{}</article><script src=\"/site.js\"></script>",
                format!("<p>Paragraph {number} of an article that needs no script to be read, line by line.</p>")
                    .repeat(30)
            ),
        };
        site.page(&target(number), page(&title, &body));
    }
    site.page(
        "/style.css",
        Reply::ok("text/css", "body { font: 16px serif; margin: 2em }"),
    );
    site.page(
        "/site.js",
        Reply::ok("text/javascript", "document.body.dataset.ready = '1';"),
    );
    site.page("/app.js", Reply::ok("text/javascript", APPLICATION));
    site.page("/logo.svg", Reply::ok("image/svg+xml", LOGO));
}

fn links(targets: impl Iterator<Item = String>) -> String {
    targets
        .map(|target| format!("<li><a href=\"{target}\">{target}</a>"))
        .collect()
}

fn list(number: usize) -> String {
    format!("/list/{number}")
}

fn target(number: usize) -> String {
    match is_application(number) {
        true => format!("/app/{number}"),
        false => format!("/article/{number}"),
    }
}

fn page(title: &str, body: &str) -> Reply {
    Reply::html(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <link rel=\"stylesheet\" href=\"/style.css\"></head>\n<body>{body}</body></html>\n"
    ))
}

const APPLICATION: &str = r"const number = location.pathname.split('/').pop();
const item = await (await fetch(`/${'api'}/${number}`)).json();
document.querySelector('#root').innerHTML =
    `<h1>${item.title}</h1><img src='/logo.svg' alt=''>` + `<p>A paragraph of ${item.title}.</p>`.repeat(30);
";

const LOGO: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"200\" height=\"60\"><rect width=\"200\" height=\"60\" fill=\"teal\"/></svg>";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pages: usize, hosts: usize) {
        let site = MixedSite::deal(0..pages, hosts);
        let mut all: Vec<usize> = site.hosts.iter().flatten().copied().collect();
        all.sort_unstable();
        assert_eq!(all, Vec::from_iter(0..pages));
        for kind in [true, false] {
            let count = |of_host: &Vec<usize>| {
                let pages = of_host.iter();
                pages.filter(|page| is_application(**page) == kind).count()
            };
            let counts: Vec<usize> = site.hosts.iter().map(count).collect();
            let (least, most) = (counts.iter().min(), counts.iter().max());
            assert!(
                most <= least.map(|it| it + 1).as_ref(),
                "{pages} pages on {hosts} hosts: {counts:?}"
            );
        }
    }

    #[test]
    fn applications_and_articles_are_distributed_evenly() {
        check(100, 1);
        check(100, 8);
        // Otherwise every tenth page would be an application.
        check(1000, 10);
    }
}
