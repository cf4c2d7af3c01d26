//! What tasks and the engine log, as lines between the rows.

use std::fmt::Write as _;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::Screen;
use crate::palette::Palette;

/// What the task `log` writes to.
const LOG_TASK: &str = "outlast_tasks::log";
/// Warnings about texts: those of the file that is run are shown with their lines.
const TEXTS: &str = "outlast::text";

/// Shows what is logged from now on.
pub(crate) fn show_logs(screen: Screen) {
    let layer = Lines { screen, palette: Palette::stderr() };
    // Somebody else may have been first; then it is shown there.
    let _ = tracing_subscriber::registry().with(layer).try_init();
}

struct Lines {
    screen: Screen,
    palette: Palette,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        let of_task = metadata.target() == LOG_TASK && *metadata.level() <= Level::INFO;
        of_task
            || (*metadata.level() <= Level::WARN
                && metadata.target().starts_with("outlast")
                && metadata.target() != TEXTS)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut read = Read::default();
        event.record(&mut read);
        let of_task = event.metadata().target() == LOG_TASK;
        let Read { message, fields, others } = read;
        let fields = if of_task { fields } else { others };
        let fields = if fields.is_empty() { fields } else { format!("  {}", self.palette.dim(&fields)) };
        let sign = match *event.metadata().level() {
            Level::ERROR => self.palette.bad("!"),
            Level::WARN => self.palette.warn("!"),
            Level::INFO | Level::DEBUG | Level::TRACE => self.palette.info("·"),
        };
        self.screen.line(&format!("{sign} {message}{fields}"));
    }
}

#[derive(Default)]
struct Read {
    message: String,
    /// What the author said beside it.
    fields: String,
    /// What the engine said beside it.
    others: String,
}

impl Visit for Read {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing into a text does not fail.
        match field.name() {
            "message" => drop(write!(self.message, "{value:?}")),
            "fields" => drop(write!(self.fields, "{value:?}")),
            name => drop(write!(self.others, "{}{name}={value:?}", if self.others.is_empty() { "" } else { " " })),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}
