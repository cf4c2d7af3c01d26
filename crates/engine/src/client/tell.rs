//! Telling a run things: signals, decisions, answers to callbacks, requests to stop and to go on.

use std::future::IntoFuture;
use std::pin::Pin;

use bytes::Bytes;
use outlast_core::commit::{Control, Delivery, InboxKind, Signal, Status, WaitKind};
use outlast_core::failure::Failure;
use outlast_core::id::{DeliveryId, Key, RunKey};
use outlast_core::planted;
use outlast_store::{Delivered, Filter, StoreError};
use serde::Serialize;

use super::{EngineError, RunHandle, encode, start};
#[cfg(feature = "flow")]
use crate::drive::Intervention;
use crate::drive::{AnswerMeta, ControlMeta};
use crate::driver::{AGAIN_FIRST, pause};
use crate::engine::Engine;

/// How often a delivery is tried before its sender is told that the store cannot be reached: some seconds in all.
const DELIVER_TRIES_MAX: u32 = 8;

impl RunHandle {
    /// Sends a signal. It is durable when this returns, and is kept until the run waits for it. The same `signal_id` is
    /// applied once for the life of the run, so a signal can be sent again until it is acknowledged.
    pub async fn signal<T: Serialize + ?Sized>(
        &self,
        name: &str,
        payload: &T,
        signal_id: &str,
    ) -> Result<Delivered, EngineError> {
        let signal = start::new_signal(name, encode(payload), signal_id)?;
        self.deliver("a signal", Delivery::Signal { run: self.run.clone(), signal }).await
    }

    /// Sends a signal to one operation and no other, by its key. Whoever comes second with another id is told that it was
    /// lost.
    pub async fn signal_to<T: Serialize + ?Sized>(
        &self,
        operation: &str,
        name: &str,
        payload: &T,
        signal_id: &str,
    ) -> Result<Delivered, EngineError> {
        let signal = start::new_signal(name, encode(payload), signal_id)?;
        let signal = Signal { aimed: Some(Key::new(operation)?), ..signal };
        self.deliver("a signal", Delivery::Signal { run: self.run.clone(), signal }).await
    }

    /// Decides an approval, once: whoever comes second with another id is told that it was lost.
    ///
    /// ```
    /// # use outlast::Ctx;
    /// # use outlast::{Delivered, Outlast};
    /// # async fn ship(ctx: Ctx, _: ()) -> outlast::Result<bool> {
    /// #     Ok(ctx.approve("Ship it?").id("ship").await?.approved)
    /// # }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// # let engine = Outlast::memory().workflow("ship", ship).without_loops().start().await?;
    /// # let run = engine.start("ship", &()).id("a").await?;
    /// # engine.drive_once("a").await?;
    /// let decided = run.approve("ship", true).by("ann").feedback("gladly").id("request-1").await?;
    /// assert_eq!(decided, Delivered::Delivered);
    ///
    /// // The same request again, after a timeout somewhere on its way.
    /// let again = run.approve("ship", true).by("ann").feedback("gladly").id("request-1").await?;
    /// assert_eq!(again, Delivered::Duplicate);
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn approve(&self, approval: &str, approved: bool) -> Decide {
        let (by, feedback) = (None, None);
        Decide { approval: approval.to_owned(), approved, by, feedback, letter: self.letter("an approval") }
    }

    /// Answers a callback, once: whoever comes second with another id is told that it was lost.
    pub fn resolve_callback<T: Serialize + ?Sized>(&self, callback: &str, token: &str, value: &T) -> Tell {
        self.answer_callback(callback, token, AnswerMeta::Resolved, encode(value).map(Some))
    }

    /// Answers a callback with an error: the workflow's await fails with it.
    pub fn fail_callback(&self, callback: &str, token: &str, error: Failure) -> Tell {
        self.answer_callback(callback, token, AnswerMeta::Failed(error), Ok(None))
    }

    /// Whether this is the token of a callback of the run's current generation, open or not. For whoever lets strangers in by
    /// such a token: one who has none must not learn what became of the run.
    pub async fn is_token_of(&self, callback: &str, token: &str) -> Result<bool, EngineError> {
        let generation = self.view().await?.generation;
        Ok(self.engine.inner.secret.is_token(&self.run, generation, &Key::new(callback)?, token))
    }

