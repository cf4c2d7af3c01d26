//! The stories that are interrupted everywhere.

use std::rc::Rc;
use std::sync::Arc;

use outlast_core::commit::{Control, Status};
use outlast_core::event::{Event, Kind};
use outlast_store::Store;
use outlast_store::invariants::{Verdict, World};

use crate::actors::{INSTANTS, nemesis, scheduler, sweeper, worker};
use crate::client::{Act, client};
use crate::driver::Driver;
use crate::program::CLEANUP;
use crate::stage::{Actor, Port, Stage};

/// Who takes part beside the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    drivers: usize,
    sweepers: usize,
    workers: usize,
    schedulers: usize,
    /// Leases lapse in the middle of turns.
    nemesis: bool,
    /// Deadlines come at once.
    eager: bool,
    snapshots: bool,
}

const ALONE: Cast =
    Cast { drivers: 1, sweepers: 1, workers: 0, schedulers: 0, nemesis: false, eager: false, snapshots: false };
const WITH_WORKER: Cast = Cast { workers: 1, ..ALONE };

/// A story, and how it must end.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) script: Arc<[Act]>,
    pub(crate) cast: Cast,
    pub(crate) verify: fn(&Ended<'_>) -> Verdict,
    /// Fewer calls than this mean that the story no longer tells what it should.
    pub(crate) calls_min: u64,
    /// What must have happened at least once, over all interruptions.
    pub(crate) sometimes: &'static [&'static str],
    /// Whether PostgreSQL tells it too.
    pub(crate) everywhere: bool,
}

impl Scenario {
    /// The actors of one life of the process; the client first.
    pub(crate) fn actors(
        &self,
        stage: &Rc<Stage>,
        store: &Arc<dyn Store>,
        bare: &Arc<dyn Store>,
        life: usize,
    ) -> Vec<Actor> {
        let port = || Port::new(stage.clone(), store.clone(), bare.clone());
        let mut actors: Vec<Actor> = vec![Box::pin(client(port(), self.script.clone()))];
        for number in 0..self.cast.drivers {
            let driver = Driver::new(port(), &format!("node-{number}-{life}"), self.cast.snapshots);
            actors.push(Box::pin(driver.play()));
        }
        for _ in 0..self.cast.sweepers {
            actors.push(Box::pin(sweeper(port(), self.cast.eager)));
        }
        for number in 0..self.cast.workers {
            actors.push(Box::pin(worker(port(), format!("worker-{number}-{life}"))));
        }
        for _ in 0..self.cast.schedulers {
            actors.push(Box::pin(scheduler(port())));
        }
        if self.cast.nemesis {
            actors.push(Box::pin(nemesis(port())));
        }
        actors
    }
}

/// How a story ended.
pub(crate) struct Ended<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) world: &'a World,
}

impl Ended<'_> {
    /// What the run returned.
    fn output(&self, run: &str) -> Option<String> {
        match self.world.events(&self.stage.run(run)).pop()? {
            Event::RunFinished { output } => Some(String::from_utf8_lossy(&output).into_owned()),
            _ => None,
        }
    }

    fn returned(&self, run: &str, expected: &[&str]) -> Verdict {
        match self.output(run) {
            Some(output) if expected.contains(&output.as_str()) => Ok(()),
            output => Err(format!("{run} should return one of {expected:?} and returned {output:?}")),
        }
    }

    fn kinds(&self, run: &str) -> Vec<Kind> {
        self.world.events(&self.stage.run(run)).iter().map(Event::kind).collect()
    }

    fn cancelled_after_cleanup(&self, run: &str) -> Verdict {
        let events = self.world.events(&self.stage.run(run));
        let cleaned = events.iter().any(|event| event.key().is_some_and(|key| key.as_str() == CLEANUP));
        let asked = self.kinds(run).contains(&Kind::CancelRequested);
        let ended = self.kinds(run).last() == Some(&Kind::RunCancelled);
        if cleaned && asked && ended { Ok(()) } else { Err(format!("{run} was not cancelled properly: {events:?}")) }
    }
}

const ENDED: Act = Act::UntilEnded { run: "r" };

const fn start(workflow: &'static str) -> Act {
    Act::Start { run: "r", workflow }
}

const fn pay(id: &'static str) -> Act {
    Act::Signal { run: "r", name: "pay", id }
}

const fn ask(control: Control, id: &'static str) -> Act {
    Act::Ask { run: "r", control, id }
}

const fn open(at: &'static str) -> Act {
    Act::UntilOpen { run: "r", at }
}

fn story(name: &'static str, script: &[Act], verify: fn(&Ended<'_>) -> Verdict) -> Scenario {
    let script = script.into();
    Scenario { name, script, cast: ALONE, verify, calls_min: 12, sometimes: &["zombie"], everywhere: false }
}

