//! Small lives, each about one thing, in which every call to the store is made to fail once.

mod tasks;
mod texts;

use serde_json::json;

use crate::case::{Act, Aim, Case, Fails, Fault, Options, Programs, Role, Snapshots, Timed, has_tasks};
use crate::tree::{Batch, Call, Child, Group, How, Kin, Last, Made, Tree, Wait, Work};
use crate::written::Written;
use outlast::ClosePolicy;

/// One thing that can happen.
pub struct Scenario {
    /// What it is about.
    pub name: &'static str,
    /// What the runs do.
    pub runs: Vec<Tree>,
    /// Workflows that are text.
    pub written: Vec<Written>,
    /// What clients do, beside starting them.
    pub acts: Vec<Timed<Act>>,
    /// What goes wrong, beside one call.
    pub faults: Vec<Timed<Fault>>,
    /// Runs a process drives at most.
    pub runs_max: usize,
}

impl Scenario {
    /// The scenario as a case.
    pub fn case(&self) -> Case {
        let starts = (0..self.runs.len()).map(|run| Timed { at: 0, what: Act::Start(run) });
        let mut options = Options {
            processes: 1,
            lease: 5_000,
            poll: 1_000,
            programs: if self.written.is_empty() { Programs::Kept } else { Programs::Dropped },
            latency: 0,
            drift: vec![0],
            runs_max: self.runs_max,
            here: false,
            versions: false,
            beside: false,
            roles: Vec::new(),
            retention: None,
            tasks_max: 100,
            pending_max: None,
            snapshots: Snapshots::default(),
        };
        let acts: Vec<Timed<Act>> = starts.chain(self.acts.iter().cloned()).collect();
        if has_tasks(&self.runs, &acts, &self.written) {
            options.roles.push(Role::Both);
        }
        Case {
            seed: 1,
            options,
            runs: self.runs.clone(),
            schedules: Vec::new(),
            guests: Vec::new(),
            written: self.written.clone(),
            acts,
            faults: self.faults.clone(),
        }
    }
}

const RUNS_MAX: usize = 100;

fn scenario(name: &'static str, tree: Tree, acts: Vec<Timed<Act>>) -> Scenario {
    Scenario { name, runs: vec![tree], written: Vec::new(), acts, faults: Vec::new(), runs_max: RUNS_MAX }
}

fn step() -> Tree {
    Tree::Step(Work { attempts: 1, takes: Some(0), ..Work::default() })
}

fn slow(takes: u64) -> Tree {
    Tree::Step(Work { attempts: 1, takes: Some(takes), ..Work::default() })
}

fn flaky(fails: u32, attempts: u32) -> Tree {
    Tree::Step(Work { fails, attempts, delay: 200, takes: Some(0), ..Work::default() })
}

fn nap() -> Tree {
    Tree::Sleep(400)
}

fn seq(parts: Vec<Tree>) -> Tree {
    Tree::Seq(parts)
}

fn wait(name: &str, timeout: Option<u64>) -> Tree {
    Tree::Wait(open(name, timeout))
}

fn open(name: &str, timeout: Option<u64>) -> Wait {
    Wait { name: name.to_owned(), number: false, aimed: false, timeout, or_fail: false }
}

fn group(how: How, made: Made, members: Vec<Tree>) -> Tree {
    Tree::Group(Group { how, made, members })
}

fn batch(branches: Vec<Tree>, concurrency: Option<usize>, tolerated: Option<usize>) -> Tree {
    Tree::Batch(Batch { parallel: false, branches, concurrency, enough: None, tolerated, percent: None })
}

fn child(tree: Tree, how: Kin, close: Option<ClosePolicy>) -> Tree {
    Tree::Child(Child { tree: Box::new(tree), how, close })
}

/// Something that is started and that nobody awaits.
fn left(tree: Tree) -> Tree {
    Tree::Started { first: Box::new(tree), meanwhile: Box::new(step()), last: Last::Leave }
}

fn caught(tree: Tree) -> Tree {
    Tree::Try(Box::new(tree))
}

