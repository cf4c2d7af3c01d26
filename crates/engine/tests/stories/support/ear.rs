//! Hears what is logged.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Hears what it was told to listen to, and nothing else.
#[derive(Clone)]
pub(crate) struct Ear {
    heeds: fn(&Metadata<'_>) -> bool,
    heard: Arc<Mutex<Vec<String>>>,
}

struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

impl Ear {
    pub(crate) fn for_what(heeds: fn(&Metadata<'_>) -> bool) -> Ear {
        Ear { heeds, heard: Arc::default() }
    }

    /// Listens while something is told. What was heard.
    pub(crate) fn during(&self, told: impl FnOnce()) -> Vec<String> {
        tracing::subscriber::with_default(self.clone(), told);
        std::mem::take(&mut *self.heard.lock().unwrap())
    }
}

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        (self.heeds)(metadata)
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut words = Words(String::new());
        event.record(&mut words);
        self.heard.lock().unwrap().push(words.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
