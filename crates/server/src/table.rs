//! The one way a route comes into the server: with what it needs.

use axum::Router;
use axum::middleware::from_fn_with_state;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, PathItem, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::app::App;
use crate::auth::{Needs, Scope, guard};
use crate::body::{IdempotencyKey, KEY_BYTES_MAX};

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
    entries: Vec<(Needs, UtoipaMethodRouter<App>)>,
}

impl Table {
    /// Adds the routes of one path.
    pub(crate) fn add(mut self, needs: Needs, (schemas, mut paths, methods): UtoipaMethodRouter<App>) -> Table {
        for (path, item) in &mut paths.paths {
            for (method, operation) in operations(item) {
                describe(path, needs, operation);
                // A webhook's own id says that it is the same again, and a session changes nothing that lasts.
                if method != "GET" && !path.starts_with("/hooks/") && path != "/api/v1/session" {
                    take_key(operation);
                }
            }
        }
        self.entries.push((needs, (schemas, paths, methods)));
        self
    }

    /// What every route needs.
    pub(crate) fn routes(&mut self) -> Vec<Route> {
        let mut routes = Vec::new();
        for (needs, (_, paths, _)) in &mut self.entries {
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
        for (needs, (schemas, paths, methods)) in self.entries {
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
fn describe(path: &str, needs: Needs, operation: &mut Operation) {
    let requirement = needs.scope().map(|scope| SecurityRequirement::new(BEARER, [scope.name()]));
    operation.security = Some(requirement.into_iter().collect());
    // Functions are named for the file they are in; a document names them for all.
    let about = path.strip_prefix("/api/v1/").and_then(|path| path.split('/').next());
    if let (Some(about), Some(name)) = (about, &mut operation.operation_id) {
        *name = format!("{about}_{name}");
    }
    operation.responses.responses.insert("default".to_owned(), RefOr::T(refusal()));
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
    let parameter = ParameterBuilder::new()
        .name(IdempotencyKey::NAME)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("The same write under the same key is done once."))
        .schema(Some(schema.build()))
        .build();
    operation.parameters.get_or_insert_default().push(parameter.into());
}

fn refusal() -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
    ResponseBuilder::new().description("Why it was not done.").content("application/json", content).build()
}
