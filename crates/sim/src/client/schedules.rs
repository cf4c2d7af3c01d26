//! What clients do with schedules.

use std::time::Duration;

use outlast::{EngineError, NewSchedule, ScheduleHandle, Triggered};
use outlast_core::time::Timestamp;

use super::Client;
use crate::case::{Act, Case, schedule_id};
use crate::interpret::{Input, WORKFLOW};
use crate::ledger::{Told, Wish};

impl Client {
    /// Does something with a schedule; whether there is one.
    pub(super) async fn act_on_schedule(&self, case: &Case, act: &Act) -> bool {
        let Some(schedule) = act.schedule().filter(|schedule| *schedule < case.schedules.len()) else { return false };
        let Ok(handle) = self.engine.schedule_handle(&schedule_id(schedule)) else { return false };
        match act {
            Act::PutSchedule { other, .. } => {
                let put = self.new_schedule(case, schedule, *other).put();
                self.wish(schedule, Wish::Put, async { put.await.map(|_| String::new()) }).await;
            }
            Act::PauseSchedule(_) => {
                let pause = async { handle.pause("a pause").await.map(|()| String::new()) };
                self.wish(schedule, Wish::Pause, pause).await;
            }
            Act::ResumeSchedule(_) => {
                let resume = async { handle.resume().await.map(|_| String::new()) };
                self.wish(schedule, Wish::Resume, resume).await;
            }
            Act::TriggerSchedule(_) => self.wish(schedule, Wish::Trigger, trigger(&handle)).await,
            Act::BackfillSchedule { back, long, .. } => {
                let from = self.world.now().as_millis() - i64::try_from(*back).unwrap_or(0);
                let to = from + i64::try_from(*long).unwrap_or(0);
                let backfill = async {
                    let found = handle.backfill(Timestamp::from_millis(from), Timestamp::from_millis(to)).await?;
                    Ok(found.to_string())
                };
                self.wish(schedule, Wish::Backfill { from, to }, backfill).await;
            }
            Act::RemoveSchedule(_) => {
                let remove = async { handle.remove().await.map(|_| String::new()) };
                self.wish(schedule, Wish::Remove, remove).await;
            }
            _ => return false,
        }
        true
    }

    fn new_schedule(&self, case: &Case, schedule: usize, other: bool) -> NewSchedule<'_> {
        let table = &case.schedules[schedule];
        let new = self.engine.schedule(&schedule_id(schedule)).start(WORKFLOW, &Input::of(table.tree.clone()));
        let new = match table.expression(other) {
            Some(expression) => new.cron(&expression),
            None => new.every(table.interval(other)).offset(Duration::from_millis(table.offset)),
        };
        let new = new.overlap(table.overlap).catch_up(Duration::from_millis(table.catch_up));
        let new = new.jitter(Duration::from_millis(table.jitter));
        match table.remaining {
            Some(remaining) => new.remaining(remaining),
            None => new,
        }
    }

    /// No instant of a schedule comes any more; what waits does, also what waited while it was paused.
    pub(crate) async fn end_schedule(&self, case: &Case, schedule: usize) -> Result<(), EngineError> {
        let handle = self.engine.schedule_handle(&schedule_id(schedule))?;
        match handle.describe().await {
            Ok(_) => {}
            Err(EngineError::UnknownSchedule(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
        self.wish(schedule, Wish::Resume, async { handle.resume().await.map(|_| String::new()) }).await;
        self.new_schedule(case, schedule, false).until(self.world.now()).put().await.map(drop)
    }

    /// Schedules for which something still waits.
    pub(crate) async fn waiting_schedules(&self) -> Vec<String> {
        let schedules = self.engine.schedules().await.unwrap_or_default();
        schedules.into_iter().filter(|view| !view.waiting.is_empty()).map(|view| view.id.to_string()).collect()
    }

    async fn wish(&self, schedule: usize, wish: Wish, request: impl Future<Output = Result<String, EngineError>>) {
        let number = self.ledger.wishes_for(schedule, wish);
        let told = match request.await {
            Ok(said) => Told::Done(said),
            Err(EngineError::Store(error)) if error.is_retryable() => Told::Unknown,
            Err(error) => Told::Refused(error.code().to_owned()),
        };
        self.ledger.wish_told(number, told);
    }
}

/// Wants a run at once; its id, if it is started or will be.
async fn trigger(handle: &ScheduleHandle) -> Result<String, EngineError> {
    Ok(match handle.trigger_now().await? {
        Triggered::Started(run) => run.id().to_string(),
        Triggered::Waits => "waits".to_owned(),
        Triggered::Skipped => "skipped".to_owned(),
    })
}
