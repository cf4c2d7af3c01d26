//! A small life with everything in it, for the oracle to look at.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use outlast::testing::World;
use outlast::{Checker, ClosePolicy, Ctx, Engine, Error, Outlast, Result, Retry, StepContext, Token};
use outlast_core::commit::{Delivery, WaitKind};
use outlast_core::id::{DeliveryId, Key, Namespace, RunId, RunKey};
use outlast_core::limits::Limits;
use outlast_store::{Delivered, MemoryStore, Retention, Store, TaskState};
use serde_json::{Value, json};

use crate::interpret::{Order, Outside, employ, enqueue};
use crate::ledger::{Asked, Body, Ledger, Policy, Told};
use crate::oracle::{Evidence, Scene, examine};
use crate::tree::{Errand, Work};
use crate::violation::Findings;
use crate::watch::Watch;

pub(crate) const NAP: Duration = Duration::from_secs(5);
/// How long the flaky step waits.
pub(crate) const DELAY: Duration = Duration::from_millis(500);

/// How far clocks are apart.
pub(crate) const SLACK: Duration = Duration::from_millis(10);

pub(crate) fn key(id: &str) -> RunKey {
    RunKey::new(Namespace::default_namespace(), RunId::new(id).unwrap())
}

/// A body ran.
fn witness(ledger: &Ledger, step: &StepContext) {
    let id = step.idempotency_key().to_owned();
    let parts: Vec<&str> = id.splitn(4, '/').collect();
    ledger.body(Body {
        run: parts[1].to_owned(),
        generation: parts[2].parse().unwrap(),
        key: parts[3].to_owned(),
        attempt: step.attempt(),
        idempotency_key: id.clone(),
        version: "1".to_owned(),
        at: Duration::ZERO,
    });
}

async fn whole(ledger: Arc<Ledger>, ctx: Ctx, n: u32) -> Result<u32> {
    let policy = Policy { attempts: 3, shortest: DELAY / 2, longest: DELAY };
    ledger.policy(ctx.run_id().as_str(), ctx.generation().0, "flaky", policy);
    let flaky = ctx.step("flaky", async |s: StepContext| {
        witness(&ledger, &s);
        if s.attempt() < 2 { Err(Error::new("not_yet", "again")) } else { Ok(1) }
    });
    let mut sum: u32 = flaky.retry(Retry::attempts(3).initial(DELAY)).await?;
    let careful = ctx.step("careful", async |s: StepContext| {
        witness(&ledger, &s);
        Ok(1)
    });
    sum += careful.at_most_once().await?;
    ctx.sleep(NAP).id("nap").await?;
    if n > 0 {
        return ctx.continue_as_new(&(n - 1));
    }
    for _ in 0..2 {
        sum += ctx.wait_for::<u32>("value").await?;
    }
    sum += u32::from(ctx.approve("Go on?").id("go").await?.approved);
    let call = ctx.wait_for_callback("call", async |s: StepContext, token: Token| {
        witness(&ledger, &s);
        ledger.token(s.run_id().as_str(), "call", token.as_str());
        Ok(())
    });
    sum += call.await.unwrap_or(0);
    sum += ctx.child::<u32>("child", &n).id("kid").await?;
    let _left = ctx.child::<()>("patient", &()).id("left").on_close(ClosePolicy::Terminate).start();
    Ok(sum)
}

async fn child(ledger: Arc<Ledger>, ctx: Ctx, n: u32) -> Result<u32> {
    ctx.step("work", async |s: StepContext| {
        witness(&ledger, &s);
        Ok(n)
    })
    .await
}

async fn patient(ctx: Ctx, (): ()) -> Result<()> {
    ctx.wait_for::<()>("never").await
}

/// Waits with somebody below it.
async fn family(ctx: Ctx, (): ()) -> Result<()> {
    ctx.child::<()>("patient", &()).id("below").await
}

/// Has somebody else do something.
async fn busy(ctx: Ctx, (): ()) -> Result<Value> {
    ctx.task(
        "errand",
        &Order { work: Work { attempts: 1, takes: Some(0), ..Work::default() }, edition: None, hands: None },
    )
    .await
}

