//! Events as a line of text: kind, key, and what matters of the rest.

use outlast_core::event::Event;
use outlast_core::failure::Failure;

/// `STEP_FINISHED greet "Hello"`, `TIMER_STARTED nap 2000 ms`, `SCOPE_FAILED checkout declined`.
pub(super) fn event(event: &Event) -> String {
    let mut line = event.kind().name().to_owned();
    for part in event.key().map(ToString::to_string).into_iter().chain(rest(event)) {
        line.push(' ');
        line.push_str(&part);
    }
    line
}

fn rest(event: &Event) -> Vec<String> {
    match event {
        Event::StepStarted { attempt, .. } => vec![attempted(*attempt)],
        Event::StepFinished { result, attempts, .. } => vec![json(result), attempted(*attempts)],
        Event::StepFailed { error, attempts, .. } => vec![code(error), attempted(*attempts)],
        Event::StepRetryScheduled { error, attempt, .. } => vec![code(error), attempted(*attempt)],
        Event::TimerStarted { duration_ms, .. } => vec![duration_ms.map_or_else(String::new, millis)],
        Event::CallbackCreated { deadline, heartbeat_ms, .. } => {
            let deadline = deadline.map(|_| "deadline".to_owned());
            deadline.into_iter().chain(heartbeat_ms.map(|silence| format!("heartbeat {}", millis(silence)))).collect()
        }
        Event::CallbackResolved { payload, .. } => vec![json(payload)],
        Event::ChildStarted { workflow, .. } => vec![workflow.to_string()],
        Event::ChildFinished { result, .. } => vec![json(result)],
        Event::ConditionChecked { attempt, met, state, next_at, .. } => {
            let next = next_at.map(|_| "again".to_owned());
            let met = met.then(|| "met".to_owned());
            [json(state), attempted(*attempt)].into_iter().chain(met).chain(next).collect()
        }
        Event::ScopeStarted { total, .. } => total.iter().map(|total| format!("of {total}")).collect(),
        Event::ScopeFinished { result, replay_inside, reason, .. } => {
            let inside = replay_inside.then(|| "replay_inside".to_owned());
            result.iter().map(json).chain(inside).chain(reason.clone()).collect()
        }
        Event::CallbackFailed { error, .. }
        | Event::ChildFailed { error, .. }
        | Event::ScopeFailed { error, .. }
        | Event::RunErrored { error } => vec![code(error)],
        Event::RunFinished { output } => vec![json(output)],
        other => vec![format!("{other:?}")].into_iter().filter(|_| other.key().is_none()).collect(),
    }
}

fn attempted(attempt: u32) -> String {
    format!("({attempt})")
}

fn code(error: &Failure) -> String {
    error.code.clone()
}

fn millis(millis: impl std::fmt::Display) -> String {
    format!("{millis} ms")
}

fn json(payload: &bytes::Bytes) -> String {
    String::from_utf8_lossy(payload).into_owned()
}
