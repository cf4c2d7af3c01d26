//! Somebody outside who starts orders, answers them, thinks better of some, and notes what was acknowledged.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast::{Delivered, Engine, EngineError, Outlast};

use crate::member::order;
use crate::{lingering, ticking};

/// Orders that may be open at the same time.
const OPEN_MAX: usize = 40;
/// An order that is cancelled is so at the latest so long after its start.
const SECOND_THOUGHTS_MAX_MS: u64 = 400;

/// What was acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acked {
    pub(crate) started: Vec<u64>,
    pub(crate) answered: Vec<u64>,
    pub(crate) cancelled: Vec<u64>,
    /// Orders that had ended when they were to be cancelled.
    pub(crate) too_late: Vec<u64>,
    /// Orders whose end somebody was shown.
    pub(crate) seen: Vec<u64>,
    /// Runs that stay until they are cancelled, and were.
    pub(crate) lingered: Vec<u64>,
    pub(crate) schedules: Vec<ticking::Put>,
}

/// What becomes of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    /// Cancelled before it is answered: it cannot have completed.
    CancelledFirst,
    /// Cancelled when it is answered, which may be too late.
    AnsweredFirst,
}

pub(crate) fn fate(number: u64) -> Fate {
    match number % 5 {
        2 => Fate::CancelledFirst,
        4 => Fate::AnsweredFirst,
        _ => Fate::Answered,
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Answer,
    Cancel,
}

/// An order that is under way, and what is still to be done about it.
struct Open {
    number: u64,
    acts: VecDeque<(Instant, Act)>,
}

impl Open {
    fn new(number: u64) -> Open {
        let now = Instant::now();
        let later = now + Duration::from_millis(number * 37 % SECOND_THOUGHTS_MAX_MS);
        let acts = match fate(number) {
            Fate::Answered => vec![(now, Act::Answer)],
            Fate::CancelledFirst => vec![(later, Act::Cancel), (later, Act::Answer)],
            Fate::AnsweredFirst => vec![(now, Act::Answer), (later, Act::Cancel)],
        };
        Open { number, acts: acts.into() }
    }

    fn next_due(&mut self) -> Option<Act> {
        let (due, act) = *self.acts.front()?;
        (due <= Instant::now()).then(|| self.acts.pop_front()).map(|_| act)
    }
}

pub(crate) fn id(number: u64) -> String {
    format!("order-{number}")
}

/// What order `number` is answered with.
pub(crate) fn answer(number: u64) -> u64 {
    number * 1_000
}

/// Asks for all there is to ask for, until it is told to stop. Whatever fails is tried again under the same id, as a careful
/// caller does.
pub(crate) async fn ask(url: &str, stop: &AtomicBool, acked: &Mutex<Acked>) {
    let outlast = || Outlast::postgres(url).without_loops().workflow("order", order);
    let outlast = || outlast().workflow("linger", lingering::linger).workflow("tick", ticking::tick);
    let engine = patiently(|| outlast().start()).await;
    tokio::join!(trade(&engine, stop, acked), lingering::ask(&engine, stop, acked), ticking::ask(&engine, stop, acked));
    engine.shutdown().await;
}

/// Starts orders, answers them and cancels some.
async fn trade(engine: &Engine, stop: &AtomicBool, acked: &Mutex<Acked>) {
    let mut number = 0;
    let mut open: Vec<Open> = Vec::new();
    while !stop.load(Ordering::SeqCst) || open.iter().any(|order| !order.acts.is_empty()) {
        if open.len() < OPEN_MAX && !stop.load(Ordering::SeqCst) {
            number += 1;
            patiently(|| async { engine.start("order", &number).id(&id(number)).await }).await;
            acked.lock().unwrap().started.push(number);
            open.push(Open::new(number));
        }
        let mut still = Vec::new();
        for mut order in open {
            while let Some(act) = order.next_due() {
                perform(engine, order.number, act, acked).await;
            }
            let status = engine.run(&id(order.number)).unwrap().status().await;
            match status {
                Ok(status) if status.is_terminal() && order.acts.is_empty() => {
                    acked.lock().unwrap().seen.push(order.number);
                }
                Ok(_) | Err(_) => still.push(order),
            }
        }
        open = still;
        tokio::time::sleep(Duration::from_millis(if open.len() < OPEN_MAX { 5 } else { 100 })).await;
    }
}

async fn perform(engine: &Engine, number: u64, act: Act, acked: &Mutex<Acked>) {
    let run = engine.run(&id(number)).unwrap();
    match act {
        Act::Answer => {
            let answer = answer(number);
            if told(|| run.signal("answer", &answer, "the answer")).await {
                acked.lock().unwrap().answered.push(number);
            }
        }
        Act::Cancel => {
            let in_time = told(|| async { run.cancel("enough").id("the end").await }).await;
            let mut acked = acked.lock().unwrap();
            let noted = if in_time { &mut acked.cancelled } else { &mut acked.too_late };
            noted.push(number);
        }
    }
}

/// Tells a run something until that is acknowledged; whether it had not ended before.
pub(crate) async fn told<F: Future<Output = Result<Delivered, EngineError>>>(tell: impl Fn() -> F) -> bool {
    let tell = || async {
        match tell().await {
            Err(EngineError::Lost { .. }) => Ok(false),
            answer => answer.map(|_| true),
        }
    };
    patiently(tell).await
}

/// Tries until it works.
pub(crate) async fn patiently<T, E: std::fmt::Display, F: Future<Output = Result<T, E>>>(ask: impl Fn() -> F) -> T {
    let mut tries = 0;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) if tries == 600 => panic!("it never worked: {error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
        tries += 1;
    }
}
