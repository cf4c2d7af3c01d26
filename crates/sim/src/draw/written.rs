//! Workflows that are text, drawn from a source of their own.

use serde_json::json;

use super::moment;
use crate::case::{Act, Aim, Case, Fails, Fault, Options, Role, Snapshots, Timed};
use crate::chance::Chance;
use crate::generate::{SIGNALS, errand, work};
use crate::tree::{Errand, How, Tree, Wait, Work};
use crate::written::{Back, EDITIONS, Graph, Kid, Line, Node, Program, What, Written};

/// One case in so many has texts.
const CASES: u64 = 5;
/// How deep they are nested at most.
const DEPTH_MAX: u32 = 3;
const NAPS: [u64; 6] = [0, 1, 200, 2_000, 10_000, 30_000];
const PATIENCE: [u64; 4] = [100, 2_000, 15_000, 60_000];

/// Gives some cases texts.
pub(super) fn add(chance: &mut Chance, case: &mut Case) {
    if !chance.one_in(CASES) {
        return;
    }
    let count = usize::try_from(chance.between(1, 3)).unwrap_or(1);
    for place in 0..count {
        // Those behind it can be its children, so that nobody is its own.
        let behind = count - place - 1;
        let mut grower = Grower { left: chance.between(2, 7), chance: &mut *chance, behind };
        let program =
            if grower.chance.one_in(2) { Program::Script(grower.script()) } else { Program::Flow(grower.flow()) };
        let started = place == 0 || chance.one_in(2);
        case.written.push(Written { program, started });
    }
    for place in 0..count {
        acts(chance, place, case);
    }
    case.acts.sort_by_key(|act| act.at);
    let (after, torn, lost) =
        (*chance.pick(&[0, 0, 1, 2, 5]), *chance.pick(&[0, 0, 2, 4]), *chance.pick(&[0, 0, 2, 4]));
    case.options.snapshots = Snapshots { after, torn, lost };
    staff(chance, &case.written, &mut case.options);
    if chance.one_in(2) {
        trouble(chance, case);
    }
}

/// If there are tasks, somebody works.
fn staff(chance: &mut Chance, written: &[Written], options: &mut Options) {
    if options.roles.is_empty() && written.iter().any(Written::has_tasks) {
        options.roles =
            (0..options.processes).map(|_| *chance.pick(&[Role::Both, Role::Drives, Role::Works])).collect();
        options.staff();
    }
}

/// What makes somebody else go on with a run: whoever has it dies.
fn trouble(chance: &mut Chance, case: &mut Case) {
    for _ in 0..chance.between(1, 3) {
        let process = usize::try_from(chance.below(case.options.processes as u64)).unwrap_or(0);
        let at = moment(chance, 0);
        let what = if chance.one_in(2) {
            Fault::Crash { process, back: *chance.pick(&[0, 100, 5_000]), same_name: chance.one_in(2) }
        } else {
            let fails = *chance.pick(&[Fails::AppliedThenCrash, Fails::AppliedInDoubt, Fails::NotAppliedInDoubt]);
            let of = Some(*chance.pick(&[Aim::Commit, Aim::Commit, Aim::Load]));
            Fault::Call { process, skip: chance.below(6), of, fails, early: false }
        };
        case.faults.push(Timed { at, what });
    }
    case.faults.sort_by_key(|fault| fault.at);
}

struct Grower<'c> {
    chance: &'c mut Chance,
    /// How many operations there may be.
    left: u64,
    /// How many texts are behind this one.
    behind: usize,
}

