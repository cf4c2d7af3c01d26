//! The verdict on a case: the oracle on everything the store shows, the model on what every run came to.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast::{Event, Failure, Outlast, RunView};
use outlast_core::commit::Status;
use outlast_core::id::RunKey;
use outlast_store::Store;

use crate::case::{Case, Fails, Fault, is_guest, run_id, schedule_of};
use crate::client::Client;
use crate::cluster::Cluster;
use crate::interpret::{FIRST_VERSION, Input, SECOND_VERSION, register_versions, write};
use crate::ledger::{Ask, Asked, Ledger};
use crate::model::{Answer, Decision, Ended, Facts, Sent, Told, accepts, generations};
use crate::oracle::{Findings, Scene, examine};
use crate::tally::{Tally, count};
use crate::tree::Tree;
use crate::written::{self, Came, EDITIONS, Kid, Known, place_of};

/// The number under which the model's findings are told.
pub const MODEL: u8 = 23;
/// How late a timer may be when all trouble is over.
const PATIENCE: Duration = Duration::from_secs(120);

/// Judges a case whose runs have all ended, or should have.
pub(crate) async fn judge(cluster: &Cluster, client: &Client, store: &dyn Store) -> (Findings, Tally) {
    // Replay runs programs: what they say must not get into the books.
    let versions = [SECOND_VERSION, FIRST_VERSION];
    let outside = || cluster.outside(Ledger::new());
    let code_of = || register_versions(Outlast::memory(), outside(), &versions);
    let edition = |number| write(code_of(), &cluster.case.written, number).checker();
    let [checker, second] = EDITIONS.map(edition);
    let entries = cluster.ground.books.as_ref().map(|books| (books.read)());
    let left = entries.as_ref().and_then(|entries| entries.as_ref().ok()).map_or(0, Vec::len);
    let slack = slack(&cluster.case).map(Duration::from_millis);
    let patience = Some(PATIENCE);
    let scene = Scene {
        checker: Some(&checker),
        second: (!cluster.case.written.is_empty()).then_some(&second),
        patience,
        slack,
        is_end: true,
        tasks_max: Some(cluster.case.options.tasks_max),
        pending_max: cluster.case.options.pending_max,
        entries,
        ..Scene::default()
    };
    let mut findings = examine(store, &cluster.watch, &cluster.ledger, &scene).await;
    let instants = cluster.watch.sight().almanac.outcomes.clone();
    let flows = cluster.watch.sight().lobby.outcomes.clone();
    let mut tally = Tally { entries: left as u64, instants, flows, ..Tally::default() };
    let told = told(cluster);
    for (workflow, times) in &cluster.watch.sight().snapshots.whole {
        let text = place_of(workflow).and_then(|place| cluster.case.written.get(place));
        let style = text.map_or("unknown", |text| text.style());
        *tally.parts.entry(format!("{style} restored")).or_default() += times;
    }
    let runs = match client.engine.list().page_size(1_000).await {
        Ok(page) => page.runs,
        Err(error) => {
            findings.check(MODEL, Err(format!("what the runs came to cannot be read: {error}")));
            Vec::new()
        }
    };
    for view in runs {
        count(&mut tally.ends, format!("{:?}", view.status));
        if let Some(place) = place_of(view.workflow.as_str()) {
            findings.check(MODEL, written(cluster, client, &view, place, &told, &mut tally).await);
            continue;
        }
        let tree = match tree_of(cluster, &view.run) {
            Ok(tree) => tree,
            Err(broken) => {
                findings.check(MODEL, Err(broken));
                continue;
            }
        };
        let verdict = match client.engine.run(view.run.id.as_str()) {
            Ok(run) => run.journal().await,
            Err(error) => Err(error),
        };
        if cluster.watch.sight().runs.get(&view.run).is_some_and(|shadow| shadow.deleted) {
            // It went meanwhile, because of its age.
            continue;
        }
        let verdict = verdict.map_err(|error| format!("{}: its journal cannot be read: {error}", view.run));
        let verdict = verdict.and_then(|journal| {
            tally.look_at(&journal);
            modelled(cluster, &view, &tree, &told, journal)
        });
        findings.check(MODEL, verdict);
    }
    (findings, tally)
}

