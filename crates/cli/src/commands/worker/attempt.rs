//! One attempt at a task: its handler, the signs of life beside it, and what is said about it in the end.

use std::sync::Arc;
use std::time::Duration;

use outlast::{Failure, Handler, OfferedAttempt, TaskOffer, Timestamp};
use outlast_server::dto;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};

use super::{Stage, Work};
use crate::api::Refused;

/// How long it is tried to say what came of an attempt, also beyond its lease: whether it still counts is for the server to say.
const TELL_TIME: Duration = Duration::from_secs(60);
/// How long to wait before it is said again, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// So many tries to say it fit into one lease: a server that comes back while the task is ours must hear it in time.
const TELL_TRIES: u32 = 10;
/// How often progress is shown, at most.
const SHOW_TIME: Duration = Duration::from_secs(1);

/// An attempt that is under way.
pub(super) struct Attempt {
    work: Arc<Work>,
    token: String,
    task: String,
    attempt: OfferedAttempt,
    /// How long the task stays ours after a sign of life.
    span: Duration,
    silence: Option<Duration>,
    deadline: Option<Instant>,
}

/// Why an attempt is over before its handler is.
enum Over {
    /// It is somebody else's.
    Lost,
    /// Nobody wants it, or the worker stops.
    Unwanted,
    /// It took too long, or was silent for too long.
    Late(String),
}

impl Attempt {
    /// Makes it, and says what came of it.
    pub(super) async fn make(work: Arc<Work>, handler: Handler, offer: dto::TaskOffer) {
        let (token, task) = (offer.token.clone(), offer.task.clone());
        let Some(known) = read(&offer) else {
            tracing::error!(task, "an offer cannot be read; is the server of another version?");
            return Attempt::give_back(work, offer).await;
        };
        let silence = known.silence;
        let span = silence.map_or(work.lease, |silence| silence.min(work.lease));
        // Only differences of the server's instants are used: the clocks of two machines are not compared.
        let deadline = known.deadline.map(|deadline| Instant::now() + deadline.since(known.now));
        let attempt = handler.offered(&known);
        Attempt { work, token, task, attempt, span, silence, deadline }.see_through(offer.attempt).await;
    }

    /// The attempt is not made: others may have the task at once.
    pub(super) async fn give_back(work: Arc<Work>, offer: dto::TaskOffer) {
        say(&work, &offer.task, "give-back", &dto::TaskToken { token: offer.token }).await;
    }

    async fn see_through(self, number: u32) {
        tracing::debug!(task = self.task, attempt = number, "a task begins");
        let ended = tokio::select! {
            Some(result) = self.attempt.run() => Ok(result),
            over = self.keep() => Err(over),
        };
        self.attempt.stop();
        let Attempt { work, token, task, .. } = self;
        match ended {
            Ok(Ok(result)) => {
                let result = serde_json::from_slice::<Box<RawValue>>(&result).ok();
                let complete = dto::CompleteTask { token: token.clone(), result };
                if let Some(refused) = say(&work, &task, "complete", &complete).await.filter(Refused::is_about_it) {
                    // The server does not take it and never will; the next attempt would come to the same.
                    let error = view(&Failure::new("invalid_output", refused.to_string()).permanent());
                    say(&work, &task, "fail", &dto::FailTask { token, error }).await;
                }
            }
            Ok(Err(failure)) => {
                say(&work, &task, "fail", &dto::FailTask { token, error: view(&failure) }).await;
            }
            Err(Over::Late(message)) => {
                // The server knows it as well, but looks only when somebody claims.
                let error = view(&Failure::timeout(format!("attempt {number} {message}")));
                say(&work, &task, "fail", &dto::FailTask { token, error }).await;
            }
            Err(Over::Unwanted) => {
                say(&work, &task, "give-back", &dto::TaskToken { token }).await;
            }
            Err(Over::Lost) => tracing::warn!(task, "an attempt is over: the task is somebody else's"),
        }
    }

