//! Asking a server: over HTTP, whether it is elsewhere or in this process.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use outlast_server::dto::ErrorBody;
use outlast_server::{Access, NewToken, Options, Scope, Server, Tokens};
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::commands::run::refused;
use crate::database::{Database, Place, PlaceArgs};
use crate::exit::{Exit, Stop};
use crate::words::now;

/// How long a server has to take a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long an answer may take: longer than any that waits for something.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(90);
/// How long the token lives with which a process asks itself.
const OWN_TOKEN_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// A server that is asked.
pub(crate) struct Api {
    client: Client,
    base: Url,
    token: Option<String>,
}

impl Api {
    /// Asks the server there is; or, for a database, one that lives as long as this question. It drives nothing.
    pub(crate) async fn with<T>(place: &PlaceArgs, ask: impl AsyncFnOnce(&Api) -> Result<T>) -> Result<T> {
        match place.get()? {
            Place::Server(url) => ask(&Api::new(url, std::env::var("OUTLAST_TOKEN").ok())?).await,
            Place::Database(database) => within(&database, database.open()?.without_loops(), ask).await,
        }
    }

    /// As [`Api::with`], but the one that lives as long as this question drives runs meanwhile: only who holds runs may mend them.
    pub(crate) async fn with_driver<T>(place: &PlaceArgs, ask: impl AsyncFnOnce(&Api) -> Result<T>) -> Result<T> {
        match place.get()? {
            Place::Server(_) => Api::with(place, ask).await,
            Place::Database(database) => within(&database, database.open()?, ask).await,
        }
    }

    pub(crate) fn new(base: Url, token: Option<String>) -> Result<Api> {
        // Somebody else may have been first; then theirs is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(CONNECT_TIME_MAX)
            .timeout(ANSWER_TIME_MAX)
            // A redirect would be shown the token.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .context("nothing can be asked over HTTP")?;
        Ok(Api { client, base, token: token.filter(|token| !token.is_empty()) })
    }

    /// The address of something under `/api/v1`.
    pub(crate) fn url(&self, parts: &[&str]) -> Result<Url> {
        let mut url = self.base.clone();
        let mut path = url.path_segments_mut().map_err(|()| anyhow!("{} cannot be asked", self.base))?;
        path.pop_if_empty().extend(["api", "v1"]).extend(parts);
        drop(path);
        Ok(url)
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, parts: &[&str], query: &[(&str, String)]) -> Result<T> {
        let mut url = self.url(parts)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        read(self.send(Method::GET, url, None::<&()>).await?).await
    }