/// Whether a run of a text can have come to what it came to.
async fn written(
    cluster: &Cluster,
    client: &Client,
    view: &RunView,
    place: usize,
    told: &BTreeMap<String, Told>,
    tally: &mut Tally,
) -> Result<(), String> {
    let journal = match client.engine.run(view.run.id.as_str()) {
        Ok(run) => run.journal().await,
        Err(error) => Err(error),
    };
    if cluster.watch.sight().runs.get(&view.run).is_some_and(|shadow| shadow.deleted) {
        return Ok(());
    }
    let mut journal = journal.map_err(|error| format!("{}: its journal cannot be read: {error}", view.run))?;
    tally.look_at(&journal);
    let text = cluster.case.written.get(place).ok_or_else(|| format!("{} is of no text", view.run))?;
    let came = match journal.pop() {
        Some(Event::RunFinished { output }) => Came::Output(serde_json::from_slice(&output).unwrap_or_default()),
        Some(Event::RunErrored { error }) => Came::Failed(error),
        Some(Event::RunCancelled { .. }) => Came::Cancelled,
        Some(Event::RunTerminated { .. }) => Came::Terminated,
        _ => return Ok(()),
    };
    count(&mut tally.parts, format!("{} {}", text.style(), came.kind()));
    let (run, case, asks) = (view.run.id.as_str(), &cluster.case, cluster.ledger.asks());
    let family = |ask: &&Ask| ask.is_possible() && (ask.run == run || run.starts_with(&format!("{}-fork-", ask.run)));
    let own = || asks.iter().filter(family).map(|ask| &ask.asked);
    let known = Known {
        run,
        told: told.clone(),
        calm: is_calm(case),
        forked: run.contains("-fork-"),
        pending_max: case.options.pending_max,
        skipped: own()
            .filter_map(|asked| if let Asked::Skip(node) = asked { Some(node.clone()) } else { None })
            .collect(),
        said: own().filter_map(|asked| if let Asked::Say(said) = asked { Some(said.clone()) } else { None }).collect(),
    };
    written::accepts(text, &came, &known).map_err(|why| format!("{}: {why}\n  it came to {came:?}", view.run))
}

/// What a run should do: one of the case or a fork of one what the case says, a child what a parent says somewhere.
fn tree_of(cluster: &Cluster, run: &RunKey) -> Result<Tree, String> {
    let (case, id) = (&cluster.case, run.id.as_str());
    let place = (0..case.runs.len()).find(|place| {
        let own = run_id(*place);
        id == own || id.strip_prefix(&own).is_some_and(|rest| rest.starts_with("-fork-") && !rest.contains('.'))
    });
    if let Some(place) = place {
        return Ok(case.runs[place].clone());
    }
    if let Some(table) = schedule_of(id).and_then(|schedule| case.schedules.get(schedule)) {
        return Ok(table.tree.clone());
    }
    let sight = cluster.watch.sight();
    let input = sight.runs.get(run).and_then(|shadow| shadow.chapters.first()).map(|chapter| chapter.input.clone());
    drop(sight);
    let input = input.ok_or_else(|| format!("{run} is there, and nobody saw it begin"))?;
    let Input { tree } = serde_json::from_slice(&input).map_err(|error| format!("{run}, its input: {error}"))?;
    if is_guest(id) && case.guests.iter().any(|guest| guest.tree == tree) {
        return Ok(tree);
    }
    let is_said = |part: &&Tree| matches!(part, Tree::Child(child) if *child.tree == tree);
    let in_text = |kid: &&Kid| matches!(kid, Kid::Code(said) if *said == tree);
    if case.written.iter().any(|text| text.kids().iter().any(in_text))
        || case.runs.iter().any(|run| run.all().iter().any(is_said))
    {
        Ok(tree)
    } else {
        Err(format!("{run} does what no parent said: {tree:?}"))
    }
}

fn modelled(
    cluster: &Cluster,
    view: &RunView,
    tree: &Tree,
    told: &BTreeMap<String, Told>,
    journal: Vec<Event>,
) -> Result<(), String> {
    let Some((ended, recorded)) = ended(view, journal) else { return Ok(()) };
    let case = &cluster.case;
    // A fork begins with the generation that was current then.
    let forked = view.run.id.as_str().contains("-fork-");
    let (run, told) = (view.run.id.to_string(), told.clone());
    let (calm, sql) = (is_calm(case) && !forked, cluster.ground.books.is_some());
    let (recorded, pending_max) = (Some(recorded), case.options.pending_max);
    let facts = Facts { run, told, calm, slack: slack(case), forked, sql, recorded, pending_max };
    let say = |broken| format!("{}: {broken}\n  it came to {ended:?}", view.run);
    if ended == Ended::Cancelled {
        cancelled(cluster, view, tree, &facts).map_err(say)?;
    }
    let trees = if forked { generations(tree) } else { vec![tree] };
    let mut verdicts = trees.into_iter().map(|tree| accepts(tree, &ended, &facts));
    let first = verdicts.next().unwrap_or(Ok(()));
    if verdicts.any(|verdict| verdict.is_ok()) { Ok(()) } else { first.map_err(say) }
}

