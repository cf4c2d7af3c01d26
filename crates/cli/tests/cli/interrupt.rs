//! Ctrl-C.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Place, Said, eventually};

const TOML: &str =
    "[tasks.slow]\ncommand = [\"sh\", \"-c\", \"echo x >> begun; while [ -e hang ]; do sleep 0.05; done; echo 2\"]\n";

fn interrupted(signal: Signal) {
    let place = Place::new(&[("a.wf", "return await Task.run(\"slow\")"), ("outlast.toml", TOML), ("hang", "")]);
    let child = place.begin(&["run", "a.wf", "--id", "a", "--database", "sqlite:my runs.db"]);
    eventually("the task runs", || !place.read("begun").is_empty());
    let since = Instant::now();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let said: Said = child.wait_with_output().unwrap().into();
    let said = said.exits(130).complains(&[
        "a is safe",
        "outlast run a.wf --id a --database 'sqlite:my runs.db'",
        "outlast cancel a",
    ]);
    assert_eq!(said.out, "");
    assert!(since.elapsed() < Duration::from_secs(30));

    std::fs::remove_file(place.path("hang")).unwrap();
    let again = place.call(&["run", "a.wf", "--id", "a", "--database", "sqlite:my runs.db"]).exits(0);
    assert_eq!(again.out, "2\n");
}

#[test]
fn an_interrupted_run_says_how_it_goes_on_and_does() {
    interrupted(Signal::INT);
}

#[test]
fn so_does_one_that_is_asked_to_end() {
    interrupted(Signal::TERM);
}

#[test]
fn an_interrupted_run_can_be_cancelled() {
    let place = Place::new(&[("a.wf", "await Timer.delay(\"1h\")")]);
    let child = place.begin(&["run", "a.wf", "--id", "a"]);
    eventually("it began", || place.path(".outlast/outlast.db").exists());
    std::thread::sleep(Duration::from_millis(500));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let said: Said = child.wait_with_output().unwrap().into();
    said.exits(130);
    place.call(&["cancel", "a", "--reason", "not needed"]).exits(0).complains(&["it is cancelled"]);
    place.call(&["run", "a.wf", "--id", "a"]).exits(5).complains(&["✗ cancelled", "not needed"]);
}
