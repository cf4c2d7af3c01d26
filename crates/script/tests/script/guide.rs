//! The examples of `docs/script.md`: each is a script without a mistake, laid out as the formatter does, and gives what the
//! page says.

use outlast_core::failure::Failure;
use outlast_script::{Script, format};
use serde_json::{Value as Json, json};

use crate::stage::{Memory, Stage, tasks};

/// What stands before the result, in the last line of an example.
const GIVES: &str = "// gives ";

fn guide() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/script.md");
    std::fs::read_to_string(path).unwrap()
}

/// What stands between the fences, with the number of its first line.
fn examples(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        match &mut open {
            None if line.trim_end() == "```js" => open = Some((number + 2, String::new())),
            None => assert!(!line.starts_with("```"), "line {}: code that no test knows: {line}", number + 1),
            Some(_) if line.starts_with("```") => found.extend(open.take()),
            Some((_, example)) => {
                example.push_str(line);
                example.push('\n');
            }
        }
    }
    assert!(open.is_none(), "the last example has no end");
    found
}

#[test]
fn every_example_is_formatted_warns_of_nothing_and_gives_what_the_page_says() {
    let mut with_result = 0;
    let text = guide();
    for (line, example) in examples(&text) {
        let name = format!("docs/script.md:{line}");
        let script = Script::compile(&name, &example).unwrap_or_else(|found| panic!("{found}"));
        assert_eq!(script.warnings().list(), [], "{}", script.warnings());
        assert_eq!(format(&name, &example).unwrap(), example, "{name} is not formatted");
        let Some(expected) = example.lines().last().and_then(|last| last.strip_prefix(GIVES)) else {
            // It takes an input: it has a test of its own.
            assert_ne!(script.workflows(), [name.rsplit('/').next().unwrap()], "{name} does not say what it gives");
            continue;
        };
        let expected: Json = serde_json::from_str(expected).unwrap_or_else(|error| panic!("{name}: {error}"));
        for memory in [Memory::Hot, Memory::Restored, Memory::Rebuilt] {
            let ended = Stage::new(&script, "guide", &Json::Null, tasks).run(memory).ended();
            assert_eq!(ended.result, Ok(expected.clone()), "{name}, {memory:?}");
        }
        with_result += 1;
    }
    assert!(with_result >= 4, "{with_result} examples");
}

#[test]
fn the_first_example_takes_an_order_and_charges_for_it() {
    fn shop(name: &str, args: &Json) -> Result<Json, Failure> {
        assert_eq!((name, &args["order"]), ("charge", &json!(7)));
        Ok(json!({ "id": format!("charge of {}", args["total"]) }))
    }
    let text = guide();
    let script = Script::compile("guide.wf", &examples(&text)[0].1).unwrap_or_else(|found| panic!("{found}"));
    let order = json!({ "id": 7, "lines": [{ "price": 20, "count": 2 }, { "price": 5, "count": 1 }] });
    let ended = Stage::new(&script, "checkout", &order, shop).run(Memory::Restored).ended();
    assert_eq!(ended.result, Ok(json!({ "status": "paid", "charge": "charge of 45" })));
    // A dear one waits for somebody, and nobody comes for a day.
    let order = json!({ "id": 7, "lines": [{ "price": 2000, "count": 1 }] });
    let ended = Stage::new(&script, "checkout", &order, shop).run(Memory::Restored).ended();
    assert_eq!(ended.result.unwrap_err().code, "timeout");
}
