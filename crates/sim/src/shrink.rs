//! Making a failing case small: first fewer faults, then fewer acts and runs, then smaller workflows.

use crate::case::{Case, Programs, Role};
use crate::tree::smaller;
use crate::written::Written;

/// The smallest case found that still fails, within so many tries.
pub fn shrink(case: &Case, tries: usize, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut shrinking = Shrinking { best: case.clone(), left: tries, fails: &mut fails };
    loop {
        let before = shrinking.best.clone();
        shrinking.fewer(|case| &mut case.faults);
        shrinking.fewer(|case| &mut case.acts);
        shrinking.fewer(|case| &mut case.schedules);
        shrinking.fewer(|case| &mut case.guests);
        shrinking.smaller_texts();
        shrinking.smaller_runs();
        shrinking.plainer();
        if shrinking.best == before || shrinking.left == 0 {
            return shrinking.best;
        }
    }
}

/// Without the last process, and what happens to it. The client, which comes after it, has its number then.
fn without_process(case: &mut Case) {
    let Some(last) = case.options.processes.checked_sub(1).filter(|last| *last > 0) else { return };
    case.options.processes = last;
    case.faults.retain_mut(|fault| fault.what.process_mut().is_none_or(|process| *process != last));
    for process in case.faults.iter_mut().filter_map(|fault| fault.what.process_mut()) {
        *process = (*process).min(last);
    }
}

struct Shrinking<'f> {
    best: Case,
    left: usize,
    fails: &'f mut dyn FnMut(&Case) -> bool,
}

