//! Extractors of requests that answer errors with a problem document. The extractors of axum answer in plain text, and wait for a
//! body without a time limit.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::{FormRejection, JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::problem::Problem;

/// Maximum time to receive a body, enough for the largest one on a slow connection.
const BODY: Duration = Duration::from_secs(300);

/// A body as raw bytes.
pub(crate) struct RawBody(pub(crate) Bytes);

/// A body in JSON.
pub(crate) struct Body<T>(pub(crate) T);

/// A form.
pub(crate) struct Form<T>(pub(crate) T);

/// A query.
pub(crate) struct Params<T>(pub(crate) T);

/// The parameters of the path.
pub(crate) struct PathParams<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match in_time(axum::Json::<Object<T>>::from_request(request, state)).await? {
            Ok(axum::Json(Object(body))) => Ok(Body(body)),
            Err(refused) => Err(Problem::new(
                status_of(&refused),
                causes(&refused.body_text()),
            )),
        }
    }
}

/// A JSON object. serde would also accept an array for a struct, with the fields in the order of our code.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }
        let fields = deserializer.deserialize_map(Fields(PhantomData))?;
        Ok(Self(fields))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Form<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match in_time(axum::Form::<T>::from_request(request, state)).await? {
            Ok(axum::Form(form)) => Ok(Form(form)),
            Err(refused) => Err(refused_form(&refused)),
        }
    }
}

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match in_time(Bytes::from_request(request, state)).await? {
            Ok(body) => Ok(RawBody(body)),
            Err(refused) => Err(Problem::new(refused.status(), causes(&refused.body_text()))),
        }
    }
}

async fn in_time<T>(body: impl Future<Output = T>) -> Result<T, Problem> {
    let too_slow = |_| {
        let problem = format!(
            "the body was not received within {} seconds",
            BODY.as_secs()
        );
        Problem::new(StatusCode::REQUEST_TIMEOUT, problem)
    };
    tokio::time::timeout(BODY, body).await.map_err(too_slow)
}

fn refused_form(refused: &FormRejection) -> Problem {
    Problem::new(refused.status(), causes(&refused.body_text()))
}

fn status_of(refused: &JsonRejection) -> StatusCode {
    refused.status()
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Params(params)),
            Err(refused) => Err(refused_query(&refused)),
        }
    }
}

fn refused_query(refused: &QueryRejection) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, causes(&refused.body_text()))
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(params)) => Ok(PathParams(params)),
            Err(refused) => Err(refused_path(&refused)),
        }
    }
}

fn refused_path(refused: &PathRejection) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, causes(&refused.body_text()))
}

/// Formats an error in our style: a fragment with a lower-case beginning.
fn causes(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Making {
        name: String,
        #[serde(default)]
        start: bool,
    }

    /// The order of a struct's fields is not part of the API.
    #[test]
    fn an_array_in_place_of_an_object_is_refused() {
        let read = serde_json::from_str::<Object<Making>>;
        let Object(made) = read("{\"name\": \"a\"}").unwrap();
        assert!(made.name == "a" && !made.start);
        for (body, problem) in [
            (
                "[\"a\", false]",
                "invalid type: sequence, expected an object",
            ),
            ("[]", "invalid type: sequence, expected an object"),
            ("\"a\"", "invalid type: string"),
            (
                "{\"name\": \"a\", \"begin\": true}",
                "unknown field `begin`",
            ),
            ("{}", "missing field `name`"),
        ] {
            let refused = read(body).map(|Object(made)| made).unwrap_err().to_string();
            assert!(refused.contains(problem), "{body}: {refused}");
        }
    }
}
