//! The visit of a robots.txt: whether its response is kept, the lifetime of the rules, and the `Crawl-delay`.

use std::sync::Arc;

use opilio_fetch::Exchange;
use opilio_fetch::robots::ROBOTS_BYTES_MAX;
use opilio_profile::RobotsPolicy;

use crate::admission::agents;
use crate::driver::{Driver, RobotsAnswer};
use crate::exchange::retry_after;
use crate::pipeline::{Conclusion, Pipeline};
use crate::{reading, status};

/// Decides the effect of a response to a request for robots.txt. Returns a conclusion if the robots.txt must be requested again.
/// Otherwise the response is kept, and the visit continues as for any other document.
pub(crate) async fn receive<D: Driver>(
    pipeline: &Pipeline,
    driver: &D,
    exchange: &Arc<Exchange>,
) -> Result<Option<Conclusion>, D::Error> {
    let transfer = driver.transfer(exchange);
    let answer = match driver.robots_answer(exchange).await? {
        RobotsAnswer::Received(status, body) => (status, body),
        RobotsAnswer::Busy(after) => {
            let status = status::ROBOTS_FAILED;
            return Ok(Some(Conclusion::retry(
                status,
                "",
                Some(after),
                Some(transfer),
            )));
        }
    };
    let settings = &pipeline.settings;
    let unreachable = !(200..500).contains(&answer.0);
    // The profile is likely to forbid the address or port the next time as well.
    let refused = answer.0 == status::BLOCKED;
    let may_pass = answer.0 > 0 || settings.retry.has_error(answer.0);
    if unreachable && !refused && may_pass && pipeline.attempts_left() {
        // A brief outage of the server must not exclude the whole site: the request is retried as often as the profile sets.
        let after = retry_after(exchange);
        let failure = exchange.failure.as_ref();
        let error = failure.map_or_else(String::new, |failure| opilio_stacks::chain(failure));
        let conclusion = Conclusion::retry(answer.0, &error, after, Some(transfer));
        return Ok(Some(conclusion));
    }
    let lifetime = match answer.0 > 0 {
        true => settings.robots.expires,
        false => pipeline.denial_lifetime(settings.robots.expires),
    };
    let uri = &pipeline.issue.uri;
    let robots = driver.keep_robots(uri, answer, lifetime, driver.now())?;
    let settings = &settings.robots;
    let custom =
        (settings.policy == RobotsPolicy::Custom).then(|| driver.custom_robots(&settings.text));
    let robots = custom.unwrap_or(robots);
    let agent = robots.agent_among(&pipeline.profile.user_agent, agents(settings));
    let delay = robots.crawl_delay(agent).filter(|delay| !delay.is_zero());
    driver.set_crawl_delay(delay)?;
    Ok(None)
}

/// Returns status and body of a response to a request for robots.txt. Redirects are not followed.
pub fn answer_of(exchange: &Exchange) -> (i32, Vec<u8>) {
    let head = exchange.head.as_ref();
    let body = head.map(|head| reading::content(exchange, head, ROBOTS_BYTES_MAX as u64).0);
    (exchange.status(), body.unwrap_or_default().to_vec())
}