/// What a cancelled run did until then, as its program saw that itself: its cleanup, too. A program that has ended may be
/// played again before that is on record, by somebody else or by one who does not know better: one of them is the one.
fn cancelled(cluster: &Cluster, view: &RunView, tree: &Tree, facts: &Facts) -> Result<(), String> {
    let run = view.run.id.as_str();
    let ends = cluster.ledger.ends().into_iter().filter(|end| end.run == run && end.generation == view.generation.0);
    let mut verdicts = ends.map(|end| accepts(tree, &Ended::Failed(end.failure), facts));
    let Some(first) = verdicts.next() else { return Ok(()) };
    if verdicts.any(|verdict| verdict.is_ok()) { Ok(()) } else { first }
}

/// How a run ended, and what it has on record of what its program was told.
fn ended(view: &RunView, mut journal: Vec<Event>) -> Option<(Ended, BTreeMap<String, String>)> {
    if !view.status.is_terminal() || view.status == Status::Parked {
        return None;
    }
    let ended = match journal.pop()? {
        Event::RunFinished { output } => match serde_json::from_slice(&output) {
            Ok(outcome) => Ended::Output(outcome),
            Err(error) => Ended::Failed(Failure::new("unreadable", format!("the output cannot be read: {error}"))),
        },
        Event::RunErrored { error } => Ended::Failed(error),
        Event::RunCancelled { .. } => Ended::Cancelled,
        Event::RunTerminated { .. } => Ended::Terminated,
        _ => return None,
    };
    Some((ended, journal.into_iter().filter_map(recorded).collect()))
}

fn recorded(event: Event) -> Option<(String, String)> {
    match event {
        Event::NowRecorded { key, value } => Some((key.to_string(), value.as_millis().to_string())),
        Event::UuidRecorded { key, value } => Some((key.to_string(), value.to_string())),
        Event::RandomRecorded { key, value } => Some((key.to_string(), value.to_string())),
        _ => None,
    }
}

/// Whether bodies take as long as they take.
fn is_calm(case: &Case) -> bool {
    case.faults.is_empty() && case.options.latency == 0 && case.options.drift.iter().all(|drift| *drift == 0)
}

/// How far the clocks that a run sees may disagree, in milliseconds; none if that has no bound.
fn slack(case: &Case) -> Option<u64> {
    let wild = case.faults.iter().any(|fault| match fault.what {
        Fault::Jump { .. } | Fault::Freeze { .. } | Fault::Cut { .. } => true,
        Fault::Call { fails, .. } => {
            matches!(
                fails,
                Fails::Late { .. } | Fails::Hangs { .. } | Fails::SentThenCrash { .. } | Fails::InFlight { .. }
            )
        }
        _ => false,
    });
    // A tenth of what passes between two looks at the store's clock, and what calls take.
    (!wild).then_some(case.options.poll / 5 + 4 * case.options.latency + 10)
}

