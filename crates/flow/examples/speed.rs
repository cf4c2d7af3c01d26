//! How fast flows are folded: `cargo run --release -p outlast-flow --example speed`. A stage without a store, so that only the
//! flow itself is measured.

#![allow(clippy::disallowed_methods)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use outlast_core::Bytes;
use outlast_core::commit::Snapshot;
use outlast_core::event::Event;
use outlast_core::id::{Index, TaskId};
use outlast_core::operation::{Operation, Operations, Provided};
use outlast_core::program::{Input, Program, Progress};
use outlast_core::time::Timestamp;
use outlast_flow::{Flow, FlowLimits, FlowProgram, RunInfo, derive};

fn flow(collect: &str, concurrency: usize) -> Flow {
    let text = format!(
        "flow: speed\nnodes:\n  - id: each\n    type: foreach\n    items: \"${{input}}\"\n    collect: {collect}\n    concurrency: {concurrency}\n    body:\n      - {{ id: a, type: task, task: noop, with: \"${{item.sku}}\" }}\n      - {{ id: b, type: task, task: noop, with: {{ n: \"${{$iteration}}\" }} }}\n"
    );
    Flow::parse("speed.flow.yaml", &text).unwrap_or_else(|found| panic!("{found}"))
}

fn info() -> RunInfo {
    RunInfo { run_id: "run".to_owned(), workflow: "speed".to_owned(), tokens: Arc::new(|_| String::new()) }
}

/// The journal of a run, and snapshots when so many iterations were done.
fn play(flow: &Flow, input: &Bytes, at: &[u64]) -> (Vec<Event>, Vec<(usize, Snapshot)>) {
    let mut ops = Operations::new(Provided { now: Timestamp::EPOCH, seed: 1 });
    let mut program = flow.program(info(), input.clone(), FlowLimits::default());
    let (mut journal, mut snapshots) = (Vec::new(), Vec::new());
    let (mut held, mut due) = (VecDeque::new(), VecDeque::new());
    let mut done = 0;
    program.resume(Input::Start, &mut ops);
    loop {
        let asked = ops.take().into_iter().map(|requested| requested.operation);
        held.extend(asked.filter(|operation| !matches!(operation, Operation::Await { .. })));
        match held.pop_front() {
            Some(Operation::Mark { event }) => {
                done += u64::from(matches!(*event, Event::ContainerIterationCompleted { .. }));
                if feed(&mut program, &mut ops, &mut journal, *event) {
                    return (journal, snapshots);
                }
            }
            Some(Operation::ScheduleTask { key, name, queue, args, .. }) => {
                let task = TaskId::new(key.as_str()).expect("an id");
                due.push_back(Event::TaskFinished {
                    key: key.clone(),
                    task: task.clone(),
                    log: None,
                    result: Bytes::from("null"),
                });
                journal.push(Event::TaskScheduled { key, task, name, queue, detached: false, plan: None, args });
                if held.is_empty() && at.contains(&done) && snapshots.iter().all(|(seen, _)| *seen != done as usize) {
                    snapshots.extend(program.snapshot().map(|snapshot| (done as usize, snapshot)));
                }
            }
            Some(_) => {}
            None => {
                let event = due.pop_front().expect("something is open");
                feed(&mut program, &mut ops, &mut journal, event);
            }
        }
    }
}

fn feed(program: &mut FlowProgram, ops: &mut Operations, journal: &mut Vec<Event>, event: Event) -> bool {
    let index = Index(journal.len() as u64);
    let progress = program.resume(Input::Fact { index, event: &event }, ops);
    journal.push(event);
    progress != Progress::Blocked
}

fn main() {
    let items: Vec<String> = (0..10_000).map(|n| format!("{{\"sku\":\"item-{n}\",\"price\":{n}}}")).collect();
    let input = Bytes::from(format!("[{}]", items.join(",")));
    for (collect, concurrency) in [("none", 1), ("last", 1), ("all", 1), ("none", 100)] {
        let flow = flow(collect, concurrency);
        let start = Instant::now();
        let (journal, snapshots) = play(&flow, &input, &[10, 5_000, 9_999]);
        let took = start.elapsed();
        println!(
            "collect: {collect}, concurrency: {concurrency}: {} events in {took:.0?}, {:.0} events/s",
            journal.len(),
            journal.len() as f64 / took.as_secs_f64()
        );
        let start = Instant::now();
        derive(&flow, &info(), &input, &journal).expect("a journal of the flow");
        println!("  derived in {:.0?}", start.elapsed());
        let start = Instant::now();
        let records: Vec<_> = journal.iter().map(|event| event.encode(Timestamp::EPOCH)).collect();
        println!("  encoded in {:.0?}", start.elapsed());
        let start = Instant::now();
        let loaded = outlast_core::journal::Journal::load(
            records.into_iter().enumerate().map(|(index, record)| (Index(index as u64), record)),
        );
        println!("  loaded as a journal in {:.0?}", start.elapsed());
        assert!(loaded.is_ok());
        for (done, snapshot) in snapshots {
            let start = Instant::now();
            flow.restore(info(), &input, FlowLimits::default(), &snapshot).expect("a good snapshot");
            println!(
                "  at item {done}: snapshot of {} bytes, restored in {:.1?}",
                snapshot.data.len(),
                start.elapsed()
            );
        }
    }
}
