//! Webhooks, signed by the library of the standard, against the real binary.

use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::place::Place;
use crate::web::{Reply, Web};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const CONFIG: &str = "[[hooks]]\nid = \"mT3k9bQx7fWz2LpR8sVn4cYd\"\nname = \"payments\"\nsecrets = [\"env:PAYMENTS_SECRET\"]\n\
                      start = \"paid\"\nrun = \"/order\"\nwait = true\n";

fn deliver(web: &Web, secret: &str, id: &str, body: &serde_json::Value) -> Reply {
    let time = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let signed = standardwebhooks::Webhook::new(secret).unwrap().sign(id, time, body.to_string().as_bytes()).unwrap();
    let time = time.to_string();
    let headers = [("webhook-id", id), ("webhook-timestamp", time.as_str()), ("webhook-signature", signed.as_str())];
    let mut text = String::new();
    web.ask("POST", "/hooks/mT3k9bQx7fWz2LpR8sVn4cYd", &headers, Some(body)).read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    Reply { status: head.split(' ').nth(1).unwrap().parse().unwrap(), body: body.to_owned() }
}

#[test]
fn a_webhook_signed_by_the_standards_library_starts_a_run_once() {
    let place =
        Place::new(&[("paid.wf", "workflow paid(order) {\n  return order.amount\n}\n"), ("outlast.toml", CONFIG)]);
    let mut command = place.command(&["serve", "--workflows", ".", "--listen", "127.0.0.1:0"]);
    command.env("PAYMENTS_SECRET", SECRET).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let web = Web::from(command.spawn().unwrap());
    let body = serde_json::json!({ "order": "order-7", "amount": 12 });
    let first = deliver(&web, SECRET, "msg-1", &body);
    assert!(matches!(first.status, 200..=202), "{first:?}");
    assert_eq!(web.result("order-7")["output"], 12);
    assert!(matches!(deliver(&web, SECRET, "msg-1", &body).status, 200..=202), "delivered twice");
    assert_eq!(web.get("/api/v1/runs").is(200).json()["runs"].as_array().unwrap().len(), 1);
    // Whoever has another secret is not heard.
    let other = serde_json::json!({ "order": "order-8", "amount": 12 });
    assert_eq!(deliver(&web, "whsec_c29tZXRoaW5nIG5ldyB0aGF0IGlzIGxvbmcgZW5vdWdo", "msg-2", &other).status, 401);
    web.get("/api/v1/runs/order-8").is(404);
}