    /// A sign of life for a callback that asks for them.
    pub async fn heartbeat_callback(&self, callback: &str, token: &str) -> Result<Delivered, EngineError> {
        let (key, token) = (Key::new(callback)?, Some(token.to_owned()));
        self.deliver("a callback", Delivery::Heartbeat { run: self.run.clone(), key, token }).await
    }

    /// Asks the run to stop: what it awaits fails with `cancelled`, its cleanup runs, and its children are asked too.
    pub fn cancel(&self, reason: &str) -> Tell {
        self.control(Control::Cancel, Some(reason))
    }

    /// Asks the run to start nothing new; what executes ends and is recorded. A run that has ended is left as it is, which is no
    /// error: [`Delivered::Lost`].
    pub fn pause(&self, reason: &str) -> Tell {
        self.control(Control::Pause, Some(reason))
    }

    /// Lets a paused run go on.
    pub fn resume(&self) -> Tell {
        self.control(Control::Resume, None)
    }

    /// Lets a paused run go on, and tells it something: a flow's expressions find it in `messages`.
    ///
    /// Refused with the code `already_running` if the run is not paused and was not asked to pause, and for an empty message.
    pub fn resume_with<T: Serialize + ?Sized>(&self, message: &T) -> Resume<'_> {
        Resume { handle: self, message: encode(message), by: None, id: None }
    }

    fn answer_callback(
        &self,
        callback: &str,
        token: &str,
        meta: AnswerMeta,
        payload: Result<Option<Bytes>, EngineError>,
    ) -> Tell {
        let answer = |payload| Message::Answer {
            key: callback.to_owned(),
            kind: WaitKind::Callback,
            token: Some(token.to_owned()),
            meta,
            payload,
        };
        Tell { message: payload.map(answer), letter: self.letter("a callback") }
    }

    fn control(&self, control: Control, reason: Option<&str>) -> Tell {
        let meta = ControlMeta { reason: reason.map(str::to_owned), ..ControlMeta::default() };
        Tell { message: Ok(Message::Control { control, meta }), letter: self.letter("a request") }
    }

    pub(super) fn letter(&self, what: &'static str) -> Letter {
        Letter { engine: self.engine.clone(), run: self.run.clone(), what, id: None }
    }

    async fn deliver(&self, what: &'static str, delivery: Delivery) -> Result<Delivered, EngineError> {
        let delivered = self.engine.deliver(delivery).await?;
        self.engine.acknowledged(delivered, &self.run, what).await
    }
}

/// Something a run is about to be told: to stop, to pause, to go on, or what a callback came to. Await it to tell it: when
/// that returns, it is durable. If the store's reply is lost, it is told again with the same id, which does nothing twice.
#[must_use = "the run is told when this is awaited"]
pub struct Tell {
    message: Result<Message, EngineError>,
    letter: Letter,
}

/// A run is about to go on, and to be told something. Await it.
#[must_use = "the run goes on when this is awaited"]
pub struct Resume<'h> {
    handle: &'h RunHandle,
    message: Result<Bytes, EngineError>,
    by: Option<String>,
    id: Option<String>,
}

impl<'h> Resume<'h> {
    /// Who lets it go on.
    pub fn by(mut self, by: &str) -> Resume<'h> {
        self.by = Some(by.to_owned());
        self
    }

    /// Names it; a new unique id if nobody says otherwise. The same id is applied once for the life of the run: again it is
    /// [`Delivered::Duplicate`].
    pub fn id(mut self, id: &str) -> Resume<'h> {
        self.id = Some(id.to_owned());
        self
    }

    async fn send(self) -> Result<Delivered, EngineError> {
        let Resume { handle, message, by, id } = self;
        let message = message?;
        if matches!(&message[..], b"null" | b"\"\"") {
            return Err(EngineError::Invalid(
                "the message of a resume is empty; say something, or use `resume`".to_owned(),
            ));
        }
        let view = handle.view().await?;
        let unread = handle.inbox(view.next).await?;
        // The last word counts: a pause may have been taken back before anybody read of it.
        let is_about_it = |kind: InboxKind| matches!(kind, InboxKind::Pause | InboxKind::Resume | InboxKind::Cancel);
        let last = unread.iter().rev().find(|item| is_about_it(item.kind));
        let is_paused = last.map_or(view.status == Status::Paused, |item| item.kind == InboxKind::Pause);
        let message = Some(String::from_utf8_lossy(&message).into_owned());
        let meta = ControlMeta { message, by, ..ControlMeta::default() };
        let is_named = id.is_some();
        let letter = Letter { id, ..handle.letter("a request") };
        if is_paused || view.status.is_terminal() {
            return letter.send(Message::Control { control: Control::Resume, meta }).await;
        }
        let refused = Err(EngineError::AlreadyRunning(view.run));
        if !is_named {
            return refused;
        }
        // One that was sent before is a success.
        let recall = Message::Control { control: Control::Recall, meta: ControlMeta::default() };
        match letter.send(recall).await {
            Ok(Delivered::Duplicate) => Ok(Delivered::Duplicate),
            Ok(_) | Err(EngineError::Lost { .. }) => refused,
            Err(error) => Err(error),
        }
    }
}

