//! Webhooks, signed by those who send them.

use outlast_server::{Hooks, Options, ServerConfig};
use reqwest::Method;
use serde_json::{Value, json};

use crate::house::{Answer, House, now};

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_c29tZXRoaW5nIG5ldyB0aGF0IGlzIGxvbmcgZW5vdWdo";
const CONFIG: &str = r#"
[[hooks]]
id = "start-start-start-start"
name = "orders"
secrets = ["env:OLD", "env:NEW"]
start = "echo"
run = "/order"
wait = true

[[hooks]]
id = "signal-signal-signal-si"
name = "payments"
secrets = ["env:NEW"]
signal = "paid"
run = "/order"

[[hooks]]
id = "mapped-mapped-mapped-ma"
name = "mapped"
secrets = ["env:NEW"]
start = "echo"
run = "`order-${body.data.id}`"
map = "({ id: body.data.id, sum: body.data.lines.map(line => line.price).reduce((a, b) => a + b, 0) })"
wait = true

[[hooks]]
id = "pauses-pauses-pauses-pa"
name = "pauses"
secrets = ["env:NEW"]
start = "twice"
run = "/order"
wait = true

[[hooks]]
id = "driven-driven-driven-dr"
name = "driven"
secrets = ["env:NEW"]
signal = "paid"
run = "/order"
wait = true

[[hooks]]
id = "closed-closed-closed-cl"
name = "closed"
start = "echo"
"#;

async fn house() -> House {
    let env = |name: &str| match name {
        "OLD" => Some(OLD.to_owned()),
        "NEW" => Some(NEW.to_owned()),
        _ => None,
    };
    let config = ServerConfig::from_toml(CONFIG, env).unwrap();
    let hooks = Hooks::new(config.hooks).unwrap();
    let house = House::with(Options { hooks, metrics: false, ..Options::default() }).await;
    house.script("echo.wf", "workflow echo(input) { return input }").await;
    house.script("waits.wf", "workflow waits(input) { return await Signal.next(\"paid\") }").await;
    let twice = "workflow twice(input) { return [await Signal.next(\"paid\"), await Signal.next(\"paid\")] }";
    house.script("twice.wf", twice).await;
    house
}

/// As the library of the standard does it.
fn sign(secret: &str, id: &str, time: i64, body: &[u8]) -> String {
    standardwebhooks::Webhook::new(secret).unwrap().sign(id, time, body).unwrap()
}

async fn send(house: &House, hook: &str, id: &str, time: i64, signature: &str, body: &str) -> Answer {
    let request = house.request(Method::POST, &format!("/hooks/{hook}")).body(body.to_owned());
    let request = request.header("webhook-id", id).header("webhook-timestamp", time.to_string());
    Answer::of(request.header("webhook-signature", signature).send().await.unwrap()).await
}

