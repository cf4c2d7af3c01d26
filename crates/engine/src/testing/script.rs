//! What happens to a run from outside, and when.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{Control, Delivery, Signal, WaitKind};
use outlast_core::id::{DeliveryId, Key, RunKey, SignalName};
use outlast_core::time::Timestamp;
use outlast_store::Delivered;
use serde::Serialize;

use crate::client::{EngineError, RunHandle};
use crate::drive::{AnswerMeta, ControlMeta};

/// How long to wait, in the world's time, until an approval that was not asked for yet may have been.
const AGAIN: Duration = Duration::from_secs(1);

/// What happens to a run from outside, and when: signals, decisions, pauses, a cancellation. Times are counted from when
/// the run was created. Everything has a fixed id, so that a script that is played again after a crash, as
/// [`super::crash_everywhere`] does, does nothing twice.
///
/// ```
/// use std::time::Duration;
/// use outlast::Ctx;
/// use outlast::testing::{Script, World};
///
/// async fn ask(ctx: Ctx, _: ()) -> outlast::Result<String> {
///     let word: String = ctx.wait_for("word").await?;
///     let decision = ctx.approve("Say it?").id("say").await?;
///     Ok(if decision.approved { word } else { String::new() })
/// }
///
/// let world = World::new();
/// let said: String = world.block_on(async {
///     let engine = world.engine().workflow("ask", ask).start().await.unwrap();
///     let run = engine.start("ask", &()).id("a").await.unwrap();
///     let day = Duration::from_secs(86_400);
///     let script = Script::new().signal_at(day, "word", "hello").pause_at(2 * day).resume_at(3 * day).approve_at(4 * day, "say", true);
///     script.play(&run).await.unwrap();
///     run.result().await.unwrap()
/// });
/// assert_eq!(said, "hello");
/// ```
#[derive(Default)]
#[must_use = "nothing happens until it is played"]
pub struct Script {
    scenes: Vec<(Duration, Scene)>,
}

enum Scene {
    Signal { name: String, payload: Result<Bytes, EngineError> },
    Approve { approval: String, approved: bool },
    Control { control: Control, reason: Option<String> },
    Then(Act),
}

type Act = Box<dyn Fn(RunKey) -> Pin<Box<dyn Future<Output = Result<(), EngineError>>>>>;

impl Script {
    /// A script in which nothing happens.
    pub fn new() -> Script {
        Script::default()
    }

    /// A signal is sent.
    pub fn signal_at<T: Serialize + ?Sized>(self, after: Duration, name: &str, payload: &T) -> Script {
        let payload = crate::client::encode(payload);
        self.scene(after, Scene::Signal { name: name.to_owned(), payload })
    }

    /// An approval is decided; if it was not asked for yet, as soon as it is.
    pub fn approve_at(self, after: Duration, approval: &str, approved: bool) -> Script {
        self.scene(after, Scene::Approve { approval: approval.to_owned(), approved })
    }

    /// The run is asked to stop.
    pub fn cancel_at(self, after: Duration, reason: &str) -> Script {
        self.scene(after, Scene::Control { control: Control::Cancel, reason: Some(reason.to_owned()) })
    }

    /// The run is asked to start nothing new.
    pub fn pause_at(self, after: Duration) -> Script {
        self.scene(after, Scene::Control { control: Control::Pause, reason: None })
    }

    /// The run may go on.
    pub fn resume_at(self, after: Duration) -> Script {
        self.scene(after, Scene::Control { control: Control::Resume, reason: None })
    }

    /// Anything else happens. It must do nothing twice when it is called twice: after a crash it is.
    pub fn at<Fut>(self, after: Duration, act: impl Fn(RunKey) -> Fut + 'static) -> Script
    where
        Fut: Future<Output = Result<(), EngineError>> + 'static,
    {
        self.scene(after, Scene::Then(Box::new(move |run| Box::pin(act(run)))))
    }

    fn scene(mut self, after: Duration, scene: Scene) -> Script {
        self.scenes.push((after, scene));
        self
    }

    /// Lets everything happen, one after the other, each at its time, or at once if that has passed. What comes too late,
    /// because the run has ended or the wait is over, is nobody's fault.
    ///
    /// # Errors
    ///
    /// If the engine or its store cannot be reached, or a name cannot be one.
    pub async fn play(&self, run: &RunHandle) -> Result<(), EngineError> {
        let begun = run.view().await?.created_at;
        let mut scenes: Vec<(usize, &(Duration, Scene))> = self.scenes.iter().enumerate().collect();
        scenes.sort_by_key(|(_, (after, _))| *after);
        for (number, (after, scene)) in scenes {
            until(run, begun + *after).await;
            match scene {
                Scene::Then(act) => act(run.key().clone()).await?,
                scene => deliver(run, scene.delivery(run.key(), number)?).await?,
            }
        }
        Ok(())
    }
}

impl Scene {
    /// What is left for the run. The same scene of the same script always has the same id.
    fn delivery(&self, run: &RunKey, number: usize) -> Result<Delivery, EngineError> {
        let (run, id) = (run.clone(), DeliveryId::new(format!("script-{number}"))?);
        Ok(match self {
            Scene::Signal { name, payload } => {
                let (name, payload) = (SignalName::new(name)?, payload.clone()?);
                Delivery::Signal { run, signal: Signal { name, id, payload, aimed: None } }
            }
            Scene::Approve { approval, approved } => {
                let decided = AnswerMeta::Decided { approved: *approved, by: None, feedback: None };
                let (key, meta) = (Key::new(approval)?, Some(crate::client::encode(&decided)?));
                Delivery::Answer { run, key, kind: WaitKind::Approval, id, token: None, meta, payload: None }
            }
            Scene::Control { control, reason } => {
                let meta = ControlMeta { reason: reason.clone(), ..ControlMeta::default() };
                let meta = Some(crate::client::encode(&meta)?);
                Delivery::Control { run, control: *control, id, meta, child_of: None }
            }
            Scene::Then(_) => return Err(EngineError::Invalid("this is not delivered".to_owned())),
        })
    }
}

async fn deliver(run: &RunHandle, delivery: Delivery) -> Result<(), EngineError> {
    loop {
        let delivered = run.engine().deliver(delivery.clone()).await?;
        if delivered != Delivered::NotFound || run.status().await?.is_terminal() {
            return Ok(());
        }
        until(run, run.engine().inner.time.now() + AGAIN).await;
    }
}

async fn until(run: &RunHandle, at: Timestamp) {
    let time = &run.engine().inner.time;
    time.host().sleep_until(time.instant(at)).await;
}
