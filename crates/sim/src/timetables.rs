//! Schedules when trouble is over: they are left alone for as long as anybody may need to look at them, every instant must have
//! been dealt with, and then no more come.

use std::rc::Rc;
use std::time::Duration;

use crate::client::Client;
use crate::cluster::Cluster;
use crate::oracle::Findings;
use crate::rest::bound;
use crate::watch::Edition;

/// What nobody gives notice of is looked for every so many polls.
const POLLS: u32 = 6;
/// How often to try to end a schedule, once a second.
const TRIES_MAX: u32 = 60;

/// Lets schedules fire, judges what they left undone, and ends them.
pub(crate) async fn keep_time(cluster: &Rc<Cluster>, client: &Client) -> Findings {
    let mut findings = Findings::default();
    let (case, world) = (&cluster.case, &cluster.world);
    if case.schedules.is_empty() {
        return findings;
    }
    let patience = bound(&case.options) + Duration::from_millis(case.options.poll) * POLLS;
    world.sleep(patience).await;
    if cluster.ground.in_memory {
        let (now, sight) = (world.now().as_millis(), cluster.watch.sight());
        for ((_, id), edition) in sight.almanac.all() {
            let undone = undone(edition, now, patience);
            findings.ensure(11, undone.is_none(), || {
                format!("{id} has the instant {undone:?}, it is {now}, and nobody deals with it: {:?}", edition.says)
            });
        }
    }
    for schedule in 0..case.schedules.len() {
        let mut tries = 0;
        while let Err(error) = client.end_schedule(case, schedule).await {
            tries += 1;
            if tries == TRIES_MAX {
                findings.check(11, Err(format!("a schedule cannot be ended: {error}")));
                break;
            }
            world.sleep(Duration::from_secs(1)).await;
        }
    }
    findings
}

/// An instant that somebody should have dealt with by now.
pub(crate) fn undone(edition: &Edition, now: i64, patience: Duration) -> Option<i64> {
    // One that has started all it may says so nowhere.
    if edition.removed || edition.paused || edition.says.remaining.is_some() {
        return None;
    }
    let patience = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
    let last = edition.says.last(now - edition.says.jitter - patience);
    let late = last + edition.says.catch_up < edition.looked;
    (last > edition.dealt && !late).then_some(last)
}