impl<'h> IntoFuture for Resume<'h> {
    type Output = Result<Delivered, EngineError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'h>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// A decision that is about to be made. Await it to make it: when that returns, it is durable. If the store's reply is lost,
/// it is sent again with the same id, which decides nothing twice.
#[must_use = "the approval is decided when this is awaited"]
pub struct Decide {
    approval: String,
    approved: bool,
    by: Option<String>,
    feedback: Option<String>,
    letter: Letter,
}

impl Tell {
    /// Who asks for it: recorded with a pause, a resume and a request to stop. A callback's answer has no name.
    pub fn by(mut self, by: &str) -> Tell {
        if let Ok(Message::Control { meta, .. }) = &mut self.message {
            meta.by = Some(by.to_owned());
        }
        self
    }

    /// Names it; a new unique id if nobody says otherwise. The same id is applied once for the life of the run, whatever
    /// is asked for with it, so that a request can be repeated until it is acknowledged: again it is
    /// [`Delivered::Duplicate`].
    pub fn id(mut self, id: &str) -> Tell {
        self.letter.id = Some(id.to_owned());
        self
    }
}

impl Decide {
    /// Who decides.
    pub fn by(mut self, by: &str) -> Decide {
        self.by = Some(by.to_owned());
        self
    }

    /// What they say about it.
    pub fn feedback(mut self, feedback: &str) -> Decide {
        self.feedback = Some(feedback.to_owned());
        self
    }

    /// Names the decision; a new unique id if nobody says otherwise. The same id is applied once for the life of the run,
    /// whatever is asked for with it, so that a decision can be repeated until it is acknowledged: again it is
    /// [`Delivered::Duplicate`], and not lost.
    pub fn id(mut self, id: &str) -> Decide {
        self.letter.id = Some(id.to_owned());
        self
    }
}

/// What a run is told.
pub(super) enum Message {
    Answer {
        key: String,
        kind: WaitKind,
        token: Option<String>,
        meta: AnswerMeta,
        payload: Option<Bytes>,
    },
    Control {
        control: Control,
        meta: ControlMeta,
    },
    #[cfg(feature = "flow")]
    Intervene(Intervention),
}

/// To whom, and under which id.
pub(super) struct Letter {
    pub(super) engine: Engine,
    pub(super) run: RunKey,
    pub(super) what: &'static str,
    pub(super) id: Option<String>,
}

impl Letter {
    pub(super) async fn send(self, message: Message) -> Result<Delivered, EngineError> {
        let Letter { engine, run, what, id } = self;
        let drawn = id.is_none();
        let id = id.unwrap_or_else(|| uuid::Uuid::from_u128(engine.inner.time.host().random()).to_string());
        let delivery = message.deliver(&run, DeliveryId::new(id)?)?;
        match engine.acknowledged(engine.deliver(delivery).await?, &run, what).await? {
            // Nobody else has this id: a try whose reply was lost was applied.
            Delivered::Duplicate if drawn => Ok(Delivered::Delivered),
            delivered => Ok(delivered),
        }
    }
}

impl Message {
    fn deliver(self, run: &RunKey, id: DeliveryId) -> Result<Delivery, EngineError> {
        let run = run.clone();
        Ok(match self {
            Message::Answer { key, kind, token, meta, payload } => {
                let (key, meta) = (Key::new(key)?, Some(encode(&meta)?));
                Delivery::Answer { run, key, kind, id, token, meta, payload }
            }
            Message::Control { control, meta } => {
                Delivery::Control { run, control, id, meta: Some(encode(&meta)?), child_of: None }
            }
            #[cfg(feature = "flow")]
            Message::Intervene(intervention) => {
                let (control, meta) = (Control::Intervene, Some(encode(&intervention)?));
                Delivery::Control { run, control, id, meta, child_of: None }
            }
        })
    }
}

impl Engine {
    /// What the store said, as the sender is told.
    async fn acknowledged(
        &self,
        delivered: Delivered,
        run: &RunKey,
        what: &'static str,
    ) -> Result<Delivered, EngineError> {
        match delivered {
            Delivered::Lost => Err(EngineError::Lost { run: run.clone(), what }),
            Delivered::NotFound => Err(EngineError::NotFound { run: run.clone(), what }),
            Delivered::Deleted => Err(self.why_deleted(run).await),
            accepted @ (Delivered::Delivered | Delivered::Buffered | Delivered::Duplicate | Delivered::Full) => {
                Ok(accepted)
            }
        }
    }

