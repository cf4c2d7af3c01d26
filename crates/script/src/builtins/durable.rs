//! Operations: what a script asks the engine for. A call starts it, `await` waits for it.

use outlast_core::event::ClosePolicy;
use outlast_core::id::{InvalidId, Key, QueueName, RunId, SignalName, TaskName, Version, WorkflowName};
use outlast_core::limits::{TOLD_BYTES_MAX, within};
use outlast_core::operation::{Due, Location, Operation, OperationKind};

use super::options::{Options, duration_of, instant_of};
use super::{Call, Run, Spec};
use crate::heap::{Cell, Promise};
use crate::machine::{Done, Stop, codes};
use crate::value::Value;

/// The queue of tasks that name none.
const DEFAULT_QUEUE: &str = "default";
/// What observers see of `log`.
const LOG_NAME: &str = "log";

pub(super) fn table() -> Vec<Spec> {
    vec![
        Spec("Task.run(name, args, options)", 1, Some(3), Run::Rust(|call| task(call, false))),
        Spec("Task.start(name, args, options)", 1, Some(3), Run::Rust(|call| task(call, true))),
        Spec("Task.delay(duration)", 1, Some(1), Run::Rust(delay)),
        Spec("Task.cancel(operation)", 1, Some(1), Run::Rust(cancel)),
        Spec("Timer.delay(duration)", 1, Some(1), Run::Rust(delay)),
        Spec("Timer.until(instant)", 1, Some(1), Run::Rust(until)),
        Spec("Workflow.run(name, input, options)", 1, Some(3), Run::Rust(|call| child(call, false))),
        Spec("Workflow.start(name, input, options)", 1, Some(3), Run::Rust(|call| child(call, true))),
        Spec("Workflow.continueAsNew(input)", 1, Some(1), Run::Rust(continue_as_new)),
        Spec("Signal.next(name, options)", 1, Some(2), Run::Rust(signal)),
        Spec("wait_for_signal(name, options)", 1, Some(2), Run::Rust(signal)),
        Spec("Approval.request(options)", 1, Some(1), Run::Rust(approval)),
        Spec("Callback.create(options)", 0, Some(1), Run::Rust(callback)),
        Spec("Time.now()", 0, Some(0), Run::Rust(now)),
        Spec("Id.uuid()", 0, Some(0), Run::Rust(uuid)),
        Spec("log(...values)", 0, None, Run::Rust(log)),
        Spec("console.log(...values)", 0, None, Run::Rust(log)),
        Spec("$no_workflow()", 0, Some(0), Run::Rust(no_workflow)),
        Spec("State.set(changes)", 1, Some(1), Run::Rust(set_state)),
    ]
}

impl Call<'_> {
    pub(super) fn location(&self) -> Location {
        self.machine.world.location(self.machine.location())
    }

    fn invalid(&mut self, error: &InvalidId) -> Stop {
        let message = format!("{}: {error}", self.name());
        self.machine.error(codes::TYPE, message)
    }

    /// The key of an unnamed operation.
    pub(super) fn positional(&mut self, kind: OperationKind, detail: Option<&str>) -> Done<Key> {
        let key = self.machine.world.keys.positional(None, kind, detail);
        key.map_err(|error| self.invalid(&error))
    }

    /// The key of an operation: the one the author gave it, or else its place. A named one keeps its place in the count,
    /// so that naming it does not rename the next.
    fn key(&mut self, kind: OperationKind, detail: Option<&str>, name: Option<&str>) -> Done<Key> {
        let place = self.positional(kind, detail)?;
        let Some(name) = name else { return Ok(place) };
        let location = self.location();
        let key = self.machine.world.keys.named(None, name, Some(location));
        key.map_err(|error| self.invalid(&error))
    }

    fn id<T>(&mut self, id: Result<T, InvalidId>) -> Done<T> {
        id.map_err(|error| self.invalid(&error))
    }

    /// Starts an operation; the promise of its outcome.
    fn start(&mut self, operation: Operation) -> Done {
        let promise = Promise { operation: operation.key().cloned(), ..Promise::default() };
        let promise = self.machine.heap.alloc(Cell::Promise(promise));
        let at = self.machine.location();
        self.machine.world.start(operation, promise, at, self.ops);
        Ok(Value::Promise(promise))
    }
}

