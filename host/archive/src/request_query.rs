//! Method and body of a request as a part of its key in an index: `?__wb_method=POST&a=1`. Replay finds the response by this key.
//!
//! The rules are those of cdxj-indexer's `--post-append`. pywb computes the same key from a request that it replays. Both are
//! written in Python, so JSON's `true` becomes `True`.

use std::collections::HashMap;
use std::fmt;

use data_encoding::BASE64;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// Header of a request record whose body must not be in an index, for instance because it has a password.
pub const BODY_UNINDEXED: &str = "Opilio-Body-Unindexed";

/// Longest request that is read for its body, in bytes: the largest request that a crawl records.
pub(crate) const REQUEST_BYTES_MAX: usize = 17 * 1024 * 1024;

/// Maximum characters of a body in a key. Longer bodies are cut.
const QUERY_LENGTH_MAX: usize = 4096;

/// Maximum bytes that are read of a body without `Content-Length`.
const UNSTATED_LENGTH: usize = 8192;

/// Method and body of a request that its URI alone does not identify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestQuery {
    /// The method.
    pub method: String,
    /// The body as a query; empty if there is none.
    pub body: String,
}

impl RequestQuery {
    /// Reads a request as it was sent. `None` for GET and HEAD, which their URI identifies, and for an invalid method.
    pub(crate) fn of(request: &[u8]) -> Option<RequestQuery> {
        let (head, body) = split_at(request, b"\r\n\r\n").unwrap_or((request, &[]));
        let head = String::from_utf8_lossy(head);
        let mut lines = head.lines();
        let method = lines.next()?.split(' ').next()?;
        if matches!(method, "GET" | "HEAD") || !method.bytes().all(|it| it.is_ascii_alphabetic()) {
            return None;
        }
        let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
        let value = |wanted: &str| {
            let mut found = headers.iter();
            let found = found.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))?;
            Some(found.1.trim())
        };
        let length = match value("content-length") {
            None => UNSTATED_LENGTH,
            Some(length) => length.parse().unwrap_or(0),
        };
        let body = &body[..length.min(body.len())];
        // pywb appends no body if there is none, cdxj-indexer an empty one.
        let body = match method {
            "POST" | "PUT" if !body.is_empty() => {
                query(value("content-type").unwrap_or_default(), body)
            }
            _ => String::new(),
        };
        Some(RequestQuery {
            method: method.to_owned(),
            body: body.chars().take(QUERY_LENGTH_MAX).collect(),
        })
    }

    /// Returns the URI with this query, for a key.
    pub(crate) fn appended_to(&self, uri: &str) -> String {
        let RequestQuery { method, body } = self;
        let first = if uri.contains('?') { '&' } else { '?' };
        let second = if body.is_empty() { "" } else { "&" };
        format!("{uri}{first}__wb_method={method}{second}{body}")
    }
}

/// A body as a query.
fn query(media_type: &str, body: &[u8]) -> String {
    if media_type.starts_with("application/x-www-form-urlencoded") {
        return match std::str::from_utf8(body) {
            Ok(form) => decoded(form),
            Err(_) => binary(body),
        };
    }
    if media_type.starts_with("multipart/") {
        return multipart(media_type, body).unwrap_or_else(|| binary(body));
    }
    if media_type.starts_with("application/json") {
        return json(body).unwrap_or_default();
    }
    if media_type.starts_with("text/plain") {
        return json(body).unwrap_or_else(|| binary(body));
    }
    binary(body)
}

fn binary(body: &[u8]) -> String {
    format!("__wb_post_data={}", BASE64.encode(body))
}

