//! What a run does, while somebody looks.

mod logs;
mod rows;
mod screen;

use std::time::Duration;

use outlast::{Event, Failure, TaskState, TaskView, Timestamp};
use tokio::time::Instant;

pub(crate) use logs::show_logs;
use rows::{Change, Ending, Row, Rows};
pub(crate) use rows::{What, question_of};
pub(crate) use screen::Screen;

use crate::palette::Palette;
use crate::words::{length, now, short};

/// How much of an error is shown on its line.
const ERROR_LETTERS_MAX: usize = 160;

/// What a run waits for somebody to do, by its journal.
pub(crate) fn open_questions(run: &str, journal: &[Event]) -> Vec<What> {
    let mut rows = Rows::default();
    let at = Instant::now();
    for event in journal {
        rows.apply(run, "", event, at);
    }
    rows.all().filter(|row| row.what.is_for_people()).map(|row| row.what.clone()).collect()
}

/// What runs do, as rows that come and go.
pub(crate) struct Progress {
    rows: Rows,
    screen: Screen,
    palette: Palette,
    /// Since when anybody looks: by our own clock, until the store's is known.
    since: Timestamp,
    began: Instant,
}

impl Progress {
    pub(crate) fn new(screen: Screen) -> Progress {
        Progress { rows: Rows::default(), screen, palette: Palette::stderr(), since: now(), began: Instant::now() }
    }

    /// What time it is by the clock of the store, which says when something happened.
    pub(crate) fn set_now(&mut self, now: Timestamp) {
        let passed = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.since = Timestamp::from_millis(now.as_millis().saturating_sub(passed));
    }

    /// Whether something happened since anybody looks. What is only told, and not kept, happens now.
    pub(crate) fn is_new(&self, at: Option<Timestamp>) -> bool {
        at.is_none_or(|at| at >= self.since)
    }

    /// Something happened. What was recorded before anybody looked is only remembered.
    pub(crate) fn happened(&mut self, run: &str, prefix: &str, event: &Event, is_new: bool) {
        let change = self.rows.apply(run, prefix, event, Instant::now());
        let palette = self.palette;
        match change {
            Change::Nothing => {}
            Change::Opened(row) => {
                if is_new && let Some(line) = row.opening() {
                    self.screen.plain(&format!("{} {line}", palette.dim("·")));
                }
            }
            Change::Said(line) if is_new => self.screen.line(&format!("{} {line}", palette.info("·"))),
            Change::Said(_) => {}
            Change::Closed(row, ending) => {
                self.screen.forget(&row.place);
                if is_new {
                    self.screen.line(&self.closing(&row, &ending));
                }
            }
        }
    }

    fn closing(&self, row: &Row, ending: &Ending) -> String {
        let took = self.palette.dim(&length(row.since.elapsed()));
        let label = &row.label;
        match ending {
            Ending::Done(note) if note.is_empty() => format!("{} {label}  {took}", self.palette.good("✓")),
            Ending::Done(note) => format!("{} {label}  {note}  {took}", self.palette.good("✓")),
            Ending::Failed(error) => {
                format!("{} {label}  {}  {took}", self.palette.bad("✗"), short(error, ERROR_LETTERS_MAX))
            }
            Ending::TimedOut => format!("{} {label}  timed out  {took}", self.palette.warn("✗")),
            Ending::Cancelled => format!("{} {label}  not wanted any more", self.palette.dim("-")),
        }
    }

    /// How attempts at a task stand: the journal does not know.
    pub(crate) fn task_stands(&mut self, task: &TaskView) {
        let failure = task.note.as_deref().and_then(|note| serde_json::from_slice::<Failure>(note).ok());
        let is_orphan = task.state == TaskState::Claimed && task.since.is_some_and(|since| since < self.since);
        let Some(row) = self.rows.task_mut(&task.id) else { return };
        if is_orphan {
            // It began in a process that is gone. It is free again when that one's claim is over.
            let is_news = row.until.is_none();
            row.until = task.until;
            if is_news && let Some(until) = task.until {
                let left = length(until.since(now()));
                let line = format!(
                    "{} {}  was begun by a process that is gone; again in {left}",
                    self.palette.warn("↻"),
                    row.label
                );
                self.screen.line(&line);
            }
            return;
        }
        // The one that runs has not failed yet.
        let failed = task.attempt - u32::from(task.state == TaskState::Claimed && task.attempt > 0);
        row.until = (task.state == TaskState::Delayed).then_some(task.available_at);
        if let Some(failure) = failure
            && failed > row.failed
        {
            row.failed = failed;
            let again = task.available_at.since(now());
            let error = short(&failure.to_string(), ERROR_LETTERS_MAX);
            let when = if again.is_zero() { String::new() } else { format!("; again in {}", length(again)) };
            let line = format!("{} {}  attempt {failed} failed: {error}{when}", self.palette.warn("↻"), row.label);
            self.screen.line(&line);
        }
    }

    /// Whether a task is waited for.
    pub(crate) fn has_tasks(&self) -> bool {
        self.rows.all().any(|row| matches!(row.what, What::Task { .. }))
    }

    /// What is open, the oldest first.
    pub(crate) fn open(&self) -> impl Iterator<Item = (&str, &What)> {
        self.rows.all().map(|row| (row.place.0.as_str(), &row.what))
    }

    /// Draws what is open, as it stands now.
    pub(crate) fn draw(&self) {
        for row in self.rows.all() {
            let since = length(row.since.elapsed());
            let left = row.until.map(|until| until.since(now())).filter(|left| !left.is_zero());
            self.screen.draw(&row.place, &format!("{}  {}", row.label, self.palette.dim(&row.standing(&since, left))));
        }
    }

    pub(crate) fn screen(&self) -> &Screen {
        &self.screen
    }
}

impl Row {
    /// What is said of a row while it is open.
    fn standing(&self, since: &str, left: Option<Duration>) -> String {
        let attempt = if self.failed == 0 { String::new() } else { format!("attempt {}, ", self.failed + 1) };
        match (&self.what, left) {
            (What::Timer, Some(left)) => format!("{} left", length(left)),
            (What::Task { .. }, Some(left)) => format!("{attempt}in {}", length(left)),
            (_, Some(left)) => format!("{attempt}{since}, {} left", length(left)),
            (_, None) => format!("{attempt}{since}"),
        }
    }
}
