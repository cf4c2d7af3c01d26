//! Schedules: each instant starts one run, whoever is dead or frozen when its time comes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use outlast::{Ctx, Engine, FiringOutcome, Overlap, RunView, SCHEDULE_ATTRIBUTE, Status, Timestamp};

use crate::client::{Acked, patiently};
use crate::judge::PATIENCE;
use crate::witness::{self, Begun};

const EVERY: Duration = Duration::from_secs(1);
/// Between asking for a schedule and its first instant: mostly it is acknowledged by then.
const LEAD: Duration = Duration::from_secs(2);
/// From a schedule's first instant to its last. All of them are among those whose outcome it remembers.
const SPAN: Duration = Duration::from_secs(8);

/// A schedule that was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Put {
    id: String,
    overlap: Overlap,
    from: Timestamp,
    until: Timestamp,
    acked_at: Timestamp,
}

impl Put {
    /// The instants it has.
    fn instants(&self) -> impl Iterator<Item = Timestamp> {
        let every = i64::try_from(EVERY.as_millis()).unwrap();
        let first = self.from.as_millis().div_euclid(every) * every;
        let first = if first < self.from.as_millis() { first + every } else { first };
        let (first, until) = (Timestamp::from_millis(first), self.until);
        std::iter::successors(Some(first), |at| Some(*at + EVERY)).take_while(move |at| *at <= until)
    }

    fn run(&self, at: Timestamp) -> String {
        format!("{}-{}", self.id, jiff::Timestamp::from_millisecond(at.as_millis()).unwrap())
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

/// Rings once at most, and tells under which key; then it takes a while.
pub(crate) async fn tick(ctx: Ctx, (): ()) -> outlast::Result<Option<String>> {
    let ring = ctx.step("ring", async |step| {
        witness::begun(step.idempotency_key(), step.attempt());
        // Long enough to be killed in the middle of it.
        tokio::time::sleep(Duration::from_millis(150)).await;
        Ok(step.idempotency_key().to_owned())
    });
    let rung = match ring.at_most_once().await {
        Ok(key) => Some(key),
        Err(error) if error.code() == "step_in_doubt" => None,
        Err(error) => return Err(error),
    };
    ctx.sleep(Duration::from_millis(150)).await?;
    Ok(rung)
}

/// Puts two schedules at a time, one after the other.
pub(crate) async fn ask(engine: &Engine, stop: &AtomicBool, acked: &Mutex<Acked>) {
    let mut round = 0;
    while !stop.load(Ordering::SeqCst) {
        round += 1;
        let from = now() + LEAD;
        for (name, overlap) in [("allow", Overlap::Allow), ("buffer", Overlap::BufferAll)] {
            let (id, until) = (format!("tick-{round}-{name}"), from + SPAN);
            let put = || async {
                let schedule = engine.schedule(&id).every(EVERY).from(from).until(until).overlap(overlap);
                schedule.start("tick", &()).put().await
            };
            patiently(put).await;
            acked.lock().unwrap().schedules.push(Put { id, overlap, from, until, acked_at: now() });
        }
        while !stop.load(Ordering::SeqCst) && now() < from + SPAN {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The runs of each schedule, when it has no more to do and all of them have ended.
pub(crate) async fn ends(engine: &Engine, acked: &Acked, begun: Instant) -> Vec<(Put, Vec<RunView>)> {
    let mut ends = Vec::new();
    for put in &acked.schedules {
        let mut runs = come_to_an_end(engine, put, begun).await;
        runs.sort_by_key(|view| view.run.id.to_string());
        ends.push((put.clone(), runs));
    }
    ends
}

/// Each instant of each schedule has started one run, and no other run was started.
pub(crate) async fn judge(engine: &Engine, schedules: &[(Put, Vec<RunView>)], witnessed: &[Begun]) {
    let mut rings: BTreeMap<&str, usize> = BTreeMap::new();
    for Begun { key, .. } in witnessed.iter().filter(|begun| begun.key.contains("tick-")) {
        *rings.entry(key).or_default() += 1;
    }
    for (key, times) in &rings {
        assert_eq!(*times, 1, "{key} rings once at most: its run was started twice");
    }
    for (put, runs) in schedules {
        examine(engine, put, runs, &rings).await;
    }
    let runs: usize = schedules.iter().map(|(_, runs)| runs.len()).sum();
    println!("{} schedules, {runs} runs, {} of them rang", schedules.len(), rings.len());
    assert!(rings.len() <= runs, "somebody rang for a run that is not there");
}

async fn examine(engine: &Engine, put: &Put, runs: &[RunView], rings: &BTreeMap<&str, usize>) {
    let started: Vec<String> = runs.iter().map(|view| view.run.id.to_string()).collect();
    let allowed: BTreeSet<String> = put.instants().map(|at| put.run(at)).collect();
    // What was due before the schedule was acknowledged may be left out.
    let due: BTreeSet<String> = put.instants().filter(|at| *at > put.acked_at).map(|at| put.run(at)).collect();
    let distinct: BTreeSet<String> = started.iter().cloned().collect();
    assert_eq!(started.len(), distinct.len(), "{}: an instant has two runs: {started:?}", put.id);
    assert!(distinct.is_subset(&allowed), "{} fired at other instants: {started:?}", put.id);
    assert!(distinct.is_superset(&due), "{} has lost an instant: {started:?} of {due:?}", put.id);
    for view in runs {
        let id = view.run.id.as_str();
        assert_eq!(view.status, Status::Completed, "{id}");
        if let Some(key) = engine.run(id).unwrap().result::<Option<String>>().await.unwrap() {
            assert_eq!(rings.get(key.as_str()), Some(&1), "{id} has rung, and nobody heard it");
        }
    }
    if put.overlap == Overlap::BufferAll {
        for pair in runs.windows(2) {
            assert!(pair[0].finished_at.unwrap() <= pair[1].created_at, "{} overlaps itself: {pair:?}", put.id);
        }
    }
}

/// The runs of a schedule that has no more to do, when all of them have ended.
async fn come_to_an_end(engine: &Engine, put: &Put, begun: Instant) -> Vec<RunView> {
    let handle = engine.schedule_handle(&put.id).unwrap();
    loop {
        let said = handle.describe().await.unwrap_or_else(|error| panic!("{} was acknowledged: {error}", put.id));
        let runs = engine.list().attribute(SCHEDULE_ATTRIBUTE, &put.id).page_size(200).await.unwrap().runs;
        let over = said.next_times.is_empty() && said.waiting.is_empty() && said.until < Some(now());
        if over && runs.iter().all(|view| view.status.is_terminal()) {
            let lost = said.recent.iter().find(|firing| !matches!(firing.outcome, FiringOutcome::Started(_)));
            assert_eq!((lost, said.skipped), (None, 0), "{}", put.id);
            assert_eq!(usize::try_from(said.started).unwrap(), runs.len(), "{} has counted", put.id);
            return runs;
        }
        assert!(begun.elapsed() < PATIENCE, "{} does not end: {said:?}, {runs:?}", put.id);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