    /// The error of a run that was deleted. Its tombstone knows the reason.
    async fn why_deleted(&self, run: &RunKey) -> EngineError {
        let store = match self.inner.store() {
            Ok(store) => store,
            Err(stopped) => return stopped,
        };
        match store.get(run.clone()).await {
            Err(error @ StoreError::Deleted { .. }) => error.into(),
            _ => StoreError::Deleted { run: run.clone(), reason: None }.into(),
        }
    }

    /// Leaves something for a run, and has it looked after at once. A reply that is lost is not the sender's problem: the
    /// same is left again, and the store applies it once.
    pub(crate) async fn deliver(&self, delivery: Delivery) -> Result<Delivered, EngineError> {
        if planted!("stop-crosses-namespaces") {
            self.stop_neighbours(&delivery).await?;
        }
        let mut delay = AGAIN_FIRST;
        let mut tries = 1;
        loop {
            let answer = self.inner.store()?.deliver(vec![delivery.clone()]).await.pop();
            // It may have been applied, whatever was answered.
            self.inner.board.somebody_woken();
            match answer.unwrap_or(Ok(Delivered::NotFound)) {
                Err(error) if error.is_retryable() && tries < DELIVER_TRIES_MAX => {
                    tracing::debug!(%error, "a delivery got no answer; it is sent again");
                    tries += 1;
                    pause(&self.inner.time, &mut delay).await;
                }
                answer => return Ok(answer?),
            }
        }
    }

    /// What a planted bug does: the newest run of every other namespace is asked to stop, too.
    async fn stop_neighbours(&self, delivery: &Delivery) -> Result<(), EngineError> {
        let Delivery::Control { run, control: Control::Cancel, id, .. } = delivery else { return Ok(()) };
        let store = self.inner.store()?;
        for namespace in store.namespaces().await?.into_iter().filter(|namespace| *namespace != run.namespace) {
            let newest = store.list(Filter { limit: 1, ..Filter::all(namespace) }).await?.runs.pop();
            let stop = newest.map(|view| Delivery::Control {
                run: view.run,
                control: Control::Cancel,
                id: id.clone(),
                meta: None,
                child_of: None,
            });
            store.deliver(stop.into_iter().collect()).await;
        }
        Ok(())
    }
}

type Telling = Pin<Box<dyn Future<Output = Result<Delivered, EngineError>> + Send>>;

impl IntoFuture for Tell {
    type Output = Result<Delivered, EngineError>;
    type IntoFuture = Telling;

    fn into_future(self) -> Telling {
        Box::pin(async move {
            let message = self.message?;
            let is_pause = matches!(message, Message::Control { control: Control::Pause, .. });
            match self.letter.send(message).await {
                // Whoever pauses wants that nothing begins, and nothing will.
                Err(EngineError::Lost { .. }) if is_pause => Ok(Delivered::Lost),
                told => told,
            }
        })
    }
}

impl IntoFuture for Decide {
    type Output = Result<Delivered, EngineError>;
    type IntoFuture = Telling;

    fn into_future(self) -> Telling {
        let Decide { approval, approved, by, feedback, letter } = self;
        let meta = AnswerMeta::Decided { approved, by, feedback };
        let kind = WaitKind::Approval;
        Box::pin(letter.send(Message::Answer { key: approval, kind, token: None, meta, payload: None }))
    }
}
