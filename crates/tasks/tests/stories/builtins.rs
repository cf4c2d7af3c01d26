//! `noop` and `log`.

use std::sync::{Arc, Mutex};

use outlast_tasks::{Options, builtins};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::perform;

/// Issue: "`noop` (returns its arguments)".
#[tokio::test]
async fn noop_gives_back_what_it_is_given() {
    for value in [json!(null), json!([1, "ü", { "a": null }]), json!(u64::MAX)] {
        assert_eq!(perform(builtins(Options::default()), "noop", &value).await.unwrap(), value);
    }
}

#[tokio::test]
async fn log_gives_null_and_refuses_what_it_does_not_know() {
    let log = async |args: Value| perform(builtins(Options::default()), "log", &args).await;
    for level in ["trace", "debug", "info", "warn", "error"] {
        let line = json!({ "level": level, "message": "paid", "fields": { "euros": 7, "to": ["a", "ü"] } });
        assert_eq!(log(line).await.unwrap(), Value::Null);
    }
    assert_eq!(log(json!({ "message": "paid" })).await.unwrap(), Value::Null);
    let error = log(json!({ "level": "loud", "message": "paid" })).await.unwrap_err();
    error.says("validation_error", &["unknown variant `loud`", "`warn`"]);
    assert!(error.permanent);
    log(json!({ "text": "paid" })).await.unwrap_err().says("validation_error", &["unknown field `text`", "`message`"]);
}

/// Hears what is logged.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<String>>>);

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "outlast_tasks::log"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        struct Fields(String);
        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!(" {}={value:?}", field.name()));
            }
        }
        let mut fields = Fields(event.metadata().level().to_string());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn log_writes_a_line_with_its_level_and_fields() {
    let ear = Ear::default();
    tracing::subscriber::set_global_default(ear.clone()).unwrap();
    let line = json!({ "level": "warn", "message": "paid {late}", "fields": { "euros": 7, "by": "ü" } });
    perform(builtins(Options::default()), "log", &line).await.unwrap();
    let expected = "WARN message=paid {late} run=\"run-1\" task=\"run-1/0/__task-log-0\" \
                    fields=\"{\\\"by\\\":\\\"ü\\\",\\\"euros\\\":7}\"";
    let heard: Vec<String> = ear.0.lock().unwrap().iter().filter(|line| line.contains("{late}")).cloned().collect();
    assert_eq!(heard, [expected]);
}
