//! What came back.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use outlast::{Error, Result};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde::Serialize;
use serde_json::{Value, json};

use super::unreachable;
use crate::code;

/// An answer, as the task's result.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    status: u16,
    /// In lower case; several of one name are joined by `, `.
    headers: BTreeMap<String, String>,
    /// JSON if it says so and is, text otherwise; null if it is neither.
    body: Value,
    /// A body that is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

/// Reads an answer to its end.
pub(super) async fn read(mut response: Response, bytes_max: usize) -> Result<Answer> {
    let (status, headers, url) = (response.status().as_u16(), header_texts(response.headers()), response.url().clone());
    let is_json = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(says_json);
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&url, error))? {
        if bytes.len() + chunk.len() > bytes_max {
            let message = format!("{} answered with more than {bytes_max} bytes", super::told(&url));
            return Err(Error::new("limit_exceeded", message).permanent());
        }
        bytes.extend_from_slice(&chunk);
    }
    let (body, body_base64) = body(bytes, is_json);
    Ok(Answer { status, headers, body, body_base64 })
}

fn header_texts(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let text = texts.entry(name.as_str().to_owned());
        text.and_modify(|text| *text = format!("{text}, {value}")).or_insert_with(|| value.into_owned());
    }
    texts
}

fn says_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

fn body(bytes: Vec<u8>, is_json: bool) -> (Value, Option<String>) {
    if is_json && let Ok(value) = serde_json::from_slice(&bytes) {
        return (value, None);
    }
    match String::from_utf8(bytes) {
        Ok(text) => (Value::String(text), None),
        Err(error) => (Value::Null, Some(BASE64_STANDARD.encode(error.as_bytes()))),
    }
}

impl Answer {
    /// Whether it is a result or an error, and whether to try again.
    pub(super) fn judge(self, told: &str, retry_on: &[u16]) -> Result<Answer> {
        let again = retry_on.contains(&self.status);
        if self.status < 400 && !again {
            return Ok(self);
        }
        let message = format!("{told} answered with status {}", self.status);
        let data = json!({
            "status": self.status,
            "headers": self.headers,
            "body": self.body,
            "body_base64": self.body_base64,
        });
        let error = Error::new(code::HTTP_STATUS, message).with_data(&data);
        let again = again || matches!(self.status, 408 | 425 | 429 | 500..);
        Err(if again { error } else { error.permanent() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_json_if_it_says_so_and_is_and_nothing_is_lost_otherwise() {
        assert_eq!(body(b"{\"a\":1}".to_vec(), true), (json!({ "a": 1 }), None));
        assert_eq!(body(b"{\"a\":1}".to_vec(), false), (json!("{\"a\":1}"), None));
        assert_eq!(body(b"{".to_vec(), true), (json!("{"), None));
        assert_eq!(body(vec![0xff, 0], false), (Value::Null, Some("/wA=".to_owned())));
        assert!(says_json("application/json; charset=utf-8") && says_json("application/problem+JSON"));
        assert!(!says_json("text/html") && !says_json("application/jsonp"));
    }
}