    /// Writes. It has a key, so that nobody along the way can make two of it.
    pub(crate) async fn write<T: DeserializeOwned>(
        &self,
        method: Method,
        parts: &[&str],
        body: &impl Serialize,
    ) -> Result<T> {
        read(self.send(method, self.url(parts)?, Some(body)).await?).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(&self, parts: &[&str], body: &impl Serialize) -> Result<T> {
        self.write(Method::POST, parts, body).await
    }

    /// As [`Api::post`], for who decides by what came of it.
    pub(crate) async fn try_post<T: DeserializeOwned>(
        &self,
        parts: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Refused> {
        let away = |error: anyhow::Error| Refused { status: 0, message: format!("{error:#}") };
        let response = self.send(Method::POST, self.url(parts).map_err(away)?, Some(body)).await.map_err(away)?;
        let status = response.status();
        let cut_off =
            |error: reqwest::Error| Refused { status: 0, message: format!("the answer was cut off: {error}") };
        let text = response.bytes().await.map_err(cut_off)?;
        if !status.is_success() {
            return Err(Refused { status: status.as_u16(), message: refusal(status, &text).to_string() });
        }
        serde_json::from_slice(&text)
            .map_err(|error| Refused { status: 400, message: format!("it cannot be read: {error}") })
    }

    async fn send(&self, method: Method, url: Url, body: Option<&impl Serialize>) -> Result<Response> {
        let mut request = self.client.request(method, url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            let body = serde_json::to_vec(body).context("the request cannot be written as JSON")?;
            request = request
                .header("content-type", "application/json")
                .header("idempotency-key", Uuid::new_v4().simple().to_string())
                .body(body);
        }
        request.send().await.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &reqwest::Error) -> anyhow::Error {
        let mut cause: &dyn std::error::Error = error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        let message = format!("the server {} does not answer: {cause}", self.base);
        let hint = "is it running? `outlast dev` or `outlast serve` starts one; OUTLAST_URL says which one is asked";
        Stop::new(Exit::Unreachable, message).hint(hint).into()
    }
}

/// Why something was not done.
#[derive(Debug)]
pub(crate) struct Refused {
    /// What the server answered; 0 if it did not.
    status: u16,
    message: String,
}

impl Refused {
    /// Whether asking again may help.
    pub(crate) fn passes(&self) -> bool {
        matches!(self.status, 0 | 408 | 425 | 429 | 500..)
    }

    /// Whether something is wrong with what was said, and not with who says it or when.
    pub(crate) fn is_about_it(&self) -> bool {
        matches!(self.status, 400 | 413 | 415 | 422)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Stop {
        let exit = if matches!(refused.status, 401 | 403) { Exit::NotAllowed } else { Exit::Error };
        Stop::new(exit, refused.message)
    }
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T> {
    let status = response.status();
    let text = response.bytes().await.map_err(|error| {
        Stop::new(Exit::Unreachable, format!("the server's answer was cut off: {error}")).hint("ask again")
    })?;
    if !status.is_success() {
        return Err(refusal(status, &text).into());
    }
    serde_json::from_slice(&text).map_err(|error| {
        let message = format!("the server answered something else than was asked for: {error}");
        Stop::new(Exit::Error, message).hint("is OUTLAST_URL the address of an Outlast server of this version?").into()
    })
}

/// What the server says about why it did not do something, and the code that stands for it.
fn refusal(status: StatusCode, text: &[u8]) -> Stop {
    let exit = match status.as_u16() {
        401 | 403 => Exit::NotAllowed,
        404 | 410 => Exit::NotFound,
        400 | 413 | 415 | 422 => Exit::Usage,
        408 | 504 => Exit::Timeout,
        502 | 503 => Exit::Unreachable,
        _ => Exit::Error,
    };
    match serde_json::from_slice::<ErrorBody>(text) {
        Ok(ErrorBody { message, hint, .. }) => Stop::new(exit, message).hint(hint),
        Err(_) => Stop::new(exit, format!("the server answered {status}"))
            .hint("is OUTLAST_URL the address of an Outlast server?"),
    }
}

/// Opens a database and asks a server in this process. Only who has its token can, which nobody else is told.
async fn within<T>(
    database: &Database,
    builder: outlast::Outlast,
    ask: impl AsyncFnOnce(&Api) -> Result<T>,
) -> Result<T> {
    let engine = builder.start().await.map_err(|error| refused(error, database))?;
    let NewToken { text, token } = NewToken::draw("local", "default", &Scope::ALL, now() + OWN_TOKEN_TIME)?;
    let access = Access::Tokens(Tokens::new(&[token])?.into());
    // Whoever has the database may ask it what they like.
    let options = Options { access, metrics: false, sql: true, drain: Duration::ZERO, ..Options::default() };
    let answer = async {
        let bound = Server::new(engine.clone(), options).bind("127.0.0.1:0").await?;
        let api = Api::new(Url::parse(&format!("http://{}", bound.address()))?, Some(text))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let asked = async {
            let answer = ask(&api).await;
            drop(stop);
            answer
        };
        let serving = bound.run(async { drop(stopped.await) });
        tokio::join!(asked, serving).0
    };
    let answer = answer.await;
    engine.shutdown().await;
    answer
}