impl Grower<'_> {
    fn script(&mut self) -> Line {
        let mut parts = Vec::new();
        while self.left > 0 {
            parts.push(self.line(0));
        }
        Line::Seq(parts)
    }

    fn line(&mut self, depth: u32) -> Line {
        if depth >= DEPTH_MAX || self.left < 2 || self.chance.one_in(2) {
            return self.leaf();
        }
        let boxed = |grower: &mut Self| Box::new(grower.line(depth + 1));
        match self.chance.below(9) {
            0 => Line::Seq(self.lines(depth)),
            1 | 2 => Line::Try(boxed(self)),
            3 => {
                let after = Line::Task(Errand {
                    work: Work { attempts: 3, delay: 100, takes: Some(0), ..Work::default() },
                    ..Errand::default()
                });
                let body = boxed(self);
                Line::Finally(body, Box::new(if self.chance.one_in(3) { self.leaf() } else { after }))
            }
            4 | 5 => Line::Repeat(u32::try_from(self.chance.between(0, 4)).unwrap_or(1), boxed(self)),
            _ => {
                let how = *self.chance.pick(&[How::All, How::Any, How::Race, How::AllSettled]);
                Line::Together(how, self.lines(depth))
            }
        }
    }

    fn lines(&mut self, depth: u32) -> Vec<Line> {
        (0..self.chance.between(1, 3)).map(|_| self.line(depth + 1)).collect()
    }

    fn leaf(&mut self) -> Line {
        self.left = self.left.saturating_sub(1);
        match self.chance.below(12) {
            0..=3 => Line::Task(self.errand()),
            4 | 5 => Line::Sleep(*self.chance.pick(&NAPS)),
            6 | 7 => Line::Wait { name: self.signal(), timeout: self.patience() },
            8 => Line::Approve(self.patience()),
            9 => Line::Callback(self.patience()),
            10 => Line::Child(self.kid()),
            _ if self.chance.one_in(2) => Line::Fail,
            _ => Line::Sleep(*self.chance.pick(&NAPS)),
        }
    }

    fn flow(&mut self) -> Graph {
        let mut nodes = Vec::new();
        while self.left > 0 {
            nodes.push(self.node(0));
        }
        let count = nodes.len() as u64;
        let back = self.chance.one_in(3).then(|| {
            let to = self.chance.below(count);
            let from = self.chance.between(to + 1, count);
            let place = |number: u64| usize::try_from(number).unwrap_or(0);
            Back { to: place(to), from: place(from), times: u32::try_from(self.chance.between(1, 2)).unwrap_or(1) }
        });
        let concurrency = if back.is_none() && self.chance.one_in(3) { 2 } else { 1 };
        Graph { nodes, back, concurrency }
    }

    fn node(&mut self, depth: u32) -> Node {
        let what = if depth < DEPTH_MAX && self.left > 1 && self.chance.one_in(2) {
            self.container(depth)
        } else {
            self.work()
        };
        Node { what, never: self.chance.one_in(10), lenient: self.chance.one_in(3) }
    }

    fn nodes(&mut self, depth: u32) -> Vec<Node> {
        (0..self.chance.between(1, 2)).map(|_| self.node(depth + 1)).collect()
    }

    fn container(&mut self, depth: u32) -> What {
        let few = |chance: &mut Chance| u32::try_from(chance.between(1, 3)).unwrap_or(1);
        match self.chance.below(6) {
            0 => What::If(self.chance.one_in(2), self.nodes(depth), self.nodes(depth)),
            1 | 2 => {
                let items = u32::try_from(self.chance.below(4)).unwrap_or(1);
                What::Foreach(items, few(self.chance), self.nodes(depth))
            }
            3 | 4 => What::Loop(few(self.chance), self.nodes(depth)),
            _ => What::Parallel((0..self.chance.between(1, 3)).map(|_| self.nodes(depth)).collect()),
        }
    }

    fn work(&mut self) -> What {
        self.left = self.left.saturating_sub(1);
        match self.chance.below(13) {
            0..=2 => What::Task(Errand { later: 0, ..self.errand() }),
            3..=5 => What::Step(Work { heartbeat: None, beats: false, ..self.limited() }),
            6 => What::Sleep(*self.chance.pick(&NAPS)),
            7 | 8 => What::Wait { name: self.signal(), timeout: self.patience() },
            9 => What::Approve { timeout: self.patience(), either: self.chance.one_in(2) },
            10 => What::Callback(self.patience()),
            11 => What::Child(self.kid()),
            _ => What::Sum(u32::try_from(self.chance.below(9)).unwrap_or(0)),
        }
    }

    /// Work that ends, also without signs of life.
    fn limited(&mut self) -> Work {
        let work = work(self.chance);
        let endless = work.takes.is_none() && work.timeout.is_none();
        Work { takes: if endless { Some(0) } else { work.takes }, ..work }
    }

    fn errand(&mut self) -> Errand {
        let work = work(self.chance);
        errand(self.chance, work)
    }

    fn signal(&mut self) -> String {
        (*self.chance.pick(&SIGNALS)).to_owned()
    }

    fn patience(&mut self) -> Option<u64> {
        self.chance.one_in(2).then(|| *self.chance.pick(&PATIENCE))
    }

    /// Another run: of a text behind this one, or of code that comes to its end by itself.
    fn kid(&mut self) -> Kid {
        if self.behind > 0 && !self.chance.one_in(3) {
            return Kid::Text(usize::try_from(self.chance.between(1, self.behind as u64)).unwrap_or(1));
        }
        let wait = Wait { name: self.signal(), number: false, aimed: false, timeout: Some(9_000), or_fail: false };
        Kid::Code(match self.chance.below(3) {
            0 => Tree::Sleep(*self.chance.pick(&NAPS)),
            1 => Tree::Wait(wait),
            _ => Tree::Step(Work { attempts: 2, delay: 200, takes: Some(300), ..Work::default() }),
        })
    }
}

