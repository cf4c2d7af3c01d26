//! Playing a case: trouble, healing, and then the oracle.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use outlast::testing::World;
use outlast_store::{Store, invariants};

use crate::case::{Case, Programs};
use crate::client::Client;
use crate::cluster::Cluster;
use crate::doctor::examine;
use crate::errors::{collecting, is_explained};
use crate::ground::Ground;
use crate::heal::settle;
use crate::judge::judge;
use crate::nemesis::inflict;
use crate::oracle::{Findings, Violation};
use crate::rest::rest;
use crate::story;
use crate::tally::Tally;
use crate::timetables::keep_time;
use crate::watch::Watch;

/// How often to look at what the store shows while things go wrong, in virtual seconds.
const LOOK: u32 = 10;

/// What came of a case.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Promises that were broken.
    pub violations: Vec<Violation>,
    /// A number over everything that happened, in order.
    pub trace: u64,
    /// Whether what the store answered is part of that.
    pub traced: bool,
    /// What happened how often.
    pub tally: Tally,
    /// The journals of all runs, if a promise was broken.
    pub journals: Vec<String>,
}

impl Verdict {
    /// Whether the same happened another time: the same was answered and counted, in the same order.
    pub fn repeats(&self, other: &Verdict) -> bool {
        let broken = |verdict: &Verdict| verdict.violations.iter().map(|one| one.invariant).collect::<Vec<u8>>();
        let same = self.trace == other.trace || self.traced != other.traced;
        same && (&self.tally, broken(self)) == (&other.tally, broken(other))
    }
}

/// Plays a case in memory.
pub fn play(case: &Case) -> Verdict {
    play_on(case, &Ground::memory())
}

/// Plays a case on a store of one's choice. A panic is a broken promise too.
pub fn play_on(case: &Case, ground: &Ground) -> Verdict {
    let played = catch_unwind(AssertUnwindSafe(|| whole(case, ground)));
    played.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it does not say why");
        let violations = vec![Violation { invariant: 0, text: format!("a panic: {said}") }];
        Verdict { violations, ..Verdict::default() }
    })
}

fn whole(case: &Case, ground: &Ground) -> Verdict {
    let programs = match case.options.programs {
        Programs::Kept => outlast::testing::Programs::Kept,
        Programs::Dropped => outlast::testing::Programs::Dropped,
        Programs::Evicted => outlast::testing::Programs::Evicted { seed: case.seed },
    };
    let world = Rc::new(World::seeded(case.seed).shuffled().programs(programs).unexamined());
    let store = (ground.open)(&world);
    let watch = if ground.in_memory { Watch::new } else { Watch::unordered };
    let watch = Arc::new(watch(store, world.clock()));
    if ground.traced {
        watch.keep_trace();
    }
    let case = Rc::new(case.clone());
    let cluster = Cluster::new(Rc::clone(&world), Rc::clone(&case), Arc::clone(&watch), ground.clone());
    let (judged, errors) = collecting(|| {
        world.block_on(async {
            let client = cluster.start().await;
            let mut midway = Findings::default();
            trouble(&cluster, &client, ground.in_memory.then_some(&mut midway)).await;
            cluster.heal().await;
            // Behind a process of its own, so that the world waits for the answers.
            let store = Arc::clone(world.process(watch.inner()).faults());
            let kept = keep_time(&cluster, &client).await;
            let rested = rest(&cluster, &*store).await;
            let examined = examine(&client).await;
            let stuck = settle(&client, &case).await;
            cluster.neighbour_ends(&*store).await;
            let (mut findings, tally) = judge(&cluster, &client, &*store).await;
            findings.merge(midway);
            findings.merge(rested);
            findings.merge(kept);
            findings.merge(examined);
            let broken = !stuck.is_empty() || !findings.violations.is_empty();
            let journals = if broken { story::journals(&*store).await } else { Vec::new() };
            let acts = client.acts.borrow().clone();
            (stuck, findings, Tally { acts, ..tally }, journals)
        })
    });
    // What is still under way keeps the world, and must not keep a file.
    cluster.everybody(outlast::testing::Process::crash);
    watch.close();
    let (mut violations, findings, mut tally, journals) = judged;
    violations.extend(findings.violations);
    violations.extend(
        errors.into_iter().filter(|line| !is_explained(line, &case)).map(|text| Violation { invariant: 0, text }),
    );
    (tally.faults, tally.events, tally.calls) = (cluster.faults_landed(), watch.events_seen(), watch.calls());
    tally.calls_failed = cluster.calls_failed();
    cluster.ledger.parts().into_iter().for_each(|(name, times)| *tally.parts.entry(name).or_default() += times);
    tally.invariants = findings.checked;
    tally.virtual_millis = u64::try_from(world.elapsed().as_millis()).unwrap_or(u64::MAX);
    Verdict { violations, trace: world.trace_hash() ^ watch.trace(), traced: ground.traced, tally, journals }
}

