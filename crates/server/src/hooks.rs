//! Webhooks: others tell us that something happened, signed as [Standard Webhooks](https://www.standardwebhooks.com) says, and a
//! run is started or told.

mod config;
mod mapping;
mod signature;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use outlast::{Engine, EngineError, RunHandle};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

pub use config::{Hook, HookAction, HookError, HookSecret};

use crate::app::App;
use crate::audit::{Act, Made};
use crate::auth::hex;
use crate::body::{self, Path, compact};
use crate::dto::HookReceived;
use crate::error::{ApiError, ApiResult};

/// How long a reply waits for a run to come to its next pause.
const DRIVE_TIME_MAX: Duration = Duration::from_secs(30);

/// The webhooks a server knows. They may change while it runs. Cheap to clone.
#[derive(Clone, Default)]
pub struct Hooks(Arc<RwLock<BTreeMap<String, Arc<Hook>>>>);

impl Hooks {
    /// Takes these.
    pub fn new(hooks: Vec<Hook>) -> Result<Hooks, HookError> {
        let taken = Hooks::default();
        taken.replace(hooks)?;
        Ok(taken)
    }

    /// Puts others in their place, from now on. If one of them cannot be used, all stay as they were.
    pub fn replace(&self, hooks: Vec<Hook>) -> Result<(), HookError> {
        let mut known = BTreeMap::new();
        for hook in hooks {
            hook.check()?;
            let id = hook.id.clone();
            if known.insert(id.clone(), Arc::new(hook)).is_some() {
                return Err(HookError::new(&id, "there are two of this id"));
            }
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }

    fn get(&self, id: &str) -> Option<Arc<Hook>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }
}

/// Takes what a webhook says. The header `webhook-id` is the signal's id, so that what is delivered twice is applied once.
#[utoipa::path(
    post,
    path = "/hooks/{hook}",
    params(
        ("webhook-id" = String, Header, description = "Names the message: delivered twice it is applied once."),
        ("webhook-timestamp" = String, Header, description = "When it was sent, in seconds since 1970: five minutes off at most."),
        ("webhook-signature" = String, Header, description = "`v1,` and the HMAC-SHA256 of id, timestamp and body in Base64; several with blanks between.")
    ),
    request_body = serde_json::Value,
    responses((status = 200, body = HookReceived))
)]
pub(crate) async fn receive(
    State(app): State<App>,
    Path(id): Path<String>,
    request: Request,
) -> ApiResult<Answer<HookReceived>> {
    let (parts, payload) = request.into_parts();
    // The bytes as they came: whoever reads and writes them anew signs something else.
    let bytes = body::read(payload).await?;
    let Some(hook) = app.hooks().get(&id) else {
        return Err(ApiError::not_found("there is no such webhook"));
    };
    let message = header(&parts.headers, "webhook-id")?.to_owned();
    let signed = signature::Signed {
        id: &message,
        timestamp: header(&parts.headers, "webhook-timestamp")?,
        signatures: header(&parts.headers, "webhook-signature")?,
        body: &bytes,
    };
    signed.verify(&hook.secrets, app.engine().now())?;
    let value: Box<RawValue> = body::parse(&bytes)?;
    let engine = app.engine_of(&hook.namespace).await?;
    let done = act(&engine, &hook, &message, &compact(&value)).await;
    let status = done.as_ref().map_or_else(ApiError::status, |_| StatusCode::OK);
    let act = Act {
        who: format!("hook {}", hook.name).into(),
        token: None,
        namespace: engine.namespace().clone(),
        action: "POST /hooks/{hook}".to_owned(),
        // Its id is a secret.
        target: hook.name.clone(),
    };
    let made = done.as_ref().ok().map(|received| Made(received.run.clone()));
    app.audit(act, made, status).await.map_err(|_| ApiError::internal())?;
    done.map(Answer)
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> ApiResult<&'h str> {
    let found = headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty());
    found.ok_or_else(|| signature::refused(format!("the header `{name}` is missing, or cannot be read")))
}

