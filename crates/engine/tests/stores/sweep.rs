//! Timers that cannot be fired just now, or ever, and a node that goes on beside them.

use outlast::{Ctx, Status};

use crate::place::{Place, seconds};

async fn nap(ctx: Ctx, long: u64) -> outlast::Result<()> {
    ctx.sleep(seconds(long)).await
}

/// A peer that froze in the middle of a transaction holds the row of a run. Others would sweep back to back and do nothing else.
#[test]
fn a_due_timer_whose_run_somebody_holds_waits_and_the_others_do_not() {
    let place = Place::postgres("sweep_held");
    place.world.block_on(async {
        let engine = place.engine().workflow("nap", nap).poll(seconds(1)).start().await.unwrap();
        let held = engine.start("nap", &10).id("held").await.unwrap();
        let free = engine.start("nap", &20).id("free").await.unwrap();
        place.world.sleep(seconds(1)).await;
        place.write("BEGIN; SELECT 1 FROM run WHERE id = 'held' FOR UPDATE");
        free.result::<()>().await.unwrap();
        place.world.sleep(seconds(60)).await;
        let view = engine.run("held").unwrap().view().await.unwrap();
        assert_eq!(view.status, Status::Waiting);
        place.write("COMMIT");
        let freed = place.world.elapsed();
        held.result::<()>().await.unwrap();
        let took = place.world.elapsed() - freed;
        assert!(took <= seconds(2), "it is found at the next poll: {took:?}");
    });
}

/// Damage that no rule of ours leaves behind: there is nobody to tell, and it goes.
#[test]
fn a_timer_without_a_run_is_removed_and_the_others_fire() {
    Place::each("sweep_orphan", |place| {
        place.world.block_on(async {
            let engine = place.engine().workflow("nap", nap).poll(seconds(1)).start().await.unwrap();
            let run = engine.start("nap", &20).id("r").await.unwrap();
            place.world.sleep(seconds(1)).await;
            place.write("INSERT INTO timer (ns, run, key, kind, due) SELECT ns, 999999, 'k', 0, 1 FROM run");
            run.result::<()>().await.unwrap();
            place.world.sleep(seconds(5)).await;
            let outlook = place.store().outlook(Vec::new()).await.unwrap();
            assert_eq!(outlook.timer, None);
        });
    });
}
