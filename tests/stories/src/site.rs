//! The web of a story: hosts and their answers.

use opilio_test_web::{Reply, SeenRequest, Web, WebBuilder};

/// Hosts to be served.
pub struct Sites {
    web: WebBuilder,
    host: String,
}

/// Begins a web with the site of `host`, which must end in `.localhost`.
pub fn site(host: &str) -> Sites {
    Sites {
        web: Web::builder(),
        host: String::new(),
    }
    .and(host)
}

/// Returns an HTML page with this body.
pub fn html(body: &str) -> Reply {
    Reply::html(format!(
        "<!doctype html><html><head><title>t</title></head><body>{body}</body></html>"
    ))
}

impl Sites {
    /// Begins another host, to which the following pages belong.
    pub fn and(mut self, host: &str) -> Sites {
        host.clone_into(&mut self.host);
        self.web.site(host);
        self
    }

    /// Answers each request for a target with the same reply.
    pub fn page(mut self, target: &str, reply: Reply) -> Sites {
        self.web.site(&self.host).page(target, reply);
        self
    }

    /// Answers each request for a target with the result of a function.
    pub fn answer(
        mut self,
        target: &str,
        answer: impl Fn(&SeenRequest) -> Reply + Send + Sync + 'static,
    ) -> Sites {
        self.web.site(&self.host).answer(target, answer);
        self
    }

    /// Answers all other requests with the result of a function.
    pub fn rest(mut self, answer: impl Fn(&SeenRequest) -> Reply + Send + Sync + 'static) -> Sites {
        self.web.site(&self.host).rest(answer);
        self
    }

    /// Serves on a free port.
    pub async fn serve(self) -> Web {
        self.web.serve().await.unwrap()
    }
}
