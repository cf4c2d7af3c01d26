//! Random flows: nested containers, loop edges, failures.

use proptest::prelude::*;

/// A node, without its id.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Echo,
    Fails { handled: Handled },
    Script,
    Sleep(u8),
    Wait,
    Approve { when: bool },
    Child,
    Step,
    Each { items: u8, concurrency: u8, collect: u8, body: Vec<Shape> },
    Loop { until: u8, max: u8, body: Vec<Shape> },
    Parallel(Vec<Vec<Shape>>),
    If { holds: bool, then: Vec<Shape>, otherwise: Vec<Shape> },
    Switch { on: u8, cases: Vec<Vec<Shape>> },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Handled {
    No,
    Continue,
    /// To the last sibling.
    Goto,
}

#[derive(Clone, Debug)]
pub(crate) struct Random {
    pub(crate) nodes: Vec<Shape>,
    pub(crate) concurrency: u8,
    /// From, to, and how often its condition holds.
    pub(crate) back: Option<(u8, u8, u8)>,
}

fn leaf() -> impl Strategy<Value = Shape> {
    prop_oneof![
        4 => Just(Shape::Echo),
        1 => prop_oneof![1 => Just(Handled::No), 3 => Just(Handled::Continue), 2 => Just(Handled::Goto)]
            .prop_map(|handled| Shape::Fails { handled }),
        2 => Just(Shape::Script),
        1 => (0u8..5).prop_map(Shape::Sleep),
        1 => Just(Shape::Wait),
        1 => any::<bool>().prop_map(|when| Shape::Approve { when }),
        1 => Just(Shape::Child),
        1 => Just(Shape::Step),
    ]
}

fn node() -> impl Strategy<Value = Shape> {
    leaf().prop_recursive(3, 14, 3, |inner| {
        let body = || prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            3 => (0u8..4, 1u8..4, 0u8..3, body())
                .prop_map(|(items, concurrency, collect, body)| Shape::Each { items, concurrency, collect, body }),
            1 => (0u8..4, 2u8..4, body()).prop_map(|(until, max, body)| Shape::Loop { until, max, body }),
            1 => prop::collection::vec(prop::collection::vec(inner.clone(), 1..3), 1..3).prop_map(Shape::Parallel),
            1 => (any::<bool>(), body(), body())
                .prop_map(|(holds, then, otherwise)| Shape::If { holds, then, otherwise }),
            1 => (0u8..4, prop::collection::vec(prop::collection::vec(inner.clone(), 1..2), 1..3))
                .prop_map(|(on, cases)| Shape::Switch { on, cases }),
        ]
    })
}

pub(crate) fn flows() -> impl Strategy<Value = Random> {
    let nodes = prop::collection::vec(node(), 1..5);
    let back = prop::option::of((0u8..5, 0u8..5, 0u8..4));
    (nodes, prop_oneof![3 => Just(1u8), 1 => 2u8..4], back).prop_map(|(nodes, concurrency, back)| {
        let back = back.filter(|_| concurrency == 1);
        Random { nodes, concurrency, back }
    })
}

impl Random {
    pub(crate) fn text(&self) -> String {
        let mut ids = 0;
        let nodes = body(&self.nodes, &mut ids);
        let mut text = format!("flow: random\nconcurrency: {}\nnodes: {nodes}\n", self.concurrency);
        if let Some((from, to, holds)) = self.back {
            let count = self.nodes.len() as u8;
            let (from, to) = (from % count, to % count);
            let (from, to) = (from.max(to), from.min(to));
            let names = top_names(&self.nodes);
            // Whether it holds is known from the pass: nobody else counts.
            text.push_str(&format!(
                "edges: [{{ from: {}, to: {}, type: loop, max_iterations: 2, when: \"${{{holds} > 2 ? true : input.times > {holds} }}\" }}]\n",
                names[from as usize], names[to as usize]
            ));
        }
        // Where several run at once, failures lead only to what waits for them.
        if let (2.., [first @ .., last]) = (self.concurrency, &top_names(&self.nodes)[..]) {
            let edges: Vec<String> = first.iter().map(|from| format!("{{ from: {from}, to: {last} }}")).collect();
            text.push_str(&format!("edges: [{}]\n", edges.join(", ")));
        }
        text
    }
}

fn top_names(nodes: &[Shape]) -> Vec<String> {
    let mut ids = 0;
    nodes
        .iter()
        .map(|node| {
            let id = format!("n{ids}");
            let _ = text_of(node, &mut ids, None);
            id
        })
        .collect()
}

fn body(nodes: &[Shape], ids: &mut u32) -> String {
    // The last one is where failures may go to.
    let mut texts = Vec::new();
    let mut probe = *ids;
    let mut last = probe;
    for node in nodes {
        last = probe;
        let _ = text_of(node, &mut probe, None);
    }
    for (place, node) in nodes.iter().enumerate() {
        let goto = (place + 1 < nodes.len()).then_some(last);
        texts.push(text_of(node, ids, goto));
    }
    format!("[{}]", texts.join(", "))
}

fn text_of(node: &Shape, ids: &mut u32, goto: Option<u32>) -> String {
    let id = format!("n{ids}");
    *ids += 1;
    let rest = match node {
        Shape::Echo => "type: task, task: echo, with: { at: \"${run.id}\", key: 1 }".to_owned(),
        Shape::Fails { handled } => {
            let on_error = match (handled, goto) {
                (Handled::No, _) => String::new(),
                (Handled::Goto, Some(last)) => format!(", on_error: {{ goto: n{last} }}"),
                (Handled::Continue | Handled::Goto, _) => ", on_error: continue".to_owned(),
            };
            format!("type: task, task: fail, with: {{ code: broken }}{on_error}")
        }
        Shape::Script => "type: script, script: [\"${run.flow}\", \"${input.times + 1}\"]".to_owned(),
        Shape::Sleep(seconds) => format!("type: sleep, for: {seconds}"),
        Shape::Wait => "type: wait, signal: go".to_owned(),
        Shape::Approve { when } => format!("type: approve, title: ok, when: {when}"),
        Shape::Child => "type: workflow, workflow: kid".to_owned(),
        Shape::Step => "type: step, step: charge, with: 1".to_owned(),
        Shape::Each { items, concurrency, collect, body: nodes } => {
            let items: Vec<u8> = (0..*items).collect();
            let collect = ["none", "last", "all"][*collect as usize];
            let inner = body(nodes, ids);
            format!("type: foreach, items: {items:?}, concurrency: {concurrency}, collect: {collect}, body: {inner}")
        }
        Shape::Loop { until, max, body: nodes } => {
            let inner = body(nodes, ids);
            format!("type: loop, until: \"${{$iteration >= {until}}}\", max_iterations: {max}, body: {inner}")
        }
        Shape::Parallel(branches) => {
            let branches: Vec<String> =
                branches.iter().enumerate().map(|(at, nodes)| format!("b{at}: {}", body(nodes, ids))).collect();
            format!("type: parallel, branches: {{ {} }}", branches.join(", "))
        }
        Shape::If { holds, then, otherwise } => {
            let (then, otherwise) = (body(then, ids), body(otherwise, ids));
            format!("type: if, condition: \"${{{holds}}}\", then: {then}, else: {otherwise}")
        }
        Shape::Switch { on, cases } => {
            let cases: Vec<String> = cases
                .iter()
                .enumerate()
                .map(|(value, nodes)| format!("{{ value: {value}, body: {} }}", body(nodes, ids)))
                .collect();
            format!("type: switch, on: {on}, cases: [{}]", cases.join(", "))
        }
    };
    format!("{{ id: {id}, {rest} }}")
}