fn task(call: &mut Call<'_>, detached: bool) -> Done {
    let name = call.text(0, "the task's name")?;
    let args = call.arg(1);
    let args = call.machine.json_of(args, "what the task is given")?;
    let options = Options::new(call, 2, &["retry", "timeout", "queue", "priority", "id", "heartbeat", "delay"])?;
    let queue = options.text(call, "queue")?;
    let queue = call.id(QueueName::new(queue.as_deref().unwrap_or(DEFAULT_QUEUE)))?;
    let priority = match options.get(call, "priority") {
        Value::Null => 0,
        Value::Number(number) if number.fract() == 0.0 && number.abs() <= f64::from(i16::MAX) => number as i16,
        other => return Err(call.type_error("priority", "a whole number from -32767 to 32767", other)),
    };
    let (retry, timeout) = (options.retry(call)?, options.duration(call, "timeout")?);
    let heartbeat = options.duration(call, "heartbeat")?;
    let begin = options.duration(call, "delay")?.map(Due::After);
    let task = call.id(TaskName::new(&*name))?;
    let id = options.text(call, "id")?;
    let key = call.key(OperationKind::Task, Some(&name), id.as_deref())?;
    call.start(Operation::ScheduleTask {
        key,
        name: task,
        queue,
        priority,
        args,
        retry,
        timeout,
        heartbeat,
        begin,
        detached,
    })
}

fn delay(call: &mut Call<'_>) -> Done {
    let duration = call.arg(0);
    let duration = duration_of(call, duration, "the delay")?;
    let key = call.positional(OperationKind::Timer, None)?;
    call.start(Operation::StartTimer { key, due: Due::After(duration) })
}

fn until(call: &mut Call<'_>) -> Done {
    let instant = call.arg(0);
    let instant = instant_of(call, instant, "the instant")?;
    let key = call.positional(OperationKind::Timer, None)?;
    call.start(Operation::StartTimer { key, due: Due::At(instant) })
}

/// Cancels an operation: whoever awaits it gets an error with the code `cancelled`. Whether there was something to cancel.
fn cancel(call: &mut Call<'_>) -> Done {
    let Value::Promise(id) = call.arg(0) else {
        let found = call.arg(0);
        return Err(call.type_error("the argument", "what an operation returned", found));
    };
    let key = call.machine.heap.promise_of(id).and_then(|promise| promise.operation.clone());
    let open = key.filter(|key| call.machine.world.open.contains_key(key));
    let Some(key) = open else { return Ok(Value::Bool(false)) };
    call.machine.cancel_operation(&key, "the operation was cancelled", call.ops);
    Ok(Value::Bool(true))
}

fn child(call: &mut Call<'_>, detached: bool) -> Done {
    let name = call.text(0, "the workflow's name")?;
    let input = call.arg(1);
    let input = call.machine.json_of(input, "the input of the workflow")?;
    let options = Options::new(call, 2, &["id", "version", "name", "onClose"])?;
    let workflow = call.id(WorkflowName::new(&*name))?;
    let child = match options.text(call, "id")? {
        Some(id) => Some(call.id(RunId::new(&*id))?),
        None => None,
    };
    let version = match options.text(call, "version")? {
        Some(version) => Some(call.id(Version::new(&*version))?),
        None => None,
    };
    let on_close = match options.text(call, "onClose")?.as_deref() {
        // Nobody waits for a detached one: it goes on alone.
        None if detached => ClosePolicy::Abandon,
        None | Some("cancel") => ClosePolicy::Cancel,
        Some("terminate") => ClosePolicy::Terminate,
        Some("abandon") => ClosePolicy::Abandon,
        Some(_) => return Err(call.range_error("onClose is \"cancel\", \"terminate\" or \"abandon\"")),
    };
    let name = options.text(call, "name")?;
    let key = call.key(OperationKind::Child, None, name.as_deref())?;
    call.start(Operation::StartChild { key, child, workflow, version, input, detached, on_close })
}