fn callback(submitted: bool, timeout: Option<u64>) -> Tree {
    Tree::Callback(Call { submitted, fails: 0, timeout, heartbeat: None })
}

fn at(at: u64, what: Act) -> Timed<Act> {
    Timed { at, what }
}

fn signal(at: u64, name: &str, number: u32) -> Timed<Act> {
    let (payload, id) = (json!(number), format!("{name}-{number}"));
    Timed { at, what: Act::Signal { run: 0, name: name.to_owned(), payload, id } }
}

fn again() -> Act {
    Act::AnswerAgain { run: 0, nth: 0, yes: false }
}

fn answer(at: u64, yes: bool) -> Timed<Act> {
    Timed { at, what: Act::Answer { run: 0, nth: 0, yes } }
}

/// Every scenario.
pub fn all() -> Vec<Scenario> {
    let mut all = controls();
    all.extend(answers());
    all.extend(plain());
    all.extend(families());
    all.extend(troubled());
    all.extend(together());
    all.extend(tasks::all());
    all.extend(texts::all());
    all
}

fn careful(takes: u64) -> Tree {
    Tree::Step(Work { attempts: 1, at_most_once: true, takes: Some(takes), ..Work::default() })
}

fn plain() -> Vec<Scenario> {
    let endless = Work { attempts: 2, takes: None, timeout: Some(500), delay: 100, ..Work::default() };
    vec![
        scenario("three steps", seq(vec![step(), step(), step()]), vec![]),
        scenario("a step that is tried again", flaky(2, 4), vec![]),
        scenario("a step that fails for good", caught(flaky(9, 2)), vec![]),
        scenario("a step that runs at most once", caught(careful(2_500)), vec![]),
        scenario("a step that takes too long", caught(Tree::Step(endless)), vec![]),
        scenario("slow steps", seq(vec![slow(3_000), slow(3_000)]), vec![]),
        scenario("sleeps between steps", seq(vec![step(), nap(), step(), nap(), step()]), vec![]),
        scenario("time and chance", seq(vec![Tree::Now, Tree::Uuid, Tree::Random, nap(), Tree::Now]), vec![]),
        scenario("a condition", Tree::Condition { not: 2, checks: 5, fails: 0, panics: false }, vec![]),
        scenario("a run that fails", seq(vec![step(), Tree::Fail]), vec![]),
    ]
}

fn answers() -> Vec<Scenario> {
    let lent = Tree::Lent { wait: open("a", None), naps: vec![300, 300], last: Last::Await };
    vec![
        scenario(
            "signals before and after",
            seq(vec![nap(), wait("a", None), step(), wait("a", None)]),
            vec![signal(10, "a", 1), signal(10, "a", 1), signal(2_500, "a", 2)],
        ),
        scenario("a wait that is late", seq(vec![wait("a", Some(500)), step()]), vec![signal(5_000, "a", 1)]),
        scenario("a decision", seq(vec![Tree::Approve(None), step()]), vec![answer(1_500, true), answer(1_600, false)]),
        scenario(
            "a signal while a step runs",
            seq(vec![slow(5_000), wait("a", None), wait("a", None)]),
            // The second comes between two looks around, in the middle of a call that is late.
            vec![signal(900, "a", 1), signal(1_500, "a", 2)],
        ),
        scenario(
            "a decision against a step",
            group(How::Race, Made::Started, vec![Tree::Approve(None), slow(2_000)]),
            vec![answer(2_600, true)],
        ),
        scenario(
            "a decision that is late",
            seq(vec![Tree::Approve(Some(700)), slow(8_000)]),
            vec![at(500, again()), at(4_000, again())],
        ),
        scenario(
            "two decisions",
            seq(vec![slow(2_000), Tree::Approve(None), slow(500)]),
            vec![answer(3_000, true), at(3_000, again()), at(3_500, again())],
        ),
        scenario("a callback", callback(true, None), vec![answer(2_500, true)]),
        scenario("a callback that fails", caught(callback(false, None)), vec![answer(2_500, false)]),
        scenario("a callback that is late", caught(callback(true, Some(600))), vec![]),
        scenario("a wait that is lent", lent, vec![signal(1_800, "a", 1)]),
        scenario(
            "a signal with the start",
            wait("a", None),
            vec![at(
                100,
                Act::SignalWithStart { run: 0, name: "a".to_owned(), payload: json!(1), id: "first".to_owned() },
            )],
        ),
    ]
}