async fn drowsy(ctx: Ctx, (): ()) -> Result<()> {
    ctx.sleep(Duration::from_secs(100_000_000)).await
}

pub(crate) fn register(engine: Outlast, ledger: &Arc<Ledger>) -> Outlast {
    let (one, other) = (Arc::clone(ledger), Arc::clone(ledger));
    engine
        .workflow("whole", move |ctx: Ctx, n: u32| whole(Arc::clone(&one), ctx, n))
        .workflow("child", move |ctx: Ctx, n: u32| child(Arc::clone(&other), ctx, n))
        .workflow("patient", patient)
        .workflow("family", family)
        .workflow("drowsy", drowsy)
        .workflow("busy", busy)
}

/// A client.
struct Client<'s> {
    engine: &'s Engine,
    ledger: &'s Ledger,
    store: Arc<dyn Store>,
}

impl Client<'_> {
    async fn ask<T, E: std::fmt::Debug>(
        &self,
        run: &str,
        asked: Asked,
        done: impl IntoFuture<Output = std::result::Result<T, E>>,
    ) {
        let number = self.ledger.asked(run, asked, Duration::ZERO);
        done.await.unwrap();
        self.ledger.told(number, Told::Done("Delivered".to_owned()), Duration::ZERO);
    }

    async fn start<T: serde::Serialize>(&self, run: &str, workflow: &str, input: &T) {
        self.ask(run, Asked::Start, self.engine.start(workflow, input).id(run)).await;
    }

    async fn signal(&self, run: &str, name: &str, value: u32, id: &str) {
        let (name_of, id_of) = (name.to_owned(), id.to_owned());
        let asked = Asked::Signal { name: name_of, id: id_of, payload: json!(value), with_start: false, aimed: None };
        let handle = self.engine.run(run).unwrap();
        self.ask(run, asked, handle.signal(name, &value, id)).await;
    }

    async fn answer(&self, run: &str, at: &str, kind: WaitKind, meta: Value, payload: Option<Value>, asked: Asked) {
        let token = self.ledger.tokens().into_iter().find(|(of, ..)| of == run).map(|(_, _, token)| token);
        let delivery = Delivery::Answer {
            run: key(run),
            key: Key::new(at).unwrap(),
            kind,
            id: DeliveryId::new(format!("answer of {at}")).unwrap(),
            token: token.filter(|_| kind == WaitKind::Callback),
            meta: Some(Bytes::from(meta.to_string())),
            payload: payload.map(|payload| Bytes::from(payload.to_string())),
        };
        let store = Arc::clone(&self.store);
        let given = async move { store.deliver(vec![delivery]).await.remove(0) };
        let number = self.ledger.asked(run, asked, Duration::ZERO);
        assert_eq!(given.await, Ok(Delivered::Delivered));
        self.ledger.told(number, Told::Done("Delivered".to_owned()), Duration::ZERO);
    }
}

/// A story that was told, and everybody who saw it.
pub(crate) struct Story {
    pub(crate) world: World,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) watch: Watch,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) checker: Checker,
}

impl Story {
    pub(crate) fn tell() -> Story {
        let world = World::new();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
        let watch = Watch::new(Arc::clone(&store), world.clock());
        let ledger = Ledger::new();
        let checker = register(world.engine(), &Ledger::new()).checker();
        let engine = register(world.engine_on(watch.of("p1")), &ledger.of("p1"));
        let engine = employ(engine, Outside::new(ledger.of("p1"), world.time(), None));
        world.block_on(async {
            let engine = engine.start().await.unwrap();
            let client = Client { engine: &engine, ledger: &ledger, store: watch.of("client") };
            client.happens(&world).await;
        });
        Story { world, store, watch, ledger, checker }
    }

    pub(crate) fn examine(&self) -> Findings {
        let (checker, patience) = (Some(&self.checker), Some(Duration::from_secs(3_600)));
        let scene = Scene { checker, patience, slack: Some(SLACK), is_end: true, ..Scene::default() };
        self.world.block_on(examine(&*self.store, &self.watch, &self.ledger, &scene))
    }