fn seconds() -> i64 {
    now().as_millis() / 1_000
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_starts_a_run_and_replies_when_it_has_ended() {
    let house = house().await;
    let (time, body) = (seconds(), r#"{ "order": "o-1", "amount": 12.50 }"#);
    for secret in [OLD, NEW] {
        let signature = sign(secret, "m1", time, body.as_bytes());
        let answer = send(&house, "start-start-start-start", "m1", time, &signature, body).await.ok();
        assert_eq!((answer["run"].as_str(), answer["status"].as_str()), (Some("o-1"), Some("completed")));
        assert_eq!(answer["new"], secret == OLD, "delivered twice, with any secret: one run");
    }
    assert_eq!(house.result("o-1").await["output"], json!({ "order": "o-1", "amount": 12.5 }));
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_waits_replies_at_the_next_pause_and_at_the_end() {
    let house = house().await;
    let time = seconds();
    let tell = async |hook: &str, message: String, body: &str| {
        let signature = sign(NEW, &message, time, body.as_bytes());
        send(&house, hook, &message, time, &signature, body).await.ok()
    };
    for number in 0..20 {
        let body = format!(r#"{{"order":"p-{number}","number":{number}}}"#);
        let started = tell("pauses-pauses-pauses-pa", format!("{number}-start"), &body).await;
        assert_eq!((&started["new"], &started["status"]), (&json!(true), &json!("waiting")), "{started}");
        // What was told it is behind it when the reply comes, however soon that is.
        let first = tell("driven-driven-driven-dr", format!("{number}-first"), &body).await;
        assert_eq!((&first["new"], &first["status"]), (&json!(false), &json!("waiting")), "{first}");
        let events = house.get(&format!("/api/v1/runs/p-{number}/events")).await.ok()["events"].clone();
        let told = events.as_array().unwrap().iter().filter(|event| event["kind"] == "SIGNAL_RESOLVED").count();
        assert_eq!(told, 1, "{events}");
        let second = tell("driven-driven-driven-dr", format!("{number}-second"), &body).await;
        assert_eq!(second["status"], "completed", "{second}");
        let again = tell("driven-driven-driven-dr", format!("{number}-second"), &body).await;
        assert_eq!((&again["outcome"], &again["status"]), (&json!("duplicate"), &json!("completed")), "{again}");
    }
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expressions_say_which_run_and_what_it_is_given() {
    let house = house().await;
    let (time, hook) = (seconds(), "mapped-mapped-mapped-ma");
    let body = r#"{"data":{"id":7,"lines":[{"price":2},{"price":3}]}}"#;
    let answer = send(&house, hook, "m1", time, &sign(NEW, "m1", time, body.as_bytes()), body).await.ok();
    assert_eq!(answer["run"], "order-7");
    assert_eq!(house.result("order-7").await["output"], json!({ "id": 7, "sum": 5 }));
    // A body that the expression makes nothing of is its sender's mistake.
    for body in ["{}", r#"{"data":{"id":8,"lines":7}}"#, "null"] {
        let answer = send(&house, hook, "m2", time, &sign(NEW, "m2", time, body.as_bytes()), body).await;
        assert_eq!(answer.refused(422), "validation_error");
    }
    let env = |_: &str| Some(NEW.to_owned());
    let wrong = CONFIG.replace("`order-${body.data.id}`", "env.HOME");
    assert!(ServerConfig::from_toml(&wrong, env).unwrap_err().to_string().contains("env.HOME"));
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_delivered_twice_is_one_signal() {
    let house = house().await;
    house.start(json!({ "workflow": "waits", "id": "o-2" })).await;
    let (time, body) = (seconds(), r#"{"order":"o-2"}"#);
    let signature = sign(NEW, "m7", time, body.as_bytes());
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        let answer = send(&house, "signal-signal-signal-si", "m7", time, &signature, body).await.ok();
        outcomes.push(answer["outcome"].clone());
    }
    assert_eq!(outcomes[1..], ["duplicate", "duplicate"]);
    assert_eq!(house.result("o-2").await["output"]["order"], "o-2");
    let last = send(&house, "signal-signal-signal-si", "m7", time, &signature, body).await.ok();
    assert_eq!(last["outcome"], "duplicate", "also after the run's end");
    house.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_signed_by_somebody_who_may_is_refused() {
    let house = house().await;
    let (time, body) = (seconds(), r#"{"order":"o-3"}"#);
    let good = sign(NEW, "m1", time, body.as_bytes());
    let hook = "signal-signal-signal-si";
    let (stale, future) = (time - 301, time + 320);
    let cases = [
        (hook, "m1", time, sign(OLD, "m1", time, body.as_bytes()), body, 401),
        (hook, "m2", time, good.clone(), body, 401),
        (hook, "m1", time + 1, good.clone(), body, 401),
        (hook, "m1", time, good.clone(), r#"{"order": "o-3"}"#, 401),
        (hook, "m1", stale, sign(NEW, "m1", stale, body.as_bytes()), body, 401),
        (hook, "m1", future, sign(NEW, "m1", future, body.as_bytes()), body, 401),
        ("closed-closed-closed-cl", "m1", time, good.clone(), body, 401),
        ("closed-closed-closed-cl", "m1", time, sign("whsec_", "m1", time, body.as_bytes()), body, 401),
        ("nobody-nobody-nobody-no", "m1", time, good.clone(), body, 404),
        (hook, "m1", time, good.clone(), body, 404),
    ];
    for (hook, id, time, signature, body, status) in cases {
        let answer = send(&house, hook, id, time, &signature, body).await;
        let code = answer.refused(status);
        assert!(matches!(code, "bad_signature" | "not_found"), "{answer:?}");
    }
    let naked = house.request(Method::POST, &format!("/hooks/{hook}")).body(body);
    assert_eq!(Answer::of(naked.send().await.unwrap()).await.refused(401), "bad_signature");
    for (body, status) in [("not json", 400), (r#"{"order":[]}"#, 422), ("", 400), ("[]", 422)] {
        let signature = sign(NEW, "m1", time, body.as_bytes());
        assert_eq!(send(&house, hook, "m1", time, &signature, body).await.status.as_u16(), status, "{body}");
    }
    let runs = house.get("/api/v1/runs").await.ok();
    assert_eq!(runs["runs"], Value::Array(Vec::new()));
    house.leave().await;
}
