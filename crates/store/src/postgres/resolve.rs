//! What became of a transaction whose reply was lost.

use outlast_core::id::TxnId;

use super::Core;
use super::failure::Failure;
use super::session::Session;
use crate::api::Resolution;
use crate::error::StoreError;

/// Waits while the transaction itself is in flight: its row is there, not yet committed. If it has not come so far, the
/// row inserted here forbids it: its own insert will fail.
const FORBID: &str = "INSERT INTO txn (id, applied) VALUES ($1, false) ON CONFLICT (id) DO NOTHING";
const ASK: &str = "SELECT applied FROM txn WHERE id = $1";

pub(super) async fn resolve(core: &Core, txn: TxnId) -> Result<Resolution, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    session.ask(FORBID, vec![Box::new(txn.0)]).await?;
    let rows = session.ask(ASK, vec![Box::new(txn.0)]).await?;
    let applied = match rows.first() {
        Some(row) => row.try_get(0).map_err(Failure::from)?,
        None => return Err(StoreError::corrupt("the table of transactions", "a row vanished")),
    };
    Ok(if applied { Resolution::Applied } else { Resolution::NotApplied })
}