/// All of them.
pub(crate) fn scenarios() -> Vec<Scenario> {
    [journal_stories(), signal_stories(), answer_stories(), work_stories(), operator_stories()].concat()
}

fn journal_stories() -> Vec<Scenario> {
    vec![
        Scenario {
            everywhere: true,
            ..story("three_steps", &[start("three"), ENDED], |end| end.returned("r", &["charge,pack,ship"]))
        },
        story("sleep_fired_by_the_sweep", &[start("sleeper"), ENDED], |end| end.returned("r", &["charge,slept,pack"])),
        Scenario {
            cast: Cast { sweepers: 0, ..ALONE },
            ..story("own_timer_fired_in_the_commit", &[start("keeper"), ENDED], |end| {
                end.returned("r", &["charge,slept,pack"])
            })
        },
        Scenario {
            cast: Cast { eager: true, ..ALONE },
            sometimes: &["rejected", "zombie"],
            ..story("own_timer_against_the_sweep", &[start("keeper"), Act::Idle { steps: 3 }, ENDED], |end| {
                end.returned("r", &["charge,slept,pack"])
            })
        },
        story("end_over_open_operations", &[start("hasty"), ENDED], |end| end.returned("r", &["left,pack"])),
        Scenario {
            cast: Cast { snapshots: true, ..ALONE },
            sometimes: &["loaded from a snapshot", "zombie"],
            ..story("snapshot_and_tail_equal_the_journal", &[start("bulky"), ENDED], |end| {
                end.returned("r", &["a,b,slept,c"])
            })
        },
        Scenario {
            cast: Cast { drivers: 2, nemesis: true, ..ALONE },
            sometimes: &["fenced", "zombie"],
            everywhere: true,
            ..story("two_drivers_fight_for_one_run", &[start("bulky"), ENDED], |end| {
                end.returned("r", &["a,b,slept,c"])
            })
        },
    ]
}

fn signal_stories() -> Vec<Scenario> {
    const MIXED: &[Act] = &[
        start("payments"),
        pay("p1"),
        pay("p1"),
        Act::Signal { run: "r", name: "noise", id: "n1" },
        open("second"),
        pay("p2"),
        pay("p1"),
        pay("p2"),
        ENDED,
        pay("p2"),
    ];
    // One signal with every call of the driver: some come between its look at the inbox and the end of its turn.
    const STREAM: &[Act] = &[start("chain"), pay("p1"), pay("p2"), pay("p3"), pay("p4"), ENDED];
    const AIMED: &[Act] = &[
        start("payments"),
        Act::Aim { run: "r", at: "second", name: "pay", id: "a1" },
        Act::Aim { run: "r", at: "second", name: "pay", id: "a2" },
        open("first"),
        pay("p1"),
        ENDED,
    ];
    const ROLLING: &[Act] = &[start("rolling"), pay("p1"), pay("p2"), pay("p3"), ENDED];
    const WITH_START: &[Act] = &[
        Act::StartWith { run: "r", workflow: "payments", signals: &[("pay", "p1")] },
        Act::StartWith { run: "r", workflow: "payments", signals: &[("pay", "p1"), ("pay", "p2")] },
        ENDED,
    ];
    vec![
        Scenario {
            everywhere: true,
            ..story("early_and_late_signals_with_duplicates", MIXED, |end| end.returned("r", &["charge,p1,p2,pack"]))
        },
        story("signals_at_every_moment", STREAM, |end| end.returned("r", &["p1,p2,p3,p4"])),
        Scenario {
            sometimes: &["signal lost", "zombie"],
            ..story("aimed_signal_before_its_wait", AIMED, |end| end.returned("r", &["charge,p1,a1,pack"]))
        },
        story("continue_as_new_with_buffered_signals", ROLLING, |end| {
            let rolled = end.kinds("r").iter().filter(|kind| **kind == Kind::RunContinued).count();
            if rolled != 1 {
                return Err(format!("it continued {rolled} times"));
            }
            end.returned("r", &["p2"])
        }),
        story("signal_with_start", WITH_START, |end| end.returned("r", &["charge,p1,p2,pack"])),
    ]
}

