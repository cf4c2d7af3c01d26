//! Somebody outside who starts orders, answers them, and notes what was acknowledged.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast::{Engine, Outlast};

use crate::member::order;

/// Orders that may be open at the same time.
const OPEN_MAX: usize = 40;

/// What was acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acked {
    pub(crate) started: Vec<u64>,
    pub(crate) answered: Vec<u64>,
    /// Orders whose result somebody was shown.
    pub(crate) seen: Vec<u64>,
}

pub(crate) fn id(number: u64) -> String {
    format!("order-{number}")
}

/// What order `number` is answered with.
pub(crate) fn answer(number: u64) -> u64 {
    number * 1_000
}

/// Starts orders and answers them, until it is told to stop. Whatever fails is tried again under the same id, as a careful
/// caller does.
pub(crate) async fn trade(url: &str, stop: &AtomicBool, acked: &Mutex<Acked>) {
    let engine = patiently(|| Outlast::postgres(url).without_loops().workflow("order", order).start()).await;
    let mut number = 0;
    let mut open: Vec<u64> = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        if open.len() < OPEN_MAX {
            number += 1;
            patiently(|| async { engine.start("order", &number).id(&id(number)).await }).await;
            acked.lock().unwrap().started.push(number);
            tell(&engine, number).await;
            acked.lock().unwrap().answered.push(number);
            open.push(number);
        }
        let mut still = Vec::new();
        for number in open {
            let run = engine.run(&id(number)).unwrap();
            match run.status().await {
                Ok(status) if status.is_terminal() => acked.lock().unwrap().seen.push(number),
                Ok(_) | Err(_) => still.push(number),
            }
        }
        open = still;
        tokio::time::sleep(Duration::from_millis(if open.len() < OPEN_MAX { 5 } else { 100 })).await;
    }
    engine.shutdown().await;
}

/// Answers an order.
async fn tell(engine: &Engine, number: u64) {
    let run = engine.run(&id(number)).unwrap();
    let answer = answer(number);
    patiently(|| run.signal("answer", &answer, "the answer")).await;
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
