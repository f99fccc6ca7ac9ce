//! The web of the chaos crawl: sites with pages that only pages of other sites link to.

use std::collections::BTreeSet;

use anyhow::Result;
use opilio_test_web::{Reply, SeenRequest, Web};

/// Size of the web.
#[derive(Debug, Clone, Copy)]
pub(super) struct WebSize {
    pub(super) sites: usize,
    /// Pages of a site to which its first page links. Each links to a page of the next site that no other page links to.
    pub(super) pages: usize,
}

impl WebSize {
    pub(super) async fn serve(self) -> Result<Web> {
        let mut web = Web::builder();
        for site in 0..self.sites {
            web.site(&host(site))
                .page("/robots.txt", Reply::status(404))
                .rest(move |seen| self.page(site, seen));
        }
        Ok(web.serve().await?)
    }

    /// The first page of each site.
    pub(super) fn seeds(self, web: &Web) -> Vec<String> {
        let sites = 0..self.sites;
        sites.map(|site| web.url(&host(site), "/")).collect()
    }

    /// All pages of the web.
    pub(super) fn all_pages(self, web: &Web) -> BTreeSet<String> {
        let numbers = 0..self.pages;
        let pages = numbers.flat_map(|number| {
            [
                format!("/{number}.html"),
                format!("/from-before-{number}.html"),
            ]
        });
        let targets: Vec<String> = pages.chain(["/".to_owned()]).collect();
        let sites = 0..self.sites;
        let of_site = |site| {
            let host = host(site);
            let urls = targets.iter().map(|target| web.url(&host, target));
            urls.collect::<Vec<String>>()
        };
        sites.flat_map(of_site).collect()
    }

    fn page(self, site: usize, seen: &SeenRequest) -> Reply {
        let host_and_port = seen.headers.get("host").and_then(|it| it.to_str().ok());
        let port = host_and_port
            .and_then(|it| it.rsplit(':').next())
            .unwrap_or_default();
        let next = host((site + 1) % self.sites);
        if seen.target == "/" {
            let numbers = 0..self.pages;
            let own = numbers.map(|number| format!("<a href='/{number}.html'>{number}</a> "));
            return Reply::html(own.collect::<String>());
        }
        match seen.target.strip_prefix("/from-before-") {
            Some(_) => Reply::html("<p>The end of this path."),
            None => Reply::html(format!(
                "<a href='http://{next}:{port}/from-before-{}'>next</a>",
                seen.target.trim_start_matches('/')
            )),
        }
    }
}

fn host(site: usize) -> String {
    format!("www.site{site}.localhost")
}