fn answer_stories() -> Vec<Scenario> {
    const APPROVE: Act = Act::Approve { run: "r", at: "ok", id: "ann" };
    const RACED: &[Act] = &[start("decision"), open("ok"), APPROVE, ENDED];
    const MIDDLE: &[Act] = &[start("decision"), open("ok"), Act::Idle { steps: 3 }, APPROVE, ENDED];
    const LATE: &[Act] = &[start("decision"), open("ok"), Act::Idle { steps: 8 }, APPROVE, ENDED];
    const BEAT: Act = Act::Beat { run: "r", at: "call" };
    const CALLED: &[Act] = &[
        start("calling"),
        open("call"),
        BEAT,
        BEAT,
        Act::Idle { steps: 4 },
        Act::CallBack { run: "r", at: "call", id: "bob" },
        ENDED,
    ];
    let decided: fn(&Ended<'_>) -> Verdict = |end| end.returned("r", &["charge,ann,pack", "charge,timeout,pack"]);
    vec![
        Scenario {
            cast: Cast { eager: true, ..ALONE },
            sometimes: &["answered"],
            everywhere: true,
            ..story("approval_before_its_timeout", RACED, decided)
        },
        Scenario {
            cast: Cast { eager: true, ..ALONE },
            sometimes: &["answered", "too late", "rejected"],
            ..story("approval_against_timeout", MIDDLE, decided)
        },
        Scenario {
            cast: Cast { eager: true, ..ALONE },
            sometimes: &["too late"],
            ..story("approval_after_its_timeout", LATE, decided)
        },
        Scenario {
            sometimes: &["answered", "too late"],
            ..story("callback_with_heartbeat", CALLED, |end| end.returned("r", &["bob,pack", "timeout,pack"]))
        },
    ]
}

fn work_stories() -> Vec<Scenario> {
    const SCHEDULED: &[Act] = &[
        Act::Schedule { id: "nightly" },
        Act::UntilEnded { run: "nightly-0" },
        Act::UntilEnded { run: "nightly-1" },
        Act::UntilEnded { run: "nightly-2" },
    ];
    vec![
        Scenario {
            cast: WITH_WORKER,
            ..story("task_with_a_retry_then_success", &[start("retried"), ENDED], |end| {
                end.returned("r", &["charge,worked,pack"])
            })
        },
        Scenario {
            cast: Cast { workers: 2, ..ALONE },
            sometimes: &["late result", "zombie"],
            ..story("task_whose_worker_dies", &[start("deserted"), ENDED], |end| end.returned("r", &["worked,pack"]))
        },
        Scenario {
            everywhere: true,
            ..story("parent_with_two_children", &[start("family"), ENDED], |end| {
                end.returned("r", &["[leaf;leaf],pack"])
            })
        },
        Scenario {
            cast: Cast { schedulers: 2, ..ALONE },
            ..story("schedule_starts_one_run_per_instant", SCHEDULED, |end| {
                let runs = end.world.runs.len() as i64;
                if runs == INSTANTS { Ok(()) } else { Err(format!("{runs} runs were started")) }
            })
        },
    ]
}

fn operator_stories() -> Vec<Scenario> {
    const PAUSED: &[Act] = &[
        start("patient"),
        open("first"),
        ask(Control::Pause, "stop"),
        Act::Until { run: "r", status: Status::Paused },
        pay("p1"),
        ask(Control::Resume, "go"),
        ENDED,
    ];
    const BREATH: &[Act] =
        &[start("patient"), ask(Control::Pause, "stop"), ask(Control::Resume, "go"), pay("p1"), ENDED];
    const CANCELLED: &[Act] = &[start("long"), open("nap"), ask(Control::Cancel, "enough"), ENDED];
    const PAUSED_AND_CANCELLED: &[Act] =
        &[start("stubborn"), ask(Control::Pause, "stop"), ask(Control::Cancel, "enough"), ENDED];
    const RETAINED: &[Act] = &[
        start("family"),
        Act::Start { run: "other", workflow: "heir" },
        ENDED,
        Act::UntilOpen { run: "other", at: "first" },
        Act::Retain { runs: &["r", "r-left", "r-right"] },
        Act::Forget { runs: &["r", "r-left", "r-right"] },
        Act::Signal { run: "other", name: "pay", id: "p1" },
        Act::UntilEnded { run: "other" },
    ];
    vec![
        story("pause_then_signal_then_resume", PAUSED, |end| end.returned("r", &["p1,pack"])),
        story("pause_and_resume_in_one_breath", BREATH, |end| end.returned("r", &["p1,pack"])),
        Scenario {
            sometimes: &["cancelled", "zombie"],
            ..story("cancel_with_cleanup", CANCELLED, |end| {
                // Where actors take turns at random, the sleep may be over first.
                end.returned("r", &["charge,slept,pack"]).or_else(|_| end.cancelled_after_cleanup("r"))
            })
        },
        story("cancel_in_the_middle_of_a_pause", PAUSED_AND_CANCELLED, |end| end.cancelled_after_cleanup("r")),
        story("retention_of_a_tree", RETAINED, |end| {
            if end.world.runs.contains_key(&end.stage.run("other-only")) {
                return end.returned("other", &["leaf,p1"]);
            }
            Err("the child of a live run was deleted".to_owned())
        }),
    ]
}