    pub(crate) fn evidence(&self) -> Evidence {
        self.world.block_on(Evidence::gather(&*self.store, &self.watch, &self.ledger)).unwrap()
    }
}

impl Client<'_> {
    /// A run that goes because it ended long ago.
    async fn grows_old(&self, world: &World) {
        self.start("old", "child", &1_u32).await;
        let _ = self.engine.run("old").unwrap().result::<u32>().await;
        world.sleep(NAP).await;
        let retained = self.store.retain(Retention { age: NAP, limit: 100 }).await.unwrap();
        assert_eq!(retained.runs, 1);
    }

    /// Tasks: one that is done, one that is done at the second attempt, one that is never done, two that are done alone.
    async fn works(&self, world: &World) {
        for (id, fails, alone) in
            [("done", 0, false), ("late", 1, false), ("dead", 2, false), ("a", 0, true), ("b", 0, true)]
        {
            let work = Work { fails, attempts: 2, delay: 2_000, takes: Some(300), ..Work::default() };
            self.ledger.queues(id);
            enqueue(self.engine, id, &Errand { work, alone, ..Errand::default() }).await.unwrap();
            self.ledger.queued(id);
        }
        while self.engine.tasks().await.unwrap().tasks.iter().any(|task| task.state != TaskState::Dead) {
            world.sleep(NAP).await;
        }
    }

    async fn happens(&self, world: &World) {
        let run = |id: &str| self.engine.run(id).unwrap();
        self.grows_old(world).await;
        self.works(world).await;
        self.start("busy", "busy", &()).await;
        self.start("whole", "whole", &1_u32).await;
        self.signal("whole", "value", 1, "s1").await;
        self.signal("whole", "value", 2, "s2").await;
        for (id, workflow) in [
            ("held", "patient"),
            ("stopped", "family"),
            ("ended", "patient"),
            ("paused", "drowsy"),
            ("asleep", "drowsy"),
        ] {
            self.start(id, workflow, &()).await;
        }
        self.until(world, "whole", "go").await;
        self.signal("held", "other", 3, "s3").await;
        self.ask("held", Asked::Fork { at: 1, to: "fork".to_owned() }, run("held").fork(1).id("fork")).await;
        self.ask("paused", Asked::Pause, run("paused").pause("a pause")).await;
        self.ask("stopped", Asked::Cancel, run("stopped").cancel("enough")).await;
        self.ask("ended", Asked::Terminate, run("ended").terminate("enough")).await;
        let (yes, by) = (true, "ann".to_owned());
        let asked = Asked::Approve { key: "go".to_owned(), id: "answer of go".to_owned(), yes, by };
        let meta = json!({"decided": {"approved": true, "by": "ann", "feedback": null}});
        self.answer("whole", "go", WaitKind::Approval, meta, None, asked).await;
        let callback = self.until(world, "whole", "call").await;
        let asked =
            Asked::Callback { key: callback.clone(), id: format!("answer of {callback}"), value: Some(json!(7)) };
        self.answer("whole", &callback, WaitKind::Callback, json!("resolved"), Some(json!(7)), asked).await;
        let sum: u32 = run("whole").result().await.unwrap();
        assert_eq!(sum, 1 + 1 + 3 + 1 + 7, "the story goes as it should");
        let _ = run("left").result::<()>().await;
        let _ = run("below").result::<()>().await;
        let _ = run("stopped").result::<()>().await;
        while run("paused").status().await.unwrap() != outlast::Status::Paused {
            world.sleep(NAP).await;
        }
    }

    /// Waits until a run waits for something; for what.
    async fn until(&self, world: &World, run: &str, what: &str) -> String {
        loop {
            let waits = waits(self.engine, run).await;
            if let Some(key) = waits.into_iter().find(|key| key.starts_with(what)) {
                return key;
            }
            world.sleep(NAP).await;
        }
    }
}

async fn waits(engine: &Engine, run: &str) -> Vec<String> {
    let awaiting = engine.run(run).unwrap().awaiting().await.unwrap();
    let keys = awaiting.into_iter().filter_map(|awaited| match awaited {
        outlast::Awaited::Wait { key, .. } => Some(key.to_string()),
        _ => None,
    });
    keys.collect()
}
