//! Operations without code of the author: sleeps, signals, approvals, callbacks, children, questions.

use std::time::Duration;

use outlast_core::event::{ClosePolicy, Event};
use outlast_core::failure::Failure;
use outlast_core::id::RunId;
use outlast_core::operation::{Due, Operation as Request};
use outlast_core::program::Progress;
use outlast_core::time::Timestamp;
use serde_json::{Value, json};

use super::{Stage, key};
use crate::code::{Ctx, Decision};
use crate::error::{Error, Result};

#[test]
fn a_sleep_ends_with_its_fact() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<&'static str> {
        ctx.sleep(Duration::from_secs(60)).await?;
        ctx.sleep_until(Timestamp::from_millis(9)).await?;
        Ok("rested")
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.progress, Some(Progress::Blocked));
    stage.fire("__sleep-0").fire("__sleep-1").assert_replays();
    assert_eq!(stage.output(), json!("rested"));
    let dues: Vec<Due> = stage
        .requests
        .iter()
        .filter_map(|requested| match requested.operation {
            Request::StartTimer { due, .. } => Some(due),
            _ => None,
        })
        .collect();
    assert_eq!(dues, [Due::After(Duration::from_secs(60)), Due::At(Timestamp::from_millis(9))]);
}

#[test]
fn a_signal_gives_its_payload_and_null_is_a_payload() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(u32, Option<u32>, Option<Option<u32>>)> {
        let plain = ctx.wait_for("a").await?;
        let null = ctx.wait_for::<Option<u32>>("b").await?;
        let in_time = ctx.wait_for::<Option<u32>>("c").timeout(Duration::from_secs(1)).await?;
        Ok((plain, null, in_time))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().signal("__wait-a-0", json!(1)).signal("__wait-b-0", Value::Null);
    stage.signal("__wait-c-0", Value::Null).assert_replays();
    assert_eq!(stage.output(), json!([1, null, null]));
}

#[test]
fn a_wait_whose_deadline_passed_gives_none() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<bool> {
        let wait = ctx.wait_for::<u32>("late").deadline(Timestamp::from_millis(7)).id("wait");
        Ok(wait.await?.is_none())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().happen(Event::SignalTimedOut { key: key("wait"), name: "late".try_into().unwrap() });
    stage.assert_replays();
    assert_eq!(stage.output(), json!(true));
    let Request::AwaitSignal { deadline, .. } = &stage.requests[0].operation else { panic!() };
    assert_eq!(*deadline, Some(Due::At(Timestamp::from_millis(7))));
}

#[test]
fn a_payload_of_another_form_is_an_error_that_says_so() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<u32> {
        ctx.wait_for("number").await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().signal("__wait-number-0", json!("seven")).assert_replays();
    assert_eq!(stage.failure().code, "validation_error");
    assert!(stage.failure().message.contains("u32"), "{}", stage.failure());
}

#[test]
fn a_decision_is_a_value_also_if_it_is_a_no() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(Decision, Option<Decision>)> {
        let decision = ctx.approve("Ship?").assignee("ops").await?;
        let late = ctx.approve("Again?").timeout(Duration::from_secs(1)).await?;
        Ok((decision, late))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().happen(Event::ApprovalResolved {
        key: key("__approve-0"),
        approval: "a-1".to_owned(),
        approved: false,
        by: Some("ann".to_owned()),
        feedback: Some("too dear".to_owned()),
    });
    stage.happen(Event::ApprovalTimedOut { key: key("__approve-1"), approval: "a-1".to_owned() }).assert_replays();
    let no = json!({ "approved": false, "by": "ann", "feedback": "too dear", "approval": "a-1" });
    assert_eq!(stage.output(), json!([no, null]));
    let Request::RequestApproval { title, assignee, .. } = &stage.requests[0].operation else { panic!() };
    assert_eq!((title.as_str(), assignee.as_deref()), ("Ship?", Some("ops")));
}

fn answered(callback: &str, payload: &Value) -> Event {
    Event::CallbackResolved { key: key(callback), callback: callback.to_owned(), payload: payload.to_string().into() }
}

#[test]
fn a_callback_has_a_token_before_it_is_answered() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(String, String, u32)> {
        let callback = ctx.callback::<u32>().id("lab").heartbeat(Duration::from_secs(5)).create();
        let (id, token) = (callback.id().to_owned(), callback.token());
        let sent = ctx.step("send", async |_| Ok(token.clone())).await?;
        Ok((id, sent, callback.await?))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().happen(answered("lab", &json!(7))).assert_replays();
    assert_eq!(stage.output(), json!(["lab", "secret-lab", 7]));
    assert_eq!(stage.told(), ["callback lab", "step send", "await send", "finish send \"secret-lab\"", "await lab"]);
}

#[test]
fn a_callback_fails_or_is_late() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(String, bool)> {
        let failed = ctx.callback::<u32>().create().await.unwrap_err();
        let late = ctx.callback::<u32>().timeout(Duration::from_secs(1)).create().await.unwrap_err();
        Ok((failed.code().to_owned(), late.is_timeout()))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().happen(Event::CallbackFailed {
        key: key("__callback-0"),
        callback: "__callback-0".to_owned(),
        error: Failure::new("broken", "no"),
    });
    stage.happen(Event::CallbackTimedOut { key: key("__callback-1"), callback: "__callback-1".to_owned() });
    stage.assert_replays();
    assert_eq!(stage.output(), json!(["broken", true]));
}

