//! The one way a route comes into the server: with what it needs.

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, PathItem, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::app::App;
use crate::auth::{Needs, Scope, guard};
use crate::body::{IdempotencyKey, KEY_BYTES_MAX};
use crate::replies;

/// The name of the tokens in the OpenAPI document.
const BEARER: &str = "token";

/// What every name and id is: of printable characters.
const PRINTABLE: &str = r"^[^\u0000-\u001f\u007f-\u009f]+$";

/// A route, and what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// `GET`, `POST` …
    pub method: &'static str,
    /// With its parameters in braces.
    pub path: String,
    /// The scope a token must have; none if nobody needs to show one.
    pub scope: Option<Scope>,
}

/// The routes of a server. Nothing is added without saying what it needs, so that no route can be forgotten.
#[derive(Default)]
pub(crate) struct Table {
    entries: Vec<Entry>,
}

struct Entry {
    needs: Needs,
    /// Whether what was replied under a key is kept, because nothing else knows that it is the same again.
    keeps_replies: bool,
    routes: UtoipaMethodRouter<App>,
}

impl Table {
    /// Adds the routes of one path.
    pub(crate) fn add(self, needs: Needs, routes: UtoipaMethodRouter<App>) -> Table {
        self.enter(needs, false, routes)
    }

    /// Adds the routes of one path, which reply the same again to the same again under its key.
    pub(crate) fn add_once(self, needs: Needs, routes: UtoipaMethodRouter<App>) -> Table {
        self.enter(needs, true, routes)
    }

    fn enter(mut self, needs: Needs, keeps_replies: bool, mut routes: UtoipaMethodRouter<App>) -> Table {
        for (path, item) in &mut routes.1.paths {
            for (method, operation) in operations(item) {
                describe(method, path, needs, operation);
                // A webhook's own id says that it is the same again, and a session changes nothing that lasts.
                if method != "GET" && !path.starts_with("/hooks/") && path != "/api/v1/session" {
                    take_key(operation);
                }
            }
        }
        self.entries.push(Entry { needs, keeps_replies, routes });
        self
    }

    /// What every route needs.
    pub(crate) fn routes(&mut self) -> Vec<Route> {
        let mut routes = Vec::new();
        for Entry { needs, routes: (_, paths, _), .. } in &mut self.entries {
            for (path, item) in &mut paths.paths {
                let found = operations(item).into_iter();
                routes.extend(found.map(|(method, _)| Route { method, path: path.clone(), scope: needs.scope() }));
            }
        }
        routes
    }

    /// The router, each route behind what it needs, and its document.
    pub(crate) fn build(self, document: OpenApi, app: Option<&App>) -> (Router<App>, OpenApi) {
        let mut router = OpenApiRouter::with_openapi(document);
        for Entry { needs, keeps_replies, routes: (schemas, paths, methods) } in self.entries {
            // Behind the guard: it says whose keys they are.
            let methods = if keeps_replies { methods.route_layer(from_fn(replies::once)) } else { methods };
            let methods = match (needs.scope(), app) {
                (Some(scope), Some(app)) => methods.route_layer(from_fn_with_state((app.clone(), scope), guard)),
                (None, Some(_)) => methods,
                // Only the document is wanted: there is nothing behind these routes.
                (_, None) => axum::routing::MethodRouter::new(),
            };
            router = router.routes((schemas, paths, methods));
        }
        let (router, mut document) = router.split_for_parts();
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        let refusals = REFUSALS.map(|(status, why)| (refusal_name(status), RefOr::T(refusal(why))));
        components.responses.extend(refusals);
        components.security_schemes.insert(BEARER.to_owned(), RefOr::T(SecurityScheme::Http(scheme)));
        (router, document)
    }
}

/// The operations of a path. A method that is missing here would not be found by the tests that go through all routes, so
/// [`Table::routes`] is compared with the document.
fn operations(item: &mut PathItem) -> Vec<(&'static str, &mut Operation)> {
    let all = [("GET", &mut item.get), ("PUT", &mut item.put), ("POST", &mut item.post), ("DELETE", &mut item.delete)];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?))).collect()
}

/// What is the same for all: which token, which parts of the path vary, what a refusal looks like.
fn describe(method: &str, path: &str, needs: Needs, operation: &mut Operation) {
    let requirement = needs.scope().map(|scope| SecurityRequirement::new(BEARER, [scope.name()]));
    operation.security = Some(requirement.into_iter().collect());
    // Functions are named for the file they are in; a document names them for all.
    let about = path.strip_prefix("/api/v1/").and_then(|path| path.split('/').next());
    if let (Some(about), Some(name)) = (about, &mut operation.operation_id) {
        *name = format!("{about}_{name}");
    }
    for (status, _) in REFUSALS {
        if may_refuse(status, method, path, needs, operation) {
            let refused = RefOr::Ref(Ref::from_response_name(refusal_name(status)));
            operation.responses.responses.entry(status.to_string()).or_insert(refused);
        }
    }
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    for name in names {
        let schema =
            ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).pattern(Some(PRINTABLE)).build();
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(schema))
            .build();
        operation.parameters.get_or_insert_default().push(parameter.into());
    }
}

/// Every write can be repeated under a key.
fn take_key(operation: &mut Operation) {
    let schema = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(KEY_BYTES_MAX));
    // Blanks around it are no part of it: alone they are none.
    let schema = schema.pattern(Some("^[ -~]*[!-~][ -~]*$"));
    let parameter = ParameterBuilder::new()
        .name(IdempotencyKey::NAME)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("The same write under the same key is done once; docs/api.md says for how long."))
        .schema(Some(schema.build()))
        .build();
    operation.parameters.get_or_insert_default().push(parameter.into());
}

/// Refusals, each with why.
const REFUSALS: [(u16, &str); 14] = [
    (400, "The request is not what this document describes."),
    (401, "No valid token, session or signature was shown."),
    (403, "Whoever asks may not do this, or not from there."),
    (404, "There is no such thing in this namespace."),
    (408, "The body did not arrive in time."),
    (409, "It cannot be done as things stand, or something else was asked for before under this id or key."),
    (410, "It was deleted."),
    (413, "Something is larger than its limit."),
    (415, "The body is not JSON."),
    (422, "The request can be read, and says what cannot be."),
    (429, "There are too many of them at once, or the namespace asks too often."),
    (500, "A fault of the server."),
    (503, "The database does not answer, or the server is shutting down."),
    (507, "The disk is full."),
];

/// Whether a route may refuse with this status: what is the same for all of its kind.
fn may_refuse(status: u16, method: &str, path: &str, needs: Needs, operation: &Operation) -> bool {
    // They tell of the server itself, and refuse nobody.
    if matches!(path, "/" | "/healthz" | "/readyz" | "/openapi.json") {
        return false;
    }
    let writes = method != "GET";
    match status {
        400 | 422 => writes || path.contains('{') || operation.parameters.as_ref().is_some_and(|all| !all.is_empty()),
        401 | 403 => needs.scope().is_some() || path.starts_with("/hooks/") || path == "/api/v1/session",
        409 => writes || path.contains("{run}"),
        408 | 413 | 415 | 507 => writes,
        410 => writes || path.contains("{run}"),
        429 => needs.scope().is_some(),
        _ => true,
    }
}

fn refusal_name(status: u16) -> String {
    format!("Refused{status}")
}

fn refusal(why: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
    ResponseBuilder::new().description(why).content("application/json", content).build()
}