fn together() -> Vec<Scenario> {
    let slow_first = vec![Tree::Sleep(900), nap(), Tree::Sleep(1_500)];
    let bad = || flaky(9, 1);
    let race = vec![wait("a", None), nap()];
    vec![
        scenario("all", group(How::All, Made::Scopes, vec![step(), nap(), seq(vec![nap(), step()])]), vec![]),
        scenario(
            "any",
            group(How::Any, Made::Scopes, vec![bad(), seq(vec![nap(), step()]), Tree::Sleep(9_000)]),
            vec![],
        ),
        scenario("a race of sleeps", group(How::Race, Made::Sleeps, slow_first), vec![]),
        scenario("a race with a wait", group(How::Race, Made::Started, race), vec![signal(1_400, "a", 1)]),
        scenario("all settled", group(How::AllSettled, Made::Scopes, vec![bad(), step(), nap()]), vec![]),
        scenario("a map in pairs", batch(vec![step(), seq(vec![nap(), step()]), step(), nap()], Some(2), None), vec![]),
        scenario("a map that tolerates", batch(vec![step(), bad(), step()], None, Some(1)), vec![]),
        scenario("a map that does not", caught(batch(vec![bad(), nap(), Tree::Sleep(5_000)], None, Some(0))), vec![]),
        scenario(
            "an operation that was started",
            Tree::Started { first: Box::new(nap()), meanwhile: Box::new(step()), last: Last::Await },
            vec![],
        ),
        scenario(
            "an operation that is cancelled",
            Tree::Started { first: Box::new(Tree::Sleep(9_000)), meanwhile: Box::new(step()), last: Last::Cancel },
            vec![],
        ),
    ]
}

fn families() -> Vec<Scenario> {
    let patient = || seq(vec![step(), Tree::Sleep(8_000), step()]);
    vec![
        scenario("a child", child(seq(vec![step(), nap()]), Kin::Awaited, None), vec![]),
        scenario("a child that fails", caught(child(Tree::Fail, Kin::Awaited, None)), vec![]),
        scenario("a child that goes on alone", child(patient(), Kin::Left, Some(ClosePolicy::Abandon)), vec![]),
        scenario("a child that is asked to stop", child(patient(), Kin::Left, Some(ClosePolicy::Cancel)), vec![]),
        scenario("a child that is ended", child(patient(), Kin::Left, Some(ClosePolicy::Terminate)), vec![]),
        scenario(
            "a child that loses",
            group(How::Race, Made::Family, vec![child(patient(), Kin::Awaited, None), nap()]),
            vec![],
        ),
        scenario(
            "a child of an earlier generation",
            seq(vec![
                child(seq(vec![nap(), step()]), Kin::Left, Some(ClosePolicy::Abandon)),
                Tree::Renew(Box::new(seq(vec![Tree::Sleep(4_000), step()]))),
            ]),
            vec![],
        ),
        scenario(
            "a run that fails over its child",
            seq(vec![child(patient(), Kin::Left, Some(ClosePolicy::Cancel)), Tree::Fail]),
            vec![],
        ),
        scenario(
            "a generation that leaves something open",
            seq(vec![
                left(Tree::Sleep(9_000)),
                left(Tree::Approve(None)),
                Tree::Renew(Box::new(seq(vec![nap(), step()]))),
            ]),
            vec![],
        ),
        scenario(
            "generations",
            seq(vec![wait("a", None), Tree::Renew(Box::new(seq(vec![step(), wait("a", None)])))]),
            vec![signal(10, "a", 1), signal(20, "a", 2)],
        ),
    ]
}

