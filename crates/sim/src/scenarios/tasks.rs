//! Scenarios about tasks.

use super::{Scenario, at, nap, scenario, seq, step};
use crate::case::Act;
use crate::tree::{Errand, Group, How, Last, Made, Tree, Work};

fn errand(fails: u32, attempts: u32, takes: u64) -> Errand {
    let work = Work { fails, attempts, delay: 200, takes: Some(takes), ..Work::default() };
    Errand { work, ..Errand::default() }
}

fn task(takes: u64) -> Tree {
    Tree::Task(errand(0, 3, takes))
}

pub(super) fn all() -> Vec<Scenario> {
    let started = |last| Tree::Started { first: Box::new(task(2_000)), meanwhile: Box::new(nap()), last };
    let detached = Tree::Task(Errand { detached: true, ..errand(0, 2, 500) });
    let race = |members| Tree::Group(Group { how: How::Race, made: Made::Tasks, members });
    let queued = |ms| at(ms, Act::Enqueue { id: "errand-0".to_owned(), errand: errand(1, 3, 300) });
    vec![
        scenario("a task", seq(vec![task(300), step()]), vec![]),
        scenario("a task that fails once", Tree::Task(errand(1, 3, 0)), vec![]),
        scenario("a task that fails for good", Tree::Try(Box::new(Tree::Task(errand(2, 2, 0)))), vec![]),
        scenario("a task that is awaited later", started(Last::Await), vec![]),
        scenario("a task that is cancelled", started(Last::Cancel), vec![]),
        scenario("a task that is left", seq(vec![started(Last::Leave), step()]), vec![]),
        scenario("tasks in a race", seq(vec![race(vec![task(300), task(3_000)]), nap()]), vec![]),
        scenario("a task that nobody waits for", seq(vec![detached, step()]), vec![]),
        scenario("a task of a run that is cancelled", task(3_000), vec![at(900, Act::Cancel(0))]),
        scenario("a task of a run that is terminated", task(3_000), vec![at(900, Act::Terminate(0))]),
        scenario("a task that a client queues", step(), vec![queued(100), queued(350)]),
    ]
}