async fn act(engine: &Engine, hook: &Hook, message: &str, body: &RawValue) -> ApiResult<HookReceived> {
    let value: serde_json::Value = body::parse(body.get().as_bytes())?;
    let named = hook.run.as_deref().map(|place| run_of(&value, place)).transpose()?;
    let mapped = hook.map.as_deref().map(|expression| mapping::evaluate(expression, &value)).transpose()?;
    let mapped = mapped.map(|mapped| serde_json::value::to_raw_value(&mapped)).transpose();
    let mapped = mapped.map_err(|_| ApiError::internal())?;
    let body = mapped.as_deref().unwrap_or(body);
    let (run, new, outcome) = match &hook.action {
        HookAction::Start { workflow, signal } => {
            // Without a name in the body a message is a run: the same message is the same run.
            let id = named
                .unwrap_or_else(|| format!("hook-{}", &hex(&Sha256::digest(format!("{}\n{message}", hook.id)))[..32]));
            let mut start = engine.start(workflow, body).id(&id);
            if let Some(signal) = signal {
                start = engine.start(workflow, &()).id(&id).signal(signal, body, message);
            }
            let run = start.await?;
            let new = run.is_new();
            (run, new, "delivered")
        }
        HookAction::Signal { signal } => {
            let run = named.ok_or_else(|| ApiError::unfit("the webhook does not say which run it is for"))?;
            let run = engine.run(&run)?;
            let outcome = match run.signal(signal, body, message).await? {
                outlast::Delivered::Duplicate => "duplicate",
                outlast::Delivered::Buffered => "buffered",
                _ => "delivered",
            };
            (run, false, outcome)
        }
    };
    let status = if hook.wait { Some(driven(&run, DRIVE_TIME_MAX).await?) } else { None };
    Ok(HookReceived { run: run.id().to_string(), new, outcome: outcome.to_owned(), status })
}

/// The run a body names: at a JSON pointer, or as an expression says.
fn run_of(body: &serde_json::Value, place: &str) -> ApiResult<String> {
    let found =
        if place.starts_with('/') { body.pointer(place).cloned() } else { Some(mapping::evaluate(place, body)?) };
    match found {
        Some(serde_json::Value::String(run)) => Ok(run),
        Some(serde_json::Value::Number(run)) => Ok(run.to_string()),
        _ => Err(ApiError::unfit(format!("the body has no text at {place:?}, which says which run it is for"))),
    }
}

/// Where the run stands when it has come to its next pause or its end.
async fn driven(run: &RunHandle, time_max: Duration) -> Result<String, EngineError> {
    let mut attached = run.attach().until_it_waits();
    let coming = async {
        while attached.next().await?.is_some() {}
        Ok::<(), EngineError>(())
    };
    // If it takes longer, what is told is where it stands by then.
    tokio::time::timeout(time_max, coming).await.unwrap_or(Ok(()))?;
    Ok(run.status().await?.name().to_owned())
}

#[cfg(test)]
mod tests {
    use outlast::{Ctx, Outlast};

    use super::*;

    async fn works(ctx: Ctx, ends: bool) -> outlast::Result<u32> {
        ctx.step("work", async |_| if ends { Ok(1) } else { std::future::pending().await }).await
    }

    #[tokio::test]
    async fn a_reply_comes_when_its_time_is_up_and_tells_where_the_run_stands() {
        let engine = Outlast::memory().workflow("works", works).start().await.unwrap();
        let short = engine.start("works", &true).id("short").await.unwrap();
        assert_eq!(driven(&short, Duration::from_secs(60)).await.unwrap(), "completed");
        let long = engine.start("works", &false).id("long").await.unwrap();
        assert_eq!(driven(&long, Duration::from_millis(300)).await.unwrap(), "running");
        engine.shutdown().await;
    }
}