#[test]
fn a_submitted_callback_is_a_scope_with_a_step_inside() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<u32> {
        ctx.wait_for_callback("lab", async |_, token| {
            assert_eq!(token.as_str(), "secret-lab/__callback-0");
            Ok(())
        })
        .timeout(Duration::from_secs(9))
        .await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    stage.happen(answered("lab/__callback-0", &json!(7))).assert_replays();
    assert_eq!(stage.output(), json!(7));
    assert_eq!(
        stage.told(),
        [
            "scope lab",
            "await lab",
            "callback lab/__callback-0",
            "step lab/submit",
            "await lab/submit",
            "finish lab/submit null",
            "await lab/__callback-0",
            "close lab 7"
        ]
    );
}

#[test]
fn a_submitted_callback_that_cannot_be_submitted_fails() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<u32> {
        ctx.wait_for_callback("lab", async |_, _| Err(Error::new("closed", "no lab").permanent())).await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.failure().code, "closed");
    assert_eq!(stage.told().last().unwrap(), "fail lab closed");
}

#[test]
fn a_child_gives_what_it_returns_or_its_failure() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(u32, String)> {
        let good = ctx.child("ship", &1).id("ship-1").version("2").on_close(ClosePolicy::Terminate).await?;
        let bad = ctx.child::<u32>("ship", &2).await.unwrap_err();
        Ok((good, bad.code().to_owned()))
    }
    let child = || RunId::new("ship-1").unwrap();
    let mut stage = Stage::new(workflow, ());
    stage.start().happen(Event::ChildFinished { key: key("__child-0"), child: child(), result: "7".into() });
    let error = Failure::new("sunk", "no");
    stage.happen(Event::ChildFailed { key: key("__child-1"), child: child(), error }).assert_replays();
    assert_eq!(stage.output(), json!([7, "sunk"]));
    let start = Request::StartChild {
        key: key("__child-0"),
        child: Some(child()),
        workflow: "ship".try_into().unwrap(),
        version: Some("2".try_into().unwrap()),
        input: "1".into(),
        detached: false,
        on_close: ClosePolicy::Terminate,
    };
    assert_eq!(stage.requests[0].operation, start);
}

#[test]
fn a_detached_child_gives_its_id_once_it_is_started_and_goes_on_alone() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<RunId> {
        ctx.child::<u32>("audit", &1).detach().await
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.output(), json!("child-1"));
    let Request::StartChild { detached, on_close, .. } = stage.requests[0].operation else { panic!() };
    assert_eq!((detached, on_close), (true, ClosePolicy::Abandon));
}

#[test]
fn questions_are_answered_at_once_and_the_same_on_replay() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<(Timestamp, uuid::Uuid, u64)> {
        Ok((ctx.now().await?, ctx.uuid().await?, ctx.random().await?))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    assert_eq!(stage.output()[0], json!(1_000));
    assert_eq!(stage.requests.len(), 3);
    stage.assert_replays();
}

#[test]
fn what_is_emitted_and_shown_is_requested_in_order() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<()> {
        ctx.emit("began", &json!({ "n": 1 }))?;
        ctx.set_state("halfway")?;
        let odd = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert_eq!(ctx.emit("odd", &odd).unwrap_err().code(), "validation_error");
        Ok(())
    }
    let mut stage = Stage::new(workflow, ());
    stage.start().assert_replays();
    assert_eq!(stage.told(), ["emit began {\"n\":1}", "state \"halfway\""]);
}

#[test]
fn a_workflow_knows_its_run() {
    async fn workflow(ctx: Ctx, (): ()) -> Result<String> {
        Ok(format!(
            "{} {} {} {} {} {}",
            ctx.namespace(),
            ctx.run_id(),
            ctx.workflow(),
            ctx.version(),
            ctx.generation(),
            ctx.is_cancelled()
        ))
    }
    let mut stage = Stage::new(workflow, ());
    stage.start();
    assert_eq!(stage.output(), json!("shop order-42 test 1 3 false"));
}

#[test]
fn a_generation_ends_without_a_result_and_scopes_around_it_record_nothing() {
    async fn workflow(ctx: Ctx, n: u32) -> Result<u32> {
        ctx.scope("outer", async |ctx| {
            ctx.map(
                "each",
                vec![1, 2],
                async |ctx, item, _| {
                    if item == 2 { ctx.continue_as_new(&(n + 1)) } else { Ok(item) }
                },
            )
            .await?
            .results()
        })
        .await?;
        Ok(0)
    }
    let mut stage = Stage::new(workflow, 4);
    stage.start();
    assert_eq!(stage.progress, Some(Progress::Finished(bytes::Bytes::new())));
    assert_eq!(stage.told(), ["scope outer", "await outer", "scope outer/each", "await outer/each", "continue 5"]);
}