    /// Gives signs of life until the attempt is over.
    async fn keep(&self) -> Over {
        let (mut beaten, mut ours_until) = (Instant::now(), Instant::now() + self.span);
        loop {
            tokio::select! {
                () = sleep_until(Instant::now() + SHOW_TIME.min(self.span / 6)) => {}
                () = self.work.until(Stage::Stopping) => return Over::Unwanted,
            }
            if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Over::Late("took too long".to_owned());
            }
            if let Some(silence) = self.silence.filter(|silence| self.attempt.silent_for() >= *silence) {
                return Over::Late(format!("gave no sign of life for {silence:?}"));
            }
            let progress = self.attempt.take_progress();
            // Whether a handler lives that may not be silent for long is the handler's to say.
            let lives =
                self.silence.is_none_or(|silence| silence > self.span || self.attempt.silent_for() < beaten.elapsed());
            if progress.is_none() && !(lives && beaten.elapsed() >= self.span / 3) {
                continue;
            }
            let sent = Instant::now();
            let progress = progress.and_then(|progress| serde_json::from_slice::<Box<RawValue>>(&progress).ok());
            let beat = dto::HeartbeatTask { token: self.token.clone(), progress };
            match self.work.api.try_post::<dto::TaskBeat>(&["work", "heartbeat"], &beat).await {
                Ok(beat) if beat.cancelled => return Over::Unwanted,
                // From when it was sent: the server counts from somewhere between.
                Ok(_) => (beaten, ours_until) = (sent, sent + self.span),
                Err(refused) if !refused.passes() => return Over::Lost,
                Err(_) if ours_until <= Instant::now() => return Over::Lost,
                Err(refused) => tracing::warn!(task = self.task, error = %refused, "a sign of life was not heard"),
            }
        }
    }
}

/// Says what came of an attempt until it is heard; why not, if it is refused.
async fn say(work: &Work, task: &str, what: &str, body: &impl serde::Serialize) -> Option<Refused> {
    let (since, mut pause) = (Instant::now(), PAUSES.0);
    let longest = PAUSES.1.min(work.lease / TELL_TRIES);
    loop {
        match work.api.try_post::<serde_json::Value>(&["work", what], body).await {
            Ok(_) => {
                tracing::debug!(task, what, "a task ended");
                return None;
            }
            Err(refused) if refused.passes() && since.elapsed() < TELL_TIME => {
                sleep_until(Instant::now() + pause).await;
                pause = (pause * 2).min(longest);
            }
            Err(refused) => {
                tracing::warn!(task, what, error = %refused, "what came of a task was not taken");
                return Some(refused);
            }
        }
    }
}

fn view(failure: &Failure) -> dto::FailureView {
    let data = failure.data.as_ref().and_then(|data| serde_json::from_slice(data.as_ref()).ok());
    dto::FailureView {
        code: failure.code.clone(),
        message: failure.message.clone(),
        data,
        permanent: failure.permanent,
        trace: failure.trace.clone(),
    }
}

/// An offer as the engine knows it.
fn read(offer: &dto::TaskOffer) -> Option<TaskOffer> {
    let at = |text: &str| Some(Timestamp::from_millis(text.parse::<jiff::Timestamp>().ok()?.as_millisecond()));
    Some(TaskOffer {
        token: offer.token.clone(),
        namespace: outlast::Namespace::new(&offer.namespace).ok()?,
        id: outlast::TaskId::new(&offer.task).ok()?,
        name: outlast::TaskName::new(&offer.name).ok()?,
        queue: outlast::QueueName::new(&offer.queue).ok()?,
        run: offer.run.as_ref().and_then(|run| outlast_core::id::RunId::new(run).ok()),
        args: offer.args.get().as_bytes().to_vec().into(),
        attempt: offer.attempt,
        idempotency_key: offer.idempotency_key.clone(),
        until: at(&offer.until)?,
        deadline: offer.deadline.as_deref().and_then(at),
        silence: offer.silence_ms.map(Duration::from_millis),
        now: at(&offer.now)?,
    })
}