/// Lets clients act and faults happen, each at its time, until all of it is over or it takes too long.
async fn trouble(cluster: &Rc<Cluster>, client: &Client, mut midway: Option<&mut Findings>) {
    let faults = || cluster.case.faults.iter().filter(|fault| !fault.what.is_early());
    cluster.left.set(cluster.left.get() + cluster.case.acts.len() + faults().count());
    for (number, act) in cluster.case.acts.iter().cloned().enumerate() {
        let (client, cluster, world) = (client.clone(), Rc::clone(cluster), Rc::clone(&cluster.world));
        world.spawn(async move {
            client.world.sleep(Duration::from_millis(act.at)).await;
            client.act(&cluster.case, number, &act.what).await;
            cluster.left.set(cluster.left.get() - 1);
        });
    }
    for fault in faults().cloned() {
        let (cluster, world) = (Rc::clone(cluster), Rc::clone(&cluster.world));
        world.spawn(async move {
            cluster.world.sleep(Duration::from_millis(fault.at)).await;
            inflict(Rc::clone(&cluster), fault.what).await;
            cluster.left.set(cluster.left.get() - 1);
        });
    }
    // A client that waits for a frozen or dead process is answered after healing.
    let longest = Duration::from_secs(240);
    for second in 1.. {
        if cluster.left.get() == 0 || cluster.world.elapsed() >= longest {
            break;
        }
        cluster.world.sleep(Duration::from_secs(1)).await;
        if second % LOOK == 0
            && let Some(findings) = &mut midway
        {
            look(&*cluster.watch.inner(), findings).await;
        }
    }
}

/// What holds at the end holds all the time. Only a store that answers at once shows one state, with nothing in between.
async fn look(store: &dyn Store, findings: &mut Findings) {
    let namespaces = match store.namespaces().await {
        Ok(namespaces) => namespaces,
        Err(error) => return findings.check(2, Err(format!("midway namespaces cannot be read: {error}"))),
    };
    for namespace in namespaces {
        let shown = match invariants::World::read(store, &namespace).await {
            Ok(shown) => shown,
            Err(unreadable) => {
                findings.check(2, Err(format!("midway: {unreadable}")));
                continue;
            }
        };
        for (run, state) in &shown.runs {
            for (invariant, verdict) in state.verdicts(&shown.tasks) {
                findings.check(invariant, verdict.map_err(|broken| format!("{run}, midway: {broken}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::draw;
    use crate::ground::Kind;

    #[test]
    fn the_same_case_is_answered_the_same_twice_and_another_one_is_not() {
        let (first, second) = Kind::Memory.play_twice(&draw(11));
        assert!(first.repeats(&second));
        assert!(!first.repeats(&Kind::Memory.play_twice(&draw(12)).0));
    }

    #[test]
    fn the_order_of_tasks_alone_is_not_the_whole_trace() {
        let (traced, _) = Kind::Memory.play_twice(&draw(11));
        assert_ne!(traced.trace, play(&draw(11)).trace);
    }

    #[test]
    fn acts_for_which_there_was_nothing_to_ask_are_not_counted() {
        let mut case = draw(11);
        case.faults.clear();
        case.runs = vec![crate::tree::Tree::Sleep(1)];
        let act = |at, what| crate::case::Timed { at, what };
        use crate::case::Act;
        let answer = Act::Answer { run: 0, nth: 0, yes: true };
        case.acts = vec![act(0, Act::Start(0)), act(1, answer), act(20_000, Act::StartOther(0))];
        let acts = play(&case).tally.acts;
        assert_eq!(acts, [("start", 1), ("start with another input", 1)].into());
    }
}
