//! What a webhook makes of a body: an expression of the script language, which sees the body and nothing else.

use std::sync::Arc;

use outlast_script::{EXPRESSION_LIMITS, Expression};
use serde_json::Value;

use crate::error::{ApiError, ApiResult};

/// The one name an expression can use.
const BODY: &str = "body";

/// Whether it can be evaluated at all.
pub(super) fn check(text: &str) -> Result<(), String> {
    let first = |problems: Vec<outlast_script::Diagnostic>| {
        problems.first().map_or(String::new(), |problem| problem.message.clone())
    };
    Expression::compile(text, &[BODY]).map(drop).map_err(first)
}

/// What it makes of a body. It has no time, no chance and no I/O, and only so many instructions.
pub(super) fn evaluate(text: &str, body: &Value) -> ApiResult<Value> {
    let refused = |why: String| ApiError::unfit(format!("the webhook's expression makes nothing of this body: {why}"));
    let expression = Expression::compile(text, &[BODY]).map_err(|_| refused("it cannot be read".to_owned()))?;
    let body = Arc::new(body.clone());
    let scope = |name: &str| (name == BODY).then(|| Arc::clone(&body));
    expression.evaluate(scope, EXPRESSION_LIMITS).map_err(|failure| refused(failure.message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_expression_sees_the_body_and_nothing_else() {
        let body = json!({ "data": { "order": 7, "lines": [{ "price": 2 }, { "price": 3 }] } });
        assert_eq!(evaluate("`order-${body.data.order}`", &body).unwrap(), json!("order-7"));
        let made = evaluate("({ sum: body.data.lines.map(l => l.price).reduce((a, b) => a + b, 0) })", &body);
        assert_eq!(made.unwrap(), json!({ "sum": 5 }));
        assert!(check("env.SECRET").is_err() && check("body.").is_err());
        assert!(evaluate("body.nothing.at.all", &body).is_err());
        let endless = "[1].map(function f(x) { while (true) { } })";
        assert!(check(endless).is_err() || evaluate(endless, &body).is_err());
    }
}
