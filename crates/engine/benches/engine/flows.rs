//! Flows: a foreach against the map of code that does the same, what it keeps in memory, and what it costs to go on in it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outlast::{Ctx, Engine, Outlast, StepContext};
use outlast_core::id::{Index, Namespace, RunId, RunKey};
use outlast_core::journal::Journal;
use outlast_store::{Load, LoadFrom, Store};
use serde_json::json;

use crate::report::{Report, median};
use crate::sleepers::resident_mib;
use crate::{Place, ceiling_sqlite};

const ITEMS: usize = 10_000;
const MAP_ROUNDS: usize = 3;
/// How many run at once where it is not one.
const WIDE: usize = 100;
/// Where memory is looked at: when caches are full, and near the end.
const LOOKS: [usize; 2] = [2_000, 9_900];
const WAKES: usize = 100;
/// The same where every wake reads the whole journal.
const LONG_WAKES: usize = 10;
/// The iterations that runs stand in when they are woken.
const EARLY: usize = 10;
const QUARTER: usize = 2_500;
const LATE: usize = 9_999;

/// A foreach against a map.
pub(crate) async fn measure_map(place: &Place, report: &Report) {
    for (name, concurrency) in [("flow_map", 1), ("flow_map_wide", WIDE)] {
        let (mut flow, mut code, mut grown) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..MAP_ROUNDS {
            code.push(map(&place.fresh(&format!("{name}_code_{round}")), "code", concurrency).await);
            flow.push(map(&place.fresh(&format!("{name}_{round}")), "flow", concurrency).await);
            grown.push(flow[round].grown);
        }
        let of = |sides: &[Mapped], what: fn(&Mapped) -> f64| median(&sides.iter().map(what).collect::<Vec<_>>());
        report.against(name, of(&flow, |side| side.events), of(&code, |side| side.events), "events/s");
        let items = format!("{name}_items");
        report.against(&items, of(&flow, |side| side.items), of(&code, |side| side.items), "items/s");
        if concurrency == 1 {
            report.against("flow_memory", median(&grown), of(&code, |side| side.grown), "MiB more");
        }
    }
}

/// What it costs to go on in a foreach.
pub(crate) async fn measure_resume(place: &Place, report: &Report) {
    for collect in ["none", "last", "all"] {
        let place = place.fresh(&format!("flow_resume_{collect}"));
        let [early, late] = resume(&place, collect, [EARLY, LATE], WAKES, None).await;
        report.against(&format!("flow_resume_{collect}"), late, early, "ms p50");
        if let (Place::Sqlite(file), "all") = (&place, collect) {
            let reads: Vec<f64> = (0..LONG_WAKES).map(|_| ceiling_sqlite::read_outputs(file, 2 * LATE)).collect();
            report.against("flow_resume_all_outputs", late, median(&reads), "ms p50");
        }
    }
    let place = place.fresh("flow_replay");
    let [quarter, late] = resume(&place, "none", [QUARTER, LATE], LONG_WAKES, Some(u64::MAX)).await;
    report.against("flow_replay", late, load(&place, LATE).await, "ms p50");
    // Four times the journal: four times the time, if it is linear.
    report.against("flow_replay_linear", late, quarter, "ms p50");
}

struct Mapped {
    items: f64,
    events: f64,
    /// MiB of memory between the two looks.
    grown: f64,
}

static RESIDENT: Mutex<Vec<f64>> = Mutex::new(Vec::new());

fn look(n: usize) -> usize {
    if LOOKS.contains(&n) {
        RESIDENT.lock().unwrap().push(resident_mib());
    }
    n
}

async fn code(ctx: Ctx, (items, concurrency): (usize, usize)) -> outlast::Result<usize> {
    let each = ctx.map("each", (0..items).collect(), async |ctx: Ctx, n: usize, _| {
        ctx.step("a", async |_| Ok(look(n))).await?;
        ctx.step("b", async |_| Ok(n)).await?;
        Ok(())
    });
    Ok(each.max_concurrency(concurrency).await?.results()?.len())
}

fn foreach(concurrency: usize) -> String {
    format!(
        r#"
        flow: flow
        nodes:
          - id: each
            type: foreach
            items: "${{input}}"
            concurrency: {concurrency}
            collect: none
            body:
              - {{ id: a, type: step, step: look, with: "${{item}}" }}
              - {{ id: b, type: step, step: same, with: "${{item}}" }}
        result: "${{each.count}}"
        "#
    )
}

