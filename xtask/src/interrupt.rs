//! Signals become an ordinary error, so that one path cleans up: the `Drop` of whatever is running.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

static RECEIVED: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// A signal asked us to end.
#[derive(Debug)]
pub(crate) struct Interrupted {
    pub(crate) signal: i32,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted by signal {}", self.signal)
    }
}

impl std::error::Error for Interrupted {}

/// From now on, signals are remembered instead of ending the process on the spot.
pub(crate) fn watch() -> anyhow::Result<()> {
    let received = RECEIVED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let number = usize::try_from(signal).context("a signal number is positive")?;
        signal_hook::flag::register_usize(signal, Arc::clone(received), number)
            .with_context(|| format!("cannot watch for signal {signal}"))?;
    }
    Ok(())
}

/// The last signal received, if any.
pub(crate) fn received() -> Option<i32> {
    let number = RECEIVED.get()?.load(Ordering::SeqCst);
    i32::try_from(number).ok().filter(|number| *number != 0)
}

/// Whether the only signal so far is the Ctrl-C that the terminal sends to the whole foreground group.
pub(crate) fn is_ctrl_c(signal: i32) -> bool {
    signal == SIGINT
}

/// Fails once a signal was received.
pub(crate) fn check() -> Result<(), Interrupted> {
    match received() {
        Some(signal) => Err(Interrupted { signal }),
        None => Ok(()),
    }
}
