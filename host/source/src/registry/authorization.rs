//! Requests with authorization at a registry: anonymous, by name and password, or by a token that is obtained with either.

use data_encoding::BASE64;
use docker_credential::DockerCredential;
use http_auth::ChallengeRef;
use http_auth::parser::ChallengeParser;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use url::Url;

use super::RegistryError;
use super::http::{Connection, RegistryRequest};

/// Longest answer with a token. Tokens of cloud services have several kilobytes.
const TOKEN_BYTES_MAX: usize = 1 << 20;
/// Name of this client for token services.
const CLIENT: &str = "opilio";

/// The parameters of a token request.
struct Bearer {
    realm: Url,
    service: Option<String>,
    scope: String,
}

#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

impl Connection<'_> {
    /// Sends a request, again with authorization if the registry asks for it. An answer with another status is an error.
    pub(super) async fn expect(
        &mut self,
        request: &RegistryRequest,
        statuses: &[StatusCode],
    ) -> Result<Response, RegistryError> {
        let mut response = self.send(request).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let credentials = self.credentials()?;
            let authorization = answer_challenge(
                self,
                response.headers(),
                credentials.as_ref(),
                request.pushes,
            )
            .await?;
            if let Some(authorization) = authorization {
                self.authorize(authorization);
                response = self.send(request).await?;
            }
        }
        if statuses.contains(&response.status()) {
            return Ok(response);
        }
        Err(self.trouble(request, response).await)
    }
}

/// The value of the header `Authorization` for a registry's challenge; `None` if there is no challenge that can be answered.
async fn answer_challenge(
    connection: &Connection<'_>,
    headers: &HeaderMap,
    credentials: Option<&DockerCredential>,
    pushes: bool,
) -> Result<Option<HeaderValue>, RegistryError> {
    let written = headers.get_all(WWW_AUTHENTICATE);
    let written: Vec<&str> = written.iter().filter_map(|h| h.to_str().ok()).collect();
    let challenges: Vec<ChallengeRef<'_>> = written
        .iter()
        .flat_map(|text| ChallengeParser::new(text).map_while(Result::ok))
        .collect();
    let of = |scheme: &str| {
        challenges
            .iter()
            .find(|challenge| challenge.scheme.eq_ignore_ascii_case(scheme))
    };
    if let Some(challenge) = of("Bearer") {
        let bearer = Bearer::read(connection, challenge, pushes);
        return match bearer {
            Some(bearer) => bearer
                .token(connection, credentials, pushes)
                .await
                .map(Some),
            None => Ok(None),
        };
    }
    match (of("Basic"), credentials) {
        (Some(_), Some(DockerCredential::UsernamePassword(name, password))) => {
            basic(name, password).map(Some)
        }
        _ => Ok(None),
    }
}

fn basic(name: &str, password: &str) -> Result<HeaderValue, RegistryError> {
    let pair = BASE64.encode(format!("{name}:{password}").as_bytes());
    secret_value(&format!("Basic {pair}"))
}

/// A header value, marked as secret so that it is not logged.
fn secret_value(text: &str) -> Result<HeaderValue, RegistryError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| RegistryError::Setup {
        problem: "a token or password has characters that a header cannot contain".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

impl Bearer {
    fn read(
        connection: &Connection<'_>,
        challenge: &ChallengeRef<'_>,
        pushes: bool,
    ) -> Option<Self> {
        let param = |name: &str| {
            let found = challenge.params.iter();
            let mut found = found.filter(|(key, _)| key.eq_ignore_ascii_case(name));
            found.next().map(|(_, value)| value.to_unescaped())
        };
        let scope = param("scope").filter(|scope| !scope.is_empty());
        Some(Self {
            realm: Url::parse(&param("realm")?).ok()?,
            service: param("service"),
            scope: scope.unwrap_or_else(|| {
                let action = if pushes { "pull,push" } else { "pull" };
                format!("repository:{}:{action}", connection.image().repository())
            }),
        })
    }

    /// Requests a token from the realm, with credentials or anonymously.
    async fn token(
        self,
        connection: &Connection<'_>,
        credentials: Option<&DockerCredential>,
        pushes: bool,
    ) -> Result<HeaderValue, RegistryError> {
        let denied = |answer: String, remedy: String| RegistryError::Denied {
            image: Box::new(connection.image().clone()),
            answer,
            remedy,
        };
        if !connection.may_have_secrets(&self.realm) {
            let realm = self.realm.origin().ascii_serialization();
            return Err(denied(
                format!("the registry requests a token from {realm} without HTTPS"),
                "ask the operator of the registry".to_owned(),
            ));
        }
        connection.may_send_to(&self.realm)?;
        let client = connection.client();
        let mut pairs = vec![("scope", self.scope.as_str())];
        if let Some(service) = &self.service {
            pairs.push(("service", service));
        }
        let request = if let Some(DockerCredential::IdentityToken(token)) = credentials {
            pairs.extend([
                ("grant_type", "refresh_token"),
                ("client_id", CLIENT),
                ("refresh_token", token),
            ]);
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            let form = form.extend_pairs(pairs).finish();
            client
                .post(self.realm)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(form)
        } else {
            let mut url = self.realm;
            url.query_pairs_mut().extend_pairs(pairs);
            let request = client.get(url);
            match credentials {
                Some(DockerCredential::UsernamePassword(name, password)) => {
                    request.header(AUTHORIZATION, basic(name, password)?)
                }
                _ => request,
            }
        };
        let response = request
            .send()
            .await
            .map_err(|problem| connection.unreachable(problem))?;
        if response.status() != StatusCode::OK {
            let status = response.status();
            let answer = format!("no token: {}", connection.describe_answer(response).await);
            if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
                let image = Box::new(connection.image().clone());
                return Err(RegistryError::Trouble { image, answer });
            }
            return Err(denied(answer, connection.remedy(pushes)));
        }
        let body = connection
            .body(response, "a token", TOKEN_BYTES_MAX)
            .await?;
        let answer = serde_json::from_slice::<TokenAnswer>(&body).ok();
        match answer.and_then(|answer| answer.token.or(answer.access_token)) {
            Some(token) => secret_value(&format!("Bearer {token}")),
            None => Err(RegistryError::Unexpected {
                image: Box::new(connection.image().clone()),
                request: "a token",
                answer: "without one".to_owned(),
            }),
        }
    }
}
