//! Where progress is shown: a terminal that is drawn anew, plain lines, or nowhere.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::rows::Place;

/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(100);
/// How many rows are drawn. A run may have thousands.
const ROWS_MAX: usize = 12;

/// Where progress is shown. Copies share the same place.
#[derive(Clone)]
pub(crate) struct Screen {
    shown: Arc<Shown>,
}

enum Shown {
    Terminal(Mutex<Terminal>),
    Plain,
    Nowhere,
}

struct Terminal {
    bars: MultiProgress,
    rows: BTreeMap<Place, ProgressBar>,
    /// Somebody types: nothing is drawn over it.
    is_still: bool,
}

impl Screen {
    /// On standard error: drawn if that is a terminal, as lines otherwise.
    pub(crate) fn stderr(quiet: bool) -> Screen {
        let shown = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Shown::Nowhere,
            (false, false) => Shown::Plain,
            (false, true) => Shown::Terminal(Mutex::new(Terminal {
                bars: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()),
                rows: BTreeMap::new(),
                is_still: false,
            })),
        };
        Screen { shown: Arc::new(shown) }
    }

    /// A line that stays.
    pub(crate) fn line(&self, line: &str) {
        match &*self.shown {
            Shown::Terminal(terminal) => {
                let terminal = held(terminal);
                if terminal.is_still || terminal.bars.println(line).is_err() {
                    write_line(line);
                }
            }
            Shown::Plain => write_line(line),
            Shown::Nowhere => {}
        }
    }

    /// A line that says what a terminal would draw.
    pub(crate) fn plain(&self, line: &str) {
        match &*self.shown {
            Shown::Terminal(terminal) if held(terminal).is_still => write_line(line),
            Shown::Plain => write_line(line),
            Shown::Terminal(_) | Shown::Nowhere => {}
        }
    }

    /// Draws a row as it stands now.
    pub(crate) fn draw(&self, place: &Place, text: &str) {
        let Shown::Terminal(terminal) = &*self.shown else { return };
        let mut terminal = held(terminal);
        if terminal.is_still {
            return;
        }
        if !terminal.rows.contains_key(place) {
            if terminal.rows.len() >= ROWS_MAX {
                return;
            }
            let bar = terminal.bars.add(ProgressBar::new_spinner());
            bar.set_style(spinner());
            bar.enable_steady_tick(TURN);
            terminal.rows.insert(place.clone(), bar);
        }
        if let Some(bar) = terminal.rows.get(place) {
            bar.set_message(text.to_owned());
        }
    }

    /// A row is no longer open.
    pub(crate) fn forget(&self, place: &Place) {
        if let Shown::Terminal(terminal) = &*self.shown
            && let Some(bar) = held(terminal).rows.remove(place)
        {
            bar.finish_and_clear();
        }
    }

    /// Nothing moves while somebody types, and rows are lines meanwhile.
    pub(crate) fn hold_still(&self) {
        self.clear_rows(true);
    }

    /// Draws again.
    pub(crate) fn move_on(&self) {
        if let Shown::Terminal(terminal) = &*self.shown {
            held(terminal).is_still = false;
        }
    }

    /// Takes away what is drawn.
    pub(crate) fn clear(&self) {
        self.clear_rows(false);
    }

    fn clear_rows(&self, is_still: bool) {
        let Shown::Terminal(terminal) = &*self.shown else { return };
        let mut terminal = held(terminal);
        terminal.is_still = is_still;
        for bar in std::mem::take(&mut terminal.rows).into_values() {
            bar.finish_and_clear();
        }
        let _ = terminal.bars.clear();
    }
}

fn held(terminal: &Mutex<Terminal>) -> MutexGuard<'_, Terminal> {
    terminal.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spinner() -> ProgressStyle {
    // A template that is written here and does not change.
    ProgressStyle::with_template("{spinner} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Whoever closed the stream does not want to be told.
fn write_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