impl Shrinking<'_> {
    /// Takes the candidate if it fails too.
    fn attempt(&mut self, candidate: Case) -> bool {
        if self.left == 0 || candidate == self.best {
            return false;
        }
        self.left -= 1;
        let failed = (self.fails)(&candidate);
        if failed {
            self.best = candidate;
        }
        failed
    }

    /// Leaves out items: half of them at once, then quarters, then one by one.
    fn fewer<T: Clone>(&mut self, items: impl Fn(&mut Case) -> &mut Vec<T>) {
        let mut size = items(&mut self.best.clone()).len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < items(&mut self.best.clone()).len() {
                let mut candidate = self.best.clone();
                let list = items(&mut candidate);
                list.drain(at..(at + size).min(list.len()));
                if !self.attempt(candidate) {
                    at += size;
                }
            }
            size /= 2;
        }
    }

    fn smaller_runs(&mut self) {
        for place in (0..self.best.runs.len()).rev() {
            self.without_run(place);
        }
        for place in 0..self.best.runs.len() {
            while let Some(tree) = self.best.runs.get(place).cloned() {
                let shrunk = smaller(&tree).into_iter().any(|tree| {
                    let mut candidate = self.best.clone();
                    candidate.runs[place] = tree;
                    self.attempt(candidate)
                });
                if !shrunk || self.left == 0 {
                    break;
                }
            }
        }
    }

    /// Without texts, without one of them, and with smaller ones.
    fn smaller_texts(&mut self) {
        let mut candidate = self.best.clone();
        candidate.written.clear();
        candidate.acts.retain(|act| act.what.written().is_none());
        candidate.options.staff();
        self.attempt(candidate);
        for place in (0..self.best.written.len()).rev() {
            self.without_text(place);
        }
        for place in 0..self.best.written.len() {
            while let Some(text) = self.best.written.get(place).cloned() {
                let shrunk = text.smaller().into_iter().any(|text| {
                    let mut candidate = self.best.clone();
                    candidate.written[place] = text;
                    self.attempt(candidate)
                });
                if !shrunk || self.left == 0 {
                    break;
                }
            }
        }
    }

    /// One that does nothing is put in its place, unless it is the last and nobody starts it: others are named by their places.
    fn without_text(&mut self, place: usize) {
        let mut candidate = self.best.clone();
        candidate.acts.retain(|act| act.what.written() != Some(place));
        let is_started = |(other, text): (usize, &Written)| other < place && text.starts(place - other);
        if place + 1 == candidate.written.len() && !candidate.written.iter().enumerate().any(is_started) {
            candidate.written.pop();
        } else {
            candidate.written[place] = Written::nothing();
        }
        candidate.options.staff();
        self.attempt(candidate);
    }

    /// The last run only: others are named by their places.
    fn without_run(&mut self, place: usize) {
        if place == 0 || place + 1 != self.best.runs.len() {
            return;
        }
        let mut candidate = self.best.clone();
        candidate.runs.pop();
        candidate.acts.retain(|act| act.what.run() != Some(place));
        candidate.faults.retain(|fault| fault.what.run() != Some(place));
        self.attempt(candidate);
    }

    fn plainer(&mut self) {
        let plain: [fn(&mut Case); 12] = [
            |case| case.options.latency = 0,
            |case| case.options.drift.iter_mut().for_each(|drift| *drift = 0),
            |case| case.options.programs = Programs::Kept,
            |case| case.options.runs_max = 100,
            |case| case.options.here = false,
            |case| case.options.versions = false,
            |case| case.options.beside = false,
            without_process,
            |case| case.options.roles.iter_mut().for_each(|role| *role = Role::Both),
            |case| case.options.tasks_max = 100,
            |case| case.options.pending_max = None,
            |case| case.options.retention = None,
        ];
        for simplify in plain {
            let mut candidate = self.best.clone();
            simplify(&mut candidate);
            candidate.options.staff();
            self.attempt(candidate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Act, Fault};
    use crate::draw::draw;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let guilty = |case: &Case| case.faults.iter().any(|fault| matches!(fault.what, Fault::Freeze { .. }));
        let case = (0..).map(draw).find(|case| guilty(case) && case.faults.len() > 3 && case.runs.len() > 1).unwrap();
        let small = shrink(&case, 1_000, guilty);
        assert_eq!(small.faults.len(), 1, "{small:?}");
        assert_eq!((small.acts.len(), small.runs.len(), small.options.processes), (0, 1, 1), "{small:?}");
        assert!(small.written.is_empty(), "{small:?}");
    }

    #[test]
    fn two_things_that_matter_together_are_both_kept() {
        let guilty = |case: &Case| {
            let pause = case.acts.iter().any(|act| matches!(act.what, Act::Pause(_)));
            pause && case.faults.iter().any(|fault| matches!(fault.what, Fault::Crash { .. }))
        };
        let case = (0..).map(draw).find(guilty).unwrap();
        let small = shrink(&case, 1_000, guilty);
        assert_eq!((small.acts.len(), small.faults.len()), (1, 1), "{small:?}");
    }

    #[test]
    fn a_text_that_matters_is_left_alone_and_with_little_in_it() {
        use crate::written::{Program, What};
        let waits = |text: &Written| match &text.program {
            Program::Flow(graph) => graph.all().iter().any(|node| matches!(node.what, What::Wait { .. })),
            Program::Script(_) => false,
        };
        let guilty = |case: &Case| case.written.iter().any(waits);
        let nodes = |text: &Written| match &text.program {
            Program::Flow(graph) => graph.all().len(),
            Program::Script(_) => 0,
        };
        let large = |case: &Case| case.written.len() > 2 && waits(&case.written[1]) && nodes(&case.written[1]) > 4;
        let case = (0..).map(draw).find(|case| large(case)).unwrap();
        let small = shrink(&case, 10_000, guilty);
        let left: Vec<usize> = small.written.iter().map(nodes).filter(|nodes| *nodes > 0).collect();
        assert_eq!((left, small.acts.len()), (vec![1], 0), "{small:?}");
    }

    #[test]
    fn shrinking_stops_when_its_tries_are_used_up() {
        let mut asked = 0;
        let case = (0..).map(draw).find(|case| case.faults.len() > 3).unwrap();
        shrink(&case, 7, |_| {
            asked += 1;
            false
        });
        assert!(asked <= 7);
    }
}
