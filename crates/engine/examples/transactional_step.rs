//! Money is moved in the engine's own database: the two updates and the record that they were made are one commit, so the
//! transfer happens once, whatever crashes when.
//!
//! ```text
//! cargo run --example transactional_step [file]
//! ```
//!
//! Run it twice with the same file: the second time the run is there already, and nothing moves again.

use std::time::Duration;

use outlast::{Ctx, Error, Outlast, Retry, Tx, params};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
struct Transfer {
    from: String,
    to: String,
    amount: i64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Balances {
    from: i64,
    to: i64,
}

/// Tables are the author's own. They may be made here, or with any other connection.
async fn open_accounts(tx: Tx) -> outlast::Result<()> {
    tx.execute(
        "CREATE TABLE IF NOT EXISTS account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0))",
        params![],
    )
    .await?;
    for (id, balance) in [("ann", 100), ("ben", 0)] {
        let sql = "INSERT INTO account (id, balance) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        tx.execute(sql, params![id, balance]).await?;
    }
    Ok(())
}

/// Both updates, or none.
async fn move_money(tx: Tx, transfer: Transfer) -> outlast::Result<Balances> {
    let Transfer { from, to, amount } = transfer;
    let change = "UPDATE account SET balance = balance + ?1 WHERE id = ?2 RETURNING balance";
    let from = tx.query_one(change, params![-amount, from]).await?.get("balance")?;
    let to = tx.query_one(change, params![amount, to]).await?.get("balance")?;
    Ok(Balances { from, to })
}

async fn transfer(ctx: Ctx, transfer: Transfer) -> outlast::Result<Balances> {
    if transfer.amount <= 0 {
        return Err(Error::new("bad_amount", "the amount must be more than zero").permanent());
    }
    ctx.transaction("open", open_accounts).await?;
    ctx.transaction("move", move |tx| move_money(tx, transfer.clone()))
        .retry(Retry::attempts(3).initial(Duration::from_millis(100)))
        .await
}

/// What is in the accounts now, beside what any run has recorded.
async fn look(ctx: Ctx, _: ()) -> outlast::Result<Vec<(String, i64)>> {
    ctx.transaction("look", |tx| async move {
        let rows = tx.query("SELECT id, balance FROM account ORDER BY id", params![]).await?;
        rows.iter().map(|row| Ok((row.get("id")?, row.get("balance")?))).collect()
    })
    .await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| std::env::temp_dir().join("outlast-transactional-step.db").to_string_lossy().into_owned());
    let engine = Outlast::sqlite(path).workflow("transfer", transfer).workflow("look", look).start().await?;
    let order = Transfer { from: "ann".to_owned(), to: "ben".to_owned(), amount: 30 };
    let run = engine.start("transfer", &order).id("transfer-1").await?;
    let balances: Balances = run.result().await?;
    println!("transfer-1 left ann with {} and ben with {}", balances.from, balances.to);
    for (id, balance) in engine.start("look", &()).await?.result::<Vec<(String, i64)>>().await? {
        println!("{id} has {balance}");
    }
    engine.shutdown().await;
    Ok(())
}
