//! The flows in `examples/flows` and in the guide.

use std::fs;
use std::path::PathBuf;

use outlast_core::failure::Failure;
use outlast_flow::{Flow, Picture, render};
use serde_json::{Value as Json, json};

use crate::everywhere::everywhere;
use crate::stage::{Stage, World};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn example(name: &str) -> Flow {
    let text = fs::read_to_string(root().join("examples/flows").join(name)).unwrap();
    let flow = Flow::parse(name, &text).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(flow.warnings().list(), [], "{}", flow.warnings());
    flow
}

fn output(name: &str, input: &Json, world: World) -> Json {
    everywhere(&example(name), input, world).unwrap_or_else(|failure| panic!("{name}: {failure}"))
}

#[test]
fn an_order_is_fulfilled_line_by_line() {
    let world = World {
        work: |name, args, key| match name {
            "load_order" => Ok(json!({ "id": args["id"], "lines": [{ "sku": "a" }, { "sku": "b" }] })),
            "reserve" => Ok(json!({ "box": format!("box-{}", args["sku"].as_str().unwrap()) })),
            "ship" => Ok(json!({ "retry": !key.as_str().starts_with("pass-"), "parcel": "p-1" })),
            _ => Ok(args.clone()),
        },
        decide: |title| Some(title == "Ship order 42 with 2 lines?"),
        ..World::default()
    };
    assert_eq!(output("fulfil.flow.yaml", &json!({ "order_id": 42 }), world), json!({ "order": 42, "parcel": "p-1" }));
}

#[test]
fn a_stocktake_goes_three_containers_deep() {
    let world = World { work: |_, args, _| Ok(args["box"].clone()), ..World::default() };
    let shelves = |boxes: [[u32; 2]; 2]| json!(boxes.map(|boxes| json!({ "boxes": boxes })));
    let input = json!({ "warehouses": [
        { "name": "north", "shelves": shelves([[1, 2], [3, 4]]) },
        { "name": "south", "shelves": shelves([[5, 6], [7, 8]]) },
    ] });
    assert_eq!(output("nested.flow.yaml", &input, world), json!(26));
}

#[test]
fn a_payment_is_tried_again_by_a_loop_edge() {
    let world = World {
        work: |name, args, key| match (name, key.as_str()) {
            ("charge", "charge" | "pass-2/charge") => Err(Failure::new("declined", "the bank said no")),
            ("charge", _) => Ok(json!("paid")),
            _ => Ok(args.clone()),
        },
        ..World::default()
    };
    assert_eq!(output("retry.flow.yaml", &json!(5), world)["outcome"], json!({ "paid": "paid" }));
    let hopeless = World {
        work: |name, args, _| match name {
            "charge" => Err(Failure::new("declined", "the bank said no")),
            _ => Ok(args.clone()),
        },
        ..World::default()
    };
    let given_up = output("retry.flow.yaml", &json!(5), hopeless);
    assert_eq!(given_up["outcome"], json!({ "give_up": "could not charge: declined" }));
    assert_eq!(given_up["charge_count"]["n"], 4);
}

#[test]
fn an_expense_waits_for_its_approval_inside_of_the_branch() {
    let flow = example("approval.flow.yaml");
    let small = everywhere(&flow, &json!({ "amount": 50, "who": "ada" }), World::default()).unwrap();
    assert_eq!(small, json!("paid"));
    let yes = World { decide: |_| Some(true), ..World::default() };
    let no = World { decide: |_| Some(false), ..World::default() };
    let large = json!({ "amount": 5000, "who": "ada" });
    assert_eq!(everywhere(&flow, &large, yes).unwrap(), json!("paid"));
    assert_eq!(everywhere(&flow, &large, no).unwrap(), json!("refused"));
    let mut nobody = Stage::new(&flow, &large, World::default());
    nobody.run_to(4);
    assert_eq!(nobody.told().last().unwrap(), "APPROVAL_REQUESTED check/0/ok");
}

#[test]
fn scripts_children_steps_and_callbacks_work_beside_each_other() {
    let world = World {
        work: |name, args, key| match name {
            "laptop_status" => Ok(json!({ "ready": key.as_str().starts_with("poll/2/") })),
            _ => Ok(args.clone()),
        },
        signal: |_| Some(json!("Monday")),
        ..World::default()
    };
    assert_eq!(
        output("mixed.flow.yaml", &json!({ "name": "Ada" }), world),
        json!("Ada starts on Monday, after 3 looks")
    );
}

