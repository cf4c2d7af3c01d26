//! Sleeps: cases 2.x.

use std::time::Duration;

use outlast::{Ctx, Status};
use serde_json::Value;

use crate::support::on_both;

async fn named(ctx: Ctx, _: ()) -> outlast::Result<()> {
    ctx.sleep(Duration::from_secs(2)).id("custom_wait_name").await
}

/// Case 2.2.
#[test]
fn wait_2_2_a_sleep_may_have_a_name() {
    on_both(
        |engine| engine.workflow("named", named),
        async |case| {
            case.start("named", &()).await;
            case.succeeds(Value::Null).await;
            case.journal(&[
                "TIMER_STARTED custom_wait_name 2000 ms",
                "TIMER_FIRED custom_wait_name",
                "RUN_FINISHED null",
            ])
            .await;
            case.took(Duration::from_secs(2));
        },
    );
}

async fn nap(ctx: Ctx, duration: Duration) -> outlast::Result<()> {
    ctx.sleep(duration).await
}

fn sleeps(duration: Duration, started: &str) {
    on_both(
        |engine| engine.workflow("nap", nap),
        async |case| {
            case.start("nap", &duration).await;
            case.until(started).await;
            case.journal(&[started]).await;
            assert!(!case.status().await.is_terminal());
            case.succeeds(Value::Null).await;
            case.took(duration);
            assert_eq!(case.status().await, Status::Completed);
        },
    );
}

/// Case 2.4.
#[test]
fn wait_2_4_a_minute_is_sixty_seconds() {
    sleeps(Duration::from_secs(60), "TIMER_STARTED __sleep-0 60000 ms");
}

/// Case 2.5.
#[test]
fn wait_2_5_a_run_sleeps_for_an_hour() {
    sleeps(Duration::from_secs(3_600), "TIMER_STARTED __sleep-0 3600000 ms");
}