/// Ends this generation once the script returns, and begins the next one with a new input.
fn continue_as_new(call: &mut Call<'_>) -> Done {
    let input = call.arg(0);
    let input = call.machine.json_of(input, "the next input")?;
    let location = call.location();
    call.ops.request(Operation::ContinueAsNew { input, version: None }, Some(location));
    call.machine.world.is_continued = true;
    Ok(Value::Null)
}

fn signal(call: &mut Call<'_>) -> Done {
    let name = call.text(0, "the signal's name")?;
    let options = Options::new(call, 1, &["timeout", "deadline", "id"])?;
    let deadline = options.due(call)?;
    let signal = call.id(SignalName::new(&*name))?;
    let id = options.text(call, "id")?;
    let key = call.key(OperationKind::Signal, Some(&name), id.as_deref())?;
    call.start(Operation::AwaitSignal { key, name: signal, deadline, schema: None })
}

fn approval(call: &mut Call<'_>) -> Done {
    if let Value::Text(title) = call.arg(0) {
        let title = call.machine.heap.text_of(title).text.to_string();
        let key = call.positional(OperationKind::Approval, None)?;
        return call.start(Operation::RequestApproval { key, title, assignee: None, deadline: None });
    }
    let options = Options::new(call, 0, &["title", "assignee", "timeout", "deadline", "id"])?;
    let Some(title) = options.text(call, "title")? else {
        return Err(call.range_error("an approval needs a title, which says what is to be decided"));
    };
    let assignee = options.text(call, "assignee")?.map(|assignee| assignee.to_string());
    let deadline = options.due(call)?;
    let id = options.text(call, "id")?;
    let key = call.key(OperationKind::Approval, None, id.as_deref())?;
    call.start(Operation::RequestApproval { key, title: title.to_string(), assignee, deadline })
}

fn callback(call: &mut Call<'_>) -> Done {
    let options = Options::new(call, 0, &["timeout", "deadline", "heartbeat", "id"])?;
    let (deadline, heartbeat) = (options.due(call)?, options.duration(call, "heartbeat")?);
    let id = options.text(call, "id")?;
    let key = call.key(OperationKind::Callback, None, id.as_deref())?;
    call.start(Operation::CreateCallback { key, deadline, heartbeat })
}

fn now(call: &mut Call<'_>) -> Done {
    let key = call.positional(OperationKind::Now, None)?;
    let location = call.location();
    let now = call.ops.record_now(key, Some(location));
    Ok(Value::Number(now.as_millis() as f64))
}

fn uuid(call: &mut Call<'_>) -> Done {
    let key = call.positional(OperationKind::Uuid, None)?;
    let location = call.location();
    let uuid = call.ops.record_uuid(key, Some(location));
    call.new_text(uuid.to_string())
}

/// Tells observers the values, as a list. Not repeated when the run is rebuilt.
fn log(call: &mut Call<'_>) -> Done {
    let values = call.args().to_vec();
    let list = call.new_list(values)?;
    let payload = call.machine.json_of(list, "what is logged")?;
    tell(call, payload.len())?;
    let location = call.location();
    call.ops.request(Operation::Emit { name: LOG_NAME.to_owned(), payload }, Some(location));
    Ok(Value::Null)
}

/// Changes what observers see of the run.
fn set_state(call: &mut Call<'_>) -> Done {
    let object = call.object(0, "the changes")?;
    let delta = call.machine.json_of(Value::Object(object), "the changes")?;
    tell(call, delta.len())?;
    let location = call.location();
    call.ops.request(Operation::SetState { delta }, Some(location));
    Ok(Value::Null)
}

fn tell(call: &mut Call<'_>, bytes: usize) -> Done<()> {
    within("what observers are told", bytes, TOLD_BYTES_MAX, "bytes").map_err(|error| {
        let message = format!("{}: {error}", call.name());
        call.machine.error(codes::SIZE, message)
    })
}

/// The file declares workflows, and not the one that was asked for.
fn no_workflow(call: &mut Call<'_>) -> Done {
    let (wanted, known) = (call.machine.world.workflow(), &call.machine.code.workflows);
    let known: Vec<&str> = known.iter().map(|name| &**name).collect();
    let message = format!("the file declares no workflow `{wanted}`: it has {}", known.join(", "));
    Err(call.machine.error(codes::REFERENCE, message))
}