/// A foreach with two children that do nothing, or the map that does the same.
async fn map(place: &Place, style: &str, concurrency: usize) -> Mapped {
    let steps = |engine: Outlast| {
        let looks = |_: StepContext, n: usize| async move { Ok(look(n)) };
        engine.step("look", looks).step("same", |_: StepContext, n: usize| async move { Ok(n) })
    };
    let engine = steps(place.engine().await).workflow("code", code).flow("flow.flow.yaml", &foreach(concurrency));
    let engine = engine.start().await.unwrap();
    RESIDENT.lock().unwrap().clear();
    let begun = Instant::now();
    let run = match style {
        "code" => engine.start("code", &(ITEMS, concurrency)).id("map").await.unwrap(),
        _ => engine.start("flow", &(0..ITEMS).collect::<Vec<_>>()).id("map").await.unwrap(),
    };
    assert_eq!(run.result::<usize>().await.unwrap(), ITEMS);
    let took = begun.elapsed().as_secs_f64();
    let events = engine.run("map").unwrap().view().await.unwrap().next.0;
    engine.shutdown().await;
    let looks = RESIDENT.lock().unwrap().clone();
    Mapped { items: ITEMS as f64 / took, events: events as f64 / took, grown: looks[1] - looks[0] }
}

fn holds(collect: &str) -> String {
    format!(
        r#"
        flow: holds
        nodes:
          - id: each
            type: foreach
            items: "${{input.items}}"
            collect: {collect}
            body:
              - {{ id: a, type: step, step: small, with: "${{item}}" }}
              - {{ id: b, type: step, step: small, with: "${{item}}" }}
              - id: hold
                type: loop
                when: "${{$iteration == input.stop}}"
                collect: none
                max_iterations: 1000000
                body:
                  - {{ id: more, type: wait, signal: more }}
                  - {{ id: went, type: step, step: went }}
        "#
    )
}

/// When a run last went on.
static WENT: Mutex<Option<Instant>> = Mutex::new(None);

async fn holding(place: &Place, collect: &str, snapshot_after: Option<u64>) -> Engine {
    let small = |_: StepContext, n: usize| async move { Ok(format!("{n:030}")) };
    let went = |_: StepContext, _: serde_json::Value| async {
        *WENT.lock().unwrap() = Some(Instant::now());
        Ok(())
    };
    let engine = place.engine().await.step("small", small).step("went", went).hot_runs(0);
    let engine = match snapshot_after {
        Some(events) => engine.snapshot_after(events),
        None => engine,
    };
    engine.flow("holds.flow.yaml", &holds(collect)).start().await.unwrap()
}

/// From the wake of a run that is not in memory until its next step begins: milliseconds, the medians where it stands in one
/// iteration and in another.
async fn resume(
    place: &Place,
    collect: &str,
    stops: [usize; 2],
    wakes: usize,
    snapshot_after: Option<u64>,
) -> [f64; 2] {
    let engine = holding(place, collect, snapshot_after).await;
    for stop in stops {
        let input = json!({ "items": (0..ITEMS).collect::<Vec<_>>(), "stop": stop });
        engine.start("holds", &input).id(&stop.to_string()).await.unwrap();
        settled(&engine, stop).await;
    }
    let mut took = [Vec::new(), Vec::new()];
    for n in 0..wakes {
        for (place, stop) in stops.into_iter().enumerate() {
            *WENT.lock().unwrap() = None;
            let begun = Instant::now();
            engine.run(&stop.to_string()).unwrap().signal("more", &true, &n.to_string()).await.unwrap();
            let went = loop {
                if let Some(went) = *WENT.lock().unwrap() {
                    break went;
                }
                tokio::time::sleep(Duration::from_micros(100)).await;
            };
            took[place].push(went.duration_since(begun).as_secs_f64() * 1_000.0);
            settled(&engine, stop).await;
        }
    }
    engine.shutdown().await;
    took.map(|took| median(&took))
}

/// Until the run waits for the next signal.
async fn settled(engine: &Engine, stop: usize) {
    let run = engine.run(&stop.to_string()).unwrap();
    loop {
        // What is read beside it must not be measured.
        tokio::time::sleep(Duration::from_millis(10)).await;
        if run.status().await.unwrap() == outlast::Status::Waiting {
            return;
        }
    }
}

/// Milliseconds to load the journal of a run: its rows, and events from them, checked as a journal.
async fn load(place: &Place, stop: usize) -> f64 {
    let store: Arc<dyn Store> = place.store().await;
    let run = RunKey { namespace: Namespace::default_namespace(), id: RunId::new(stop.to_string()).unwrap() };
    let mut took = Vec::new();
    for _ in 0..LONG_WAKES {
        let begun = Instant::now();
        let from = LoadFrom::Index(Index(0));
        let loaded = store.load(vec![Load { run: run.clone(), from }]).await.remove(0).unwrap();
        let journal = Journal::load((0..).map(Index).zip(loaded.events)).unwrap();
        assert!(journal.next().0 > 8 * stop as u64);
        took.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    median(&took)
}
