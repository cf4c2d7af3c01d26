//! Children: cases 5.x.

use outlast::{Ctx, Error, Outlast};
use outlast_core::id::Namespace;
use outlast_core::limits::Limits;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::support::{count, counted, on_both};

/// Returns what it gets.
async fn echo(_: Ctx, input: Value) -> outlast::Result<Value> {
    Ok(input)
}

fn with_echo(engine: Outlast) -> Outlast {
    engine.workflow("echo", echo)
}

async fn calls(ctx: Ctx, input: Value) -> outlast::Result<Value> {
    ctx.child("echo", &input).named("call").await
}

/// Case 5.1.
#[test]
fn invoke_5_1_a_child_returns_what_it_was_given() {
    on_both(
        |engine| with_echo(engine).workflow("calls", calls),
        async |case| {
            case.start("calls", "word").await;
            case.succeeds(json!("word")).await;
            case.journal(&["CHILD_STARTED call echo", r#"CHILD_FINISHED call "word""#, r#"RUN_FINISHED "word""#]).await;
        },
    );
}

/// Case 5.4.
#[test]
fn invoke_5_4_a_child_returns_nothing() {
    on_both(
        |engine| with_echo(engine).workflow("calls", calls),
        async |case| {
            case.start("calls", &()).await;
            case.succeeds(Value::Null).await;
            case.journal(&["CHILD_STARTED call echo", "CHILD_FINISHED call null", "RUN_FINISHED null"]).await;
        },
    );
}

async fn fails(_: Ctx, _: ()) -> outlast::Result<()> {
    Err(Error::new("out_of_stock", "none left"))
}

async fn calls_failing(ctx: Ctx, _: ()) -> outlast::Result<()> {
    ctx.child("fails", &()).named("call").await
}

/// Case 5.5.
#[test]
fn invoke_5_5_a_child_fails_and_so_does_its_parent() {
    on_both(
        |engine| engine.workflow("fails", fails).workflow("calls", calls_failing),
        async |case| {
            case.start("calls", &()).await;
            assert_eq!(case.fails("out_of_stock").await.message, "none left");
            case.journal(&["CHILD_STARTED call fails", "CHILD_FAILED call out_of_stock", "RUN_ERRORED out_of_stock"])
                .await;
        },
    );
}

async fn length(_: Ctx, text: String) -> outlast::Result<usize> {
    Ok(text.len())
}

async fn calls_with_much(ctx: Ctx, letters: usize) -> outlast::Result<usize> {
    ctx.child("length", &"x".repeat(letters)).named("call").await
}

/// Case 5.7.
#[test]
fn invoke_5_7_a_child_gets_an_input_as_large_as_can_be() {
    // The text has quotes around it.
    let letters = Limits::default().payload_bytes - 2;
    on_both(
        |engine| engine.workflow("length", length).workflow("calls", calls_with_much),
        async |case| {
            case.start("calls", &letters).await;
            case.succeeds(json!(letters)).await;
            case.journal(&[
                "CHILD_STARTED call length",
                &format!("CHILD_FINISHED call {letters}"),
                &format!("RUN_FINISHED {letters}"),
            ])
            .await;
        },
    );
}

async fn tenant(ctx: Ctx, payload: String) -> outlast::Result<(String, String)> {
    Ok((ctx.namespace().to_string(), payload))
}

async fn calls_tenant(ctx: Ctx, payload: String) -> outlast::Result<(String, String)> {
    ctx.child("tenant", &payload).named("call").await
}

/// Case 5.8. A child belongs to the tenant of its parent, and to no other.
#[test]
fn invoke_5_8_a_child_belongs_to_the_tenant_of_its_parent() {
    on_both(
        |engine| {
            let acme = Namespace::new("acme").expect("this is a name");
            engine.namespace(acme).workflow("tenant", tenant).workflow("calls", calls_tenant)
        },
        async |case| {
            case.make_namespace("acme");
            case.start("calls", "word").await;
            case.succeeds(json!(["acme", "word"])).await;
            case.journal(&[
                "CHILD_STARTED call tenant",
                r#"CHILD_FINISHED call ["acme","word"]"#,
                r#"RUN_FINISHED ["acme","word"]"#,
            ])
            .await;
        },
    );
}

async fn step_then_child(ctx: Ctx, _: ()) -> outlast::Result<String> {
    let word = ctx
        .step("word", async |_| {
            count("word");
            Ok("word".to_owned())
        })
        .await?;
    ctx.child("echo", &word).named("call").await
}

/// Case 5.11.
#[test]
fn invoke_5_11_a_child_gets_what_a_step_returned() {
    on_both(
        |engine| with_echo(engine).workflow("calls", step_then_child),
        async |case| {
            case.start("calls", &()).await;
            case.succeeds(json!("word")).await;
            case.journal(&[
                r#"STEP_FINISHED word "word" (1)"#,
                "CHILD_STARTED call echo",
                r#"CHILD_FINISHED call "word""#,
                r#"RUN_FINISHED "word""#,
            ])
            .await;
            assert_eq!(counted("word"), 1);
        },
    );
}

async fn child_then_step(ctx: Ctx, _: ()) -> outlast::Result<String> {
    let word: String = ctx.child("echo", "word").named("call").await?;
    ctx.step("louder", async |_| Ok(word.to_uppercase())).await
}

/// Case 5.12.
#[test]
fn invoke_5_12_a_step_uses_what_a_child_returned() {
    on_both(
        |engine| with_echo(engine).workflow("calls", child_then_step),
        async |case| {
            case.start("calls", &()).await;
            case.succeeds(json!("WORD")).await;
            case.journal(&[
                "CHILD_STARTED call echo",
                r#"CHILD_FINISHED call "word""#,
                r#"STEP_FINISHED louder "WORD" (1)"#,
                r#"RUN_FINISHED "WORD""#,
            ])
            .await;
        },
    );
}

async fn two_children(ctx: Ctx, _: ()) -> outlast::Result<(u32, usize)> {
    let first: u32 = ctx.child("echo", &7).named("first").await?;
    let second: usize = ctx.child("length", "four").named("second").await?;
    Ok((first, second))
}

/// Case 5.14.
#[test]
fn invoke_5_14_two_children_one_after_the_other() {
    on_both(
        |engine| with_echo(engine).workflow("length", length).workflow("calls", two_children),
        async |case| {
            case.start("calls", &()).await;
            case.succeeds(json!([7, 4])).await;
            case.journal(&[
                "CHILD_STARTED first echo",
                "CHILD_FINISHED first 7",
                "CHILD_STARTED second length",
                "CHILD_FINISHED second 4",
                "RUN_FINISHED [7,4]",
            ])
            .await;
        },
    );
}

/// Text that is read in capitals.
struct ReadLoud(String);

impl<'de> Deserialize<'de> for ReadLoud {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(ReadLoud(String::deserialize(deserializer)?.to_uppercase()))
    }
}

async fn calls_loud(ctx: Ctx, word: String) -> outlast::Result<String> {
    let loud: ReadLoud = ctx.child("echo", &word).named("call").await?;
    Ok(loud.0)
}

/// Case 5.16.
#[test]
fn invoke_5_16_a_type_decides_how_the_result_of_a_child_is_read() {
    on_both(
        |engine| with_echo(engine).workflow("calls", calls_loud),
        async |case| {
            case.start("calls", "hello").await;
            case.succeeds(json!("HELLO")).await;
            case.journal(&["CHILD_STARTED call echo", r#"CHILD_FINISHED call "hello""#, r#"RUN_FINISHED "HELLO""#])
                .await;
        },
    );
}