fn controls() -> Vec<Scenario> {
    let long = || seq(vec![step(), Tree::Sleep(3_000), step()]);
    let cleanup = Tree::Cleanup { body: Box::new(Tree::Sleep(20_000)), cleanup: Box::new(step()) };
    vec![
        scenario("a request to stop", cleanup, vec![at(1_500, Act::Cancel(0))]),
        scenario("a family that is stopped", child(long(), Kin::Awaited, None), vec![at(2_000, Act::Cancel(0))]),
        scenario("a pause", long(), vec![at(1_300, Act::Pause(0)), at(6_000, Act::Resume(0))]),
        scenario("a pause that is stopped", long(), vec![at(1_300, Act::Pause(0)), at(6_000, Act::Cancel(0))]),
        scenario("a termination", child(long(), Kin::Awaited, None), vec![at(2_000, Act::Terminate(0))]),
        scenario(
            "a pause that is taken back",
            slow(2_000),
            vec![at(1_000, Act::Pause(0)), at(2_500, Act::Resume(0)), at(4_000, Act::Resume(0))],
        ),
        scenario(
            "a pause that is taken back by a request to stop",
            seq(vec![slow(2_000), nap()]),
            vec![at(1_000, Act::Pause(0)), at(2_500, Act::Cancel(0))],
        ),
        scenario("a fork", long(), vec![at(2_000, Act::Fork { run: 0, part: 600 })]),
        scenario(
            "a fork of a parent",
            child(long(), Kin::Awaited, None),
            vec![at(2_000, Act::Fork { run: 0, part: 1_000 })],
        ),
        scenario("a deletion", step(), vec![at(3_000, Act::Delete(0))]),
        scenario(
            "a child that somebody else pauses",
            child(long(), Kin::Awaited, None),
            vec![
                at(2_000, Act::Below { run: 0, nth: 0, what: Box::new(Act::Pause(0)) }),
                at(6_000, Act::Below { run: 0, nth: 0, what: Box::new(Act::Resume(0)) }),
            ],
        ),
    ]
}

/// Those in which more goes wrong than one call.
fn troubled() -> Vec<Scenario> {
    let poison = Fault::Poison { run: 0, times: 4 };
    let back = Fault::Jump { forward: false, by: 600_000 };
    let naps = || seq(vec![slow(1_000), Tree::Sleep(2_000), slow(1_000), Tree::Sleep(2_000)]);
    let doubt = |fails| {
        let what = Fault::Call { process: 0, skip: 1, of: Some(Aim::Commit), fails, early: false };
        vec![Timed { at: 0, what }]
    };
    vec![
        Scenario {
            faults: doubt(Fails::AppliedInDoubt),
            ..scenario("a commit that is in doubt and was applied", naps(), vec![])
        },
        Scenario {
            faults: doubt(Fails::NotAppliedInDoubt),
            ..scenario("a commit that is in doubt and was not applied", naps(), vec![])
        },
        Scenario {
            name: "a run that kills its process",
            runs: vec![step(), slow(4_000)],
            written: Vec::new(),
            acts: vec![],
            faults: vec![Timed { at: 0, what: poison }],
            runs_max: RUNS_MAX,
        },
        Scenario {
            name: "a clock that goes back",
            runs: vec![naps()],
            written: Vec::new(),
            // It does not go forward again before that.
            acts: vec![at(12_000, Act::Explain(0))],
            faults: vec![Timed { at: 500, what: back }],
            runs_max: RUNS_MAX,
        },
        Scenario {
            name: "two that are claimed together and fill their process",
            runs: vec![step(), careful(3_500)],
            written: Vec::new(),
            acts: vec![],
            faults: vec![Timed { at: 0, what: Fault::Freeze { process: 0, long: 1_500 } }],
            runs_max: 2,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_enough_of_them_and_each_is_valid() {
        let all = all();
        assert!(all.len() >= 30, "{}", all.len());
        for Scenario { name, runs, .. } in &all {
            assert!(runs.iter().all(crate::tree::is_valid), "{name}");
        }
    }
}
