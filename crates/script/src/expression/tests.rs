use serde_json::json;

use super::*;

fn scope(name: &str) -> Option<Arc<Json>> {
    match name {
        "order" => {
            Some(Arc::new(json!({ "id": 7, "lines": [{ "sku": "a", "n": 2 }, { "sku": "b", "n": 3 }], "note": null })))
        }
        "$iteration" => Some(Arc::new(json!(3))),
        _ => None,
    }
}

const NAMES: &[&str] = &["order", "$iteration", "messages"];

fn value(text: &str) -> Json {
    let expression = Expression::compile(text, NAMES).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
    expression.evaluate(scope, EXPRESSION_LIMITS).unwrap_or_else(|failure| panic!("{text}: {failure}"))
}

fn problem(text: &str) -> (&'static str, Span, Option<String>) {
    let problems = Expression::compile(text, NAMES).expect_err(text);
    (problems[0].code, problems[0].span, problems[0].help.clone())
}

#[test]
fn an_expression_has_the_value_a_script_would_give_it() {
    let cases = [
        ("1 + 2 * 3", json!(7)),
        ("order.id", json!(7)),
        ("order.lines", json!([{ "sku": "a", "n": 2 }, { "sku": "b", "n": 3 }])),
        ("order.lines.length", json!(2)),
        ("order.lines.map(({ n }) => n * 2)", json!([4, 6])),
        ("order.lines[1].sku + '!'", json!("b!")),
        ("`#${order.id}`", json!("#7")),
        ("messages ?? 'none'", json!("none")),
        ("order.note?.text", json!(null)),
        ("{ order, at: $iteration }.at", json!(3)),
        ("$iteration > 2 && !order.note // why", json!(true)),
        ("Math.max(...order.lines.map(order => order.n))", json!(3)),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

/// Of all that a name stands for only what is looked at is given to the machine: nobody may see that.
#[test]
fn with_what_it_looks_at_an_expression_comes_to_what_it_would_with_everything() {
    for text in [
        "order.id + order.lines.length",
        "order.lines.length == 2 && order.note == null",
        "[order.id, order.lines.map(line => line.sku), order.missing]",
        "order.id.missing",
        "order.note.text.more",
        "order.missing.more",
        "order.lines.length.x + order.lines.length",
        "order.lines.missing",
        "order.id == order.id && order.lines == order.lines",
        "order.lines[0] == order.lines[0] ? order.lines[1].n : order",
        "order.toString == null",
        "{ ...order, id: order.id + 1 }",
        "(order => order.id)({ id: order.id, lines: order.lines.length })",
        "order.ship()",
        "order.id.ship(order.lines.lenght)",
        "$iteration.x + order.id",
        "typeof order.lines + typeof order.id + typeof order.note + typeof messages.x",
        "`${order.lines} ${order.id}`",
    ] {
        let expression = Expression::compile(text, NAMES).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
        let partly = expression.compute(&scope, EXPRESSION_LIMITS, |needs| needs);
        let wholly = expression.compute(&scope, EXPRESSION_LIMITS, |_| &Needs::All);
        assert_eq!(partly, wholly, "{text}");
    }
}

#[test]
fn an_expression_costs_what_it_looks_at() {
    let input = Arc::new(json!({ "items": vec!["item"; 10_000], "stop": 3 }));
    let scope = |_: &str| Some(Arc::clone(&input));
    let limits = Limits { heap_bytes: 400 * 1024, garbage_bytes: 1024, ..EXPRESSION_LIMITS };
    for text in ["[input.stop].length == 1", "[input.items.length, input.stop][0] == 10000"] {
        let expression = Expression::compile(text, &["input"]).unwrap();
        assert_eq!(expression.evaluate(scope, limits), Ok(json!(true)), "{text}");
        let all = expression.compute(&scope, limits, |_| &Needs::All);
        assert_eq!(
            all.unwrap_err().code,
            "heap_limit",
            "this has room for what is needed, and for nothing more: {text}"
        );
    }
}

#[test]
fn an_unknown_name_is_told_with_its_place_and_the_name_that_was_meant() {
    assert_eq!(problem("1 + ordr.id"), ("unknown_name", Span::new(4, 8), Some("did you mean `order`?".to_owned())));
    assert_eq!(problem("zebra").2.as_deref(), Some("known are: order, $iteration, messages"),);
}

#[test]
fn what_waits_asks_or_changes_something_is_refused() {
    for text in [
        "await order",
        "Task.run('x')",
        "Time.now()",
        "Id.uuid()",
        "Math.random()",
        "[Math].map(m => Math.random)",
        "log(1)",
        "order.id = 3",
        "order.id++",
        "delete order.id",
        "(() => { return 1 })()",
        "async () => 1",
        "Inputs.order",
        "Context.runId",
    ] {
        assert_eq!(problem(text).0, "not_in_expressions", "{text}");
    }
    for text in ["1); while (true) {} (2", "1) + (2; 3", "", "return 1", "if (1) 2", "1; 2", "order.", "(", "\n)\n("] {
        assert!(Expression::compile(text, NAMES).is_err(), "{text}");
    }
}

#[test]
fn references_are_free_names_with_the_fields_read_from_them() {
    let expression =
        Expression::compile("order.lines.map(order => order.x) + order?.a.b + messages.length", NAMES).unwrap();
    let found: Vec<(String, Vec<String>)> = expression
        .references()
        .iter()
        .map(|reference| {
            (reference.name.to_string(), reference.fields.iter().map(|(field, _)| field.to_string()).collect())
        })
        .collect();
    assert_eq!(
        found,
        [
            ("order".to_owned(), vec!["lines".to_owned()]),
            ("order".to_owned(), vec![]),
            ("messages".to_owned(), vec!["length".to_owned()]),
        ]
    );
    assert_eq!(expression.references()[0].span, Span::new(0, 5));
}

#[test]
fn a_failure_says_what_was_wrong_in_one_line() {
    let expression = Expression::compile("order.note.text", NAMES).unwrap();
    let failure = expression.evaluate(scope, EXPRESSION_LIMITS).unwrap_err();
    assert_eq!(failure.code, "type_error");
    assert!(failure.permanent && !failure.message.contains('\n'), "{failure}");
}

#[test]
fn an_expression_without_end_is_stopped() {
    let text = "[1,2,3,4,5,6,7,8].flatMap(a => '12345678'.split('').flatMap(b => '12345678'.split('').flatMap(c => \
                '12345678'.split('').flatMap(d => '12345678'.split('').flatMap(e => '12345678'.split(''))))))";
    let expression = Expression::compile(text, NAMES).unwrap();
    assert_eq!(expression.evaluate(scope, EXPRESSION_LIMITS).unwrap_err().code, "instruction_limit");
}
