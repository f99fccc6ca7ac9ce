//! Visits of login pages and login forms.

use std::sync::Arc;

use jiff::Timestamp;
use opilio_fetch::Exchange;
use opilio_uri::Uri;
use opilio_visit::{reading, redirect_of};

use super::CrawlVisit;
use crate::error::Halt;
use crate::lanes::LaneKind;
use crate::logins::{LoginPart, LoginResult};

/// Maximum bytes of a login page, or of the response to its form, that are read.
const LOGIN_PAGE_BYTES_MAX: u64 = 1 << 20;

impl CrawlVisit<'_> {
    /// Returns the login page to fetch, if the response shows that the login has ended. The login is sent again, and then the
    /// visited page is fetched once more.
    pub(super) fn login_page_after(&self, exchange: &Exchange) -> Result<Option<Uri>, Halt> {
        let Some(head) = &exchange.head else {
            return Ok(None);
        };
        let uri = &self.pipeline.issue.uri;
        let target = redirect_of(uri, exchange);
        let (logins, frontier) = (&self.context.network.logins, &self.context.frontier);
        Ok(logins.login_page_to_fetch(frontier, uri, head.status, target.as_ref())?)
    }

    /// Processes the page of a login, or the response to its form, and decides the next step of the login.
    pub(super) async fn read_login(&self, exchange: &Arc<Exchange>) -> Result<(), Halt> {
        let context = self.context;
        let Some(part) = context.network.logins.part_of(&self.pipeline.issue.uri) else {
            return Ok(());
        };
        let read = exchange.clone();
        let text = context
            .lanes
            .run(LaneKind::Document, move || {
                let head = read.head.as_ref();
                let content =
                    head.map(|head| reading::content(&read, head, LOGIN_PAGE_BYTES_MAX).0);
                String::from_utf8_lossy(&content.unwrap_or_default()).into_owned()
            })
            .await?;
        let (logins, frontier) = (&context.network.logins, &context.frontier);
        let result = logins.receive(frontier, &part, exchange.status(), &text, Timestamp::now())?;
        self.report_login(&result);
        Ok(())
    }

    /// Records that a login's page or form was not fetched and will not be fetched.
    pub(super) fn login_lost(&self) -> Result<(), Halt> {
        let (logins, frontier) = (&self.context.network.logins, &self.context.frontier);
        let Some(part) = logins.part_of(&self.pipeline.issue.uri) else {
            return Ok(());
        };
        let (LoginPart::Page(name) | LoginPart::Form { name, .. }) = &part;
        let why = "cannot fetch its page or form";
        let result = logins.fail(frontier, name, why, Timestamp::now())?;
        self.report_login(&result);
        Ok(())
    }

    fn report_login(&self, result: &LoginResult) {
        match result {
            LoginResult::PageFetched => {}
            LoginResult::LoggedIn(name) => {
                let what = format!("login {name}");
                self.context.job_log.crawl(&what, "logged in");
            }
            LoginResult::Refused(name, why) => {
                let why = format!("{why}; pages that need it fail; retry in an hour");
                tracing::warn!("login {name}: {why}");
                self.context
                    .job_log
                    .crawl(&format!("alert login {name}"), &why);
            }
        }
    }
}