#[test]
fn every_example_is_played_by_a_test_and_fits_the_published_schema() {
    let schema: Json = serde_json::from_str(outlast_flow::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let source = include_str!("examples.rs");
    let mut count = 0;
    for entry in fs::read_dir(root().join("examples/flows")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // Beside them lie the tasks and the child that the binary runs them with.
        if !name.ends_with(".flow.yaml") {
            continue;
        }
        assert!(source.contains(&format!("\"{name}\"")), "{name} is played by no test");
        let json = outlast_flow::to_json(&fs::read_to_string(&path).unwrap()).unwrap();
        let problems: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert_eq!(problems, [""; 0], "{name}");
        count += 1;
    }
    assert!(count >= 5);
}

#[test]
fn the_published_schema_has_the_fields_the_reader_knows() {
    use outlast_flow::fields;
    let schema: Json = serde_json::from_str(outlast_flow::SCHEMA).unwrap();
    let names = |at: &Json| {
        let mut names: Vec<String> = at["properties"].as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    let sorted = |known: &[&str]| {
        let mut known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
        known.sort();
        known
    };
    let defs = &schema["$defs"];
    assert_eq!(names(&schema), sorted(fields::FLOW));
    assert_eq!(names(&schema["properties"]["defaults"]), sorted(fields::DEFAULTS));
    assert_eq!(names(&defs["retry"]), sorted(fields::RETRY));
    assert_eq!(names(&defs["edge"]), sorted(fields::EDGE));
    assert_eq!(names(&defs["case"]), sorted(fields::CASE));
    let words: Vec<&str> = fields::TYPES.iter().map(|(word, _)| *word).collect();
    assert_eq!(defs["node"]["properties"]["type"]["enum"], json!(words));
    for (word, own) in fields::TYPES {
        let all: Vec<&str> = fields::NODE.iter().chain(*own).copied().collect();
        assert_eq!(names(&defs[*word]), sorted(&all), "{word}");
    }
}

#[test]
fn what_the_reader_refuses_the_schema_refuses_where_it_can() {
    let schema: Json = serde_json::from_str(outlast_flow::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for text in [
        "flow: f",
        "flow: f\nnodes: [{ id: a, type: tusk }]",
        "flow: f\nnodes: [{ id: a, type: task, task: t, wiht: 1 }]",
        "flow: f\nnodes: [{ id: a-b, type: task, task: t }]",
        "flow: f\nnodes: [{ id: a, type: task, task: t }]\nedges: [{ from: a, to: a, type: loop }]",
        "flow: f\nnodes: [{ id: a, type: task, task: t }]\nedges: [{ from: a, to: a, max_iterations: 3 }]",
        "flow: f\nnodes: [{ id: a, type: sleep, for: 1s, until: 3 }]",
        "flow: f\nnodes: [{ id: a, type: foreach, items: [], body: [] }]",
    ] {
        assert!(Flow::parse("f.flow.yaml", text).is_err(), "{text}");
        assert!(!validator.is_valid(&outlast_flow::to_json(text).unwrap()), "{text}");
    }
}

#[test]
fn pictures_show_the_flow_and_where_a_run_stands() {
    let flow = example("approval.flow.yaml");
    let mut stage = Stage::new(&flow, &json!({ "amount": 500, "who": "ada" }), World::default());
    stage.run_to(4);
    let position = stage.position();
    insta::assert_snapshot!("approval_mermaid", render(&flow, Some(&position), Picture::Mermaid));
    insta::assert_snapshot!("approval_dot", render(&flow, Some(&position), Picture::Dot));
    let flow = example("fulfil.flow.yaml");
    insta::assert_snapshot!("fulfil_mermaid", render(&flow, None, Picture::Mermaid));
}

#[test]
fn every_flow_in_the_guide_is_read() {
    let guide = fs::read_to_string(root().join("docs/flow.md")).unwrap();
    let mut count = 0;
    for (place, block) in guide.split("```yaml").skip(1).enumerate() {
        let text = block.split("```").next().unwrap();
        let text = if text.contains("nodes:") { text.to_owned() } else { format!("flow: part\nnodes:\n{text}") };
        if let Err(found) = Flow::parse(&format!("docs/flow.md #{place}"), &text) {
            panic!("{found}");
        }
        count += 1;
    }
    assert_eq!(count, 7);
}