/// What runs were told, as far as anybody outside knows.
fn told(cluster: &Cluster) -> BTreeMap<String, Told> {
    let mut told: BTreeMap<String, Told> = BTreeMap::new();
    let asks = cluster.ledger.asks();
    for ask in asks.iter().filter(|ask| ask.is_possible()) {
        add(told.entry(ask.run.clone()).or_default(), ask);
    }
    for (run, orders) in &cluster.watch.sight().told_to_stop {
        let one = told.entry(run.id.to_string()).or_default();
        // Whoever ends tells those it leaves behind, once or, if it is not sure, again.
        one.cancels += if orders.asked { 2 } else { 0 };
        one.terminated |= orders.ended;
    }
    let almanac = cluster.watch.sight().almanac.clone();
    let started = almanac.all().flat_map(|(_, edition)| edition.started.iter().map(|start| &start.run));
    for run in started.filter(|run| almanac.makes_way(run)) {
        let one = told.entry(run.id.to_string()).or_default();
        (one.cancels, one.terminated) = (one.cancels + 1, true);
    }
    let sight = cluster.watch.sight();
    for run in sight.runs.keys().filter(|run| sight.lobby.get(run).is_some_and(|visit| visit.replaced)) {
        told.entry(run.id.to_string()).or_default().cancels += 1;
    }
    // Who came when is not known there, and so not who had to make way.
    for run in sight.runs.keys().filter(|_| sight.overlapped) {
        let one = told.entry(run.id.to_string()).or_default();
        match (is_guest(run.id.as_str()), schedule_of(run.id.as_str())) {
            (true, _) => one.cancels += 1,
            (false, Some(_)) => (one.cancels, one.terminated) = (one.cancels + 1, true),
            (false, None) => {}
        }
    }
    drop(sight);
    for ask in asks.iter().filter(|ask| ask.is_possible()) {
        if let Asked::Fork { to, .. } = &ask.asked {
            let before = told.get(&ask.run).cloned().unwrap_or_default();
            let fork = told.entry(to.clone()).or_default();
            let after = std::mem::take(fork);
            *fork = Told {
                signals: before.signals.into_iter().chain(after.signals).collect(),
                decisions: before.decisions.into_iter().chain(after.decisions).collect(),
                answers: before.answers.into_iter().chain(after.answers).collect(),
                cancels: before.cancels + after.cancels,
                terminated: after.terminated,
            };
        }
    }
    told
}

fn add(told: &mut Told, ask: &Ask) {
    match &ask.asked {
        Asked::Signal { name, id, payload, aimed, .. } => {
            let (name, payload, id, aimed) = (name.clone(), payload.clone(), id.clone(), aimed.clone());
            told.signals.push(Sent { name, payload, id, aimed });
        }
        Asked::Approve { key, yes, .. } => told.decisions.push(Decision { key: key.clone(), approved: *yes }),
        Asked::Callback { key, value, .. } => {
            let what = value.clone().ok_or_else(crate::client::said_no);
            told.answers.push(Answer { key: key.clone(), what });
        }
        Asked::Cancel => told.cancels += 1,
        Asked::Terminate => told.terminated = true,
        Asked::Start | Asked::StartOther | Asked::Pause | Asked::Resume | Asked::Fork { .. } | Asked::Delete => {}
        Asked::Say(_) | Asked::Skip(_) | Asked::Again(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Timed;
    use crate::draw::draw;

    fn with(fault: Option<Fault>) -> Case {
        let mut case = draw(0);
        case.faults = fault.into_iter().map(|what| Timed { at: 0, what }).collect();
        (case.options.latency, case.options.drift) = (0, vec![0]);
        case
    }

    #[test]
    fn only_a_case_in_which_nothing_can_take_longer_is_calm() {
        assert!(is_calm(&with(None)));
        assert!(!is_calm(&with(Some(Fault::Deaf { process: 0, long: 1 }))));
        let slow = Case { options: crate::case::Options { latency: 3, ..with(None).options }, ..with(None) };
        assert!(!is_calm(&slow));
    }

    #[test]
    fn clocks_agree_unless_something_jumps_or_is_late() {
        assert!(slack(&with(None)).is_some());
        assert!(slack(&with(Some(Fault::Poison { run: 0, times: 1 }))).is_some());
        assert_eq!(slack(&with(Some(Fault::Jump { forward: true, by: 1 }))), None);
        let call = |fails| Fault::Call { process: 0, skip: 0, of: None, fails, early: false };
        assert!(slack(&with(Some(call(Fails::Refused)))).is_some());
        assert_eq!(slack(&with(Some(call(Fails::InFlight { before: 1 })))), None);
    }

    #[test]
    fn what_was_refused_is_not_told_to_anybody() {
        let ledger = Ledger::new();
        let signal = |id: &str, aimed: Option<&str>| Asked::Signal {
            name: "plum".to_owned(),
            id: id.to_owned(),
            payload: 1.into(),
            with_start: false,
            aimed: aimed.map(str::to_owned),
        };
        ledger.asked("r", signal("a", Some("wait-0")), Duration::ZERO);
        ledger.asked("r", Asked::Cancel, Duration::ZERO);
        let mut told = Told::default();
        ledger.asks().iter().for_each(|ask| add(&mut told, ask));
        assert_eq!((told.signals.len(), told.cancels, told.terminated), (1, 1, false));
        assert_eq!(told.signals[0].aimed.as_deref(), Some("wait-0"));
    }
}
