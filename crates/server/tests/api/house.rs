//! A server on a database of its own, and somebody who asks it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outlast::{Engine, Outlast};
use outlast_server::{Access, NewToken, Options, Scope, Server, Tokens};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) struct House {
    pub(crate) engine: Engine,
    pub(crate) address: String,
    /// Where its database is, as long as it is there.
    _folder: tempfile::TempDir,
    pub(crate) client: Client,
    token: Option<String>,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<()>>,
    counted: AtomicU64,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Answer {
        let status = response.status();
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer { status, body }
    }

    /// What it says, if it did what was asked.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(self.status.is_success(), "{self:?}");
        self.body
    }

    /// The code of a refusal with this status. Every refusal says what happened and what to do.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16) -> &str {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        for part in ["code", "message", "hint"] {
            assert!(self.body[part].as_str().is_some_and(|text| !text.is_empty()), "{part}: {self:?}");
        }
        self.body["code"].as_str().unwrap()
    }
}

pub(crate) fn client() -> Client {
    static PROVIDER: OnceLock<()> = OnceLock::new();
    PROVIDER.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
    Client::new()
}

impl House {
    /// Open to whoever reaches it, which is nobody else.
    pub(crate) async fn open() -> House {
        House::with(Options { metrics: false, ..Options::default() }).await
    }

    pub(crate) async fn with(options: Options) -> House {
        let folder = tempfile::tempdir().unwrap();
        let engine = Outlast::sqlite(folder.path().join("house.db")).start().await.unwrap();
        House::on(engine, options, folder).await
    }

    /// Only for those who have a token. The second one has every scope in the namespace `default`.
    pub(crate) async fn guarded(tokens: &[NewToken]) -> House {
        let admin = token("root", "default", &[Scope::Admin]);
        let all: Vec<_> = tokens.iter().chain([&admin]).map(|new| new.token.clone()).collect();
        let access = Access::Tokens(Arc::new(Tokens::new(&all).unwrap()));
        let house = House::with(Options { access, metrics: false, ..Options::default() }).await;
        house.showing(&admin.text)
    }

    pub(crate) async fn on(engine: Engine, options: Options, folder: tempfile::TempDir) -> House {
        let bound = Server::new(engine.clone(), options).bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", bound.address());
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(bound.run(async {
            let _ = stopped.await;
        }));
        let (stop, served) = (Some(stop), Some(served));
        let counted = AtomicU64::new(0);
        House { engine, address, _folder: folder, client: client(), token: None, stop, served, counted }
    }

    pub(crate) fn showing(mut self, token: &str) -> House {
        self.token = Some(token.to_owned());
        self
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.address));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::POST, path).json(&body).send().await.unwrap()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::PUT, path).json(&body).send().await.unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::DELETE, path).send().await.unwrap()).await
    }

    pub(crate) async fn script(&self, file: &str, text: &str) {
        self.put("/api/v1/workflows", json!({ "file": file, "text": text })).await.ok();
    }

    /// Starts a run and gives its id.
    pub(crate) async fn start(&self, request: Value) -> String {
        self.post("/api/v1/runs", request).await.ok()["run"].as_str().unwrap().to_owned()
    }

    /// What a run came to.
    pub(crate) async fn result(&self, run: &str) -> Value {
        self.get(&format!("/api/v1/runs/{run}/result?wait_ms=20000")).await.ok()
    }

    /// Asks until it is so.
    pub(crate) async fn until(&self, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..2_400 {
            let answer = self.get(path).await.ok();
            if holds(&answer) {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{path} never came to what was expected");
    }

    pub(crate) async fn until_status(&self, run: &str, status: &str) -> Value {
        self.until(&format!("/api/v1/runs/{run}"), |view| view["summary"]["status"] == status).await
    }

    /// Another number each time.
    pub(crate) fn count(&self) -> u64 {
        self.counted.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks the server to stop.
    pub(crate) fn stop(&mut self) -> JoinHandle<()> {
        drop(self.stop.take());
        self.served.take().unwrap()
    }

    /// Ends the server and not its engine, which is another one's as well.
    pub(crate) async fn leave_server(mut self) {
        self.stop().await.unwrap();
    }

    /// Ends both, after the doctor's visit.
    pub(crate) async fn leave(mut self) {
        self.stop().await.unwrap();
        assert_eq!(self.engine.doctor().await.unwrap().findings, [], "the doctor has found something");
        self.engine.shutdown().await;
    }
}

/// A token that is good for an hour.
pub(crate) fn token(name: &str, namespace: &str, scopes: &[Scope]) -> NewToken {
    NewToken::draw(name, namespace, scopes, in_an_hour()).unwrap()
}

pub(crate) fn in_an_hour() -> outlast::Timestamp {
    now() + Duration::from_secs(3_600)
}

pub(crate) fn now() -> outlast::Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    outlast::Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}