fn acts(chance: &mut Chance, written: usize, case: &mut Case) {
    let text = &case.written[written];
    let (signals, is_flow, started) = (text.signals(), text.is_flow(), text.started);
    let begin = if chance.one_in(2) { 0 } else { chance.below(15_000) };
    let acts = &mut case.acts;
    if chance.one_in(3) {
        let what = Act::Define { written, edition: *chance.pick(&EDITIONS) };
        acts.push(Timed { at: moment(chance, 0), what });
    }
    if !started {
        return;
    }
    acts.push(Timed { at: begin, what: Act::StartWritten(written) });
    let mut add = |chance: &mut Chance, what: Act| {
        let what = Act::Written { written, what: Box::new(what) };
        acts.push(Timed { at: moment(chance, begin), what });
    };
    for (number, name) in signals.into_iter().enumerate() {
        if !chance.one_in(4) {
            let payload = json!(chance.below(1_000));
            add(chance, Act::Signal { run: 0, name, payload, id: format!("text-{number}") });
        }
    }
    for _ in 0..chance.below(3) {
        let (nth, yes) = (chance.below(3), !chance.one_in(4));
        add(chance, Act::Answer { run: 0, nth, yes });
    }
    let part = chance.below(1_001);
    let controls = [
        (5, Act::Cancel(0)),
        (12, Act::Terminate(0)),
        (3, Act::Pause(0)),
        (3, Act::Resume(0)),
        (6, Act::Fork { run: 0, part }),
        (5, Act::Explain(0)),
        (12, Act::Delete(0)),
    ];
    for (odds, what) in controls {
        if chance.one_in(odds) {
            add(chance, what);
        }
    }
    if chance.one_in(6) {
        acts.push(Timed { at: moment(chance, begin), what: Act::StartWritten(written) });
    }
    if is_flow {
        operators(chance, written, begin, acts);
    }
}

/// What operators do to flows.
fn operators(chance: &mut Chance, written: usize, begin: u64, acts: &mut Vec<Timed<Act>>) {
    if chance.one_in(3) {
        let at = moment(chance, begin);
        acts.push(Timed { at, what: Act::Written { written, what: Box::new(Act::Pause(0)) } });
        let what = Act::Say { written, message: chance.below(100) };
        acts.push(Timed { at: at + chance.below(20_000), what });
    }
    for _ in 0..chance.below(3) {
        let what = Act::Node { written, nth: chance.below(3), skip: chance.one_in(2) };
        acts.push(Timed { at: moment(chance, begin), what });
    }
}
