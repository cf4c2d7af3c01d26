//! Workflows inside a web application: orders that wait for their payment.
//!
//! `cargo run --example axum_app -- 127.0.0.1:8080 shop.db` serves:
//!
//! - `POST /orders/{id}` with `{"amount": 120}` starts an order; repeating it is harmless,
//! - `POST /orders/{id}/payments/{payment}` with `120` pays it; the payment's id makes that harmless to repeat too,
//! - `GET /orders/{id}` says where it stands,
//! - `DELETE /orders/{id}` cancels it.
//!
//! Stop it with Ctrl-C, or kill it, and start it again: the orders go on where they stood. Without arguments it takes a free
//! port and a file that goes away with it.

use std::time::Duration;

use axum::extract::{Json, Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use outlast::{Ctx, Engine, EngineError, Outlast};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Serialize, Deserialize)]
struct Order {
    amount: u32,
}

async fn order(ctx: Ctx, order: Order) -> outlast::Result<String> {
    let mut open = order.amount;
    while open > 0 {
        let Some(paid) = ctx.wait_for::<u32>("payment").timeout(Duration::from_secs(24 * 60 * 60)).await? else {
            return Ok(format!("expired with {open} open"));
        };
        open = open.saturating_sub(paid);
    }
    ctx.step("ship", async |s| Ok(format!("shipped under {}", s.idempotency_key()))).await
}

/// An error, as HTTP says it.
struct Refused(EngineError);

impl From<EngineError> for Refused {
    fn from(error: EngineError) -> Self {
        Refused(error)
    }
}

impl axum::response::IntoResponse for Refused {
    fn into_response(self) -> axum::response::Response {
        let status = match self.0.code() {
            "not_found" => StatusCode::NOT_FOUND,
            "run_lost" => StatusCode::GONE,
            "validation_error" => StatusCode::BAD_REQUEST,
            "signal_lost" | "run_exists" | "aborted" => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let body = json!({ "code": self.0.code(), "message": self.0.to_string() });
        (status, Json(body)).into_response()
    }
}

async fn create(
    State(engine): State<Engine>,
    Path(id): Path<String>,
    Json(order): Json<Order>,
) -> Result<(StatusCode, Json<Value>), Refused> {
    engine.start("order", &order).id(&id).await?;
    Ok((StatusCode::CREATED, Json(json!({ "order": id }))))
}

async fn pay(
    State(engine): State<Engine>,
    Path((id, payment)): Path<(String, String)>,
    Json(amount): Json<u32>,
) -> Result<StatusCode, Refused> {
    engine.run(&id)?.signal("payment", &amount, &payment).await?;
    Ok(StatusCode::ACCEPTED)
}

async fn show(State(engine): State<Engine>, Path(id): Path<String>) -> Result<Json<Value>, Refused> {
    let run = engine.run(&id)?;
    let status = run.status().await?;
    let outcome = if status.is_terminal() { run.result::<String>().await.ok() } else { None };
    Ok(Json(json!({ "order": id, "status": status.name(), "outcome": outcome })))
}

async fn cancel(State(engine): State<Engine>, Path(id): Path<String>) -> Result<StatusCode, Refused> {
    engine.run(&id)?.cancel("the customer changed their mind").await?;
    Ok(StatusCode::ACCEPTED)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let dir = tempfile::tempdir()?;
    let file = args.next().map_or_else(|| dir.path().join("shop.db"), Into::into);

    let engine = Outlast::sqlite(file).workflow("order", order).start().await?;
    let app = axum::Router::new()
        .route("/orders/{id}", post(create).get(show).delete(cancel))
        .route("/orders/{id}/payments/{payment}", post(pay))
        .route("/health", get(async || "ok"))
        .with_state(engine.clone());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app)
        .with_graceful_shutdown(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    engine.shutdown().await;
    println!("stopped");
    Ok(())
}
