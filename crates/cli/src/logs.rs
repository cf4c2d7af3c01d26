//! What a server logs: one line of JSON each, for those who gather logs.

use std::fmt::Debug;
use std::io::Write;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::words::{instant, now};

/// Writes what is logged from now on to standard error.
pub(crate) fn write_json(level: Level) {
    // Somebody else may have been first; then it is written there.
    let _ = tracing_subscriber::registry().with(Json { level }).try_init();
}

struct Json {
    level: Level,
}

impl<S: Subscriber> Layer<S> for Json {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        // Of what others log only what is wrong: libraries tell of every connection.
        let level = if metadata.target().starts_with("outlast") { self.level } else { self.level.min(Level::WARN) };
        *metadata.level() <= level
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let line = line(event);
        // Whoever closed standard error wants no more.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }
}

fn line(event: &Event<'_>) -> Value {
    let mut fields = Fields::default();
    event.record(&mut fields);
    let level = event.metadata().level().as_str().to_lowercase();
    let mut line = Map::new();
    line.insert("at".to_owned(), instant(now()).into());
    line.insert("level".to_owned(), level.into());
    line.insert("target".to_owned(), event.metadata().target().into());
    // What a field is called must not hide what every line has.
    fields.0.retain(|name, _| !line.contains_key(name));
    line.extend(fields.0);
    Value::Object(line)
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}
