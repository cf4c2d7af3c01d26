//! What survives when the process is killed.

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Place, eventually};

/// The first task leaves a mark; the second hangs while there is a file `hang`.
const TOML: &str = r#"
[tasks.first]
command = ["sh", "-c", "echo first >> done; echo 1"]
[tasks.second]
command = ["sh", "-c", "echo second >> done; while [ -e hang ]; do sleep 0.05; done; echo 2"]
"#;
const SCRIPT: &str = "const a = await Task.run(\"first\")\nconst b = await Task.run(\"second\")\nreturn a + b\n";

#[test]
fn a_run_that_was_killed_goes_on_with_the_same_command() {
    let place = Place::new(&[("sum.wf", SCRIPT), ("outlast.toml", TOML), ("hang", "")]);
    let command = ["run", "sum.wf", "--id", "sum-1", "-o", "json"];
    let mut killed = place.begin(&command);
    eventually("the second task runs", || place.read("done").contains("second"));
    kill_process(Pid::from_child(&killed), Signal::KILL).unwrap();
    assert!(!killed.wait().unwrap().success());
    std::fs::remove_file(place.path("hang")).unwrap();

    let said = place.call(&command).exits(0);
    assert_eq!(said.json()["output"], 3);
    said.complains(&["goes on after", "was begun by a process that is gone; again in"]);
    assert_eq!(place.read("done").matches("first").count(), 1, "what is recorded is not done again");
}

#[test]
fn it_is_killed_again_and_again_and_nothing_recorded_is_done_twice() {
    let toml = "[tasks.mark]\ncommand = [\"sh\", \"-c\", \"read -r n; sleep 0.05; echo $n >> done; echo $n\"]\n";
    let script = "let sum = 0\nfor (let n = 0; n < 12; n++) sum += await Task.run(\"mark\", n)\nreturn sum\n";
    let place = Place::new(&[("sum.wf", script), ("outlast.toml", toml)]);
    for kills in 1..=4 {
        let mut killed = place.begin(&["run", "sum.wf", "--id", "a"]);
        let wanted = kills * 2;
        eventually("some are done", || {
            place.read("done").lines().count() >= wanted || killed.try_wait().unwrap().is_some()
        });
        let _ = killed.kill();
        killed.wait().unwrap();
    }
    let said = place.call(&["run", "sum.wf", "--id", "a"]).exits(0);
    assert_eq!(said.out, "66\n");
    let done = place.read("done");
    // The attempt that was under way at a kill is done again, and no other.
    assert!(done.lines().count() <= 12 + 4, "{done}");
}

#[test]
fn a_file_that_another_process_has_is_refused_with_its_pid() {
    let place = Place::new(&[("sum.wf", SCRIPT), ("outlast.toml", TOML), ("hang", "")]);
    let mut owner = place.begin(&["run", "sum.wf", "--id", "sum-1"]);
    eventually("the second task runs", || place.read("done").contains("second"));
    let pid = owner.id().to_string();
    for args in [&["run", "sum.wf"][..], &["list"], &["show", "sum-1"], &["signal", "sum-1", "x"]] {
        let owned = format!("in use by process {pid}");
        place.call(args).exits(1).complains(&[&owned, "hint: "]);
    }
    std::fs::remove_file(place.path("hang")).unwrap();
    assert!(owner.wait().unwrap().success());
}
