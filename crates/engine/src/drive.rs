//! Driving one run, without a store and without a clock: journal, inbox and answers go in, commits come out.
//!
//! [`Run`] holds everything about a run that a node owns. Whoever holds it calls [`Run::advance`], sends what
//! [`Run::commit`] returns, and says how that went. All rules of replay are here; the program only sees facts.

mod draft;
mod end;
mod inbox;
mod lifecycle;
mod mismatch;
mod note;
mod record;
mod refuse;
mod request;
mod run;
mod table;
mod task;
mod terminate;
mod transaction;

pub(crate) use end::{OpenChild, report_of};
#[cfg(feature = "flow")]
pub(crate) use inbox::Intervention;
pub(crate) use inbox::{AnswerMeta, ControlMeta};
pub use lifecycle::Lifecycle;
pub(crate) use mismatch::{Mismatch, Requested as RequestedInstead};
pub(crate) use request::{approval_meta, derived_child_id};
pub(crate) use run::{Applied, Hints, Identity, Moment, Restored, Run, Settings, Stands, Stop, unseal};
pub use table::OperationInfo;
pub(crate) use terminate::Termination;
pub(crate) use transaction::{Body as TransactionBody, Transactions};