/// Decodes a form: `+` and percent signs.
fn decoded(form: &str) -> String {
    let form = form.as_bytes();
    let digit = |at: usize| char::from(*form.get(at)?).to_digit(16);
    let mut bytes = Vec::with_capacity(form.len());
    let mut at = 0;
    while let Some(&byte) = form.get(at) {
        let value = digit(at + 1).zip(digit(at + 2));
        let value = value.and_then(|(first, second)| u8::try_from(first * 16 + second).ok());
        match (byte, value) {
            (b'%', Some(value)) => {
                bytes.push(value);
                at += 2;
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Encodes a value of a form.
fn encoded(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => {
                text.push(char::from(*byte));
            }
            b' ' => text.push('+'),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// A form that is being written. Once it has more than [`QUERY_LENGTH_MAX`] characters, it drops further fields.
#[derive(Default)]
struct Form {
    text: String,
    /// Fields by name.
    counts: HashMap<String, u32>,
}

impl Form {
    fn add(&mut self, name: &str, value: &[u8]) {
        if self.text.len() > QUERY_LENGTH_MAX {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('&');
        }
        self.text.push_str(&encoded(name.as_bytes()));
        self.text.push('=');
        self.text.push_str(&encoded(value));
    }

    /// Adds the values in a JSON value under their names. A repeated name gets a number: `a`, `a.2_`.
    fn add_json(&mut self, value: &Json, name: &str) {
        match value {
            Json::Object(members) => {
                let members = members.iter();
                members.for_each(|(name, value)| self.add_json(value, name));
            }
            Json::Array(values) => values.iter().for_each(|value| self.add_json(value, name)),
            Json::Value(_) if name.is_empty() => {}
            Json::Value(value) => {
                let count = self.counts.entry(name.to_owned()).or_default();
                *count += 1;
                let name = match *count {
                    1 => name.to_owned(),
                    count => format!("{name}.{count}_"),
                };
                self.add(&name, value.as_bytes());
            }
        }
    }
}

/// Returns the fields of a multipart form; `None` if the body is not one.
fn multipart(media_type: &str, body: &[u8]) -> Option<String> {
    let (_, boundary) = media_type.split_once("boundary=")?;
    let delimiter = format!("\r\n--{boundary}");
    let mut rest = body.strip_prefix(delimiter.trim_start().as_bytes())?;
    let mut form = Form::default();
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let (part, behind) = split_at(part, delimiter.as_bytes())?;
        let (head, value) = split_at(part, b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(head);
        let name = head.split_once(" name=\"");
        let name = name.and_then(|(_, rest)| rest.split_once('"'));
        form.add(name.map_or("None", |(name, _)| name), value);
        rest = behind;
    }
    Some(form.text)
}

/// Returns the values of a JSON text, or of lines of JSON, by their names; `None` for other bodies.
fn json(body: &[u8]) -> Option<String> {
    let mut form = Form::default();
    match serde_json::from_slice::<Json>(body) {
        Ok(value) => form.add_json(&value, ""),
        Err(_) if body.contains(&b'\n') => {
            for line in body.split(|byte| *byte == b'\n') {
                form.add_json(&serde_json::from_slice(line).ok()?, "");
            }
        }
        Err(_) => return None,
    }
    Some(form.text)
}

/// A JSON value. Names keep their order, because it decides the numbers of repeated names.
enum Json {
    Object(Vec<(String, Json)>),
    Array(Vec<Json>),
    Value(String),
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Value("None".to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        let value = if value { "True" } else { "False" };
        Ok(Json::Value(value.to_owned()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Value(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Value(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Value(float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Value(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Json, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = sequence.next_element()? {
            values.push(value);
        }
        Ok(Json::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        while let Some((name, value)) = map.next_entry::<String, Json>()? {
            // If a name has several values, the last one is used, at the place of the first.
            let place = *places.entry(name.clone()).or_insert(members.len());
            match members.get_mut(place) {
                Some(known) => known.1 = value,
                None => members.push((name, value)),
            }
        }
        Ok(Json::Object(members))
    }
}

/// Writes a number as Python does: `1.0`, `1e+16`, `1.5e-07`.
fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        return format!("{value:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Splits bytes at the first separator, which is left out.
fn split_at<'b>(bytes: &'b [u8], separator: &[u8]) -> Option<(&'b [u8], &'b [u8])> {
    let mut places = bytes.windows(separator.len());
    let at = places.position(|place| place == separator)?;
    Some((&bytes[..at], &bytes[at + separator.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are results of cdxj-indexer 1.5.0, except for an empty body.
    #[track_caller]
    fn check(media_type: &str, body: &str, expected: &str) {
        let length = body.len();
        let request = format!(
            "POST /a HTTP/1.1\r\nHost: a.org\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let query = RequestQuery::of(request.as_bytes()).unwrap();
        assert_eq!(
            query.appended_to("http://a.org/a"),
            format!("http://a.org/a?__wb_method=POST{expected}")
        );
    }

    #[test]
    fn forms_are_read() {
        let form = "application/x-www-form-urlencoded";
        check(form, "a=1&b=x+y%20z&c=%C3%A4", "&a=1&b=x y z&c=ä");
        check(form, "a=%ff%zz%4", "&a=\u{fffd}%zz%4");
        check(
            "multipart/form-data; boundary=XX",
            "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1 2\r\n--XX\r\n\
             Content-Disposition: form-data; name=\"f\"; filename=\"f.bin\"\r\n\
             Content-Type: image/png\r\n\r\n\0&\r\n--XX--\r\n",
            "&a=1+2&f=%00%26",
        );
        check("multipart/form-data", "x", "&__wb_post_data=eA==");
    }

    #[test]
    fn values_of_json_are_named() {
        let json = "application/json";
        check(json, "{\"seen\":2}", "&seen=2");
        check(
            json,
            r#"{"q":"Käse & Brot","on":true,"off":false,"no":null,"n":[1,2.0,1e16,1.5e-7,-0.0,0.0001],"o":{"q":"x","n":{"n":3}}}"#,
            "&q=K%C3%A4se+%26+Brot&on=True&off=False&no=None&n=1&n.2_=2.0&n.3_=1e%2B16&n.4_=1.5e-07&n.5_=-0.0\
             &n.6_=0.0001&q.2_=x&n.7_=3",
        );
        check(
            "application/json; charset=utf-8",
            r#"{"b":1,"a":2,"b":3}"#,
            "&b=3&a=2",
        );
        check(json, "{\"a\":1}\n{\"a\":2}", "&a=1&a.2_=2");
        check(json, "nonsense", "");
        check(json, "\"text\"", "");
        check("text/plain;charset=UTF-8", "{\"seen\":2}", "&seen=2");
    }

    #[test]
    fn other_bodies_are_used_unchanged() {
        check("text/plain", "words", "&__wb_post_data=d29yZHM=");
        check(
            "application/octet-stream",
            "\0\u{1}~",
            "&__wb_post_data=AAF+",
        );
        check("", "", "");
    }

    #[test]
    fn long_bodies_are_cut_and_methods_without_a_body_are_named() {
        let of = |request: &str| RequestQuery::of(request.as_bytes());
        let long = format!("PUT /a HTTP/1.1\r\n\r\n{}", "x".repeat(9000));
        let body = of(&long).unwrap().body;
        assert_eq!((body.len(), &body[..19]), (4096, "__wb_post_data=eHh4"));
        let delete = of("DELETE /a?b HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(
            delete.appended_to("http://a.org/a?b"),
            "http://a.org/a?b&__wb_method=DELETE"
        );
        assert_eq!(of("GET /a HTTP/1.1\r\n\r\n"), None);
        assert_eq!(of(""), None);
        // Bytes beyond `Content-Length` are ignored.
        let short = of("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nabcd").unwrap();
        assert_eq!(short.body, "__wb_post_data=YWI=");
    }
}
