//! The API, one file per noun.

mod approvals;
mod bulk;
mod callbacks;
mod control;
mod convert;
mod events;
mod health;
mod live;
mod runs;
mod schedules;
mod session;
mod sql;
mod tasks;
mod work;
mod workflows;

use utoipa::OpenApi;
use utoipa_axum::routes;

use crate::auth::{Needs, Scope};
use crate::dto::ErrorBody;
use crate::hooks;
use crate::table::Table;

/// What the document says about the whole.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Outlast",
        description = "Workflows that outlast crashes, deploys and months. A request carries a token \
                       (`Authorization: Bearer …`), which decides the namespace. Writes take an `Idempotency-Key`."
    ),
    components(schemas(ErrorBody))
)]
pub(crate) struct Document;

const NOTHING: Needs = Needs::Nothing;
const READ: Needs = Needs::Scope(Scope::Read);
const START: Needs = Needs::Scope(Scope::Start);
const SIGNAL: Needs = Needs::Scope(Scope::Signal);
const APPROVE: Needs = Needs::Scope(Scope::Approve);
const WORKER: Needs = Needs::Scope(Scope::Worker);
const ADMIN: Needs = Needs::Scope(Scope::Admin);

/// Every route there is, and what it needs.
pub(crate) fn table() -> Table {
    Table::default()
        .add(NOTHING, routes!(health::page))
        .add(NOTHING, routes!(health::healthz))
        .add(NOTHING, routes!(health::readyz))
        .add(ADMIN, routes!(health::metrics))
        .add(NOTHING, routes!(health::openapi))
        .add(READ, routes!(health::whoami))
        .add(NOTHING, routes!(session::begin))
        .add(NOTHING, routes!(session::end))
        .add_once(ADMIN, routes!(health::doctor))
        .add(ADMIN, routes!(sql::ask))
        .add(READ, routes!(workflows::list))
        .add_once(ADMIN, routes!(workflows::put))
        .add(READ, routes!(workflows::get))
        .add(READ, routes!(workflows::versions))
        .add(READ, routes!(workflows::version))
        .add(START, routes!(runs::start))
        .add(READ, routes!(runs::list))
        .add(READ, routes!(live::counts))
        .add(READ, routes!(live::changes))
        .add(READ, routes!(runs::get))
        .add_once(ADMIN, routes!(runs::delete))
        .add(READ, routes!(runs::result))
        .add(READ, routes!(runs::explain))
        .add(READ, routes!(runs::operations))
        .add(READ, routes!(runs::export))
        .add(READ, routes!(runs::position))
        .add(READ, routes!(runs::trace))
        .add(READ, routes!(runs::locations))
        .add(READ, routes!(events::page))
        .add(READ, routes!(events::stream))
        .add(SIGNAL, routes!(control::signal))
        .add(ADMIN, routes!(control::pause))
        .add(ADMIN, routes!(control::resume))
        .add(ADMIN, routes!(control::cancel))
        .add_once(ADMIN, routes!(control::terminate))
        .add_once(ADMIN, routes!(control::unpark))
        .add(ADMIN, routes!(control::fork))
        .add(ADMIN, routes!(control::retry))
        .add(ADMIN, routes!(control::skip))
        .add(ADMIN, routes!(bulk::begin))
        .add(READ, routes!(bulk::get))
        .add(READ, routes!(approvals::list))
        .add(APPROVE, routes!(approvals::decide))
        .add(NOTHING, routes!(callbacks::resolve))
        .add(NOTHING, routes!(callbacks::fail))
        .add(NOTHING, routes!(callbacks::heartbeat))
        .add(READ, routes!(schedules::list))
        .add_once(ADMIN, routes!(schedules::put))
        .add(READ, routes!(schedules::get))
        .add_once(ADMIN, routes!(schedules::remove))
        .add_once(ADMIN, routes!(schedules::pause))
        .add_once(ADMIN, routes!(schedules::resume))
        .add(ADMIN, routes!(schedules::trigger))
        .add_once(ADMIN, routes!(schedules::backfill))
        .add(READ, routes!(tasks::list))
        .add(START, routes!(tasks::enqueue))
        .add(READ, routes!(tasks::get))
        .add_once(ADMIN, routes!(tasks::retry))
        .add_once(ADMIN, routes!(tasks::discard))
        .add(READ, routes!(work::list))
        .add(WORKER, routes!(work::claim))
        .add(WORKER, routes!(work::heartbeat))
        .add(WORKER, routes!(work::complete))
        .add(WORKER, routes!(work::fail))
        .add(WORKER, routes!(work::give_back))
        .add(NOTHING, routes!(hooks::receive))
}

/// Fields of requests that are one of a few words, and these.
pub(crate) fn words() -> [(&'static str, Vec<&'static str>); 2] {
    [("action", bulk::actions()), ("overlap", schedules::overlaps())]
}
